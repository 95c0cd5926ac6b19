# SPDX-License-Identifier: Apache-2.0
"""The data watchpoint and trace unit (Armv7-M ARM, C1.8): CTRL and CYCCNT, which counts executed instructions."""

from __future__ import annotations

import ctypes

from ferrule.emulation.unicorn import layout
from ferrule.emulation.unicorn.guest import Guest
from ferrule.emulation.unicorn.processor import Processor

REGISTERS_BYTES = 0x1000


class CycleCounter:
    """CYCCNT; it counts while DEMCR.TRCENA and CTRL.CYCCNTENA are set. It stands while the core sleeps."""

    def __init__(self, guest: Guest, processor: Processor, address: int) -> None:
        self._state = layout.CycleCounterState(guest=ctypes.pointer(guest.state))
        guest.map_c(address, REGISTERS_BYTES, "ferrule_cycle_counter_read", "ferrule_cycle_counter_write", self._state)
        guest.synchronise(address, REGISTERS_BYTES)
        processor.attach_trace("ferrule_cycle_counter_enable", self._state)
