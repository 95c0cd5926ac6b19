# SPDX-License-Identifier: Apache-2.0
"""Builds small programs in C for a board, to be started by `ferrule.testing.start`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ferrule.boards import Board, load_board
from ferrule.firmware import DEFAULT_BOARD, DEFAULT_TOOLCHAIN, SourceSet, execute, plan_build, toolchain


def build_program(
    sources: Sequence[str | Path],
    out: str | Path,
    *,
    board: str | Path | Board = DEFAULT_BOARD,
    compiler: str = DEFAULT_TOOLCHAIN,
    include_dirs: Sequence[str | Path] = (),
    defines: Mapping[str, str] | None = None,
    optimization: str = "Os",
) -> Path:
    """Compile a program with a `main` for a board, with Ferrule's start-up code and headers, and return its ELF file.

    `out` is the folder of the build. `compiler` is zig or arm-none-eabi-gcc. There is no C library; warnings are
    errors. A fault of the core is recorded by the start-up code, and any engine reports it.

    Raises:
        MissingToolError: the compiler is not installed.
        BuildError, TooLargeError: the compiler failed, or the program does not fit the board.
        FerruleError: a source does not exist, or a name is unknown.
    """
    plan = plan_build(
        SourceSet(sources=sources, include_dirs=include_dirs, defines=defines or {}),
        board if isinstance(board, Board) else load_board(board),
        toolchain(compiler),
        Path(out),
        optimization,
    )
    return execute(plan)
