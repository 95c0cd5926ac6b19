# SPDX-License-Identifier: Apache-2.0
"""States in a plan: which new values take the old one's place, and that nothing else uses the region."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from ferrule.errors import FerruleError
from ferrule.graph import DataType, TensorInfo
from ferrule.memory import (
    STATE_WORD,
    Access,
    AliasKind,
    GraphPlan,
    Overlap,
    PlanError,
    Region,
    Request,
    plan_graph,
    schedule_of_graph,
    verify,
)
from ferrule.memory.request import Alias
from ferrule.network import Network

SRAM = Region(name="sram", size_bytes=1 << 16, reachable_by=frozenset({"cpu"}))
STATE = Region(name="state", size_bytes=1 << 16, reachable_by=frozenset({"cpu"}))
SAFE = Overlap(output="new", input="old", distance_bytes=0)


def accumulator(*, output: str = "y", later: str = "new") -> Network:
    """Return a network whose layer `new` adds to the old value; the layer after it reads `later`."""
    network = Network("accumulator")
    info = TensorInfo(name="x", shape=(1, 8), dtype=DataType.FLOAT32)
    network.add_input(info)
    network.add_state(TensorInfo(name="old", shape=(1, 8), dtype=DataType.FLOAT32), np.zeros((1, 8), np.float32))
    network.set_state("old", network.add_add_layer("x", "old", name="new"))
    network.add_mul_layer(later, "x", name="y")
    network.set_outputs([output])
    return network


def planned(network: Network, **keywords: object) -> GraphPlan:
    return plan_graph(network, [SRAM], state=STATE, **keywords)  # type: ignore[arg-type]


def is_in_place(found: GraphPlan) -> bool:
    """Whether the new value is where the old one is; otherwise, it must be in the workspace."""
    places = found.plan.placements
    assert places["old"].region == "state"
    assert places["new"] == places["old"] or places["new"].region == "sram"
    return places["new"] == places["old"]


@pytest.mark.parametrize(
    ("overlaps", "ends", "expected"),
    [
        ((), {}, False),
        ((SAFE,), {}, True),
        ((Overlap(output="new", input="old", distance_bytes=-4),), {}, True),
        ((Overlap(output="new", input="old", distance_bytes=4),), {}, False),
        ((Overlap(output="new", input="old", distance_bytes=None, backward_bytes=4),), {}, False),
        ((SAFE, Overlap(output="new", input="old", distance_bytes=8)), {}, False),
        ((SAFE,), {"new": 1}, False),
    ],
)
def test_a_kernel_writes_the_new_value_in_place_if_it_may(
    overlaps: tuple[Overlap, ...], ends: Mapping[str, int], expected: bool
) -> None:
    network = accumulator(later="x" if ends else "new")
    assert is_in_place(planned(network, overlaps=overlaps, ends=ends)) is expected


def test_a_new_value_keeps_the_callers_place_and_waits_for_the_last_reader() -> None:
    assert not is_in_place(planned(accumulator(output="new"), overlaps=[SAFE]))
    assert not is_in_place(planned(accumulator(later="old"), overlaps=[SAFE], order=["new", "y"]))
    assert not is_in_place(planned(accumulator(output="old"), overlaps=[SAFE]))


def test_a_new_value_whose_users_do_not_reach_the_states_is_apart() -> None:
    wide = Region(name="sram", size_bytes=1 << 16, reachable_by=frozenset({"cpu", "npu"}))
    accesses = {"new": Access(masters=frozenset({"cpu", "npu"}))}
    found = plan_graph(accumulator(), [wide], state=STATE, overlaps=[SAFE], accesses=accesses)
    assert not is_in_place(found)


def test_the_region_holds_states_and_their_word_only() -> None:
    found = planned(accumulator(), overlaps=[SAFE])
    inside = {name for name, place in found.plan.placements.items() if place.region == "state"}
    assert inside == {"old", "new", STATE_WORD}
    assert found.plan.region("state").peak_bytes == 36
    assert found.plan.region("sram").peak_bytes == 64  # x and y


def test_the_replay_finds_a_new_value_that_overwrites_an_old_one_too_early() -> None:
    """Without an overlap, the layer may not write over what it reads."""
    network = accumulator()
    found = planned(network, overlaps=[SAFE])
    run = schedule_of_graph(network, found.ordering.layers)
    requests = tuple(each for each in found.requests if isinstance(each, Request))
    aliases = (Alias(output="new", input="old", kind=AliasKind.CARRIED),)
    assert found.aliases == aliases
    plan_requests = tuple(each for each in requests if each.name != STATE_WORD)
    with pytest.raises(PlanError, match=r"'old' .* has been overwritten by 'new'"):
        verify(_without_word(found), plan_requests, [SRAM, STATE], run, aliases=aliases)


def _without_word(found: GraphPlan) -> object:
    from dataclasses import replace

    regions = tuple(
        replace(each, peak_bytes=32, activation_peak_bytes=32, bound_bytes=0, activation_bound_bytes=0)
        if each.region == "state"
        else each
        for each in found.plan.regions
    )
    places = {name: place for name, place in found.plan.placements.items() if name != STATE_WORD}
    return replace(found.plan, placements=places, regions=regions)


def test_states_of_a_network_that_is_too_large_are_refused() -> None:
    small = Region(name="state", size_bytes=16, reachable_by=frozenset({"cpu"}))
    with pytest.raises(FerruleError, match="region 'state' holds 16 B"):
        plan_graph(accumulator(), [SRAM], state=small)
