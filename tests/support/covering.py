# SPDX-License-Identifier: Apache-2.0
"""Covering arrays of test parameters: each pair of values is in some row; FERRULE_EXHAUSTIVE=1 takes all rows."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from itertools import combinations, product

import pytest

EXHAUSTIVE = os.environ.get("FERRULE_EXHAUSTIVE", "") not in {"", "0"}
Row = tuple[object, ...]
Pair = tuple[tuple[int, object], tuple[int, object]]


def pairwise(
    *columns: Sequence[object], seed: int, first: Row | None = None, allowed: Callable[..., bool] = lambda *_: True
) -> list[Row]:
    """Return a few of the allowed rows, `first` included, that cover every pair of values found in any allowed row.

    The choice is greedy: the next row is the one with the most uncovered pairs; ties are broken at random.
    """
    rows = [row for row in product(*columns) if allowed(*row)]
    order = {row: number for number, row in enumerate(rows)}
    random.Random(seed).shuffle(rows)
    chosen = [] if first is None else [first]
    missing = set().union(*map(pairs, rows)).difference(*map(pairs, chosen))
    while missing:
        best = max(rows, key=lambda row: len(pairs(row) & missing))
        missing -= pairs(best)
        chosen.append(best)
    return sorted(chosen, key=order.__getitem__)


def pairs(row: Row) -> set[Pair]:
    """Return the pairs of a row's values, each value with its column number."""
    return set(combinations(enumerate(row), 2))


def covering(
    names: str,
    *columns: Sequence[object],
    seed: int,
    sentinel: Row | None = None,
    allowed: Callable[..., bool] = lambda *_: True,
    indirect: Sequence[str] = (),
    gate: int | None = None,
) -> pytest.MarkDecorator:
    """Return a parametrize mark with one name per column; the row `sentinel` is marked as the family's sentinel.

    Rows behind the first `gate` are marked `nightly`, if it is given.
    """
    if EXHAUSTIVE:
        rows = [row for row in product(*columns) if allowed(*row)]
    else:
        rows = pairwise(*columns, seed=seed, first=sentinel, allowed=allowed)
    assert sentinel is None or sentinel in rows
    parameters = [
        pytest.param(
            *row,
            id=_id(row),
            marks=[
                *[pytest.mark.sentinel] * (row == sentinel),
                *[pytest.mark.nightly] * (gate is not None and number >= gate),
            ],
        )
        for number, row in enumerate(rows)
    ]
    return pytest.mark.parametrize(names, parameters, indirect=indirect)


def _id(row: Row) -> str:
    return "-".join(",".join(each) if isinstance(each, tuple) else str(each) for each in row)
