# SPDX-License-Identifier: Apache-2.0
"""Covering arrays of test parameters."""

from __future__ import annotations

from itertools import product

import pytest
from covering import covering, pairs, pairwise
from hypothesis import given, settings
from hypothesis import strategies as st

MODELS, BOARDS, TOOLCHAINS = ("ad", "ic", "kws", "vww"), ("m0", "m3", "m4", "m33"), ("zig", "gcc")


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=2, max_size=4), st.integers())
def test_every_pair_is_in_a_row(sizes: list[int], seed: int) -> None:
    columns = [range(size) for size in sizes]
    rows = pairwise(*columns, seed=seed)
    assert set().union(*map(pairs, rows)) == set().union(*map(pairs, product(*columns)))
    assert set(rows) <= set(product(*columns))
    assert len(rows) == len(set(rows))


@pytest.mark.parametrize("seed", range(10))
def test_there_are_few_rows(seed: int) -> None:
    """The product of the two longest columns is a lower bound."""
    assert len(pairwise(MODELS, BOARDS, TOOLCHAINS, seed=seed)) == 16
    assert len(pairwise(MODELS, BOARDS, TOOLCHAINS, (0, 1), ("unicorn", "qemu"), seed=seed)) <= 20


def test_the_seed_decides() -> None:
    columns = MODELS, BOARDS, TOOLCHAINS
    assert pairwise(*columns, seed=1) == pairwise(*columns, seed=1)
    assert len({tuple(pairwise(*columns, seed=seed)) for seed in range(10)}) > 5


def test_a_row_that_is_wanted() -> None:
    wanted = ("kws", "m3", "gcc")
    rows = pairwise(MODELS, BOARDS, TOOLCHAINS, seed=1, first=wanted)
    assert wanted in rows
    assert len(rows) == len(set(rows)) <= 17
    mark = covering("model, board, toolchain", MODELS, BOARDS, TOOLCHAINS, seed=1, sentinel=wanted).mark
    assert [row.values for row in mark.args[1] if row.marks] == [wanted]
    assert "kws-m3-gcc" in [row.id for row in mark.args[1]]


def test_rows_that_are_not_allowed() -> None:
    def allowed(model: str, board: str, toolchain: str) -> bool:
        return (board, toolchain) != ("m0", "gcc") and model != "vww"

    rows = pairwise(MODELS, BOARDS, TOOLCHAINS, seed=3, allowed=allowed)
    assert all(allowed(*map(str, row)) for row in rows)
    possible = [row for row in product(MODELS, BOARDS, TOOLCHAINS) if allowed(*row)]
    assert set().union(*map(pairs, rows)) == set().union(*map(pairs, possible))


@pytest.mark.parametrize(("exhaustive", "count"), [(False, 16), (True, 32)])
def test_all_rows_if_asked_for(exhaustive: bool, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("covering.EXHAUSTIVE", exhaustive)
    mark = covering("model, board, toolchain", MODELS, BOARDS, TOOLCHAINS, seed=1).mark
    assert mark.args[0] == "model, board, toolchain"
    assert len(mark.args[1]) == count
