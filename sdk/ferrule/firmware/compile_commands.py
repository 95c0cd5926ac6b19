# SPDX-License-Identifier: Apache-2.0
"""The compilation database of a build, `compile_commands.json`, by which clangd and editors understand its sources."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from ferrule.boards import Board
from ferrule.firmware.plan import BuildPlan
from ferrule.firmware.toolchain import Toolchain, ZigToolchain, gcc_for

COMPILE_COMMANDS = "compile_commands.json"
CLANG = "clang"
"""The first word of commands whose compiler, zig, is not one that editors know."""
_WITH_VALUE = {"-MF"}
_OUTPUTS = {"-MD", "-Werror"}


def compile_commands(plan: BuildPlan, folder: Path) -> str:
    """Return the database of a plan with absolute paths; `folder` is the folder of the project."""
    command, target = plan.toolchain.require(), plan.toolchain.target_flags(plan.board)
    compiler = editor_compiler(plan.toolchain, plan.board, command)
    entries = [
        {
            "directory": str(folder.resolve()),
            "file": str(step.source),
            "arguments": [*compiler, *_without(step.argv[len(command) :], target)],
            "output": str(step.output),
        }
        for step in plan.compile
    ]
    return json.dumps(entries, indent=1) + "\n"


def editor_compiler(toolchain: Toolchain, board: Board, command: Sequence[str]) -> tuple[str, ...]:
    """Return the compiler and the flags for a board that editors understand; `command` is the compiler's own."""
    if not isinstance(toolchain, ZigToolchain):
        return (*command, *toolchain.target_flags(board))
    architecture = board.architecture
    return (CLANG, f"--target={architecture.clang_target}", *gcc_for(architecture).target_flags(board))


def _without(argv: Sequence[str], target: Sequence[str]) -> Iterator[str]:
    """Yield a compiler's arguments without its outputs and the flags that select the target."""
    words = iter(argv[len(target) :] if tuple(argv[: len(target)]) == tuple(target) else argv)
    for word in words:
        if word in _WITH_VALUE:
            next(words, None)
        elif word not in _OUTPUTS:
            yield word
