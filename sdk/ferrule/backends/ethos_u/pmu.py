# SPDX-License-Identifier: Apache-2.0
"""The performance monitor of Ethos-U: a cycle counter and four event counters; all of their numbers are estimates."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from ferrule.backends.ethos_u.registers import CYCLE_COUNTER, EVENT_COUNTERS


class Event(IntEnum):
    """The events that the model estimates; counters of other events stay at their values."""

    CYCLE = 17
    NPU_IDLE = 32
    NPU_ACTIVE = 35
    MAC_ACTIVE = 48
    AXI0_READ_BEATS = 130
    AXI0_WRITE_BEATS = 135
    AXI0_ENABLED_CYCLES = 140
    AXI1_READ_BEATS = 386
    AXI1_WRITE_BEATS = 391
    AXI1_ENABLED_CYCLES = 396


class Monitor:
    """The counters with their enabling, overflow and interrupt bits; the control register is the model's."""

    CYCLE_BITS = 48
    EVENT_BITS = 32

    def __init__(self) -> None:
        self.enabled = False
        """PMCR.ENABLE."""
        self.counting = 0
        """The bits of the counters that are enabled: PMCNTENSET."""
        self.overflows = 0
        self.interrupts = 0
        """The bits of the counters whose overflow raises the interrupt: PMINTSET."""
        self.cycles = 0
        self.events = [0] * EVENT_COUNTERS
        self.types = [0] * EVENT_COUNTERS

    @property
    def interrupt(self) -> bool:
        """Whether a counter has overflowed whose overflow raises the interrupt."""
        return bool(self.overflows & self.interrupts)

    def pass_cycles(self, cycles: int, *, running: bool) -> None:
        """Count cycles, in which the NPU was running or idle."""
        if not (self.enabled and cycles):
            return
        if self.counting & CYCLE_COUNTER:
            self.cycles += cycles
            if self.cycles >> self.CYCLE_BITS:
                self.cycles &= (1 << self.CYCLE_BITS) - 1
                self.overflows |= CYCLE_COUNTER
        passed = dict.fromkeys((Event.CYCLE, Event.AXI0_ENABLED_CYCLES, Event.AXI1_ENABLED_CYCLES), cycles)
        passed[Event.NPU_ACTIVE if running else Event.NPU_IDLE] = cycles
        self.count(passed)

    def count(self, events: Mapping[Event, int]) -> None:
        """Count events that have happened."""
        if not self.enabled:
            return
        for index, kind in enumerate(self.types):
            happened = events.get(kind, 0) if self.counting >> index & 1 else 0  # type: ignore[call-overload]
            self.events[index] += happened
            if self.events[index] >> self.EVENT_BITS:
                self.events[index] &= (1 << self.EVENT_BITS) - 1
                self.overflows |= 1 << index
