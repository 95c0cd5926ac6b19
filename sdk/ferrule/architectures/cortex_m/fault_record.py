# SPDX-License-Identifier: Apache-2.0
"""The fault record that start-up code writes: struct ferrule_fault_record of include/ferrule/fault.h."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.architectures.state import FAULT_MAGIC, FaultRecord, address_text

FIELDS = (
    "magic", "exception", "r0", "r1", "r2", "r3", "r12", "lr", "pc", "xpsr", "sp", "exc_return",
    "cfsr", "hfsr", "mmfar", "bfar", "frame_valid",
)  # fmt: skip
FAULTS: Mapping[int, str] = {3: "HardFault", 4: "MemManage", 5: "BusFault", 6: "UsageFault", 7: "SecureFault"}
OTHERS: Mapping[int, str] = {2: "NMI", 11: "SVCall", 12: "DebugMonitor", 14: "PendSV", 15: "SysTick"}

CFSR_BITS: Mapping[int, str] = {
    0: "instruction fetch from a region that forbids it",
    1: "data access to a region that forbids it",
    3: "memory fault while leaving an exception",
    4: "memory fault while entering an exception",
    8: "bus error on an instruction fetch",
    9: "bus error on a data access",
    10: "late bus error on a data access",
    11: "bus error while leaving an exception",
    12: "bus error while entering an exception",
    16: "undefined instruction",
    17: "Arm state, or a bad EPSR",
    18: "bad return from an exception",
    19: "coprocessor or FPU that is off or absent",
    20: "stack limit violation",
    24: "unaligned access",
    25: "division by zero",
}
"""Causes by bit of CFSR (Armv7-M ARM B3.2.15 and Armv8-M ARM D1.2.38)."""
HFSR_BITS: Mapping[int, str] = {1: "bus error on a vector fetch", 31: "breakpoint or another debug event"}
MMFAR_VALID, BFAR_VALID = 1 << 7, 1 << 15


def causes(cfsr: int, hfsr: int) -> list[str]:
    """Return the causes of a fault in words, from the status registers CFSR and HFSR."""
    statuses = ((CFSR_BITS, cfsr), (HFSR_BITS, hfsr))
    return [text for bits, status in statuses for bit, text in bits.items() if status >> bit & 1]


@frozen
class CortexMFault(FaultRecord):
    """The core's registers and status at a fault."""

    fields: Mapping[str, int]

    @property
    @override
    def reason(self) -> str:
        """The exception and its causes in words."""
        fields, number, status = self.fields, self.fields["exception"], self.fields["cfsr"]
        found = causes(status, fields["hfsr"])
        if status & (BFAR_VALID | MMFAR_VALID):
            found.append(f"address {address_text(fields['bfar' if status & BFAR_VALID else 'mmfar'])}")
        name = FAULTS.get(number)
        if name is None:
            name = f"{OTHERS.get(number, f'interrupt {number - 16}')}, which the firmware does not handle,"
        return f"{name} ({', '.join(found)})" if found else name

    @property
    @override
    def registers(self) -> dict[str, int]:
        """The registers at the fault that the core saved; only `sp` if the stack was invalid."""
        if not self.fields["frame_valid"]:
            return {"sp": self.fields["sp"]}
        saved = ("r0", "r1", "r2", "r3", "r12", "lr", "pc", "xpsr")
        return {**{name: self.fields[name] for name in saved}, "sp": self.fields["sp"] + 0x20}


def fault_record(words: Sequence[int]) -> CortexMFault | None:
    """Return the record in these words, or None if no fault has been recorded."""
    if len(words) < len(FIELDS) or words[0] != FAULT_MAGIC:
        return None
    return CortexMFault(fields=dict(zip(FIELDS, words, strict=False)))
