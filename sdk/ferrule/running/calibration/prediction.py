# SPDX-License-Identifier: Apache-2.0
"""Predicts the cycles of a calibration's programs for a candidate: the embedded engine runs the same firmware."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Protocol

from ferrule.boards import Board
from ferrule.emulation import Clock, engine
from ferrule.errors import FerruleError
from ferrule.firmware import BuiltFirmware
from ferrule.link import LinkSession
from ferrule.running.calibration.measurement import Counts, measure
from ferrule.running.session import linked_machine
from ferrule.timing import BoardTiming, timed_cores

ENGINE = "unicorn"
_REPEATS = 2
"""Runs of the programs: as on a board, the first may find caches empty."""


class Predict(Protocol):
    """Anything that predicts the cycles of programs."""

    def __call__(self, timing: BoardTiming, names: Collection[str]) -> Counts:
        """Return the cycles of the programs of some names in memories of a timing."""


def require_model(board: Board) -> None:
    """Raise FerruleError if the cycles of the board's core have no model."""
    missing = engine(ENGINE).missing()
    if missing is not None:
        raise missing
    reason = engine(ENGINE).refuses_clock(board, Clock.CYCLES)
    if reason is not None:
        raise FerruleError(
            f"board {board.name} cannot be calibrated: {reason}", hint=f"cores with a model: {', '.join(timed_cores())}"
        )


def predictor(firmware: BuiltFirmware) -> Predict:
    """Return the prediction by the engine's own model of the core and of memories."""
    machine = replace(linked_machine(firmware, {}), clock=Clock.CYCLES)

    def predict(timing: BoardTiming, names: Collection[str]) -> Counts:
        timed = replace(machine, board=replace(machine.board, timing=timing))
        with engine(ENGINE).start(timed) as session:
            return measure(LinkSession(session.channel()), firmware, repeats=_REPEATS, names=names)

    return predict
