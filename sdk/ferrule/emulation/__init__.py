# SPDX-License-Identifier: Apache-2.0
"""Engines, which run a firmware on an emulated or a real board."""

from ferrule.emulation.crash import CrashReport, EngineError
from ferrule.emulation.engine import AttachedDevice, AttachedWire, Counters, Engine, EngineOptions, Machine, Session
from ferrule.emulation.table import engine, engine_names, require_gdb

__all__ = [
    "AttachedDevice",
    "AttachedWire",
    "Counters",
    "CrashReport",
    "Engine",
    "EngineError",
    "EngineOptions",
    "Machine",
    "Session",
    "engine",
    "engine_names",
    "require_gdb",
]
