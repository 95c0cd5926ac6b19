# SPDX-License-Identifier: Apache-2.0
"""The engines by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from ferrule._typing import override
from ferrule.boards import Board, load_board
from ferrule.emulation.engine import Engine, EngineOptions
from ferrule.errors import FerruleError, unknown_name


class _Engines(Mapping[str, Engine]):
    """Engines by name; each is made, and its modules imported, when it is first asked for."""

    def __init__(self, makers: Mapping[str, Callable[[], Engine]]) -> None:
        self._makers = makers
        self._made: dict[str, Engine] = {}

    @override
    def __getitem__(self, name: str) -> Engine:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    @override
    def __len__(self) -> int:
        return len(self._makers)

    @override
    def __contains__(self, name: object) -> bool:
        return name in self._makers


def _unicorn() -> Engine:
    from ferrule.emulation.unicorn.engine import UnicornEngine

    return UnicornEngine()


def _qemu() -> Engine:
    from ferrule.emulation.qemu.engine import QemuEngine

    return QemuEngine()


def _renode(kind: str = "bridge") -> Engine:
    from ferrule.emulation.renode.attachment import AttachmentKind
    from ferrule.emulation.renode.engine import RenodeEngine

    return RenodeEngine(AttachmentKind(kind))


def _serial() -> Engine:
    from ferrule.emulation.serial.engine import SerialEngine

    return SerialEngine()


ENGINES: Mapping[str, Engine] = _Engines({"unicorn": _unicorn, "qemu": _qemu, "renode": _renode, "serial": _serial})
VARIANTS: Mapping[str, Engine] = _Engines(
    {f"renode:{kind}": partial(_renode, kind) for kind in ("cosimulation", "cosimulation-ticks")}
)
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
    for known in (ENGINES, VARIANTS):
        if name in known:
            return known[name]
    raise unknown_name("engine", name, [*ENGINES, *VARIANTS])
