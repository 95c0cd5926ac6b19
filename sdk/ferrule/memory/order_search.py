# SPDX-License-Identifier: Apache-2.0
"""Searches for an order of a segment's layers: an exhaustive search, a greedy search and a beam search.

Effort is counted in steps: trying one layer after a set of layers is one step. The same graph therefore has the same
order on every machine.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass, replace

from ferrule.memory.order_problem import OrderProblem, Segment

_BEAM = 16
"""The most states that a beam search keeps after each layer; fewer if the steps would not suffice."""


@dataclass(slots=True)
class Steps:
    """The step budget of a search."""

    most: int
    taken: int = 0

    def take(self, count: int) -> bool:
        """Take `count` steps and return True; return False and take none if fewer are left."""
        if self.taken + count > self.most:
            return False
        self.taken += count
        return True

    @property
    def left(self) -> int:
        """The number of steps left."""
        return self.most - self.taken


@dataclass(slots=True, eq=False)
class _State:
    """The state of an order after a set of layers has run."""

    done: int
    """The layers that have run, as bits."""
    live: int
    """Live bytes after these layers."""
    ready: tuple[int, ...]
    """The layers that can run next."""
    last: tuple[int, _State] | None
    """The layer that ran last, and the state before it; None at the start."""

    def order(self) -> tuple[int, ...]:
        """Return the layers in the order in which they ran."""
        found = []
        last = self.last
        while last is not None:
            found.append(last[0])
            last = last[1].last
        return tuple(reversed(found))


_Move = tuple[_State, int, int]
"""A state, the layer that runs next, and the live bytes after it."""


class _Walk:
    """Steps through the sets of layers of a segment that can have run."""

    def __init__(self, problem: OrderProblem, segment: Segment) -> None:
        self._problem = problem
        self._own = set(segment.layers)
        self.goal = segment.done
        for layer in segment.layers:
            self.goal |= 1 << layer
        ready = tuple(layer for layer in sorted(segment.layers) if not problem.needs[layer] & ~segment.done)
        self.start = _State(segment.done, segment.live, ready, None)

    def after(self, move: _Move, done: int) -> _State:
        """Return the state after a move, in which the layers `done` have run."""
        state, layer, left = move
        needs = self._problem.needs
        new = [r for r in self._problem.readers[layer] if r in self._own and not needs[r] & ~done]
        rest = [other for other in state.ready if other != layer]
        return _State(done, left, tuple(sorted([*rest, *new]) if new else rest), (layer, state))


def best_first(problem: OrderProblem, segment: Segment, bound: int, steps: Steps) -> tuple[Segment | None, int]:
    """Return the best order with a peak below the segment's; None if there is none or the steps run out.

    The second value is a lower bound on the peak of every order: the peak of the result if one is found, the segment's
    own peak if no better order exists. An order that reaches `bound` is not improved further.
    """
    walk = _Walk(problem, segment)
    ranks = itertools.count()
    queue: list[tuple[int, int, int, int, _Move | None]] = [(bound, 0, 0, segment.done, None)]
    seen: set[int] = set()
    while queue:
        peak, depth, _, done, move = heapq.heappop(queue)
        if done in seen:
            continue
        state = walk.start if move is None else walk.after(move, done)
        if done == walk.goal:
            return replace(segment, layers=state.order(), peak=peak), peak
        seen.add(done)
        if not steps.take(len(state.ready)):
            return None, peak
        for layer in state.ready:
            during, left, after = problem.step(done, state.live, layer)
            if max(peak, during) < segment.peak and after not in seen:
                # of equal peaks, the longest order comes first: it is the nearest to an end
                heapq.heappush(queue, (max(peak, during), depth - 1, next(ranks), after, (state, layer, left)))
    return None, segment.peak


def greedy(problem: OrderProblem, segment: Segment) -> Segment:
    """Return the order that always runs the layer leaving the fewest live bytes; the graph's order breaks ties."""
    own = set(segment.layers)
    left = [sum(not segment.done >> user & 1 for user in users) for users in problem.users]
    missing = {layer: sum(source in own for source in problem.sources[layer]) for layer in segment.layers}

    def growth(layer: int) -> int:
        total = 0
        for one in problem.touched[layer]:
            if left[one] == len(problem.users[one]) and one not in problem.given:
                total += problem.sizes[one]
            if left[one] == 1 and one not in problem.kept:
                total -= problem.sizes[one]
        return total

    queue = [(growth(layer), layer) for layer in segment.layers if not missing[layer]]
    heapq.heapify(queue)
    done: set[int] = set()
    order = []
    while queue:
        _, layer = heapq.heappop(queue)
        if layer in done:
            continue
        done.add(layer)
        order.append(layer)
        for reader in problem.readers[layer]:
            if reader in own:
                missing[reader] -= 1
        changed = {reader for reader in problem.readers[layer] if reader in own and not missing[reader]}
        for one in problem.touched[layer]:
            left[one] -= 1
            if left[one] == 1:  # the one layer left can now free it
                changed.update(u for u in problem.users[one] if u in own and u not in done and not missing[u])
        for other in changed:
            heapq.heappush(queue, (growth(other), other))
    return _measured(problem, segment, tuple(order))


def beam(problem: OrderProblem, segment: Segment, steps: Steps) -> Segment:
    """Return a good order, keeping the states with the lowest peak, then the fewest live bytes, after each layer.

    If the steps run out, the segment's own order is returned.
    """
    walk = _Walk(problem, segment)
    width = min(_BEAM, steps.left // max(_tried(problem, segment), 1))
    states = [(0, walk.start)]
    for _ in segment.layers:
        if not width or not steps.take(sum(len(state.ready) for _, state in states)):
            return segment
        best: dict[int, tuple[int, int, _Move]] = {}
        for peak, state in states:
            for layer in state.ready:
                during, left, done = problem.step(state.done, state.live, layer)
                if done not in best or max(peak, during) < best[done][0]:
                    best[done] = (max(peak, during), left, (state, layer, left))
        chosen = sorted(best.items(), key=lambda one: (one[1][0], one[1][1]))[:width]
        states = [(peak, walk.after(move, done)) for done, (peak, _, move) in chosen]
    peak, state = states[0]
    return replace(segment, layers=state.order(), peak=peak)


def _tried(problem: OrderProblem, segment: Segment) -> int:
    """Return the approximate steps of a beam of width 1: the ready layers, summed over the segment's own order.

    A layer is ready from the place behind the last one whose output it reads to its own.
    """
    places = {layer: place for place, layer in enumerate(segment.layers)}
    total = 0
    for layer, place in places.items():
        total += place - max((places[source] for source in problem.sources[layer] if source in places), default=-1)
    return total


def _measured(problem: OrderProblem, segment: Segment, order: tuple[int, ...]) -> Segment:
    done, live, peak = segment.done, segment.live, 0
    for layer in order:
        during, live, done = problem.step(done, live, layer)
        peak = max(peak, during)
    return replace(segment, layers=order, peak=peak)
