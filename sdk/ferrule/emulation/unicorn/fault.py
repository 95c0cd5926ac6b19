# SPDX-License-Identifier: Apache-2.0
"""What a core did wrong, in words."""

from __future__ import annotations

from collections.abc import Mapping

from ferrule.boards import Board
from ferrule.emulation.crash import address_text
from ferrule.emulation.unicorn.layout import Fault

ACCESSES: Mapping[int, str] = {
    19: "read of {bytes} B at {address}{where}",
    20: "write of {value} ({bytes} B) to {address}{where}",
    21: "jump to {address}{where}",
    22: "write of {value} ({bytes} B) to read-only {address}{where}",
    23: "read of {bytes} B at unreadable {address}{where}",
    24: "jump to unexecutable {address}{where}",
}
"""By unicorn's enum uc_mem_type."""

THUMB = 1 << 24
INVALID_INSTRUCTION = 10  # UC_ERR_INSN_INVALID

EXCEPTIONS: Mapping[int, str] = {
    1: "undefined instruction",
    2: "supervisor call (svc), which is not modelled",
    3: "prefetch abort",
    4: "data abort",
    7: "breakpoint instruction (bkpt)",
    8: "return from an exception, none of which is modelled",
    16: "semihosting call, which is not modelled",
    17: "instruction of an absent coprocessor",
    18: "jump to an even address, which means Arm state",
    19: "stack limit violation",
    22: "unaligned access where it is not allowed",
}
"""By the number that the emulator gives an exception."""


def exception_text(number: int) -> str:
    """Return what an exception means."""
    return EXCEPTIONS.get(number, f"exception {number}, which is not modelled")


def fault_text(error: Exception, fault: Fault, board: Board, status: int) -> str:
    """Return what a refused access, or another error of unicorn's, means on this board; `status` is xPSR."""
    form = ACCESSES.get(fault.type)
    if form is None:
        if not status & THUMB:
            return EXCEPTIONS[18]
        return EXCEPTIONS[1] if getattr(error, "errno", None) == INVALID_INSTRUCTION else str(error)
    return form.format(
        bytes=fault.bytes,
        value=f"{fault.value & ((1 << 8 * fault.bytes) - 1):#x}",
        address=address_text(fault.address),
        where=_where(fault.address, board),
    )


def _where(address: int, board: Board) -> str:
    for memory in board.memories:
        if address in memory or any(alias <= address < alias + memory.size_bytes for alias in memory.aliases):
            return f" ({memory.name})"
    for peripheral in board.peripherals:
        if address in peripheral:
            return f" ({peripheral.name}, a {peripheral.type}, of which the unicorn engine has no model)"
    return f", where {board.name} has nothing"
