# SPDX-License-Identifier: Apache-2.0
"""The linker script, derived from the board."""

from __future__ import annotations

from dataclasses import replace

from ferrule.boards import Board, Memory
from ferrule.firmware.template import render
from ferrule.firmware.toolchain import ENTRY_SYMBOL

_ADDRESS_END = 1 << 32
_SLICE_ALIGNMENT = 1 << 20


def linker_script(board: Board, *, memories: tuple[Memory, ...] | None = None, entry: str = ENTRY_SYMBOL) -> str:
    """Return the script for GNU ld and lld alike; `memories` stand in for the board's own of the same names."""
    return render(
        "linker.ld.j2",
        header=f"Memory map of {board.name}, made by Ferrule from {board.platform.name} and board.toml.",
        entry=entry,
        memories=board.memories if memories is None else memories,
        placement=board.placement,
    )


def roomy_memories(board: Board) -> tuple[Memory, ...]:
    """Return the board's memories, moved apart and as large as 32 bits of address allow.

    A firmware that does not fit the board links with these, so that its sections can be measured.
    """
    slice_bytes = _ADDRESS_END // len(board.memories) & -_SLICE_ALIGNMENT
    return tuple(
        replace(memory, address=index * slice_bytes, size_bytes=slice_bytes, aliases=())
        for index, memory in enumerate(board.memories)
    )
