# SPDX-License-Identifier: Apache-2.0
"""Generates C from a graph: the executor, the weights and the link table, as documents printed by writers."""

from ferrule.codegen.artifact import Artifact, OperatorRecord
from ferrule.codegen.c_writer import CWriter
from ferrule.codegen.cpp_writer import CppWriter
from ferrule.codegen.device_use import DeviceUse
from ferrule.codegen.digest import digest
from ferrule.codegen.generate import generate
from ferrule.codegen.names import identifier
from ferrule.codegen.overlap import OFF_HINT
from ferrule.codegen.plan import CORE, Plan, memory_of, shared_region
from ferrule.codegen.program import Program, program_symbol
from ferrule.codegen.schedule import Call, DeviceCall, Schedule
from ferrule.codegen.shared_arena import arena_name
from ferrule.codegen.writer import Writer

__all__ = [
    "CORE",
    "OFF_HINT",
    "Artifact",
    "CWriter",
    "Call",
    "CppWriter",
    "DeviceCall",
    "DeviceUse",
    "OperatorRecord",
    "Plan",
    "Program",
    "Schedule",
    "Writer",
    "arena_name",
    "digest",
    "generate",
    "identifier",
    "memory_of",
    "program_symbol",
    "shared_region",
]
