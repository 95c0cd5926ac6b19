# SPDX-License-Identifier: Apache-2.0
"""Nodes in an order in which each stands behind those whose results it reads."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ferrule.formats.onnx.node import GraphRecord, Node, outer_names


def in_order(record: GraphRecord) -> GraphRecord:
    """Return a graph, with its inner graphs, whose nodes stand behind those whose results they read.

    A graph that is in order already stays as it is. Nodes that read each other's results keep their places, behind all
    others.
    """
    nodes = [
        replace(node, graphs={name: in_order(graph) for name, graph in node.graphs.items()}) if node.graphs else node
        for node in record.nodes
    ]
    makers = {name: index for index, node in enumerate(nodes) for name in node.outputs if name}
    sources = [{makers[name] for name in _read(node) if name in makers} for node in nodes]
    if any(index >= reader for reader, indices in enumerate(sources) for index in indices):
        nodes = [nodes[index] for index in _sorted(sources)]
    return replace(record, nodes=tuple(nodes))


def early_nodes(record: GraphRecord) -> int:
    """Return how many nodes of a graph stand before one whose result they read."""
    makers = {name: index for index, node in enumerate(record.nodes) for name in node.outputs if name}
    return sum(any(makers.get(name, -1) > index for name in _read(node)) for index, node in enumerate(record.nodes))


def _read(node: Node) -> set[str]:
    return {*node.inputs}.union(*map(outer_names, node.graphs.values()))


def _sorted(sources: Sequence[set[int]]) -> list[int]:
    """Return the numbers of nodes in order, the lowest first where there is a choice."""
    readers: Mapping[int, list[int]] = defaultdict(list)
    for reader, indices in enumerate(sources):
        for index in indices:
            readers[index].append(reader)
    missing = [len(indices) for indices in sources]
    ready = [index for index, count in enumerate(missing) if not count]
    result = []
    while ready:
        index = heapq.heappop(ready)
        result.append(index)
        for reader in readers[index]:
            missing[reader] -= 1
            if not missing[reader]:
                heapq.heappush(ready, reader)
    return [*result, *sorted(set(range(len(sources))) - set(result))]
