# SPDX-License-Identifier: Apache-2.0
"""The part of a core beyond its instructions, modelled by the C hooks: exceptions, sleep, interrupt lines and time.

Time is counted in units of the machine's clock since reset, including those that the core sleeps. Interrupts and
timers take effect between two basic blocks, and thus at most one block late.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ferrule.boards import Board
from ferrule.emulation.crash import EngineError
from ferrule.emulation.unicorn import layout
from ferrule.emulation.unicorn.guest import Guest
from ferrule.emulation.unicorn.library import EXPIRE

NEVER = (1 << 64) - 1


@dataclass
class InterruptLine:
    """An input of the interrupt controller."""

    _processor: Processor
    number: int

    def set(self, level: bool) -> None:
        """Set the level; the interrupt becomes pending on a rise, and when its handler ends with the level high."""
        self._processor.set_irq(self.number, level)


class Timer:
    """Calls a function at a given time, counted in units of the clock since reset."""

    def __init__(self, processor: Processor, index: int, function: Callable[[], None]) -> None:
        self._processor = processor
        self._index = index
        self._callback = EXPIRE(lambda _context: processor.guest.guarded(function))

    def set(self, due: int | None) -> None:
        """Schedule one call of the function at the time `due`; None cancels it."""
        moment = NEVER if due is None else min(max(due, 0), NEVER)
        processor = self._processor
        processor.guest.hooks.ferrule_core_set_timer(processor.core, self._index, moment, self._callback, None)


class Processor:
    """Models the exceptions, sleep and time of one guest, and runs it."""

    def __init__(self, guest: Guest, board: Board, vector_table: int) -> None:
        self.guest = guest
        self._hooks = guest.hooks
        self._timers: list[Timer] = []
        self.state = (ctypes.c_char * guest.hooks.ferrule_core_bytes())()
        """Its `struct ferrule_core`."""
        self.core = ctypes.addressof(self.state)
        """The address of that."""
        controllers = board.controllers
        ids = [guest.register_id(name) for name in guest.registers_of.all]
        config = guest.model.configuration(board.cpu.type, controllers, vector_table, ids)
        self._hooks.ferrule_core_reset(self.core, ctypes.byref(guest.state), ctypes.byref(config))
        for each in controllers:
            guest.model.attach_controller(guest, self, each)

    @property
    def now(self) -> int:
        """The time at the end of the current basic block; exact while the guest is stopped."""
        return int(self._hooks.ferrule_core_time(self.core))

    def moment(self, address: int) -> tuple[int, int]:
        """Return the exact time before an instruction of the current block, awake and asleep; only during its hook."""
        state = self.guest.state
        awake = int(self._hooks.ferrule_guest_elapsed(ctypes.byref(state), address))
        return awake, self.now - int(state.elapsed)

    @property
    def time(self) -> int:
        """The exact time before the instruction at the program counter; only while the guest is stopped."""
        return self.now - int(self.guest.state.elapsed) + self.guest.elapsed()

    @property
    def exact_now(self) -> int:
        """The time before the accessing instruction; valid only during an access to a synchronised peripheral."""
        return int(self._hooks.ferrule_core_exact_time(self.core))

    @property
    def awaits_event(self) -> bool:
        """Whether an interrupt of the core's timer or a timer is scheduled."""
        return int(self._hooks.ferrule_core_next_event(self.core)) != NEVER

    def set_irq(self, line: int, level: bool) -> None:
        """Set the level of an interrupt line, counted from 0."""
        self._hooks.ferrule_core_set_line(self.core, line, level)

    def contend(self, units: int) -> None:
        """Let the core wait if it is awake, as for a memory that a device uses."""
        self._hooks.ferrule_core_contend(self.core, units)

    def line(self, number: int) -> InterruptLine:
        """Return the interrupt line with a number, counted from 0."""
        return InterruptLine(self, number)

    def is_enabled(self, line: int) -> bool:
        """Return whether the firmware has enabled an interrupt line."""
        return bool(self._hooks.ferrule_core_is_line_enabled(self.core, line))

    def timer(self, function: Callable[[], None]) -> Timer:
        """Return a new timer that calls a function.

        Raises:
            EngineError: there are 16 timers already.
        """
        if len(self._timers) == layout.TIMERS:
            raise EngineError(f"the unicorn engine has only {layout.TIMERS} timers for device models")
        self._timers.append(Timer(self, len(self._timers), function))
        return self._timers[-1]

    def run(self, instructions: int) -> layout.Stop:
        """Run for about `instructions` instructions, or until another reason stops the guest; return the reason.

        Raises:
            Exception: what a device model raised.
        """
        return self._stopped(self._hooks.ferrule_core_run(self.core, instructions))

    def cut(self) -> None:
        """Make `run` return after the current block or call of a model; for any thread."""
        self.guest.state.budget = 0
        self.guest.state.limit = 0

    def step(self) -> layout.Stop:
        """Execute one instruction or enter one exception; a sleeping core wakes first.

        Instructions under its condition (an IT block) are a part of it. It makes unicorn translate all code again.

        Raises:
            Exception: what a device model raised.
        """
        return self._stopped(self._hooks.ferrule_core_step(self.core))

    def _stopped(self, stop: int) -> layout.Stop:
        failure, self.guest.failure = self.guest.failure, None
        if failure is not None:
            raise failure
        return layout.Stop(stop)

    def set_breakpoints(self, addresses: Sequence[int]) -> None:
        """Make `run` stop before these addresses and at the breakpoint instruction; an empty list disables both."""
        self.guest.state.breakpoints = len(addresses)
        self.guest.engine.ctl_set_exits(list(addresses))
        self.guest.engine.ctl_flush_tb()

    def stop_at_breakpoints(self) -> None:
        """Make `run` stop before the breakpoint instruction, which otherwise is an exception of the firmware's."""
        self.guest.state.breakpoints = 1

    @property
    def fault(self) -> layout.CoreFault | None:
        """The last fault, recorded before any handler ran; None if there is none."""
        fault: layout.CoreFault = self._hooks.ferrule_core_fault(self.core).contents
        return fault if fault.exception else None
