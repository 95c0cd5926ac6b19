# SPDX-License-Identifier: Apache-2.0
"""Published cycles of chips beside the cycles of the model, and the error of the model that they show.

evidence/<core>.toml has the figures of a core, docs/timing.md lists them all, and benchmarks/timing_evidence.py
compares them with the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cache
from math import ceil, floor
from pathlib import Path
from statistics import median
from typing import Annotated

import msgspec

from ferrule._frozen import frozen
from ferrule.documents import convert, read_toml
from ferrule.errors import FerruleError, unknown_name
from ferrule.timing.memory_timing import BoardTiming, MemoryTiming

FOLDER = Path(__file__).parent / "evidence"
LEAST_FIGURES = 8
LEAST_SOURCES = 3
"""With fewer held-out figures or sources, no error of a core counts as measured."""


class Use(StrEnum):
    """What a figure is used for; it is set before the figure is compared with the model."""

    FITTED = "fitted"
    """Numbers of the model may be chosen by it."""
    HELD_OUT = "held out"
    """It measures the model's error, and no number is chosen by it."""
    CONTEXT = "context"
    """It is listed only: the compiler or the arguments differ, or it is not known how it was measured."""


@frozen
class Source:
    """Who published figures, and what they were measured on."""

    title: str
    url: str
    revision: str
    """A commit, or the year of a paper."""
    file: str
    """Where the figures are in it."""
    board: str
    """The chip or board that was measured."""
    compiler: str
    """The compiler of the measured code; assembler code has none."""
    clock_hz: int | None = None
    """The clock of the measurement; None if it is not stated."""


@frozen
class Figure:
    """Published cycles of a program, beside those of the model."""

    core: str
    """Arm's name in lower case: `cortex-m4`."""
    name: str
    source: Source
    program: str
    """Name of the program that repeats the measurement, unique for a core and its memories."""
    published: float
    """Cycles of a unit, such as a block, of which a run of the program has `per`."""
    per: int
    use: Use
    board: str
    """The board on which the program runs here."""
    timing: BoardTiming | None
    """The board's memories as they were measured; None without wait states."""
    note: str
    """How this measurement differs from the published one; empty if nothing is known to."""
    model: float | None
    """The model's cycles of a unit; None if they are not known yet."""

    @property
    def error(self) -> float | None:
        """What the chip takes beyond the model, as a fraction of the model's cycles; None without these."""
        return None if self.model is None else self.published / self.model - 1


@frozen
class MeasuredError:
    """The error of a core's model: measured on held-out figures, or left by the calibration of a board."""

    low: float
    """The least that a chip took beyond the model, as a fraction of the model's cycles: below 0 where it took fewer."""
    high: float
    median: float
    """The median of the absolute values of the errors."""
    figures: int
    """0 for a calibrated board."""
    sources: int
    """How many publications the figures are from; 0 for a calibrated board."""


class _Waits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Memories of a measured board."""

    board: str
    source: str
    memories: dict[str, MemoryTiming]


class _Figure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A figure as it is stored."""

    name: str
    source: str
    program: str
    published: Annotated[float, msgspec.Meta(gt=0)]
    use: Use
    per: Annotated[int, msgspec.Meta(ge=1)] = 1
    waits: str | None = None
    note: str = ""
    model: Annotated[float, msgspec.Meta(gt=0)] | None = None


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A core's file."""

    board: str
    sources: dict[str, Source]
    figures: list[_Figure]
    waits: dict[str, _Waits] = {}


def read_figures(path: Path) -> tuple[Figure, ...]:
    """Return the figures of a core's file, whose name is the core's.

    Raises:
        FerruleError: the file cannot be read, violates its schema, names an unknown source or unknown memories, or has
            a name twice.
    """
    try:
        file = convert(str(path), read_toml(path), _File)
    except FerruleError as error:
        raise error if str(path) in str(error) else FerruleError(f"{path}: {error}", hint=error.hint) from error
    found = [_figure(path, file, each) for each in file.figures]
    names = [(each.name, each.source) for each in found]
    for name, source in names:
        if names.count((name, source)) > 1:
            raise FerruleError(f"{path}: '{name}' of {source.url} is listed twice")
    return tuple(found)


def _figure(path: Path, file: _File, stored: _Figure) -> Figure:
    where = f"in {path}"
    if stored.source not in file.sources:
        raise unknown_name("source", stored.source, file.sources, where=where)
    if stored.waits is not None and stored.waits not in file.waits:
        raise unknown_name("waits", stored.waits, file.waits, where=where)
    waits = None if stored.waits is None else file.waits[stored.waits]
    return Figure(
        core=path.stem,
        name=stored.name,
        source=file.sources[stored.source],
        program=stored.program,
        published=stored.published,
        per=stored.per,
        use=stored.use,
        board=file.board if waits is None else waits.board,
        timing=None if waits is None else BoardTiming(source=waits.source, memories=waits.memories),
        note=stored.note,
        model=stored.model,
    )


@cache
def evidence() -> Mapping[str, tuple[Figure, ...]]:
    """Return the figures of all cores that have some, by Arm's name in lower case."""
    return {path.stem: read_figures(path) for path in sorted(FOLDER.glob("*.toml"))}


def error_text(low: float, high: float) -> str:
    """Return the range of an error in words, rounded outwards to whole per cents."""
    return f"{floor(100 * low):+d} % to {ceil(100 * high):+d} %"


@cache
def measured_error(core: str, *, waits: bool) -> MeasuredError | None:
    """Return the measured error of a core's model, in memories with or without wait states.

    None if it was not measured: there are fewer than 8 held-out figures, or they are from fewer than 3 sources.
    """
    return error_of(each for each in evidence().get(core, ()) if (each.timing is not None) == waits)


def model_error(core: str, timing: BoardTiming | None) -> MeasuredError | None:
    """Return the error of the model's cycles on a board: what its calibration left, or else the measured one."""
    if timing is None or timing.residual is None:
        return measured_error(core, waits=timing is not None and timing.waits)
    # what the model takes beyond the board becomes what the board takes beyond the model
    high, low = (1 / (1 + each) - 1 for each in timing.residual)
    return MeasuredError(low=low, high=high, median=max(-low, high), figures=0, sources=0)


def error_of(figures: Iterable[Figure]) -> MeasuredError | None:
    """Return the error that the held-out ones of some figures show; None if they are too few."""
    held = [each for each in figures if each.use is Use.HELD_OUT]
    errors = [each.error for each in held if each.error is not None]
    sources = {each.source.url for each in held if each.error is not None}
    if len(errors) < LEAST_FIGURES or len(sources) < LEAST_SOURCES:
        return None
    return MeasuredError(
        low=min(errors),
        high=max(errors),
        median=median(map(abs, errors)),
        figures=len(errors),
        sources=len(sources),
    )
