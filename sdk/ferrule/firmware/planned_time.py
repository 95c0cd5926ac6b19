# SPDX-License-Identifier: Apache-2.0
"""The planned time of an inference on a board: from the layers as C and a table of the core's kernels, without a build.

A layer of a device takes what its backend estimates. The core waits for it where the firmware collects its result.
"""

from __future__ import annotations

from ferrule._frozen import frozen
from ferrule.boards import Board
from ferrule.codegen import Artifact
from ferrule.codegen.artifact import VIEW, OperatorRecord
from ferrule.timing.energy import digits_text
from ferrule.timing.planned import Pace


@frozen
class PlannedLayer:
    """The planned time of an operator, in the order of execution."""

    layer: str
    kernel: str
    cycles: int
    """0 for an operator without code, and for one of a device that states no estimate."""
    milliseconds: float
    """At the board's clock."""
    assumed: str = ""
    """What the figure rests on instead of a measurement of its kernel; usually empty."""


@frozen
class PlannedTime:
    """The planned time of an inference."""

    board: str
    cycles: int
    """From the first layer to the last; devices that work beside the core do not add to it."""
    milliseconds: float
    """At the board's clock."""
    clock_hz: int
    """That clock."""
    layers: tuple[PlannedLayer, ...]
    assumed: tuple[str, ...] = ()
    """What parts of the figure rest on instead of measurements of the kernels; usually empty."""

    @property
    def text(self) -> str:
        """The time in words."""
        return (
            f"{digits_text(self.milliseconds, 4)} ms on {self.board}, {self.cycles:,} cycles at "
            f"{self.clock_hz / 1e6:g} MHz, from a table of its core's kernels"
        )


def planned_time(artifact: Artifact, board: Board) -> PlannedTime | None:
    """Return the planned time of an inference on a board; None if its core has no table of kernels.

    The layers are to be generated for the board's core: kernels differ by its features.
    """
    pace = board.pace
    if pace is None:
        return None
    layers = tuple(_planned(record, pace, board.clock_hz) for record in artifact.operators)
    assumed = tuple(f"layer '{each.layer}': {each.assumed}" for each in layers if each.assumed)
    if board.timing is None:
        assumed = (*assumed, f"board {board.name} states no timing of its memories: no access waits")
    elif pace.waits and not pace.timings.accesses:
        assumed = (*assumed, f"accesses to memories are not counted on {pace.timings.core}: none waits")
    cycles = _total(artifact, layers)
    return PlannedTime(
        board=board.name,
        cycles=cycles,
        milliseconds=_milliseconds(cycles, board.clock_hz),
        clock_hz=board.clock_hz,
        layers=layers,
        assumed=assumed,
    )


def _milliseconds(cycles: int, clock_hz: int) -> float:
    return 1e3 * cycles / clock_hz


def _planned(record: OperatorRecord, pace: Pace, clock_hz: int) -> PlannedLayer:
    cycles, assumed = 0, ""
    if record.works:
        cycles = sum(map(pace.cycles, record.works))
        unknown = [work.kernel for work in record.works if not pace.knows(work)]
        if unknown:
            assumed = f"kernel {', '.join(unknown)} was not measured on {pace.timings.core}: the median of the others"
    elif record.kernel != VIEW:
        cycles = record.cycles or 0
        assumed = (
            f"the estimate of backend {record.backend}"
            if record.cycles is not None
            else f"nothing, since backend {record.backend} estimates no time"
        )
    return PlannedLayer(
        layer=record.layer,
        kernel=record.kernel,
        cycles=cycles,
        milliseconds=_milliseconds(cycles, clock_hz),
        assumed=assumed,
    )


def _total(artifact: Artifact, layers: tuple[PlannedLayer, ...]) -> int:
    """Return the time at which the last operator has ended, with devices that work beside the core."""
    now, free, over, ends = 0, dict[str, int](), dict[int, int](), artifact.ends
    for index, (record, layer) in enumerate(zip(artifact.operators, layers, strict=True)):
        if index in ends:
            over[index] = free[record.device] = max(now, free.get(record.device, 0)) + layer.cycles
        else:
            now += layer.cycles
        now = max(now, *(over[begun] for begun, end in ends.items() if end == index and begun in over), 0)
    return now
