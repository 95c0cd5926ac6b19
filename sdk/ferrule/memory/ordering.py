# SPDX-License-Identifier: Apache-2.0
"""The order of the layers, chosen to lower the peak."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ferrule.graph import Graph
from ferrule.memory.lifetimes import scheduled_layers
from ferrule.memory.order_problem import OrderProblem, Segment
from ferrule.memory.order_search import Steps, beam, best_first, greedy
from ferrule.memory.placement import certify
from ferrule.memory.request import Alias, AliasKind

DEFAULT_STEPS = 40_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordering:
    """An order of the layers and the memory that it needs at least."""

    layers: tuple[str, ...]
    """Names, each after the layers whose outputs it reads."""
    peak_bytes: int
    """The most bytes that live at one step: a lower bound on the arena, usually reached."""
    bound_bytes: int
    """No order has a lower peak: proved. 0 where the order was given and nothing was searched."""
    steps: int = 0
    """The steps of the search, each a layer that was tried after some set of layers."""

    @property
    def proved(self) -> bool:
        """Whether no order has a lower peak."""
        return self.peak_bytes == self.bound_bytes

    @property
    def certificate(self) -> str:
        """How good the order is: "optimal", or how far its peak is above the bound at most; "" if it was given."""
        return certify(self.peak_bytes, self.bound_bytes) if self.proved or self.bound_bytes else ""

    def qualify(self, arena: str) -> str:
        """Return an arena's certificate, which holds for this order, and the order's own where that is not optimal."""
        if self.certificate in {"optimal", ""}:
            return arena
        return f"{arena} for this order of layers; the order: {self.certificate}"


def order_layers(
    graph: Graph,
    *,
    aliases: Iterable[Alias] = (),
    scratch_bytes: Mapping[str, int] | None = None,
    alignment: int = 1,
    steps: int = DEFAULT_STEPS,
) -> Ordering:
    """Return the order with the lowest peak that was found, the graph's own where none is lower.

    The graph falls into segments at the layers that all others stand before or behind. In each segment that can lower
    the peak, all sets of layers that can have run are searched, best first, until the peak equals the bound. Where
    that takes more than half of `steps`, a greedy order and a beam search, with the other half, take over; the result
    then says how far it is from the bound. Only views among `aliases` count: what can be done in place depends on the
    order. `scratch_bytes` is by layer.
    """
    problem = _problem(graph, aliases, scratch_bytes, alignment)
    return _Search(problem, steps).run([layer.name for layer in graph.layers])


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
    problem = _problem(graph, aliases, scratch_bytes, alignment)
    number = {layer.name: index for index, layer in enumerate(graph.layers)}
    peak = problem.peak([number[layer.name] for layer in layers])
    return Ordering(layers=tuple(layer.name for layer in layers), peak_bytes=peak, bound_bytes=0)


def _problem(
    graph: Graph, aliases: Iterable[Alias], scratch_bytes: Mapping[str, int] | None, alignment: int
) -> OrderProblem:
    shared = [alias for alias in aliases if alias.kind is AliasKind.VIEW]
    return OrderProblem(graph, shared, scratch_bytes or {}, alignment)


class _Search:
    """Improves the segments one by one, those first that need most."""

    def __init__(self, problem: OrderProblem, steps: int) -> None:
        self._problem = problem
        self._segments = problem.segments()
        self._exhaustive = Steps(steps // 2)
        self._heuristic = Steps(steps - steps // 2)
        self._bound = max(problem.bound(), *(segment.peak for segment in self._segments if len(segment.layers) == 1), 0)

    def run(self, names: Sequence[str]) -> Ordering:
        for number in sorted(range(len(self._segments)), key=lambda n: (-self._segments[n].peak, n)):
            self._segments[number] = self._improved(self._segments[number])
        order = [layer for segment in self._segments for layer in segment.layers]
        peak = self._problem.peak(order)
        return Ordering(
            layers=tuple(names[layer] for layer in order),
            peak_bytes=peak,
            bound_bytes=min(self._bound, peak),
            steps=self._exhaustive.taken + self._heuristic.taken,
        )

    def _improved(self, segment: Segment) -> Segment:
        """Return the segment in the best order found; its own where that is as good or does not matter."""
        if segment.peak <= self._bound:
            return segment
        found, bound = best_first(self._problem, segment, self._bound, self._exhaustive)
        self._bound = max(self._bound, bound)
        candidates = [segment] if found is None else [segment, found]
        if min(one.peak for one in candidates) > self._bound:
            candidates.append(greedy(self._problem, segment))
            candidates.append(beam(self._problem, min(candidates, key=_peak), self._heuristic))
        return min(candidates, key=_peak)


def _peak(segment: Segment) -> int:
    return segment.peak
