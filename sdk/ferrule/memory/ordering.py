# SPDX-License-Identifier: Apache-2.0
"""Chooses an order of the layers with a low memory peak."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ferrule._frozen import frozen
from ferrule.graph import Graph
from ferrule.memory.lifetimes import scheduled_layers
from ferrule.memory.order_problem import OrderProblem, Segment
from ferrule.memory.order_search import Steps, beam, best_first, greedy
from ferrule.memory.placement import certify
from ferrule.memory.request import Alias, Overlap

DEFAULT_STEPS = 40_000


@frozen
class Ordering:
    """An order of the layers and the least memory that it needs."""

    layers: tuple[str, ...]
    """Layer names; each layer comes after those whose outputs it reads."""
    peak_bytes: int
    """The most live bytes at any one step, less what overlaps can save there: a lower bound on the arena."""
    bound_bytes: int
    """Proved lower bound on the peak of any order; 0 if the order was given and nothing was searched."""
    is_only: bool = False
    """Whether the graph has no other order."""
    steps: int = 0
    """The number of search steps taken; one step tries one layer after a set of layers."""

    @property
    def proved(self) -> bool:
        """Whether it is proved that no order has a lower peak."""
        return self.peak_bytes == self.bound_bytes

    @property
    def certificate(self) -> str:
        """The quality of the order: "optimal", or the most that its peak can be above the bound; "" if it was given."""
        return certify(self.peak_bytes, self.bound_bytes) if self.proved or self.bound_bytes else ""

    def qualify(self, arena: str, peak_bytes: int) -> str:
        """Return an arena's certificate; if another order may have a lower peak, the bound on all orders is added."""
        if self.is_only or not self.bound_bytes or peak_bytes <= self.bound_bytes:
            return arena
        return f"{arena} for this order of layers; no order needs less than {self.bound_bytes:,} B"


def order_layers(
    graph: Graph,
    *,
    aliases: Iterable[Alias] = (),
    scratch_bytes: Mapping[str, int] | None = None,
    alignment: int = 1,
    overlaps: Sequence[Overlap] = (),
    steps: int = DEFAULT_STEPS,
) -> Ordering:
    """Return the order with the lowest peak found; the graph's own order if none is lower.

    The graph is divided into segments at the layers that are a predecessor or a successor of every other layer. In each
    segment that can lower the peak, the sets of layers that can have run are searched, best first, until the peak
    equals the bound. If that takes more than half of `steps`, a greedy order and a beam search use the other half, and
    the result states its distance from the bound. Of the `aliases`, only views count, since in-place computation
    depends on the order. `scratch_bytes` is by layer. Without `overlaps`, the bound holds only for outputs that do not
    overlap inputs.
    """
    problem = OrderProblem(graph, aliases, scratch_bytes or {}, alignment, overlaps)
    return _Search(problem, steps).run([layer.name for layer in graph.layers])


def measure_order(
    graph: Graph,
    order: Sequence[str],
    *,
    aliases: Iterable[Alias] = (),
    scratch_bytes: Mapping[str, int] | None = None,
    alignment: int = 1,
    overlaps: Sequence[Overlap] = (),
) -> Ordering:
    """Return a given order with its peak; ModelError if it is not a valid order of the graph."""
    names = tuple(layer.name for layer in scheduled_layers(graph, order))
    problem = OrderProblem(graph, aliases, scratch_bytes or {}, alignment, overlaps)
    return Ordering(layers=names, peak_bytes=problem.peak(list(map(graph.position, names))), bound_bytes=0)


class _Search:
    """Improves the segments one by one, in descending order of their peaks."""

    def __init__(self, problem: OrderProblem, steps: int) -> None:
        self._problem = problem
        self._segments = problem.segments()
        self._exhaustive = Steps(steps // 2)
        self._heuristic = Steps(steps - steps // 2)
        fixed = [segment.peak for segment in self._segments if len(segment.layers) == 1]
        if len(fixed) == len(self._segments):  # the only order: its peak, without the time and memory of `bound`
            self._bound = max(fixed, default=problem.start)
        else:
            self._bound = max(problem.bound(), *fixed, 0)

    def run(self, names: Sequence[str]) -> Ordering:
        for number in sorted(range(len(self._segments)), key=lambda n: (-self._segments[n].peak, n)):
            self._segments[number] = self._improved(self._segments[number])
        order = [layer for segment in self._segments for layer in segment.layers]
        peak = self._problem.peak(order)
        return Ordering(
            layers=tuple(names[layer] for layer in order),
            peak_bytes=peak,
            bound_bytes=min(self._bound, peak),
            is_only=all(len(segment.layers) == 1 for segment in self._segments),
            steps=self._exhaustive.taken + self._heuristic.taken,
        )

    def _improved(self, segment: Segment) -> Segment:
        """Return the segment in the best order found; its own order if that is as good or does not set the peak."""
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
