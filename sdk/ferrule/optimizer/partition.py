# SPDX-License-Identifier: Apache-2.0
"""Subgraph extraction: the largest connected sets of chosen layers that can each be run in one go."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ferrule.graph import Graph, SubgraphView


def extract_subgraphs(graph: Graph, chosen: Collection[str]) -> tuple[SubgraphView, ...]:
    """Return disjoint views that together hold the chosen layers, in the order of their first layers.

    The layers of a view are connected by tensors. If each view became one layer, the graph would still have no cycle.
    No two connected views could be united without making one. The result depends on the graph alone.
    """
    blocks = _Blocks(graph)
    edges = list(_edges(graph, frozenset(chosen)))
    grown = True
    while grown:
        grown = False
        for source, target in edges:
            grown |= blocks.unite(source, target)
    names = [layer.name for layer in graph.layers]
    members: dict[int, list[str]] = {}
    for index, name in enumerate(names):
        if name in chosen:
            members.setdefault(blocks.block[index], []).append(name)
    return tuple(SubgraphView(graph, tuple(found)) for found in members.values())


def _edges(graph: Graph, chosen: frozenset[str]) -> Iterator[tuple[int, int]]:
    """Yield (writer, reader) of the chosen layers, by index, in the order of the readers."""
    index = {layer.name: position for position, layer in enumerate(graph.layers)}
    for layer in graph.layers:
        for tensor in dict.fromkeys(layer.present_inputs):
            producer = graph.producer(tensor)
            if producer is not None and layer.name in chosen and producer.name in chosen:
                yield index[producer.name], index[layer.name]


class _Blocks:
    """Sets of layers, at first one of each, that grow together; sets of indices are bits of an int."""

    def __init__(self, graph: Graph) -> None:
        index = {layer.name: position for position, layer in enumerate(graph.layers)}
        self.block = list(range(len(index)))
        """The block of each layer; a block is called after its first layer."""
        self._members = {position: 1 << position for position in self.block}
        self._above: dict[int, int] = {}
        """By block: the layers, of other blocks, that must run before it."""
        self._sources: dict[int, int] = {}
        """By block: the layers, of any block, that its layers read from."""
        for layer in graph.layers:
            position = index[layer.name]
            producers = (graph.producer(tensor) for tensor in layer.present_inputs)
            direct = {index[producer.name] for producer in producers if producer is not None}
            self._sources[position] = sum(1 << source for source in direct)
            self._above[position] = self._sources[position]
            for source in direct:
                self._above[position] |= self._above[source]

    def unite(self, writer: int, reader: int) -> bool:
        """Make one block of the blocks of two layers, unless they are one already or a cycle would arise."""
        first, second = self.block[writer], self.block[reader]
        if first == second or self._detour(first, second):
            return False
        kept = min(first, second)
        members = self._members.pop(first) | self._members.pop(second)
        above = (self._above.pop(first) | self._above.pop(second)) & ~members
        sources = self._sources.pop(first) | self._sources.pop(second)
        self._members[kept], self._above[kept], self._sources[kept] = members, above, sources
        for position in _bits(members):
            self.block[position] = kept
        for other, before in self._above.items():
            if before & members:
                self._above[other] = before | members | above
        return True

    def _detour(self, first: int, second: int) -> bool:
        """Whether a path leads from the first block to the second through others."""
        own = self._members[first] | self._members[second]
        between = (self.block[source] for source in _bits(self._sources[second] & ~own))
        return any(self._above[block] & self._members[first] for block in between)


def _bits(value: int) -> Iterator[int]:
    while value:
        low = value & -value
        yield low.bit_length() - 1
        value ^= low
