# SPDX-License-Identifier: Apache-2.0
"""The lower bound of an arena equals the greatest bound of any single step."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.memory import Lifetime
from ferrule.memory.arena import Arena
from ferrule.memory.bound import bound_at, fullest, lower_bound
from ferrule.memory.storage import Storage


@st.composite
def arenas(draw: st.DrawFn) -> Arena:
    storages = []
    for number in range(draw(st.integers(1, 8))):
        first = draw(st.integers(0, 4))
        storages.append(
            Storage(
                members=(f"s{number}",),
                size_bytes=draw(st.integers(1, 20)),
                alignment=draw(st.sampled_from([1, 8, 16])),
                lifetime=Lifetime(first=first, last=first + draw(st.integers(0, 2))),
                regions=("sram",),
                is_scratch=False,
            )
        )
    return Arena(storages)


@settings(max_examples=300)
@given(arenas())
def test_the_fullest_step_is_found_though_some_are_skipped(arena: Arena) -> None:
    bounds = {step: bound_at(arena, step, arena.live_at(step)) for step in arena.starts}
    assert lower_bound(arena) == max(bounds.values())
    first = min(step for step, bound in bounds.items() if bound == max(bounds.values()))
    assert tuple(fullest(arena)) == arena.live_at(first)
