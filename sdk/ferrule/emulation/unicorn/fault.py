# SPDX-License-Identifier: Apache-2.0
"""Descriptions of a core's faults in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ferrule.architectures import address_text
from ferrule.boards import Board
from ferrule.emulation.unicorn.device import BoardDevice
from ferrule.emulation.unicorn.layout import CoreFault, Fault

ACCESSES: Mapping[int, str] = {
    19: "read of {bytes} B at {address}{where}",
    20: "write of {value} ({bytes} B) to {address}{where}",
    21: "jump to {address}{where}",
    22: "write of {value} ({bytes} B) to read-only {address}{where}",
    23: "read of {bytes} B at unreadable {address}{where}",
    24: "jump to unexecutable {address}{where}",
    64: "access relative to {address}, which is not a multiple of {bytes}{where}",
}
"""Descriptions of refused accesses by unicorn's enum uc_mem_type, and by FERRULE_GUEST_UNALIGNED."""
WRITE_REFUSED = 22
"""The type of a write to read-only memory."""
PLAIN: Mapping[int, int] = {22: 20, 23: 19}
"""Types to report for device registers, which are unprotected but mapped as protected to intercept accesses."""


def access_text(access: Fault, board: Board, devices: Sequence[BoardDevice]) -> str | None:
    """Describe a refused access on a board with some devices; None if no access was refused."""
    place = next((text for device in devices if (text := device.where(access.address))), None)
    form = ACCESSES.get(access.type if place is None else PLAIN.get(access.type, access.type))
    if form is None:
        return None
    return form.format(
        bytes=access.bytes,
        value=f"{access.value & ((1 << 8 * access.bytes) - 1):#x}",
        address=address_text(access.address),
        where=place or _where(access.address, board),
    )


def fault_text(fault: CoreFault, board: Board, devices: Sequence[BoardDevice]) -> str:
    """Describe a fault on a board: the exception first raised for it and its causes."""
    text = board.architecture.model.fault_text(fault.exception, fault.status, fault.hard_status)
    access = access_text(fault.access, board, devices)
    return f"{text}: {access}" if access else text


def _where(address: int, board: Board) -> str:
    for memory in board.memories:
        if address in memory or any(alias <= address < alias + memory.size_bytes for alias in memory.aliases):
            return f" ({memory.name})"
    for peripheral in board.peripherals:
        if address in peripheral:
            return f" ({peripheral.name}, a {peripheral.type}, of which the unicorn engine has no model)"
    return f", where {board.name} has nothing"
