# SPDX-License-Identifier: Apache-2.0
"""Subgraph extraction: connected, convex, maximal and deterministic."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from optimizer_mocks import floats, line
from random_dags import arcs, blocks_of, dags, is_acyclic, is_connected

from ferrule.graph import Graph
from ferrule.network import Network
from ferrule.optimizer.partition import extract_subgraphs


@settings(max_examples=150)
@given(dags())
def test_subgraphs_are_disjoint_connected_and_make_no_cycle(case: tuple[Graph, frozenset[str]]) -> None:
    graph, chosen = case
    views = [view.names for view in extract_subgraphs(graph, chosen)]
    assert sorted(itertools.chain(*views)) == sorted(chosen)
    assert all(is_connected(graph, names) for names in views)
    assert is_acyclic(graph, blocks_of(graph, views))


@settings(max_examples=150)
@given(dags())
def test_no_two_neighbours_could_be_one(case: tuple[Graph, frozenset[str]]) -> None:
    graph, chosen = case
    views = [view.names for view in extract_subgraphs(graph, chosen)]
    for first, second in itertools.combinations(views, 2):
        if any((a in first and b in second) or (a in second and b in first) for a, b in arcs(graph)):
            united = [names for names in views if names not in {first, second}] + [(*first, *second)]
            assert not is_acyclic(graph, blocks_of(graph, united)), (first, second)


def test_a_layer_of_another_backend_splits_a_chain() -> None:
    graph = line("a", "b", "c", "d")
    assert [view.names for view in extract_subgraphs(graph, {"a", "b", "d"})] == [("a", "b"), ("d",)]


def test_a_detour_keeps_the_ends_apart() -> None:
    network = Network("detour")
    x = network.add_input(floats("x"))
    a = network.add_relu_layer(x, name="a")
    other = network.add_relu_layer(a, name="other")
    network.set_outputs([network.add_add_layer(a, other, name="b")])
    assert [view.names for view in extract_subgraphs(network, {"a", "b"})] == [("a",), ("b",)]
    assert [view.names for view in extract_subgraphs(network, {"a", "b", "other"})] == [("a", "other", "b")]


def test_sets_that_read_each_other_are_one() -> None:
    network = Network("cross")
    x = network.add_input(floats("x"))
    p1, q1 = network.add_relu_layer(x, name="p1"), network.add_relu_layer(x, name="q1")
    p2 = network.add_add_layer(p1, q1, name="p2")
    q2 = network.add_add_layer(q1, p1, name="q2")
    network.set_outputs([p2, q2])
    views = [view.names for view in extract_subgraphs(network, {"p1", "q1", "p2", "q2"})]
    assert views == [("p1", "q1", "p2", "q2")]


@pytest.mark.parametrize("length", [800])
def test_long_networks_take_no_time(length: int) -> None:
    graph = line(*(f"l{index}" for index in range(length)))
    even = {f"l{index}" for index in range(length) if index % 4}
    assert len(extract_subgraphs(graph, even)) == length // 4
