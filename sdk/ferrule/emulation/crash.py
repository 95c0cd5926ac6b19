# SPDX-License-Identifier: Apache-2.0
"""Reports on a firmware that failed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.errors import FerruleError
from ferrule.firmware import Image


def address_text(address: int) -> str:
    """Return an address as `0x2000_0000`."""
    return f"0x{address >> 16:04x}_{address & 0xFFFF:04x}"


Registers = Mapping[str, int]
"""Values of the core's registers, by name."""
CORE_REGISTERS = (*(f"r{number}" for number in range(13)), "sp", "lr", "pc")
"""The names of the registers with numbers, in their order."""


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
    """Return a note on the call whose return address is in lr."""
    return f"called from {image.describe((registers.get('lr', 0) - 2) & ~1)}, if lr still has the return address"


def disassemble(code: bytes, address: int) -> str | None:
    """Return the text of the first Thumb instruction in `code`; None without the optional package capstone."""
    if not code or find_spec("capstone") is None:
        return None
    capstone = import_module("capstone")
    decoder = capstone.Cs(capstone.CS_ARCH_ARM, capstone.CS_MODE_THUMB | capstone.CS_MODE_MCLASS)
    first = next(decoder.disasm_lite(code, address, 1), None)
    return f"{first[2]} {first[3]}".strip() if first else None


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
