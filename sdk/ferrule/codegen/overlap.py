# SPDX-License-Identifier: Apache-2.0
"""Orders the layers so that devices work beside the core, and says where the result of each is collected.

The core begins a device's layer and goes on. It waits for the result at the latest moment: before the first layer that
reads it, before the device's next command if its queue is full, and at the end of the run. The order is found by
simulating runs with estimated times; the estimates influence the speed of the result only.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ferrule.codegen.lowered import LoweredGraph, LoweredLayer, macs
from ferrule.codegen.schedule import Call
from ferrule.codegen.storage import StoragePlan, plan_storage
from ferrule.memory import ArenaOverflowError, Region

OFF_HINT = 'Without devices that work beside the core, less is alive at once: overlap = "off".'
_WIDTH = 16
"""Partial orders that are followed at once."""
_LEAST_GAIN = 100
"""A new order must save one part in so many, since the given one needs the least memory."""
_CYCLES_PER_MAC = 2
_CYCLES_PER_ELEMENT = 8
"""Rough figures for the core's int8 kernels on a Cortex-M."""
_BYTES_PER_CYCLE = 1
"""Of a device's copies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A layer, as its order depends on it."""

    cycles: int
    """The estimated time; 0 for a layer that does nothing."""
    needs: tuple[int, ...] = ()
    """The tasks whose results it reads, by their numbers."""
    device: str | None = None
    """The device that runs it; None on the core."""
    begins: bool = False
    """Whether the device can work on it beside the core; otherwise the core waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrangement:
    """An order of tasks, with the places where the results of devices are collected."""

    order: tuple[int, ...]
    ends: Mapping[int, int]
    """By number of a task that is only begun at its place: the position after which its result is collected."""
    cycles: int
    """The estimated time of the run."""


def overlapped(lowered: LoweredGraph, storage: StoragePlan, core: Region) -> tuple[LoweredGraph, StoragePlan]:
    """Return the graph with layers that devices work on beside others, and its plan; as given if there are none.

    Raises:
        ArenaOverflowError: the tensors that are alive at once need too much memory; the hint names the option.
    """
    tasks = _tasks(lowered, storage)
    if not any(task.begins for task in tasks):
        return lowered, storage
    found = arrange(tasks, {use.name: max(use.driver.depth, 1) for use in lowered.devices})
    if not found.ends:
        return lowered, storage
    layers = tuple(lowered.layers[number] for number in found.order)
    ends = {lowered.layers[number].layer.name: end for number, end in found.ends.items()}
    changed = replace(lowered, layers=layers, ends=ends)
    try:
        return changed, plan_storage(changed, core)
    except ArenaOverflowError as error:
        error.hint = f"{error.hint} {OFF_HINT}"
        raise


def arrange(tasks: Sequence[Task], depths: Mapping[str, int]) -> Arrangement:
    """Return the order with the shortest estimated run that was found: the given one unless another saves time.

    `depths` are the commands that each device may have begun at once. The given order must be valid.
    """
    given = _Partial.start(tasks)
    for number in range(len(tasks)):
        given = given.with_task(number, tasks, depths)
    best = given
    found = _search(tasks, depths)
    if found.total < given.total - given.total // _LEAST_GAIN:
        best = found
    return Arrangement(order=best.order, ends=dict(_kept(best, tasks)), cycles=best.total)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Partial:
    """The simulation of a run up to some task."""

    now: int = 0
    """The time at which the core is free."""
    order: tuple[int, ...] = ()
    done: frozenset[int] = frozenset()
    flying: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """By device: the tasks that were begun and not collected, the oldest first."""
    over: Mapping[int, int] = field(default_factory=dict)
    """By task that was begun: the time at which the device is done with it."""
    ends: Mapping[int, int] = field(default_factory=dict)
    """By task that was collected: the position after which it was."""
    left: Mapping[str | None, int] = field(default_factory=dict)
    """By device, and by None for the core: the time of its tasks that are still to run."""

    @classmethod
    def start(cls, tasks: Sequence[Task]) -> _Partial:
        left: dict[str | None, int] = {None: 0}
        for task in tasks:
            left[task.device] = left.get(task.device, 0) + task.cycles
            if task.device is not None and not task.begins:
                left[None] += task.cycles
        return cls(left=left)

    @property
    def total(self) -> int:
        """The time at which everything that was begun is done."""
        return max(self.now, *(self.over[fly[-1]] for fly in self.flying.values() if fly), 0)

    def with_task(self, number: int, tasks: Sequence[Task], depths: Mapping[str, int]) -> _Partial:
        """Return the simulation after one more task."""
        task = tasks[number]
        flying, ends = dict(self.flying), dict(self.ends)
        now, position = self.now, len(self.order)

        def collect(device: str, count: int) -> None:
            nonlocal now
            for each in flying[device][:count]:
                ends[each] = position - 1
                now = max(now, self.over[each])
            flying[device] = flying[device][count:]

        for need in task.needs:
            device = tasks[need].device
            if device is not None and need in flying.get(device, ()):
                collect(device, flying[device].index(need) + 1)
        over, left = self.over, dict(self.left)
        left[task.device] -= task.cycles
        if task.device is None:
            now += task.cycles
        else:
            queue = flying.setdefault(task.device, ())
            room = depths[task.device] - 1 if task.begins else 0
            collect(task.device, max(len(queue) - room, 0))
            if task.begins:
                queue = flying[task.device]
                begin = max(now, over[queue[-1]]) if queue else now
                over = {**over, number: begin + task.cycles}
                flying[task.device] = (*queue, number)
            else:
                now += task.cycles
                left[None] -= task.cycles
        return _Partial(
            now=now,
            order=(*self.order, number),
            done=self.done | {number},
            flying=flying,
            over=over,
            ends=ends,
            left=left,
        )

    def bound(self, tasks: Sequence[Task], paths: Sequence[int], ready: Sequence[int]) -> int:
        """Return a time that no continuation falls below; `ready` are the tasks whose needs have been issued."""
        least = self.total
        for device, left in self.left.items():
            queue = () if device is None else self.flying.get(device, ())
            free = self.over[queue[-1]] if queue else 0
            least = max(least, max(self.now, free) + left)
        for number in ready:
            begin = max((self.over.get(need, 0) for need in tasks[number].needs), default=0)
            least = max(least, max(self.now, begin) + paths[number])
        return least


def _search(tasks: Sequence[Task], depths: Mapping[str, int]) -> _Partial:
    """Return the best simulation found by following the most promising partial orders; the earlier task wins a tie."""
    paths = _paths(tasks)
    level = [_Partial.start(tasks)]
    for _ in tasks:
        best: dict[frozenset[int], tuple[tuple[int, int, tuple[int, ...]], _Partial]] = {}
        for partial in level:
            for number in _ready(tasks, partial.done):
                longer = partial.with_task(number, tasks, depths)
                bound = longer.bound(tasks, paths, list(_ready(tasks, longer.done)))
                key = (bound, longer.now, longer.order)
                if longer.done not in best or key < best[longer.done][0]:
                    best[longer.done] = key, longer
        level = [partial for _, partial in sorted(best.values(), key=lambda each: each[0])[:_WIDTH]]
    return level[0]


def _ready(tasks: Sequence[Task], done: frozenset[int]) -> Iterator[int]:
    return (
        number for number, task in enumerate(tasks) if number not in done and all(need in done for need in task.needs)
    )


def _paths(tasks: Sequence[Task]) -> list[int]:
    """Return, by task, the time of the longest chain of tasks that begins with it."""
    after = [0] * len(tasks)
    for number in reversed(range(len(tasks))):
        for need in tasks[number].needs:
            after[need] = max(after[need], after[number] + tasks[number].cycles)
    return [task.cycles + rest for task, rest in zip(tasks, after, strict=True)]


def _kept(found: _Partial, tasks: Sequence[Task]) -> Iterator[tuple[int, int]]:
    """Yield the tasks that are begun and collected apart: something runs between, or another command is in the queue.

    Otherwise the core may as well wait at once.
    """
    position = {number: place for place, number in enumerate(found.order)}
    last = len(found.order) - 1
    begun = {n: found.ends.get(n, last) for n in found.order if tasks[n].begins}
    queues: dict[str | None, list[int]] = {}
    for number in begun:
        queues.setdefault(tasks[number].device, []).append(number)
    together = {
        each
        for queue in queues.values()
        for left, right in itertools.pairwise(queue)
        if begun[left] >= position[right]
        for each in (left, right)
    }
    for number, end in begun.items():
        between = found.order[position[number] + 1 : end + 1]
        if number in together or any(tasks[other].cycles for other in between):
            yield number, end


# ---- the tasks of a graph


def _tasks(lowered: LoweredGraph, storage: StoragePlan) -> tuple[Task, ...]:
    writers = {name: number for number, item in enumerate(lowered.layers) for name in item.layer.outputs}
    return tuple(
        Task(
            cycles=0 if item.layer.outputs[0] in storage.views else _cycles(lowered, item),
            needs=tuple(dict.fromkeys(writers[name] for name in item.layer.present_inputs if name in writers)),
            device=None if item.use is None or item.call is None else item.use.name,
            begins=_begins(item),
        )
        for item in lowered.layers
    )


def _begins(item: LoweredLayer) -> bool:
    return item.use is not None and item.call is not None and item.op.start is not None and item.use.driver.depth > 0


def _cycles(lowered: LoweredGraph, item: LoweredLayer) -> int:
    """Return the estimated time of a layer; at least 1."""
    if item.op.cycles is not None:
        return max(item.op.cycles, 1)
    outputs = lowered.graph.output_infos(item.layer)
    if item.call in {Call.COPY_TO, Call.COPY_FROM}:
        return max(sum(info.size_bytes for info in outputs) // _BYTES_PER_CYCLE, 1)
    elements = sum(info.elements for info in outputs)
    return max(_CYCLES_PER_MAC * macs(lowered.graph, item.layer) + _CYCLES_PER_ELEMENT * elements, 1)
