# SPDX-License-Identifier: Apache-2.0
"""Generates linker scripts from boards."""

from __future__ import annotations

from dataclasses import replace

from ferrule.boards import Board, Memory
from ferrule.firmware.template import render
from ferrule.firmware.toolchain import ENTRY_SYMBOL

_ADDRESS_END = 1 << 32
_SLICE_ALIGNMENT = 1 << 20


def linker_script(board: Board, *, memories: tuple[Memory, ...] | None = None, entry: str = ENTRY_SYMBOL) -> str:
    """Return a linker script for GNU ld and lld; `memories` replace the board's own, which have the same names."""
    return render(
        "linker.ld.j2",
        header=f"Memory map of {board.name}, made by Ferrule from {board.platform.name} and board.toml.",
        entry=entry,
        memories=board.memories if memories is None else memories,
        placement=board.placement,
    )


def roomy_memories(board: Board) -> tuple[Memory, ...]:
    """Return the board's memories, moved apart and enlarged as far as 32-bit addresses allow.

    A firmware that does not fit the board is linked with these to measure its sections.
    """
    slice_bytes = _ADDRESS_END // len(board.memories) & -_SLICE_ALIGNMENT
    return tuple(
        replace(memory, address=index * slice_bytes, size_bytes=slice_bytes, aliases=())
        for index, memory in enumerate(board.memories)
    )
