# SPDX-License-Identifier: Apache-2.0
"""What the fixture `ferrule_board` gives to a test: the board and engine that were chosen, and the boards it starts.

The pytest plug-in imports this module when a test first uses the fixture.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ferrule.boards import Board as Description
from ferrule.boards import load_board
from ferrule.emulation import AttachedDevice, AttachedWire, Engine, EngineOptions
from ferrule.emulation import engine as engine_named
from ferrule.testing.board import Board, start, total

if TYPE_CHECKING:
    from ferrule.backends import Device
    from ferrule.running.compilation import Firmware


class KeptEngines:
    """The engines of a test session, whose processes outlive a test where an engine keeps them."""

    def __init__(self) -> None:
        self._kept: dict[str, Engine] = {}
        self._users: dict[str, Board] = {}

    def get(self, name: str) -> Engine:
        """Return a kept engine, or a new one if the kept one still runs a board."""
        user = self._users.get(name)
        if user is not None and not user.is_closed:
            return engine_named(name)
        if name not in self._kept:
            self._kept[name] = engine_named(name).kept()
        return self._kept[name]

    def note(self, name: str, engine: Engine, board: Board) -> None:
        """Note which board a kept engine runs."""
        if engine is self._kept.get(name):
            self._users[name] = board

    def end(self) -> None:
        """End all processes."""
        for engine in self._kept.values():
            engine.end()
        self._kept = {}


class BoardFixture:
    """The fixture `ferrule_board`: starts firmware on the board and engine of a test; it ends with the test."""

    def __init__(self, board: str, engine: str, engines: KeptEngines, options: EngineOptions) -> None:
        self.engine = engine
        """The engine's name."""
        self.description: Description = load_board(Path(board) if "/" in board else board)
        """The board's core, memories and peripherals."""
        self._engines = engines
        self._options = options
        self.started: list[Board] = []
        """The boards that the test has started, in order."""

    @property
    def name(self) -> str:
        """The board's name, for `ferrule.compile(network, board=...)` and `build_program(..., board=...)`."""
        return self.description.name

    def __call__(
        self,
        firmware: str | Path | Firmware,
        *,
        devices: Sequence[Device | AttachedDevice] = (),
        wires: Sequence[AttachedWire] = (),
        options: EngineOptions | None = None,
    ) -> Board:
        """Start an ELF or a compiled firmware, see `ferrule.testing.start`; skip the test if the engine refuses it."""
        chosen = self._engines.get(self.engine)
        names = [each.name for each in devices]
        if not isinstance(firmware, (str, Path)):
            names += [use.name for use in firmware.program.devices if use.driver.model is not None]
        reason = chosen.refuses(self.description, names)
        if reason is not None:
            pytest.skip(f"engine {self.engine} cannot run this on board {self.name}: {reason}")
        wanted = options or self._options
        board = start(firmware, board=self.description, engine=chosen, devices=devices, wires=wires, options=wanted)
        self._engines.note(self.engine, chosen, board)
        self.started.append(board)
        return board

    @property
    def instructions(self) -> int | None:
        """Instructions that all boards of the test have executed; None if the engine cannot tell."""
        return total(board.instructions for board in self.started)

    def state_text(self) -> str:
        """Return what a failed test shows of its boards."""
        return "\n".join(board.state_text() for board in self.started if not board.is_closed)

    def close(self) -> None:
        """End all boards."""
        for board in self.started:
            board.close()
