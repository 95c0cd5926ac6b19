# SPDX-License-Identifier: Apache-2.0
"""Subgraph extraction: finds maximal connected sets of chosen layers, each of which can run as one step."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ferrule.graph import Graph, SubgraphView

_DETOUR = object()
_DONE = object()
_Place = tuple[int, ...]


def extract_subgraphs(graph: Graph, chosen: Collection[str]) -> tuple[SubgraphView, ...]:
    """Return disjoint views that together hold the chosen layers, in the order of their first layers.

    The layers of a view are connected by tensors. If each view became one layer, the graph would still have no cycle,
    but merging any two connected views would create a cycle. The result depends only on the graph and on `chosen`.
    """
    blocks = _Blocks(graph)
    taken = {index for index, layer in enumerate(graph.layers) if layer.name in chosen}
    left = [(source, index) for index in sorted(taken) for source in blocks.sources[index] if source in taken]
    grown = True
    while grown:
        refused = [(source, target) for source, target in left if not blocks.unite(source, target)]
        grown = len(refused) < len(left)
        left = refused
    members: dict[int, list[str]] = {}
    for index in sorted(taken):
        members.setdefault(blocks.block(index), []).append(graph.layers[index].name)
    return tuple(SubgraphView(graph, tuple(found)) for found in members.values())


class _Blocks:
    """Disjoint sets of layers, initially one layer each, that are merged step by step and kept in a runnable order.

    Every block has a place, which is greater than the places of all blocks that it reads from. A path from one block to
    another passes only through blocks whose places lie between the two. Places are tuples that end with 0, so there is
    room beside each: a 1 in front of more numbers goes behind it, and a -1 before it.
    """

    def __init__(self, graph: Graph) -> None:
        count = len(graph.layers)
        self._parent = list(range(count))
        self._place: list[_Place] = [(index, 0) for index in range(count)]
        self._moves = 0
        self.sources: list[dict[int, None]] = [{} for _ in range(count)]
        """By block: the blocks that it reads from (the keys)."""
        self._readers: list[dict[int, None]] = [{} for _ in range(count)]
        for index, layer in enumerate(graph.layers):
            for producer in map(graph.producer, layer.present_inputs):
                if producer is not None:
                    source = graph.position(producer.name)
                    self.sources[index][source] = None
                    self._readers[source][index] = None

    def block(self, layer: int) -> int:
        """Return the block of a layer."""
        while self._parent[layer] != layer:
            self._parent[layer] = self._parent[self._parent[layer]]
            layer = self._parent[layer]
        return layer

    def unite(self, writer: int, reader: int) -> bool:
        """Merge the blocks of two layers unless that creates a cycle; return whether both are now in one block."""
        first, second = self.block(writer), self.block(reader)
        if first == second:
            return True
        moved = self._related(first, second)
        if moved is None:
            return False
        blocks, are_above = moved
        self._moves += 1
        at = self._place[first if are_above else second]
        side = (-1, self._moves) if are_above else (1, -self._moves)  # next to the place, inside of earlier moves
        for number, block in enumerate(blocks):
            self._place[block] = (*at[:-1], *side, number, 0)
        self._merge(first, second, at)
        return True

    def _related(self, first: int, second: int) -> tuple[list[int], bool] | None:
        """Return the blocks in between that lead to the second, and True, or those reached from the first, and False.

        Both searches run in alternating steps, and the first to end supplies the result. Return None if a path leads
        from the first block to the second through another block.
        """
        low, high = self._place[first], self._place[second]
        above, below = {second: None}, {first: None}
        searches = (
            self._reach(self.sources, above, first, low, high),
            self._reach(self._readers, below, second, low, high),
        )
        while True:
            for search, found, are_above in zip(searches, (above, below), (True, False), strict=True):
                state = next(search)
                if state is _DETOUR:
                    return None
                if state is _DONE:
                    start = second if are_above else first
                    return sorted((b for b in found if b != start), key=self._place.__getitem__), are_above

    def _reach(
        self, neighbours: Sequence[dict[int, None]], found: dict[int, None], goal: int, low: _Place, high: _Place
    ) -> Iterator[object]:
        """Add the blocks reached with a place between `low` and `high` to `found`, and yield after each connection.

        The values are _DETOUR where a path reaches `goal` through another block, _DONE at the end, and None otherwise.
        """
        start = next(iter(found))
        waiting = [start]
        while waiting:
            block = waiting.pop()
            for other in neighbours[block]:
                if other == goal and block != start:
                    yield _DETOUR
                if low < self._place[other] < high and other not in found:
                    found[other] = None
                    waiting.append(other)
                yield None
        yield _DONE

    def _merge(self, first: int, second: int, place: _Place) -> None:
        """Merge two blocks at a place; the one with more connections keeps its number."""
        gone, kept = sorted((first, second), key=lambda block: len(self.sources[block]) + len(self._readers[block]))
        self._parent[gone] = kept
        for mine, theirs in ((self.sources, self._readers), (self._readers, self.sources)):
            for neighbour in mine[gone]:
                del theirs[neighbour][gone]
                if neighbour != kept:
                    theirs[neighbour][kept] = None
                    mine[kept][neighbour] = None
            mine[gone] = {}
        self._place[kept] = place
