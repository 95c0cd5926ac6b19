# SPDX-License-Identifier: Apache-2.0
"""Generates linker scripts from boards."""

from __future__ import annotations

from dataclasses import replace

from ferrule._frozen import frozen
from ferrule.backends.target import MemoryKind
from ferrule.boards import Board, Memory
from ferrule.firmware.template import render
from ferrule.firmware.toolchain import ENTRY_SYMBOL

_ADDRESS_END = 1 << 32
_SLICE_ALIGNMENT = 1 << 20
_LARGEST_GUARD, _RESERVED_GUARD = 20, 8
"""Binary logarithms of the sizes of a guard where nothing is below the stack, and of one that takes memory."""


def linker_script(board: Board, *, memories: tuple[Memory, ...] | None = None, entry: str = ENTRY_SYMBOL) -> str:
    """Return a linker script for GNU ld and lld; `memories` replace the board's own, which have the same names."""
    return render(
        "linker.ld.j2",
        header=f"Memory map of {board.name}, made by Ferrule from {board.platform.name} and board.toml.",
        entry=entry,
        memories=memories or board.memories,
        placement=board.placement,
        others=[
            each for each in board.memories if each.kind is MemoryKind.RAM and each.name != board.placement.workspace
        ],
        guard=stack_guard(board),
    )


def reserving(board: Board, stack_bytes: int) -> Board:
    """Return a board with another size of the stack."""
    return replace(board, placement=replace(board.placement, stack_bytes=stack_bytes))


@frozen
class StackGuard:
    """The addresses directly below the stack, which start-up protects by the core's MPU."""

    log2: int
    """Binary logarithm of their number."""
    reserved: bool
    """Whether the memory has to leave them free; otherwise nothing is there."""

    @property
    def size_bytes(self) -> int:
        """Their number."""
        return 1 << self.log2


def stack_guard(board: Board) -> StackGuard | None:
    """Return the guard below the board's stack; None for a core with MSPLIM, which needs none."""
    if board.core.has_stack_limit:
        return None
    placement = board.placement
    low = board.memory(placement.stack).address
    if placement.stack not in {placement.code, placement.weights}:
        places = [(base, each.size_bytes) for each in board.memories for base in (each.address, *each.aliases)]
        places += [(each.address, each.size_bytes) for each in (*board.peripherals, *board.tags)]
        for log2 in range(_LARGEST_GUARD, _RESERVED_GUARD - 1, -1):
            begin = low - (1 << log2)
            is_free = all(base + size_bytes <= begin or base >= low for base, size_bytes in places)
            if is_free and begin >= 0 and begin % (1 << log2) == 0:
                return StackGuard(log2=log2, reserved=False)
    return StackGuard(log2=_RESERVED_GUARD, reserved=True)


def roomy_memories(board: Board) -> tuple[Memory, ...]:
    """Return the board's memories, moved apart and enlarged as far as 32-bit addresses allow.

    A firmware that does not fit the board is linked with these to measure its sections.
    """
    slice_bytes = _ADDRESS_END // len(board.memories) & -_SLICE_ALIGNMENT
    return tuple(
        replace(memory, address=index * slice_bytes, size_bytes=slice_bytes, aliases=())
        for index, memory in enumerate(board.memories)
    )
