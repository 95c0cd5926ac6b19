# SPDX-License-Identifier: Apache-2.0
"""The engines by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ferrule.boards import Board, load_board
from ferrule.emulation.engine import Engine, EngineOptions
from ferrule.emulation.qemu.engine import QemuEngine
from ferrule.emulation.renode.attachment import AttachmentKind
from ferrule.emulation.renode.engine import RenodeEngine
from ferrule.emulation.serial.engine import SerialEngine
from ferrule.emulation.unicorn.engine import UnicornEngine
from ferrule.errors import FerruleError, unknown_name

ENGINES: Mapping[str, Engine] = {
    engine.name: engine for engine in (UnicornEngine(), QemuEngine(), RenodeEngine(), SerialEngine())
}
VARIANTS: Mapping[str, Engine] = {
    engine.name: engine
    for engine in (RenodeEngine(AttachmentKind.COSIMULATION), RenodeEngine(AttachmentKind.COSIMULATION_TICKS))
}
"""Variants of the engines, which `engine_names` does not list."""

GDB_ENGINES = ("unicorn", "qemu")
"""The engines that gdb can attach to."""


def require_gdb(name: str) -> None:
    """Check that gdb can attach to an engine.

    Raises:
        FerruleError: it cannot.
    """
    if name not in GDB_ENGINES:
        raise FerruleError(f"gdb cannot attach to engine {name}", hint=f"engines that can: {', '.join(GDB_ENGINES)}")


def require_ownership(name: str) -> None:
    """Check that an engine can check the ownership of a firmware's workspace.

    Raises:
        FerruleError: it cannot.
    """
    if not engine(name).checks_ownership:
        able = ", ".join(each.name for each in ENGINES.values() if each.checks_ownership)
        raise FerruleError(f"engine {name} cannot check ownership", hint=f"engines that can: {able}")


def engine_names() -> list[str]:
    """Return the names of the engines, the default first."""
    return list(ENGINES)


def fitting_engine(board: Board | str | Path) -> str:
    """Return the engine that runs a board where none is named: the first that can, installed or not.

    The engine of real boards is never chosen. If no engine can run the board, the first is returned, whose refusal
    names the reason; also if the board cannot be loaded, which what uses the board reports.
    """
    if not isinstance(board, Board):
        try:
            board = load_board(board)
        except FerruleError:
            return next(iter(ENGINES))
    able = (each for each in ENGINES.values() if each.lacks(EngineOptions()) is None and each.refuses(board) is None)
    return next(able, next(iter(ENGINES.values()))).name


def engine(name: str) -> Engine:
    """Return an engine by name.

    Raises:
        FerruleError: there is no such engine; the hint lists similar names.
    """
    try:
        return {**ENGINES, **VARIANTS}[name]
    except KeyError:
        raise unknown_name("engine", name, [*ENGINES, *VARIANTS]) from None
