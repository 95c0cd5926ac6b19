# SPDX-License-Identifier: Apache-2.0
"""States in a plan: which new values take the old one's place, and that nothing else uses the region."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

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
    Requirements,
    plan_graph,
    schedule_of_graph,
    verify,
)
from ferrule.memory.request import Alias
from ferrule.memory.states import view_groups
from ferrule.network import Network

SRAM = Region(name="sram", size_bytes=1 << 16, reachable_by=frozenset({"cpu"}))
STATE = Region(name="state", size_bytes=1 << 16, reachable_by=frozenset({"cpu"}))
SAFE = Overlap(output="new", input="old", distance_bytes=0)


def accumulator(*, output: str = "y", later: str = "new") -> Network:
    """Return a network whose layer `new` adds to the old value; the layer after it reads `later`."""
    network = Network("accumulator")
    info = TensorInfo("x", (1, 8), DataType.FLOAT32)
    network.add_input(info)
    network.add_state(TensorInfo("old", (1, 8), DataType.FLOAT32), np.zeros((1, 8), np.float32))
    network.set_state("old", network.add_add_layer("x", "old", name="new"))
    network.add_mul_layer(later, "x", name="y")
    network.set_outputs([output])
    return network


def planned(network: Network, **keywords: object) -> GraphPlan:
    return plan_graph(network, [SRAM], Requirements(state=STATE, **keywords))  # type: ignore[arg-type]


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
        ((Overlap(output="new", input="old", distance_bytes=1),), {}, False),
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


def states(*names: str) -> Network:
    """Return a network with an input and states, and a layer `new` that reads the input only."""
    network = Network("states")
    network.add_input(TensorInfo("x", (1, 8), DataType.FLOAT32))
    for name in names:
        network.add_state(TensorInfo(name, (1, 8), DataType.FLOAT32), np.zeros((1, 8), np.float32))
    network.add_relu_layer("x", name="new")
    network.set_outputs([network.add_mul_layer("new", "x", name="y")])
    return network


def carried(network: Network, **keywords: object) -> list[tuple[str, str]]:
    """Return the new values in the place of an old one, each with the old one."""
    aliases = planned(network, **keywords).aliases
    return [(each.output, each.input) for each in aliases if each.kind is AliasKind.CARRIED]


def test_an_old_value_that_is_a_result_itself_is_not_replaced() -> None:
    """The old value is copied to the caller, or to another state, at the end of the run."""
    network = states("old")
    network.set_state("old", "new")
    assert carried(network) == [("new", "old")]
    network.set_outputs(["y", "old"])
    assert carried(network) == []
    delayed = states("old", "older")
    delayed.set_state("old", "new")
    delayed.set_state("older", "old")
    assert carried(delayed) == []


def test_a_new_value_that_no_layer_writes_is_not_in_place() -> None:
    network = states("old")
    network.add_constant_array("constant", np.ones((1, 8), np.float32))
    network.set_state("old", "constant")
    network.set_outputs([network.add_mul_layer("old", "new", name="z"), "y"])
    assert carried(network) == []


def test_a_layer_that_goes_on_reads_the_old_value_until_its_end() -> None:
    network = states("old")
    network.set_outputs([network.add_mul_layer("old", "x", name="reader"), "y"])
    network.set_state("old", "new")
    order = ["reader", "new", "y"]
    assert carried(network, order=order) == [("new", "old")]
    assert carried(network, order=order, ends={"reader": 1}) == []


def test_the_first_of_two_states_with_one_new_value_gives_its_place() -> None:
    network = states("first", "second")
    for name in ("first", "second"):
        network.set_state(name, "new")
    assert carried(network) == [("new", "first")]


def viewed() -> Network:
    """Return a network in which `new` adds the old value to a view of it."""
    network = Network("viewed")
    network.add_input(TensorInfo("x", (1, 8), DataType.FLOAT32))
    network.add_state(TensorInfo("old", (1, 8), DataType.FLOAT32), np.zeros((1, 8), np.float32))
    view = network.add_reshape_layer("old", (1, 8), name="view")
    network.set_state("old", network.add_add_layer("old", view, name="new"))
    network.set_outputs([network.add_mul_layer("new", "x", name="y")])
    return network


def test_views_of_the_old_value_are_read_as_it_is() -> None:
    beside = Overlap(output="new", input="view", distance_bytes=0)
    assert carried(viewed(), overlaps=[SAFE, beside]) == [("new", "old")]
    assert carried(viewed(), overlaps=[SAFE]) == carried(viewed(), overlaps=[beside]) == []
    network = accumulator()
    view = Alias(output="new", input="old", kind=AliasKind.VIEW)
    assert view_groups(network, [view])["new"] == "old"
    assert view_groups(network, [replace(view, kind=AliasKind.IN_PLACE)])["new"] == "new"


def test_a_new_value_whose_users_do_not_reach_the_states_is_apart() -> None:
    wide = Region(name="sram", size_bytes=1 << 16, reachable_by=frozenset({"cpu", "npu"}))
    accesses = {"new": Access(masters=frozenset({"cpu", "npu"}))}
    found = plan_graph(accumulator(), [wide], Requirements(state=STATE, overlaps=[SAFE], accesses=accesses))
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
        plan_graph(accumulator(), [SRAM], Requirements(state=small))
