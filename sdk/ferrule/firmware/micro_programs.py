# SPDX-License-Identifier: Apache-2.0
"""The micro-programs of a board's calibration."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from ferrule.architectures.micro_program import ALIGNMENT, Areas, Assembly, Group, MicroProgram
from ferrule.boards import Board
from ferrule.rendering import Verbatim

__all__ = [
    "ALIGNMENT",
    "Areas",
    "Group",
    "MicroProgram",
    "areas",
    "digest",
    "micro_programs",
    "written",
    "written_program",
]


def areas(board: Board) -> Areas:
    """Return the areas for a board: small enough for its memories, and larger than its caches if there is room."""
    core = board.core
    longest = 32_768 if core.has_data_cache else 16_384
    flash = min(board.memory(name).size_bytes for name in (board.placement.code, board.placement.weights))
    ram = board.memory(board.placement.data).size_bytes
    return Areas(
        ram_bytes=min(32_768 if core.has_data_cache else 1_024, _power_of_two(ram // 8)),
        flash_bytes=min(longest, _power_of_two(flash // 16)),
        code_bytes=board.architecture.longest_loop_bytes(board.cpu) or min(longest, _power_of_two(flash // 16)),
    )


def micro_programs(board: Board) -> tuple[MicroProgram, ...]:
    """Return the programs for a board, in the order in which it runs them."""
    return board.architecture.micro_programs(board.cpu, areas(board))


def _power_of_two(number: int) -> int:
    return 1 << (number.bit_length() - 1)


def written(assembly: Assembly) -> Assembly:
    """Return directives that a template writes as they are: an architecture made them."""
    return Assembly(
        before=tuple(Verbatim(line) for line in assembly.before),
        function=tuple(Verbatim(line) for line in assembly.function),
    )


def written_program(program: MicroProgram) -> MicroProgram:
    """Return a program whose name and lines a template writes as they are: an architecture made them."""
    return replace(program, lines=tuple(Verbatim(line) for line in program.lines), name=Verbatim(program.name))


def digest(programs: Sequence[MicroProgram]) -> str:
    """Return the digest of some programs by which a firmware with them is known."""
    text = "\n".join(line for each in programs for line in (each.name, *each.lines))
    return hashlib.sha256(text.encode()).hexdigest()[:32]
