# SPDX-License-Identifier: Apache-2.0
"""The lower bound of an arena equals the greatest bound of any single step."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.memory import Lifetime
from ferrule.memory.arena import Arena
from ferrule.memory.bound import bound_at, fullest, lower_bound
from ferrule.memory.storage import Storage


def storage(number: int, first: int, last: int, size_bytes: int = 16, alignment: int = 4) -> Storage:
    return Storage(
        members=(f"s{number}",),
        size_bytes=size_bytes,
        alignment=alignment,
        lifetime=Lifetime(first=first, last=last),
        regions=("sram",),
        is_scratch=False,
    )


@st.composite
def arenas(draw: st.DrawFn) -> Arena:
    storages = []
    for number in range(draw(st.integers(1, 8))):
        first = draw(st.integers(0, 4))
        last = first + draw(st.integers(0, 2))
        sizes = draw(st.tuples(st.integers(1, 20), st.sampled_from([1, 8, 16])))
        storages.append(storage(number, first, last, *sizes))
    return Arena(storages)


@settings(max_examples=300)
@given(arenas())
def test_the_fullest_step_is_found_though_some_are_skipped(arena: Arena) -> None:
    bounds = {step: bound_at(arena, step, arena.live_at(step)) for step in arena.starts}
    assert lower_bound(arena) == max(bounds.values())
    first = min(step for step, bound in bounds.items() if bound == max(bounds.values()))
    assert fullest(arena)[1] == arena.live_at(first)


def made(lives: Iterable[tuple[int, int]]) -> Arena:
    return Arena([storage(number, *life) for number, life in enumerate(lives)])


@pytest.mark.parametrize("longest", [1, 5, 60, 400])
def test_the_storages_live_at_a_step(longest: int) -> None:
    dice = random.Random(longest)
    firsts = [dice.randrange(300) for _ in range(500)]
    arena = made((first, first + dice.randrange(longest)) for first in firsts)
    for step in range(-1, 701):
        live = [each for each, it in enumerate(arena.storages) if it.lifetime.first <= step <= it.lifetime.last]
        assert arena.live_at(step) == tuple(sorted(live, key=lambda each: (firsts[each], each)))


SHAPES: dict[str, Callable[[int], list[tuple[int, int]]]] = {
    "chain": lambda count: [(step, step + 1) for step in range(count)],
    "beside one": lambda count: [(0, count), *((step, step + 1) for step in range(count))],
    "after a fan": lambda count: [*((step, 200) for step in range(200)), *((step, step) for step in range(200, count))],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_bound_looks_at_few_storages_beside_those_that_are_live(
    shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = 0
    candidates = Arena._candidates

    def counted(self: Arena, step: int) -> Any:  # noqa: ANN401 numpy's type
        nonlocal looked
        found = candidates(self, step)
        looked += len(found)
        return found

    monkeypatch.setattr(Arena, "_candidates", counted)
    visits = []
    for count in (1000, 2000, 4000):
        looked = 0
        assert lower_bound(made(SHAPES[shape](count))) > 0
        visits.append(looked)
    assert 0 < visits[2] - visits[1] <= 2.1 * (visits[1] - visits[0]) or visits == [visits[0]] * 3
    assert visits[2] <= 4000 * 70
