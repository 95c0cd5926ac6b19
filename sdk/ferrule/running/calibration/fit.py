# SPDX-License-Identifier: Apache-2.0
"""Fits the timing of a board's memories to the measured cycles of a calibration's programs.

The sum of the squares of the logarithms of predicted by measured cycles is the least over a grid of plausible timings.
Each step looks at programs that show one property, and tries a more complex memory only if that explains more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from ferrule._frozen import frozen
from ferrule.boards import Board
from ferrule.firmware.micro_programs import Group
from ferrule.progress import Progress, Step, say_nothing
from ferrule.running.calibration.candidates import (
    MOST_WAITS,
    first_fetches,
    first_reads,
    other_fetches,
    other_reads,
)
from ferrule.running.calibration.knee import (
    cache_ways,
    data_cache_sizes,
    instruction_cache_sizes,
    small_programs,
)
from ferrule.running.calibration.measurement import Counts
from ferrule.running.calibration.prediction import Predict
from ferrule.timing import BoardTiming, MemoryTiming

_BETTER = 0.98
"""A more complex memory has to lower the sum of squares at least to this part."""
_EXACT = 1e-6
"""The mean of the squares down from which nothing is left to explain: errors of a tenth of a per cent."""
_STARTS = 4
"""Memories of the first round from which the second one sets out."""
_Names = tuple[str, ...]
_Cycles = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


@frozen
class Fit:
    """The timing that explains the counts best, and what it leaves."""

    memories: Mapping[str, MemoryTiming]
    predicted: Counts
    errors: Mapping[str, float]
    """By program, the predicted cycles less the measured ones, as a part of the measured ones."""
    candidates: int
    """Number of timings whose prediction was computed."""

    @property
    def residual(self) -> tuple[float, float]:
        """The least and the greatest error, which include 0."""
        return min(0.0, *self.errors.values()), max(0.0, *self.errors.values())


def fit(
    measured: Counts,
    groups: Mapping[str, Group],
    board: Board,
    predict: Predict,
    progress: Progress = say_nothing,
) -> Fit:
    """Return the timing of the board's memories for code, weights and data.

    `groups` has the group of each measured program. Memories that hold none of these keep what the board states.
    """
    progress(Step(phase="fitting"))
    search = _Search(measured, groups, board, predict, progress)
    placement = board.placement
    search.fetch(placement.code)
    search.data(placement.data)
    for name in dict.fromkeys((placement.weights, placement.code)):
        search.reads(name, "flash", waits=name != placement.code)
    search.reads(placement.data, "ram", waits=True)
    search.polish()
    return search.result()


class _Search:
    """The search over the timings of a board's memories."""

    def __init__(
        self, measured: Counts, groups: Mapping[str, Group], board: Board, predict: Predict, progress: Progress
    ) -> None:
        self._measured = measured
        self._groups = groups
        self._predict = predict
        self._progress = progress
        stated = {} if board.timing is None else board.timing.memories
        used = (board.placement.code, board.placement.weights, board.placement.data)
        self._memories = {name: memory for name, memory in stated.items() if name not in used}
        self._memories |= {name: MemoryTiming() for name in used}
        self._known: dict[tuple[object, ...], Counts] = {}
        self._timings: set[tuple[object, ...]] = set()
        self._all = tuple(measured)
        self._unwaited = self._counts({name: MemoryTiming() for name in self._memories}, self._all)

    def fetch(self, name: str) -> None:
        """Find what a fetch of code from a memory takes."""
        sizes = instruction_cache_sizes(self._measured, self._unwaited)
        only = small_programs(self._of(Group.FETCH), sizes)
        best = self._cost(name, self._memories[name], only), self._memories[name]
        costs, waits = [best], 1
        for start in first_fetches(sizes, cache_ways(self._measured, self._unwaited)):
            if best[0] <= _EXACT:
                break
            costs.append(min(self._guesses(name, replace(start, wait_states=waits), only), key=_cost_of))
            best = min(best, costs[-1], key=_cost_of)
            waits = costs[-1][1].wait_states or waits
        self._settle(name, costs, other_fetches, only, waits=True)

    def data(self, name: str) -> None:
        """Find the waits of loads and stores in a memory."""
        only = self._of(Group.RAM)
        for _ in range(2):
            _, self._memories[name] = self._with_waits(name, self._memories[name], only)
            _, self._memories[name] = self._with_waits(name, self._memories[name], only, "write_wait_states")

    def reads(self, name: str, kind: str, *, waits: bool) -> None:
        """Find the data cache of a memory, `flash` or `ram`, and its waits if no code in it has shown them."""
        only = self._of(Group.FLASH if kind == "flash" else Group.RAM, Group.LAYERS)
        sizes = data_cache_sizes(self._measured, self._unwaited, kind)
        memory = self._memories[name]
        if waits:
            _, memory = self._with_waits(name, memory, only)
        if memory.wait_states == 0:
            self._memories[name] = memory
            return
        costs = [(self._cost(name, each, only), each) for each in first_reads(memory, sizes)]
        self._settle(name, costs, other_reads, only, waits=waits)

    def polish(self) -> None:
        """Find each number of waits once more, from all programs and layers."""
        for name in self._memories:
            for field in ("wait_states", "write_wait_states"):
                _, self._memories[name] = self._with_waits(name, self._memories[name], self._all, field)

    def result(self) -> Fit:
        """Return what was found."""
        predicted = self._counts(self._memories, self._all)
        errors = {name: predicted[name] / count - 1 for name, count in self._measured.items()}
        return Fit(memories=dict(self._memories), predicted=predicted, errors=errors, candidates=len(self._timings))

    def _settle(
        self,
        name: str,
        costs: Iterable[tuple[float, MemoryTiming]],
        others: Callable[[MemoryTiming], Iterable[MemoryTiming]],
        only: _Names,
        *,
        waits: bool,
    ) -> None:
        """Set a memory to the best of some, listed from the simple to the complex, and of their neighbours."""
        listed = list(costs)
        ends = []
        for cost, memory in _starts(listed):
            ends.append(self._descend(name, cost, memory, others, only, waits=waits))
        best = listed[0]
        for each in (*listed[1:], *sorted(ends, key=lambda end: _complexity(end[1]))):
            if each[0] < best[0] * _BETTER and best[0] > _EXACT:
                best = each
        self._memories[name] = best[1]

    def _descend(
        self,
        name: str,
        cost: float,
        memory: MemoryTiming,
        others: Callable[[MemoryTiming], Iterable[MemoryTiming]],
        only: _Names,
        *,
        waits: bool,
    ) -> tuple[float, MemoryTiming]:
        """Return the memory that has no better neighbour."""
        while cost > _EXACT:
            found = []
            for each in others(memory):
                if waits and _kind(each) != _kind(memory):
                    found.append(self._with_waits(name, each, only))
                else:
                    found.append((self._cost(name, each, only), each))
            least = min(found, key=_cost_of, default=(cost, memory))
            if least[0] >= cost * _BETTER:
                break
            cost, memory = least
        return cost, memory

    def _with_waits(
        self, name: str, memory: MemoryTiming, only: _Names, field: str = "wait_states"
    ) -> tuple[float, MemoryTiming]:
        """Return the least cost over a number of waits, which has one minimum, and the memory with it."""
        best = min(self._guesses(name, memory, only, field), key=_cost_of)
        for step in (1, -1):
            while best[0] > _EXACT:
                waits = getattr(best[1], field) + step
                if not 0 <= waits <= MOST_WAITS:
                    break
                other = replace(best[1], **{field: waits})
                cost = self._cost(name, other, only)
                if cost >= best[0]:
                    break
                best = cost, other
        return best

    def _guesses(
        self, name: str, memory: MemoryTiming, only: _Names, field: str = "wait_states"
    ) -> Iterator[tuple[float, MemoryTiming]]:
        """Yield the memory, one with a wait more or less, and the one that would be best if waits simply added up."""
        cost = self._cost(name, memory, only)
        yield cost, memory
        if cost <= _EXACT:
            return
        waits: int = getattr(memory, field)
        step = 1 if waits < MOST_WAITS else -1
        next_one = replace(memory, **{field: waits + step})  # type: ignore[arg-type]
        yield self._cost(name, next_one, only), next_one
        here, there, measured = (self._cycles(name, each, only) for each in (memory, next_one, None))
        slopes = (there - here) * step
        costs = {
            each: _mean_square(np.maximum(here + (each - waits) * slopes, 1), measured)
            for each in range(MOST_WAITS + 1)
        }
        guess = replace(memory, **{field: min(costs, key=lambda each: costs[each])})  # type: ignore[arg-type]
        yield self._cost(name, guess, only), guess

    def _cost(self, name: str, memory: MemoryTiming, only: _Names) -> float:
        """Return the mean square of the logarithm of predicted by measured cycles."""
        return _mean_square(self._cycles(name, memory, only), self._cycles(name, None, only))

    def _cycles(self, name: str, memory: MemoryTiming | None, only: _Names) -> _Cycles:
        """Return the predicted cycles of some programs, in their order; without a memory, the measured ones."""
        counts = self._measured if memory is None else self._counts(self._memories | {name: memory}, only)
        return np.array([counts[each] for each in only], float)

    def _of(self, *groups: Group) -> _Names:
        """Return the programs of some groups."""
        return tuple(name for name in self._measured if self._groups[name] in groups)

    def _counts(self, memories: Mapping[str, MemoryTiming], only: _Names) -> Counts:
        timing = tuple(memories.items())
        key = (timing, only)
        if key not in self._known:
            self._timings.add(timing)
            self._progress(Step(phase="fitting", done=len(self._timings)))
            self._known[key] = self._predict(BoardTiming(source="a candidate", memories=memories), only)
        return self._known[key]


def _cost_of(each: tuple[float, MemoryTiming]) -> float:
    return each[0]


def _mean_square(predicted: _Cycles, measured: _Cycles) -> float:
    return float(np.mean(np.log(predicted / measured) ** 2))


def _starts(listed: Iterable[tuple[float, MemoryTiming]]) -> list[tuple[float, MemoryTiming]]:
    """Return the best of some memories, of each kind one."""
    found: dict[tuple[object, ...], tuple[float, MemoryTiming]] = {}
    for cost, memory in sorted(listed, key=_cost_of):
        lines = [each and each.line_bytes for each in (memory.instruction_cache, memory.data_cache)]
        found.setdefault((memory.prefetch, memory.width_bytes, *lines), (cost, memory))
    return list(found.values())[:_STARTS]


def _kind(memory: MemoryTiming) -> tuple[object, ...]:
    """Return the properties whose change makes other waits likely."""
    return memory.width_bytes, memory.prefetch, memory.instruction_cache is None, memory.data_cache is None


def _complexity(memory: MemoryTiming) -> int:
    return sum((memory.prefetch, 2 * (memory.instruction_cache is not None), 2 * (memory.data_cache is not None)))
