# SPDX-License-Identifier: Apache-2.0
"""Reports on a firmware that failed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.architectures import Registers, address_text
from ferrule.errors import FerruleError
from ferrule.firmware import Image


@frozen
class CrashReport:
    """The state of a firmware when it failed, and the reason for the report."""

    reason: str
    pc: int
    symbol: str
    """The function at pc and the offset in it, `?` outside all functions."""
    registers: Registers
    instruction: str | None = None
    """The instruction at pc; None unless a disassembler is installed (`pip install capstone`)."""
    notes: tuple[str, ...] = ()
    """Further facts, one sentence each."""

    @property
    def summary(self) -> str:
        """The reason and the place in one line."""
        place = f"{self.reason} at pc {address_text(self.pc)} ({self.symbol})"
        return f"{place}: {self.instruction}" if self.instruction else place

    @override
    def __str__(self) -> str:
        names = list(self.registers)
        rows = [
            "  " + "  ".join(f"{name:>4} {self.registers[name]:08x}" for name in names[first : first + 6])
            for first in range(0, len(names), 6)
        ]
        return "\n".join([self.summary, *(f"  {note}" for note in self.notes), *rows])


def called_from(image: Image, registers: Registers) -> str:
    """Return a note on the call whose return address is in the link register."""
    link, place = image.architecture.registers.link, image.describe(image.architecture.caller(registers))
    return f"called from {place}, if {link} still has the return address"


class EngineError(FerruleError):
    """The firmware faulted or hung, or the engine failed; `report` has the place, if it is known."""

    def __init__(self, message: str, *, hint: str | None = None, report: CrashReport | None = None) -> None:
        super().__init__(message if report is None else str(report), hint=hint)
        self.report = report


class ExitError(EngineError):
    """The firmware has ended itself by semihosting; `status` is its exit status, 0 for success."""

    def __init__(self, status: int, report: CrashReport | None = None) -> None:
        super().__init__(f"the firmware has ended with status {status}")
        self.status = status
        self.report = report


@contextmanager
def engine_errors() -> Iterator[None]:
    """Turn errors of an architecture, which lies below the engines, into EngineErrors."""
    try:
        yield
    except FerruleError as error:
        raise EngineError(str(error), hint=error.hint) from None
