# SPDX-License-Identifier: Apache-2.0
"""The framework for device models: register tables, buses, interrupt lines, time and faults."""

from ferrule.devices.faults import (
    BusErrorAt,
    Fault,
    FaultInjector,
    FlippedValue,
    NeverDone,
    RegisterAccess,
    SpuriousInterrupt,
    StuckBit,
    WrongId,
)
from ferrule.devices.memory import Escape, GuardedBus, MemoryBus, Range
from ferrule.devices.model import Bus, BusError, Bytes, DeviceModel, InterruptLine
from ferrule.devices.register_model import RegisterModel
from ferrule.devices.registers import Access, Field, Register, RegisterTable, c_header, documentation

__all__ = [
    "Access",
    "Bus",
    "BusError",
    "BusErrorAt",
    "Bytes",
    "DeviceModel",
    "Escape",
    "Fault",
    "FaultInjector",
    "Field",
    "FlippedValue",
    "GuardedBus",
    "InterruptLine",
    "MemoryBus",
    "NeverDone",
    "Range",
    "Register",
    "RegisterAccess",
    "RegisterModel",
    "RegisterTable",
    "SpuriousInterrupt",
    "StuckBit",
    "WrongId",
    "c_header",
    "documentation",
]
