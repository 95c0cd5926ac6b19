# SPDX-License-Identifier: Apache-2.0
"""The geometry of charts: choices by what they take and how good they are, in a panel for each cost.

Horizontal places are shares of a panel's width, vertical ones pixels; ticks are evenly spaced.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import floor, isfinite, log10

from ferrule._frozen import frozen, positional
from ferrule.report.sections import Table, joined, number, plural
from ferrule.report.tradeoff import Axis, Choice, Mark, Tradeoff, placed

HEIGHT = 220.0
"""Of a panel."""
_MOST_DRAWN = 400
"""Choices of a panel; those on the front come first."""
_ORDER = (Mark.OTHER, Mark.OVER, Mark.FRONT, Mark.CHOSEN, Mark.BUILT)
"""Later ones are drawn over earlier ones."""
_NARROWEST, _LETTER = 240, 7.5
"""The width of the narrowest panel, and of a digit, in pixels."""
_FAR = 3.0
"""A limit beyond this many times the largest cost is not drawn: the marks would be too close together."""


@positional
class Dot:
    """A choice with its tooltip."""

    x: float
    y: float
    mark: str
    tip: str


@frozen
class Panel:
    """A value against a cost."""

    title: str
    summary: str
    """Its text alternative."""
    dots: Sequence[Dot]
    lines: Sequence[tuple[str, float, float, float, float]]
    """The style of each, its ends from left to right, and its ends from top to bottom."""
    limit: tuple[float, str] | None
    """Where the line of the limit is, and its text."""
    across: Sequence[str]
    """The ticks from left to right."""
    down: Sequence[str]
    """The ticks from top to bottom."""
    note: str
    """What is not drawn; empty if all is."""


@frozen
class Chart:
    """Panels that share their marks."""

    panels: Sequence[Panel]
    legend: Sequence[Mark]
    caption: str
    table: Table | None


def tradeoff_chart(tradeoff: Tradeoff) -> Chart:
    """Return where the choices of a trade-off stand."""
    return Chart(
        panels=[_panel(tradeoff, cost) for cost in tradeoff.costs],
        legend=[mark for mark in _ORDER if any(each.mark is mark for each in tradeoff.choices)],
        caption=tradeoff.caption,
        table=tradeoff.table,
    )


def _panel(tradeoff: Tradeoff, cost: Axis) -> Panel:
    value, known = tradeoff.value, placed(tradeoff, cost)
    drawn = sorted(sorted(known, key=lambda each: -_ORDER.index(each.mark))[:_MOST_DRAWN], key=_rank)
    costs = [each.values[cost.name] for each in drawn]
    near = cost.limit is not None and isfinite(cost.limit) and 0 < cost.limit <= _FAR * max(costs)
    across = ticks([*costs, cost.limit or 0.0] if near else costs)
    up = ticks([each.values[value.name] for each in drawn])
    dots = [
        Dot(
            _place(each.values[cost.name], across),
            HEIGHT * (1 - _place(each.values[value.name], up)),
            each.mark.name.lower(),
            f"{each.name}: {value.text(each.values[value.name])}, {cost.text(each.values[cost.name])} ({each.mark})",
        )
        for each in drawn
    ]
    steps = _steps([each for each in drawn if each.mark in {Mark.FRONT, Mark.CHOSEN}], value, cost)
    best = [
        (_place(each.values[cost.name], across), HEIGHT * (1 - _place(each.values[value.name], up))) for each in steps
    ]
    far = cost.limit is not None and not near
    left_out = len(tradeoff.choices) - len(known)
    return Panel(
        title=f"{value.label} against {cost.label}",
        summary=joined(
            f"{value.label} against {cost.label} for {plural(len(drawn), tradeoff.noun)}",
            f"the best go from {_ends(steps[0], value, cost)} to {_ends(steps[-1], value, cost)}" if steps else "",
            by="; ",
        ),
        dots=dots,
        lines=list(_lines(best)),
        limit=(_place(cost.limit or 0.0, across), f"limit {number(cost.limit)}") if near else None,
        across=apart([number(each) for each in across]),
        down=[number(each) for each in reversed(up)],
        note=joined(
            f"The limit, {number(cost.limit)} {cost.unit}, is beyond the picture." if far else "",
            f"{plural(left_out, tradeoff.noun)} without a value {'is' if left_out == 1 else 'are'} not drawn."
            if left_out
            else "",
            f"{len(known) - len(drawn):,} more are not drawn." if len(known) > len(drawn) else "",
            by=" ",
        ),
    )


def _rank(choice: Choice) -> int:
    return _ORDER.index(choice.mark)


def _ends(choice: Choice, value: Axis, cost: Axis) -> str:
    return f"{value.text(choice.values[value.name])} at {number(choice.values[cost.name])} {cost.unit}".rstrip()


def _steps(choices: Sequence[Choice], value: Axis, cost: Axis) -> list[Choice]:
    """Return the choices that are the best for their cost, from the cheapest to the best."""
    sign = -1.0 if value.better == "higher" else 1.0
    best: list[Choice] = []
    for each in sorted(choices, key=lambda each: (each.values[cost.name], sign * each.values[value.name])):
        if not best or sign * each.values[value.name] < sign * best[-1].values[value.name]:
            best.append(each)
    return best


def _lines(points: Sequence[tuple[float, float]]) -> Iterator[tuple[str, float, float, float, float]]:
    """Yield the stairs through points, each with the best value up to the next cost."""
    for (x, y), (after, below) in pairwise(points):
        yield "stairs", x, after, y, y
        yield "stairs", after, after, y, below


def ticks(values: Sequence[float]) -> list[float]:
    """Return three to six round numbers, evenly spaced, of which the ends enclose all values; these are finite."""
    low, high = min(values), max(values)
    span = high / 2 - low / 2 or abs(high) / 2 or 0.5  # a half, so that it is finite
    raw = span / 1.5
    power = 10.0 ** floor(log10(raw))
    step = next((power * each for each in (1, 2, 5) if power * each >= raw), power * 10)
    first, last = floor(low / step), -floor(-high / step)
    last = max(last, first + 1)
    return [step * each for each in range(first, last + 1)]


def apart(labels: Sequence[str]) -> list[str]:
    """Return labels of ticks, some of them empty where all would run into one another in the narrowest panel."""
    steps = len(labels) - 1
    needed = max(map(len, labels)) * _LETTER + _LETTER
    stride = next(
        (each for each in range(1, steps) if steps % each == 0 and each * _NARROWEST / steps >= needed), steps
    )
    return [text if index % stride == 0 else "" for index, text in enumerate(labels)]


def _place(value: float, within: Sequence[float]) -> float:
    """Return where a value is between the ends of ticks, 0 to 1."""
    low, high = within[0], within[-1]
    return (value / 2 - low / 2) / (high / 2 - low / 2)
