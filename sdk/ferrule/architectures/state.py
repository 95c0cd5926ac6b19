# SPDX-License-Identifier: Apache-2.0
"""What can be seen of a core that stands: its registers, its code, and the record of a fault."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from ferrule._frozen import frozen

FAULT_RECORD = "ferrule_fault_record"
"""The symbol of `struct ferrule_fault_record`, which the firmware's fault handler fills in."""
FAULT_MAGIC = 0x544C_4146
"""The record's first word once a fault has been recorded (FERRULE_FAULT_MAGIC in include/ferrule/fault.h)."""

Registers = Mapping[str, int]
"""Values of the core's registers, by name."""


def address_text(address: int) -> str:
    """Return an address as `0x2000_0000`."""
    return f"0x{address >> 16:04x}_{address & 0xFFFF:04x}"


@frozen
class RegisterNames:
    """The names of a core's registers of 32 bits, and how GDB learns of them (GDB manual, G.2 to G.5)."""

    numbered: tuple[str, ...]
    """Those with numbers, in their order; each architecture calls two of them `sp` and `pc`."""
    others: tuple[str, ...]
    """The further ones that GDB shows, after the numbered ones."""
    link: str
    """The one with the return address at the first instruction of a function."""
    arguments: tuple[str, ...]
    """Those with a function's arguments, of which the first has the result."""
    gdb_architecture: str
    gdb_feature: str

    @property
    def all(self) -> tuple[str, ...]:
        """All of them in GDB's order."""
        return (*self.numbered, *self.others)

    @property
    def description(self) -> bytes:
        """GDB's target.xml."""
        types = {"sp": ' type="data_ptr"', "pc": ' type="code_ptr"'}
        rows = [f'<reg name="{name}" bitsize="32"{types.get(name, "")}/>' for name in self.all]
        return (
            '<?xml version="1.0"?><!DOCTYPE target SYSTEM "gdb-target.dtd"><target>'
            f"<architecture>{self.gdb_architecture}</architecture>"
            f'<feature name="{self.gdb_feature}">{"".join(rows)}</feature></target>'
        ).encode()


@frozen
class Semihosting:
    """The instructions by which a firmware calls the host, and the registers of a call.

    Operations and their blocks are the same on all architectures (Arm's "Semihosting for AArch32 and AArch64").
    """

    before: bytes
    """The code before the breakpoint at which the core stands."""
    call: bytes
    """The breakpoint and what belongs to the call after it; the firmware goes on behind."""
    operation: str
    argument: str
    """The register with the call's argument, or with the address of its block."""
    breakpoint: str
    """The name of the instruction."""


class FaultRecord(ABC):
    """The core's registers and status at a fault, as the firmware has recorded them."""

    @property
    @abstractmethod
    def reason(self) -> str:
        """What happened, with its causes, in words."""

    @property
    @abstractmethod
    def registers(self) -> dict[str, int]:
        """The registers at the fault as far as they are known."""

    @property
    def pc(self) -> int | None:
        """The address of the instruction that failed; None if it is not known."""
        return self.registers.get("pc")
