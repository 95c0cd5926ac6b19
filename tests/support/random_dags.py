# SPDX-License-Identifier: Apache-2.0
"""Random graphs of ADD layers with some of their layers chosen, and what a division of them into blocks must keep."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter

from hypothesis import strategies as st
from optimizer_mocks import floats

from ferrule.graph import Graph
from ferrule.network import Network


@st.composite
def dags(draw: st.DrawFn) -> tuple[Graph, frozenset[str]]:
    """Draw a graph of ADD layers, and a subset of its layers."""
    network = Network("dag")
    tensors = [network.add_input(floats("x"))]
    for index in range(draw(st.integers(1, 14))):
        first, second = draw(st.sampled_from(tensors)), draw(st.sampled_from(tensors))
        tensors.append(network.add_add_layer(first, second, name=f"l{index}"))
    network.set_outputs([tensors[-1]])
    chosen = draw(st.sets(st.sampled_from([layer.name for layer in network.layers])))
    return network, frozenset(chosen)


def arcs(graph: Graph) -> set[tuple[str, str]]:
    """Return the (writer, reader) pairs of layers."""
    return {
        (producer.name, layer.name)
        for layer in graph.layers
        for name in layer.present_inputs
        if (producer := graph.producer(name)) is not None
    }


def sources(graph: Graph, block: dict[str, str]) -> dict[str, set[str]]:
    """Return the blocks that each block reads from."""
    before: dict[str, set[str]] = {name: set() for name in block.values()}
    for source, target in arcs(graph):
        if block[source] != block[target]:
            before[block[target]].add(block[source])
    return before


def is_acyclic(graph: Graph, block: dict[str, str]) -> bool:
    """Return whether the graph has no cycle when each block is contracted to one node."""
    try:
        TopologicalSorter(sources(graph, block)).prepare()
    except CycleError:
        return False
    return True


def is_connected(graph: Graph, names: Sequence[str]) -> bool:
    """Return whether tensors connect the layers, without others."""
    reached, grown = {names[0]}, True
    while grown:
        more = {b for a, b in arcs(graph) if a in reached} | {a for a, b in arcs(graph) if b in reached}
        grown = bool(more & set(names) - reached)
        reached |= more & set(names)
    return reached == set(names)


def blocks_of(graph: Graph, views: Iterable[tuple[str, ...]]) -> dict[str, str]:
    """Return the block of each layer, by the name of its first layer; layers outside of the views are on their own."""
    block = {layer.name: layer.name for layer in graph.layers}
    for names in views:
        block |= dict.fromkeys(names, names[0])
    return block
