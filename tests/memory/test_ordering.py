# SPDX-License-Identifier: Apache-2.0
"""Orders of layers: topological, never worse than the graph's own, and the best one where that is claimed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from chains import build, chain
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.errors import ModelError
from ferrule.graph import Graph
from ferrule.memory import (
    Region,
    lifetimes,
    measure_order,
    order_layers,
    plan_graph,
    schedule_of_graph,
    scheduled_layers,
    scratch_name,
    verify,
    views,
)

SRAM = (Region(name="sram", size_bytes=1 << 20),)


@st.composite
def graphs(draw: st.DrawFn, *, most: int) -> Graph:
    inputs = [(f"x{n}", draw(st.integers(1, 40))) for n in range(draw(st.integers(1, 2)))]
    known = [name for name, _ in inputs]
    sizes = dict(inputs)
    layers = []
    viewed = []
    for number in range(draw(st.integers(1, most))):
        reads = draw(st.lists(st.sampled_from(known), min_size=1, max_size=3))
        if draw(st.integers(0, 4)) == 0:
            outputs = [(f"v{number}", sizes[reads[0]])]
            viewed.append(f"v{number}")
            reads = reads[:1]
        else:
            outputs = [(f"t{number}_{n}", draw(st.integers(1, 40))) for n in range(draw(st.integers(1, 2)))]
        layers.append((reads, outputs))
        sizes.update(outputs)
        known += [name for name, _ in outputs]
    return build(inputs, layers, draw(st.lists(st.sampled_from(known), min_size=1, max_size=3)), views=viewed)


def peak_by_lifetimes(graph: Graph, order: Sequence[str], scratch: dict[str, int]) -> int:
    """Most bytes at one step, by another road than the one under test; views count with their source."""
    source = {alias.output: alias.input for alias in views(graph)}

    def first(name: str) -> str:
        return first(source[name]) if name in source else name

    highest = 0
    for step, layer in enumerate(order):
        live = {first(name) for name, life in lifetimes(graph, order).items() if life.first <= step <= life.last}
        highest = max(highest, sum(graph.info(name).size_bytes for name in live) + scratch.get(layer, 0))
    return highest


def all_orders(graph: Graph, done: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if len(done) == len(graph.layers):
        return [done]
    found = []
    for layer in graph.layers:
        producers = [graph.producer(name) for name in layer.present_inputs]
        if layer.name not in done and all(one is None or one.name in done for one in producers):
            found += all_orders(graph, (*done, layer.name))
    return found


@given(graphs(most=5), st.dictionaries(st.sampled_from(["l0", "l1", "l2"]), st.integers(1, 50)))
@settings(max_examples=80, deadline=None)
def test_small_graphs_get_the_best_order(graph: Graph, scratch: dict[str, int]) -> None:
    found = order_layers(graph, aliases=views(graph), scratch_bytes=scratch)
    assert found.proved
    assert found.peak_bytes == peak_by_lifetimes(graph, found.layers, scratch)
    assert found.peak_bytes == min(peak_by_lifetimes(graph, order, scratch) for order in all_orders(graph))


@given(graphs(most=14), st.sampled_from([1, 5, 10_000]))
@settings(max_examples=60, deadline=None)
def test_no_order_is_worse_than_the_graphs_own(graph: Graph, states: int) -> None:
    found = order_layers(graph, aliases=views(graph), states=states)
    scheduled_layers(graph, found.layers)  # raises where the order is not topological
    own = measure_order(graph, [layer.name for layer in graph.layers], aliases=views(graph))
    assert found.peak_bytes <= own.peak_bytes
    assert found.peak_bytes == peak_by_lifetimes(graph, found.layers, {})
    assert found == order_layers(graph, aliases=views(graph), states=states)


@given(graphs(most=12), st.data())
@settings(max_examples=50, deadline=None)
def test_whole_graphs_are_planned_and_replayed(graph: Graph, data: st.DataObject) -> None:
    names = [layer.name for layer in graph.layers]
    scratch = data.draw(st.dictionaries(st.sampled_from(names), st.integers(0, 50)))
    found = plan_graph(graph, SRAM, alignment=4, scratch_bytes=scratch)
    buffers = {layer: scratch_name(layer) for layer, size in scratch.items() if size}
    schedule = schedule_of_graph(graph, found.ordering.layers, buffers)
    verify(found.plan, found.requests, SRAM, schedule, aliases=found.aliases)
    for alias in found.aliases:
        assert found.plan.placements[alias.output] == found.plan.placements[alias.input]


def test_an_order_that_is_as_good_is_left_alone() -> None:
    graph = build([("x", 1)], [(["x"], [("a", 1)]), (["x"], [("b", 1)]), (["a", "b"], [("c", 1)])], ["c"])
    assert order_layers(graph).layers == ("l0", "l1", "l2")


def expanding_branches() -> Graph:
    """Two branches that grow before they shrink: one at a time is better than side by side."""
    return build(
        [("x", 10)],
        [
            (["x"], [("a", 100)]),
            (["x"], [("b", 100)]),
            (["a"], [("c", 5)]),
            (["b"], [("d", 5)]),
            (["c", "d"], [("y", 5)]),
        ],
        ["y"],
    )


@pytest.mark.parametrize("states", [1, 20_000])
def test_branches_are_run_one_after_the_other(states: int) -> None:
    found = order_layers(expanding_branches(), states=states)
    assert measure_order(expanding_branches(), ["l0", "l1", "l2", "l3", "l4"]).peak_bytes == 210
    assert found.layers == ("l0", "l2", "l1", "l3", "l4")
    assert (found.peak_bytes, found.proved) == (115, states > 1)


def test_the_plan_uses_the_better_order_unless_one_is_given() -> None:
    graph = expanding_branches()
    assert plan_graph(graph, SRAM, alignment=1).plan.peak_bytes == 115
    given_order = plan_graph(graph, SRAM, alignment=1, order=["l0", "l1", "l2", "l3", "l4"])
    assert given_order.plan.peak_bytes == 210
    with pytest.raises(ModelError, match="is ordered before"):
        plan_graph(graph, SRAM, order=["l2", "l0", "l1", "l3", "l4"])


def test_long_chains_are_ordered_at_once() -> None:
    found = order_layers(chain([7] * 1500))
    assert (found.peak_bytes, found.proved, len(found.layers)) == (14, True, 1499)


def test_wide_graphs_are_ordered_with_bounded_effort() -> None:
    branches = 150
    grow = [(["x"], [(f"a{n}", 50 + n)]) for n in range(branches)]
    shrink = [([f"a{n}"], [(f"b{n}", 1)]) for n in range(branches)]
    graph = build([("x", 10)], [*grow, *shrink, ([f"b{n}" for n in range(branches)], [("y", 1)])], ["y"])
    found = order_layers(graph, states=300)
    assert measure_order(graph, [layer.name for layer in graph.layers]).peak_bytes > 18_000
    assert found.peak_bytes <= 10 + branches + 50 + branches


def test_a_graph_without_layers_has_its_inputs() -> None:
    graph = build([("x", 3), ("unread", 4)], [], ["x"])
    found = order_layers(graph)
    assert (found.layers, found.peak_bytes, found.proved) == ((), 7, True)
    assert plan_graph(graph, SRAM, alignment=1).plan.peak_bytes == 7


def test_buffers_can_be_sent_to_a_region() -> None:
    regions = (Region(name="dtcm", size_bytes=64), Region(name="sram", size_bytes=64))
    graph = chain([8, 8, 8])
    found = plan_graph(
        graph, regions, scratch_bytes={"l0": 4}, allowed={"t1": ("sram",), "l0:scratch": ("sram", "dtcm")}
    )
    assert {name: one.region for name, one in found.plan.placements.items()} == {
        "t0": "dtcm",
        "t1": "sram",
        "t2": "dtcm",
        "l0:scratch": "sram",
    }
    assert found.plan.region("sram").scratch_bytes == 12
    with pytest.raises(KeyError):
        found.plan.region("npu")
