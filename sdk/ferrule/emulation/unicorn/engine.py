# SPDX-License-Identifier: Apache-2.0
"""The default engine, which uses the unicorn wheel."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from ferrule._typing import override
from ferrule.boards import Board
from ferrule.emulation.engine import Clock, Engine, Machine, Session
from ferrule.emulation.unicorn.library import PURPOSE
from ferrule.emulation.unicorn.session import UnicornSession
from ferrule.errors import MissingToolError
from ferrule.nativelib import RUN_REMEDY, host_compiler
from ferrule.timing import core_timing


class UnicornEngine(Engine):
    """Runs the firmware in this process and counts its instructions exactly."""

    name = "unicorn"
    checks_ownership = True

    @override
    def missing(self) -> MissingToolError | None:
        if find_spec("unicorn") is None:
            return MissingToolError("the Python package unicorn is missing", hint=RUN_REMEDY)
        try:
            host_compiler(PURPOSE)
        except MissingToolError as error:
            return error
        return None

    @override
    def refuses(self, board: Board, devices: Sequence[str] = ()) -> str | None:
        models = board.architecture.model.unicorn.models
        if board.cpu.type in models:
            return None
        return f"unicorn has no {board.cpu.type} (it has {', '.join(models)})"

    @override
    def refuses_clock(self, board: Board, clock: Clock) -> str | None:
        if clock is Clock.INSTRUCTIONS or core_timing(board.cpu.type) is not None:
            return None
        return f"the cycles of the {board.cpu.type}, the core of board {board.name}, have no model"

    @override
    def _start(self, machine: Machine) -> Session:
        return UnicornSession(machine)
