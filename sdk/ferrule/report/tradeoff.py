# SPDX-License-Identifier: Apache-2.0
"""What can be chosen, by what it takes and how good it is: the data of a chart, and which choices are on the front."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from ferrule._frozen import frozen
from ferrule.report.sections import Picture, Table, joined, number, plural

Points = NDArray[np.float64]
"""A row per point, a column per objective."""
_FEW = 256
"""The most points of which all pairs are compared."""


class Mark(StrEnum):
    """What a choice is; each has a shape of its own, so that colours carry no meaning alone."""

    OTHER = "dominated"
    OVER = "over a limit"
    FRONT = "front"
    CHOSEN = "chosen"
    BUILT = "built and run"
    """What the chosen one takes once it is built, where the others are planned."""


@frozen
class Axis:
    """Something that choices have more or less of."""

    name: str
    unit: str = ""
    better: str = "lower"
    """"lower" or "higher"."""
    limit: float | None = None
    """The most that is allowed; None without a limit."""

    @property
    def label(self) -> str:
        """The name with its unit."""
        return joined(self.name, self.unit)

    def text(self, value: float) -> str:
        """Return a value with its name and unit."""
        return joined(self.name, number(value), self.unit, by=" ")


@frozen
class Choice:
    """Something that can be chosen."""

    name: str
    values: Mapping[str, float]
    """By the name of an axis, those that are known."""
    mark: Mark = Mark.OTHER


@frozen
class Tradeoff:
    """The data of the picture "tradeoff": a chart of a value against each cost."""

    noun: str
    """What a choice is, such as "trial"."""
    value: Axis
    costs: Sequence[Axis]
    """Those of which at least two choices differ, or that have a limit."""
    choices: Sequence[Choice]
    table: Table | None = None
    """The choices, if no table near the chart has them."""

    @property
    def caption(self) -> str:
        """What the chart shows, in words."""
        count = sum(each.mark is not Mark.BUILT for each in self.choices)
        front = sum(each.mark in {Mark.FRONT, Mark.CHOSEN} for each in self.choices)
        chosen = joined(*(each.name for each in self.choices if each.mark is Mark.CHOSEN), by="; ")
        return joined(
            f"{plural(count, self.noun)}, {front:,} on the front: no other is as good in "
            f"{joined(self.value.name, *(cost.name for cost in self.costs))} and better in one.",
            f"Of {self.value.name}, {'more' if self.value.better == 'higher' else 'less'} is better.",
            chosen and f"Chosen: {chosen}.",
            by=" ",
        )


def tradeoff_picture(tradeoff: Tradeoff) -> Picture | None:
    """Return a chart of the costs that tell choices from one another; None if there is nothing to choose from."""
    costs = tuple(cost for cost in tradeoff.costs if _tells(tradeoff, cost))
    kept = replace(tradeoff, costs=costs)
    return Picture("tradeoff", kept, kept.caption) if costs else None


def _tells(tradeoff: Tradeoff, cost: Axis) -> bool:
    known = {each.values[cost.name] for each in placed(tradeoff, cost)}
    return len(known) > 1 or (bool(known) and cost.limit is not None)


def placed(tradeoff: Tradeoff, cost: Axis) -> list[Choice]:
    """Return the choices whose value and cost are known numbers."""
    names = (tradeoff.value.name, cost.name)
    return [each for each in tradeoff.choices if all(isfinite(each.values.get(name, np.nan)) for name in names)]


def with_front(choices: Iterable[Choice], axes: Sequence[Axis]) -> tuple[Choice, ...]:
    """Return choices of which those are marked that no other one dominates.

    A choice over a limit, or without a number on one of the axes, keeps its mark and dominates nothing.
    """
    every = tuple(choices)
    known = [
        index
        for index, each in enumerate(every)
        if each.mark is not Mark.OVER and all(isfinite(each.values.get(axis.name, np.nan)) for axis in axes)
    ]
    signs = [-1.0 if axis.better == "higher" else 1.0 for axis in axes]
    points = [
        [sign * every[index].values[axis.name] for sign, axis in zip(signs, axes, strict=True)] for index in known
    ]
    kept = front(np.asarray(points, np.float64).reshape(len(known), len(axes)))
    best = {index for index, keep in zip(known, kept, strict=True) if keep}
    return tuple(replace(each, mark=Mark.FRONT) if index in best else each for index, each in enumerate(every))


def front(points: Points) -> NDArray[np.bool_]:
    """Return which points no other point dominates: is as small in all objectives and smaller in one.

    Of equal points, each is on the front. Few points are compared in pairs, all at once; more of them in lexicographic
    order, in which none is dominated by a later one, with the front so far.
    """
    if len(points) <= _FEW:
        below = (points[:, None, :] <= points[None, :, :]).all(axis=2)
        smaller = (points[:, None, :] < points[None, :, :]).any(axis=2)
        return np.asarray(~(below & smaller).any(axis=0))
    distinct, places = np.unique(points, axis=0, return_inverse=True)
    kept = np.zeros(len(distinct), np.bool_)
    best = np.empty_like(distinct)
    size = 0
    for index, point in enumerate(distinct):
        if not (best[:size] <= point).all(axis=1).any():
            best[size] = point
            kept[index], size = True, size + 1
    return np.asarray(kept[places.reshape(-1)])
