# SPDX-License-Identifier: Apache-2.0
"""Engines, which run a firmware on an emulated or a real board."""

from ferrule.emulation.contract import ContractCounts, ContractPlan, contract_plan
from ferrule.emulation.crash import CrashReport, EngineError
from ferrule.emulation.engine import (
    AttachedDevice,
    AttachedWire,
    Clock,
    Counters,
    DeviceWork,
    Engine,
    EngineOptions,
    Machine,
    Observation,
    Session,
)
from ferrule.emulation.ownership import (
    OwnedBuffer,
    OwnedStep,
    OwnershipCounts,
    OwnershipError,
    OwnershipPlan,
    Violation,
    ownership_plan,
)
from ferrule.emulation.table import engine, engine_names, fitting_engine, require_gdb, require_ownership

__all__ = [
    "AttachedDevice",
    "AttachedWire",
    "Clock",
    "ContractCounts",
    "ContractPlan",
    "Counters",
    "CrashReport",
    "DeviceWork",
    "Engine",
    "EngineError",
    "EngineOptions",
    "Machine",
    "Observation",
    "OwnedBuffer",
    "OwnedStep",
    "OwnershipCounts",
    "OwnershipError",
    "OwnershipPlan",
    "Session",
    "Violation",
    "contract_plan",
    "engine",
    "engine_names",
    "fitting_engine",
    "ownership_plan",
    "require_gdb",
    "require_ownership",
]
