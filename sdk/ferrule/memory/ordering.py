# SPDX-License-Identifier: Apache-2.0
"""The order of the layers, chosen to lower the peak."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ferrule.graph import Graph
from ferrule.memory.arena import round_up
from ferrule.memory.lifetimes import scheduled_layers
from ferrule.memory.request import Alias, AliasKind
from ferrule.memory.storage import group_names

_BEAM = 16
_MOST_LAYERS_TRIED = 4_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordering:
    """An order of the layers and the memory that it needs at least."""

    layers: tuple[str, ...]
    """Names, each after the layers whose outputs it reads."""
    peak_bytes: int
    """The most bytes that live at one step: a lower bound on the arena, usually reached."""
    proved: bool
    """Whether no order has a lower peak."""


def order_layers(
    graph: Graph,
    *,
    aliases: Iterable[Alias] = (),
    scratch_bytes: Mapping[str, int] | None = None,
    alignment: int = 1,
    states: int = 20_000,
) -> Ordering:
    """Return the order with the lowest peak, or the graph's own where none is found that is lower.

    All sets of layers that can have run are searched, best first; where they are more than `states`, a beam search
    (greedy, with some alternatives kept) takes over. Only views among `aliases` count: what can be done in place
    depends on the order. `scratch_bytes` is by layer.
    """
    problem = _Problem(graph, [alias for alias in aliases if alias.kind is AliasKind.VIEW], scratch_bytes, alignment)
    count = len(problem.needs)
    own = tuple(range(count))
    own_peak = problem.peak(own)
    found, proved = _best_first(problem, own_peak, states)
    if found is None and not proved:
        found = _beam(problem)
    if found is None or problem.peak(found) >= own_peak:
        found = own
    names = tuple(graph.layers[number].name for number in found)
    return Ordering(layers=names, peak_bytes=problem.peak(found), proved=proved)


def measure_order(
    graph: Graph,
    order: Sequence[str],
    *,
    aliases: Iterable[Alias] = (),
    scratch_bytes: Mapping[str, int] | None = None,
    alignment: int = 1,
) -> Ordering:
    """Return a given order with its peak; ModelError if it is not an order of the graph."""
    layers = scheduled_layers(graph, order)
    problem = _Problem(graph, [alias for alias in aliases if alias.kind is AliasKind.VIEW], scratch_bytes, alignment)
    number = {layer.name: index for index, layer in enumerate(graph.layers)}
    peak = problem.peak([number[layer.name] for layer in layers])
    return Ordering(layers=tuple(layer.name for layer in layers), peak_bytes=peak, proved=False)


class _State:
    """A set of layers that have run."""

    __slots__ = ("done", "last", "live")

    def __init__(self, done: int, live: int, last: tuple[int, _State] | None) -> None:
        self.done = done
        """As bits."""
        self.live = live
        """Bytes that live on."""
        self.last = last
        """The layer that ran last, and the state before it."""

    def order(self) -> tuple[int, ...]:
        """The layers in the order in which they ran."""
        found = []
        last = self.last
        while last is not None:
            found.append(last[0])
            last = last[1].last
        return tuple(reversed(found))


class _Problem:
    """Layers and storages as numbers; sets of layers as bits."""

    def __init__(
        self, graph: Graph, views: Sequence[Alias], scratch_bytes: Mapping[str, int] | None, alignment: int
    ) -> None:
        infos = {tensor.info.name: tensor.info for tensor in graph.tensors if not tensor.is_constant}
        group = group_names(infos, views)
        sizes: dict[str, int] = {}
        for name, info in infos.items():
            sizes[group[name]] = max(sizes.get(group[name], 0), round_up(info.size_bytes, alignment))
        layer_number = {layer.name: number for number, layer in enumerate(graph.layers)}
        self.needs: list[int] = []
        """Per layer: the layers whose outputs it reads, as bits."""
        self.scratch = [round_up((scratch_bytes or {}).get(layer.name, 0), alignment) for layer in graph.layers]
        readers = dict.fromkeys(sizes, 0)
        self.touched: list[tuple[int, ...]] = []
        """Per layer: the storages that it reads or writes."""
        storage = {name: number for number, name in enumerate(sizes)}
        for number, layer in enumerate(graph.layers):
            needs = 0
            for name in layer.present_inputs:
                producer = graph.producer(name)
                needs |= 0 if producer is None else 1 << layer_number[producer.name]
            self.needs.append(needs)
            used = {group[name] for name in (*layer.present_inputs, *layer.outputs) if name in group}
            for name in used:
                readers[name] |= 1 << number
            self.touched.append(tuple(sorted(storage[name] for name in used)))
        self.sizes = list(sizes.values())
        self.users = list(readers.values())
        """Per storage: the layers that touch it, as bits."""
        for info in graph.outputs:
            if info.name in group:
                self.users[storage[group[info.name]]] |= 1 << len(graph.layers)  # a reader that never runs
        at_start = {group[info.name] for info in graph.inputs}
        self.start = sum(sizes[name] for name in at_start)
        self.born = {storage[name] for name in at_start}
        self.unread = sum(sizes[name] for name in at_start if not self.users[storage[name]])
        """Bytes of inputs that nothing reads; they live at the first step only."""

    def ready(self, done: int) -> list[int]:
        """The layers that can run next."""
        return [number for number, needs in enumerate(self.needs) if not done >> number & 1 and needs & ~done == 0]

    def step(self, done: int, live: int, number: int) -> tuple[int, int]:
        """Return the bytes while a layer runs and those that live after it; `live` are those before it."""
        after = done | 1 << number
        during = live
        left = live if done else live - self.unread
        for storage in self.touched[number]:
            size, users = self.sizes[storage], self.users[storage]
            if storage not in self.born and not users & done:
                during += size
                left += size
            if users & ~after == 0:
                left -= size
        return during + self.scratch[number], left

    def peak(self, order: Sequence[int]) -> int:
        """The most bytes that live at one step of an order."""
        done, live, highest = 0, self.start, self.start
        for number in order:
            during, live = self.step(done, live, number)
            done |= 1 << number
            highest = max(highest, during)
        return highest


def _best_first(problem: _Problem, own_peak: int, states: int) -> tuple[tuple[int, ...] | None, bool]:
    """Return the best order that is below `own_peak`, None if there is none, and whether that is certain."""
    count = len(problem.needs)
    everything = (1 << count) - 1
    most = min(states, _MOST_LAYERS_TRIED // max(count, 1))
    ranks = itertools.count()
    queue: list[tuple[int, int, int, _State]] = [(problem.start, 0, 0, _State(0, problem.start, None))]
    seen: set[int] = set()
    while queue:
        peak, depth, _, state = heapq.heappop(queue)
        if state.done == everything:
            return state.order(), True
        if state.done in seen:
            continue
        seen.add(state.done)
        if len(seen) > most:
            return None, False
        for number in problem.ready(state.done):
            during, left = problem.step(state.done, state.live, number)
            after = state.done | 1 << number
            if max(peak, during) < own_peak and after not in seen:
                following = _State(after, left, (number, state))
                heapq.heappush(queue, (max(peak, during), depth - 1, next(ranks), following))
    return None, True


def _beam(problem: _Problem) -> tuple[int, ...]:
    """Return a good order: at each step the states with the lowest peak, then the fewest live bytes, go on."""
    width = max(1, min(_BEAM, _MOST_LAYERS_TRIED // (len(problem.needs) + 1) ** 2))
    states = [(problem.start, _State(0, problem.start, None))]
    for _ in problem.needs:
        best: dict[int, tuple[int, _State]] = {}
        for peak, state in states:
            for number in problem.ready(state.done):
                during, left = problem.step(state.done, state.live, number)
                after = state.done | 1 << number
                if after not in best or max(peak, during) < best[after][0]:
                    best[after] = (max(peak, during), _State(after, left, (number, state)))
        states = sorted(best.values(), key=lambda pair: (pair[0], pair[1].live))[:width]
    return states[0][1].order()
