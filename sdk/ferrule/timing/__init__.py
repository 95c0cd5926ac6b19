# SPDX-License-Identifier: Apache-2.0
"""How long firmware takes, and how much energy: cores, memories and currents, each number with its source."""

from ferrule.timing.core_timing import CoreTiming, core_timing, timed_cores
from ferrule.timing.duration import Command, DataWaits, Duration, Pause, Step, Wait
from ferrule.timing.memory_timing import BoardTiming, CacheTiming, MemoryTiming

__all__ = [
    "BoardTiming",
    "CacheTiming",
    "Command",
    "CoreTiming",
    "DataWaits",
    "Duration",
    "MemoryTiming",
    "Pause",
    "Step",
    "Wait",
    "core_timing",
    "timed_cores",
]
