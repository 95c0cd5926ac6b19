# SPDX-License-Identifier: Apache-2.0
"""Woofles as a device model: registers, a command queue in memory, DMA, timing and an interrupt."""

from __future__ import annotations

from collections.abc import Mapping

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.backends.woofles import arithmetic
from ferrule.backends.woofles.command import COMMAND_BYTES, Command, CommandError, ShapeError
from ferrule.backends.woofles.registers import TABLE, ErrorCode
from ferrule.devices import BusError, Register, RegisterModel

MAX_QUEUE = 256
"""The largest number of commands in the ring."""


@frozen
class Timing:
    """The duration of a command, in cycles; with all zeros it is done as soon as the doorbell is written."""

    command: int = 0
    """Cycles to fetch and start one command."""
    macs_per_cycle: int = 0
    """Multiply-accumulates per cycle; 0 if they take no time."""
    bytes_per_cycle: int = 0
    """Bytes moved per cycle; 0 if moving data takes no time."""

    def cycles(self, command: Command) -> int:
        """Return the duration of a command in cycles."""
        cycles = self.command
        if self.macs_per_cycle:
            cycles += -(-arithmetic.macs(command) // self.macs_per_cycle)
        if self.bytes_per_cycle:
            moved = COMMAND_BYTES + sum(arithmetic.sizes_bytes(command))
            cycles += -(-moved // self.bytes_per_cycle)
        return cycles


IMMEDIATE = Timing()
DEFAULT_TIMING = Timing(command=32, macs_per_cycle=16, bytes_per_cycle=4)
"""The timing of a small accelerator with 16 multipliers and a 32-bit bus."""


class WooflesModel(RegisterModel):
    """Executes commands one after the other; a command reads and writes its data at the end of its duration."""

    table = TABLE

    def __init__(self, timing: Timing = DEFAULT_TIMING) -> None:
        super().__init__()
        self.timing = timing
        self._running: Command | None = None
        self._left = 0
        self._commands = self._busy_cycles = self._macs = 0
        self.reset()

    @override
    def statistics(self) -> Mapping[str, int | float]:
        return {"commands": self._commands, "busy_cycles": self._busy_cycles, "macs": self._macs}

    @override
    def reset(self) -> None:
        super().reset()
        self._running = None
        self._left = 0

    @override
    def advance(self, cycles: int) -> None:
        while self._running is not None and cycles >= self._left:
            cycles -= self._left
            self._finish(self._running)
            self._start()
        if self._running is not None:
            self._left -= cycles

    @override
    def next_event(self) -> int | None:
        return None if self._running is None else max(self._left, 1)

    @override
    def on_write(self, register: Register, old: int, new: int) -> None:
        match register.name:
            case "CONTROL":
                self._control()
            case "INTERRUPT":
                self._interrupt()
            case "QUEUE_BASE" | "QUEUE_LENGTH" if self._running is not None:
                self._stop(ErrorCode.QUEUE)
            case "QUEUE_HEAD":
                self._doorbell()
            case _:
                pass

    def _control(self) -> None:
        if self.field("CONTROL", "RESET"):
            self.reset()
            return
        self._interrupt()
        if self.field("CONTROL", "ENABLE"):
            self._start()

    def _interrupt(self) -> None:
        self.irq.set(bool(self.field("CONTROL", "IRQ_ENABLE") and self.value("INTERRUPT")))

    def _doorbell(self) -> None:
        self.set_field("STATUS", "DONE", 0)
        if self._is_sensible():
            self._start()
        else:
            self._stop(ErrorCode.QUEUE)

    def _is_sensible(self) -> bool:
        length = self.value("QUEUE_LENGTH")
        indices = (self.value("QUEUE_HEAD"), self.value("QUEUE_TAIL"))
        return 1 <= length <= MAX_QUEUE and max(indices) < length and self.value("QUEUE_BASE") % 4 == 0

    def _start(self) -> None:
        """Start queued commands, and finish those that take no time, until one takes time or none can start."""
        while self._is_free() and self.value("QUEUE_TAIL") != self.value("QUEUE_HEAD"):
            if not self._is_sensible():
                self._stop(ErrorCode.QUEUE)
                return
            self._take()
            if self._running is not None and not self._left:
                self._finish(self._running)

    def _is_free(self) -> bool:
        return self._running is None and bool(self.field("CONTROL", "ENABLE")) and not self.field("STATUS", "ERROR")

    def _take(self) -> None:
        self.set_field("STATUS", "BUSY", 1)
        address = self.value("QUEUE_BASE") + COMMAND_BYTES * self.value("QUEUE_TAIL")
        try:
            command = Command.decode(self.bus.read(address, COMMAND_BYTES))
            arithmetic.check(command)
        except (BusError, CommandError) as error:
            self._refuse(error)
            return
        self._running, self._left = command, self.timing.cycles(command)

    def _finish(self, command: Command) -> None:
        """Compute the result of the running command, at the end of its duration."""
        self._running = None
        try:
            arithmetic.execute(command, self.bus)
        except (BusError, CommandError) as error:
            self._refuse(error)
            return
        self._commands += 1
        self._busy_cycles += self.timing.cycles(command)
        self._macs += arithmetic.macs(command)
        self.set_value("SEQUENCE", command.sequence)
        self.set_value("COMPLETED", self.value("COMPLETED") + 1)
        self.set_value("QUEUE_TAIL", (self.value("QUEUE_TAIL") + 1) % self.value("QUEUE_LENGTH"))
        if self.value("QUEUE_TAIL") == self.value("QUEUE_HEAD"):
            self.set_field("STATUS", "BUSY", 0)
            self.set_field("STATUS", "DONE", 1)
            self.set_field("INTERRUPT", "DONE", 1)
            self._interrupt()

    def _refuse(self, error: BusError | CommandError) -> None:
        if isinstance(error, BusError):
            self.set_value("ERROR_ADDRESS", error.address)
            self._stop(ErrorCode.BUS)
        else:
            self._stop(ErrorCode.SHAPE if isinstance(error, ShapeError) else ErrorCode.COMMAND)

    def _stop(self, code: ErrorCode) -> None:
        self._running = None
        self.set_field("STATUS", "BUSY", 0)
        if not self.field("STATUS", "ERROR"):  # the first error counts
            self.set_field("STATUS", "ERROR", 1)
            self.set_field("STATUS", "CODE", code)
        self.set_field("INTERRUPT", "ERROR", 1)
        self._interrupt()
