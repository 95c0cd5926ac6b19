# SPDX-License-Identifier: Apache-2.0
"""The axes of a sweep, their products, and the rows that leave runs out or add some."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from ferrule._frozen import frozen
from ferrule.budget import Resource, afford
from ferrule.errors import FerruleError, unknown_name
from ferrule.evaluation.sweep.file import Match, Scalar, SweepFile

MAIN_AXES = ("model", "board", "toolchain", "engine", "backends")
SEED = "seed"
ENGINE, FITTING = "engine", ""
"""The axis, and its value that stands for the engine that fits each run's board."""
_RUN_BYTES = 2048
"""What a run of a sweep takes, with its row of results."""

Choice = Mapping[str, str]
"""One value for each axis, as text."""


def text_of(value: Scalar) -> str:
    """Return a value of a file as text; a bool is true or false."""
    return str(value).lower() if isinstance(value, bool) else str(value)


@frozen
class Axes:
    """The values of each axis, in the order of the products, and the runs that differ from the product."""

    values: Mapping[str, tuple[str, ...]]
    exclude: tuple[Mapping[str, frozenset[str]], ...]
    include: tuple[Mapping[str, tuple[str, ...]], ...]
    fitting: Callable[[str], str]
    """The engine that fits a board."""

    def choices(self) -> Iterator[dict[str, str]]:
        """Yield the runs, each once: first the product without what is excluded, then what is included."""
        for choice in self._product(list(self.values.values())):
            if not any(matches(row, choice) for row in self.exclude):
                yield choice
        for index, row in enumerate(self.include):
            for choice in self._product([row.get(axis, values[:1]) for axis, values in self.values.items()]):
                if not self._is_earlier(choice, index):
                    yield choice

    def all_values(self, axis: str) -> tuple[str, ...]:
        """Return the values of an axis, those of the included runs among them."""
        given = list(self.values[axis])
        if axis == ENGINE and FITTING in given:
            given = [self.fitting(board) for board in self.all_values("board")]
        return tuple(dict.fromkeys([*given, *(value for row in self.include for value in row.get(axis, ()))]))

    def _product(self, values: Sequence[tuple[str, ...]]) -> Iterator[dict[str, str]]:
        for combination in itertools.product(*values):
            choice = dict(zip(self.values, combination, strict=True))
            if choice[ENGINE] == FITTING:
                choice[ENGINE] = self.fitting(choice["board"])
            yield choice

    def _is_of(self, choice: Choice, axis: str, values: tuple[str, ...]) -> bool:
        """Return whether a run has one of the values of an axis."""
        if axis == ENGINE and FITTING in values and choice[axis] == self.fitting(choice["board"]):
            return True
        return choice[axis] in values

    def _is_earlier(self, choice: Choice, index: int) -> bool:
        """Return whether a run is one of the product, or of the rows of `include` before this one."""
        in_product = all(self._is_of(choice, axis, values) for axis, values in self.values.items())
        if in_product and not any(matches(row, choice) for row in self.exclude):
            return True
        return any(
            all(self._is_of(choice, axis, row.get(axis, values[:1])) for axis, values in self.values.items())
            for row in self.include[:index]
        )


def matches(row: Mapping[str, frozenset[str]], choice: Choice) -> bool:
    """Return whether a run has, for each axis of the row, one of its values."""
    return all(choice[axis] in values for axis, values in row.items())


def axes_of(file: SweepFile, main: Mapping[str, tuple[str, ...]], fitting: Callable[[str], str]) -> Axes:
    """Return the axes of a sweep, given the values of those in `MAIN_AXES`, and the engine that fits a board.

    Raises:
        FerruleError: a value is given twice, or a row names an axis or a value that the sweep does not have.
    """
    values = {axis: _checked(axis, tuple(main[axis])) for axis in MAIN_AXES}
    for name in file.options.__struct_fields__:
        _add(values, name, f"options.{name}", getattr(file.options, name))
    for backend, options in file.backend_options.items():
        for name, given in options.items():
            _add(values, f"{backend}.{name}", f"backend_options.{backend}.{name}", given)
    include = tuple(
        {axis: _texts(given) for axis, given in _named(row, values, f"include[{index}]").items()}
        for index, row in enumerate(file.include)
    )
    axes = Axes(values=values, exclude=(), include=include, fitting=fitting)
    _afford(axes, len(file.exclude))
    exclude = tuple(rows_of(axes, row, f"exclude[{index}]") for index, row in enumerate(file.exclude))
    return replace(axes, exclude=exclude)


def _afford(axes: Axes, excludes: int) -> None:
    """Raise BudgetError if there are too many runs, or too many rows that each is compared with."""
    runs = math.prod(map(len, axes.values.values()))
    for row in axes.include:
        runs += math.prod(len(row.get(axis, values[:1])) for axis, values in axes.values.items())
    what = f"a sweep of {runs:,} runs"
    afford(Resource.BYTES, _RUN_BYTES * runs, what)
    compared = runs * len(axes.values) * (excludes + len(axes.include))
    afford(Resource.ELEMENTS, compared, f"{what}, compared with all rows of exclude and include,")


def rows_of(axes: Axes, row: Match, where: str) -> dict[str, frozenset[str]]:
    """Return the values that a row matches; FerruleError if the sweep has no such axis or value."""
    found = {axis: _texts(given) for axis, given in _named(row, axes.values, where).items()}
    for axis, texts in found.items():
        known = set(axes.all_values(axis))
        for text in texts:
            if text not in known:
                raise unknown_name(f"{axis}", text, known, where=f"in this sweep, as {where} has it")
    return {axis: frozenset(texts) for axis, texts in found.items()}


def _named(row: Match, values: Mapping[str, object], where: str) -> Match:
    if not row:
        raise FerruleError(f"{where}: it is empty, expected values of axes", hint=f"axes: {', '.join(values)}")
    for axis in row:
        if axis not in values:
            hint = f"axes of this sweep: {', '.join(values)}"
            raise FerruleError(f"{where}: the sweep has no axis '{axis}'", hint=hint)
    return row


def _texts(given: Scalar | tuple[Scalar, ...]) -> tuple[str, ...]:
    return tuple(text_of(value) for value in (given if isinstance(given, (tuple, list)) else (given,)))


def _add(values: dict[str, tuple[str, ...]], axis: str, where: str, given: Sequence[Scalar]) -> None:
    if given:
        values[axis] = _checked(where, tuple(text_of(value) for value in given))


def _checked(where: str, texts: tuple[str, ...]) -> tuple[str, ...]:
    seen: set[str] = set()
    for text in texts:
        if text in seen:
            raise FerruleError(f"{where}: '{text}' is given twice")
        seen.add(text)
    return texts
