# SPDX-License-Identifier: Apache-2.0
"""The ordering problem of a graph: layers and storages as numbers, and sets of layers as bits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from ferrule._frozen import frozen
from ferrule.graph import Graph
from ferrule.memory.arena import round_up
from ferrule.memory.request import Alias, AliasKind, Overlap
from ferrule.memory.storage import group_names


@frozen
class Segment:
    """Consecutive layers that stay between the same other layers in every order of the graph."""

    layers: tuple[int, ...]
    """The layers, in the order in which they run."""
    first: int
    """The number of layers that run before the segment: those with lower numbers than all of its own."""
    live: int
    """Live bytes before the first layer of the segment."""
    peak: int
    """The most live bytes while any layer of the segment runs."""

    @property
    def done(self) -> int:
        """The layers that run before the segment, as bits."""
        return (1 << self.first) - 1


class OrderProblem:
    """The layers of a graph, with the predecessors of each layer and the storages that it reads or writes."""

    def __init__(
        self,
        graph: Graph,
        aliases: Iterable[Alias],
        scratch_bytes: Mapping[str, int],
        alignment: int,
        overlaps: Sequence[Overlap] = (),
    ) -> None:
        infos = {tensor.info.name: tensor.info for tensor in graph.tensors if not tensor.is_constant}
        group = group_names(infos, [alias for alias in aliases if alias.kind is AliasKind.VIEW])
        sizes: dict[str, int] = {}
        for name, info in infos.items():
            sizes[group[name]] = max(sizes.get(group[name], 0), round_up(info.size_bytes, alignment))
        storage = {name: number for number, name in enumerate(sizes)}
        self.sizes = list(sizes.values())
        self.scratch = [round_up(scratch_bytes.get(layer.name, 0), alignment) for layer in graph.layers]
        self.sources: list[list[int]] = []
        """Per layer: the layers whose outputs it reads."""
        self.touched: list[list[int]] = []
        """Per layer: the storages that it reads or writes."""
        self.users: list[list[int]] = [[] for _ in sizes]
        """Per storage: the layers that read or write it; the first entry is the layer that makes it live."""
        for number, layer in enumerate(graph.layers):
            producers = (graph.producer(name) for name in layer.present_inputs)
            self.sources.append(sorted({graph.position(one.name) for one in producers if one is not None}))
            used = {storage[group[name]] for name in (*layer.present_inputs, *layer.outputs) if name in group}
            self.touched.append(sorted(used))
            for one in used:
                self.users[one].append(number)
        self.kept = {storage[group[info.name]] for info in graph.results if info.name in group}
        """Storages that are read after the last layer."""
        self.given = {storage[group[info.name]] for info in graph.sources}
        """Storages that are live before the first layer."""
        self.start = sum(self.sizes[one] for one in self.given)
        self.unread = sum(self.sizes[one] for one in self.given if not self.users[one] and one not in self.kept)
        """Bytes of inputs that no layer reads; they are live at the first step only."""
        self.readers: list[list[int]] = [[] for _ in self.sources]
        """Per layer: the layers that read its outputs."""
        for number, sources in enumerate(self.sources):
            for source in sources:
                self.readers[source].append(number)
        self._laps: dict[int, list[tuple[int, int, int]]] = {}
        """By layer: the storages of an output and of an input that may overlap, and by how many bytes at most."""
        for overlap in overlaps:
            writer = graph.producer(overlap.output)
            if writer is not None:
                one, two = storage[group[overlap.output]], storage[group[overlap.input]]
                most = overlap.common_bytes(self.sizes[one], self.sizes[two], alignment)
                self._laps.setdefault(graph.position(writer.name), []).append((one, two, most))

    @cached_property
    def needs(self) -> list[int]:
        """Per layer: `sources` as bits, which take as much memory as the square of the number of layers."""
        return [sum(1 << source for source in sources) for sources in self.sources]

    @cached_property
    def _user_bits(self) -> list[int]:
        return [sum(1 << user for user in users) for users in self.users]

    def _saved(self, layer: int, is_over: Callable[[int], bool]) -> int:
        """Return the most bytes that overlaps save while a layer runs; `is_over` is whether it is an input's last."""
        saved: dict[int, int] = {}
        for output, source, most in self._laps.get(layer, ()):
            if output != source and source not in self.kept and is_over(source):
                saved[output] = saved.get(output, 0) + most
        return sum(min(most, self.sizes[output]) for output, most in saved.items())

    def step(self, done: int, live: int, layer: int) -> tuple[int, int, int]:
        """Return the live bytes while a layer runs and after it, and the layers that have run by then, as bits.

        `done` and `live` are the layers and the bytes before it.
        """
        after = done | 1 << layer
        during = live
        left = live if done else live - self.unread
        for one in self.touched[layer]:
            size, users = self.sizes[one], self._user_bits[one]
            if not users & done and one not in self.given:
                during += size
                left += size
            if not users & ~after and one not in self.kept:
                left -= size
        if layer in self._laps:
            during -= self._saved(layer, lambda one: not self._user_bits[one] & ~after)
        return during + self.scratch[layer], left, after

    def peak(self, order: Sequence[int]) -> int:
        """Return the most live bytes at any one step of an order."""
        return max((during for during, _ in self.run(order)), default=self.start)

    def run(self, order: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield, for each layer of an order, the live bytes while it runs and after it."""
        left = [len(users) for users in self.users]
        live = self.start
        for place, layer in enumerate(order):
            during = live
            if place == 0:
                live -= self.unread
            for one in self.touched[layer]:
                if left[one] == len(self.users[one]) and one not in self.given:
                    during += self.sizes[one]
                    live += self.sizes[one]
                left[one] -= 1
                if not left[one] and one not in self.kept:
                    live -= self.sizes[one]
            if layer in self._laps:
                during -= self._saved(layer, lambda one: not left[one])
            yield during + self.scratch[layer], live

    def segments(self) -> list[Segment]:
        """Return the layers in the graph's order, divided before and after each bottleneck."""
        found: list[Segment] = []
        live = self.start
        layers: list[int] = []
        peak = 0
        before = live
        cuts = self._bottlenecks()
        for layer, (during, after) in enumerate(self.run(range(len(self.sources)))):
            layers.append(layer)
            peak = max(peak, during)
            if layer in cuts or layer + 1 in cuts or layer + 1 == len(self.sources):
                found.append(Segment(layers=tuple(layers), first=layers[0], live=before, peak=peak))
                layers, peak, before = [], 0, after
        return found

    def _bottlenecks(self) -> set[int]:
        """Return the bottlenecks: layers that are a predecessor or a successor of every other layer."""
        count = len(self.sources)
        ends = starts = 0
        behind = set()
        for layer, sources in enumerate(self.sources):
            closed = sum(self.readers[source][0] == layer for source in sources)
            if closed == ends:  # it reads every open end, so all earlier layers lead to it
                behind.add(layer)
            ends += 1 - closed
        found = set()
        for layer in reversed(range(count)):
            closed = sum(self.sources[reader][-1] == layer for reader in self.readers[layer])
            if closed == starts and layer in behind:
                found.add(layer)
            starts += 1 - closed
        return found

    def bound(self) -> int:
        """Return a lower bound on the peak of every order, from the bytes live at the first, last and each layer."""
        count = len(self.sources)
        if not count:
            return self.start
        inevitable = self._inevitable()
        first = min(self.step(0, self.start, layer)[0] for layer in range(count) if not self.sources[layer])
        last = min(self._beside_outputs(layer) for layer in range(count) if not self.readers[layer])
        return max(self.start, first, last + sum(self.sizes[one] for one in self.kept), int(inevitable.max()))

    def _beside_outputs(self, layer: int) -> int:
        """Return the bytes that a layer needs in addition to the graph's outputs if it runs last."""
        touched = sum(self.sizes[one] for one in self.touched[layer] if one not in self.kept)
        return touched + self.scratch[layer] - self._saved(layer, lambda _: True)

    def _inevitable(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Return, per layer, the bytes that are live while it runs in every order.

        A storage counts if the layer is, or always comes after, the one that makes the storage live, and is, or always
        comes before, a layer that reads or writes it.
        """
        count = len(self.sources)
        after, before = _closure(self.readers, reversed(range(count))), _closure(self.sources, range(count))
        everything = (1 << count) - 1
        total = np.array(self.scratch, np.int64)
        for layer in self._laps:
            total[layer] -= self._saved(layer, lambda _: True)
        for one, size in enumerate(self.sizes):
            users = self.users[one]
            born = everything if one in self.given else after[users[0]]
            needed = everything if one in self.kept else 0
            for user in users:
                needed |= before[user]
            total += np.multiply(_flags(born & needed, count), size, dtype=np.int64)
        return total


def _closure(neighbours: Sequence[Sequence[int]], order: Iterator[int] | range) -> list[int]:
    """Return, per layer, the layer itself and all layers reachable from it, as bits."""
    found = [0] * len(neighbours)
    for layer in order:
        reached = 1 << layer
        for other in neighbours[layer]:
            reached |= found[other]
        found[layer] = reached
    return found


def _flags(bits: int, count: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    packed = np.frombuffer(bits.to_bytes(-(-count // 8), "little"), np.uint8)
    return np.unpackbits(packed, count=count, bitorder="little")
