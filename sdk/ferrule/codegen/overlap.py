# SPDX-License-Identifier: Apache-2.0
"""Orders the layers so that devices work beside the core, and says where the result of each is collected.

The core begins a device's layer and goes on. It waits for the result at the latest moment: before the first layer that
reads it, unless this is a later command of the same device, which works in order; before the device's next command if
its queue is full; and at the end of the run. The order is found by simulating runs with estimated times; the estimates
influence the speed of the result only.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import field, replace

from ferrule._frozen import frozen
from ferrule.codegen.lowered import LoweredGraph, LoweredLayer
from ferrule.codegen.storage import StoragePlan, plan_storage
from ferrule.interface import option
from ferrule.memory import ArenaOverflowError
from ferrule.optimizer.effort import LEAST_GAIN, core_cycles

OFF_HINT = f"Without devices that work beside the core, less is alive at once: {option('overlap', 'off')}."
_WIDTH = 16
"""Partial orders that are followed at once."""
_MOST_WORK = 3200
"""Tasks times partial orders, so that fewer orders are followed in longer networks."""
_BYTES_PER_CYCLE = 1
"""Of a device's copies."""


@frozen
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
    copies: bool = False
    """Whether the core copies what it reads, so that nothing that it needs may still be in a queue."""


@frozen
class Arrangement:
    """An order of tasks, with the places where the results of devices are collected."""

    order: tuple[int, ...]
    ends: Mapping[int, int]
    """By number of a task that is only begun at its place: the position after which its result is collected."""
    cycles: int
    """The estimated time of the run."""


def overlapped(storage: StoragePlan) -> StoragePlan:
    """Return the plan with layers that devices work on beside others; as given if there are none.

    Raises:
        ArenaOverflowError: the tensors that are alive at once need too much memory; the hint names the option.
    """
    lowered = storage.lowered
    waiting = {item.layer.name for item in lowered.layers if not _begins(item)} | _copied(storage, outputs=True)
    copying = _copied(storage, outputs=False)
    depths = {use.name: max(use.driver.depth, 1) for use in lowered.devices}
    while len(waiting) < len(lowered.layers):  # another order may need other copies, and `waiting` only grows
        found = arrange(_tasks(lowered, storage.views, waiting, copying), depths)
        if not found.ends:
            break
        layers = tuple(lowered.layers[number] for number in found.order)
        ends = {lowered.layers[number].layer.name: end for number, end in found.ends.items()}
        try:
            planned = plan_storage(replace(lowered, layers=layers, ends=ends), storage.views)
        except ArenaOverflowError as error:
            error.hint = f"{error.hint} {OFF_HINT}"
            raise
        late = _copied(planned, outputs=True) & ends.keys()
        early = _copied(planned, outputs=False)
        if not late and early <= copying:
            return planned
        waiting |= late
        copying |= early
    return storage


def _copied(storage: StoragePlan, *, outputs: bool) -> set[str]:
    """Return the layers of which the core copies inputs to their scratch before, or outputs from there after them.

    What writes the inputs must have ended before, and the core must wait for the layers of the outputs.
    """
    return {
        item.layer.name
        for item in storage.lowered.layers
        if any((tie.buffer in item.layer.outputs) is outputs for tie in storage.copies(item.layer.name))
    }


def arrange(tasks: Sequence[Task], depths: Mapping[str, int]) -> Arrangement:
    """Return the order with the shortest estimated run that was found: the given one unless another saves enough time.

    It must save one part in LEAST_GAIN, since the given order needs the least memory. `depths` are the commands that
    each device may have begun at once. The given order must be valid.
    """
    problem = _Problem(tasks, depths)
    given = problem.run(range(len(tasks)))
    found = problem.search()
    best = found if found.total < given.total - given.total // LEAST_GAIN else given
    waiting = problem.waiting(best.order)
    best = problem.run(best.order, waiting)
    last = len(tasks) - 1
    begun = (number for number in best.order if tasks[number].begins and number not in waiting)
    return Arrangement(
        order=best.order, ends={number: best.ends.get(number, last) for number in begun}, cycles=best.total
    )


@frozen
class _Partial:
    """The simulation of a run up to some task."""

    now: int = 0
    """The time at which the core is free."""
    order: tuple[int, ...] = ()
    done: int = 0
    """The tasks of the order, as bits."""
    ready: frozenset[int]
    """The tasks that may be next."""
    flying: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """By device: the tasks that were begun and not collected, the oldest first."""
    over: Mapping[int, int] = field(default_factory=dict)
    """By task that was begun: the time at which the device is done with it."""
    ends: Mapping[int, int] = field(default_factory=dict)
    """By task that was collected: the position after which it was."""
    left: Mapping[str | None, int]
    """By device, and by None for the core: the time of its tasks that are still to run."""

    @property
    def total(self) -> int:
        """The time at which everything that was begun is done."""
        return max(self.now, *(self.over[queue[-1]] for queue in self.flying.values() if queue), 0)

    @property
    def situation(self) -> tuple[object, ...]:
        """What the time of the following tasks depends on."""
        queues = {device: [(each, self.over[each]) for each in queue] for device, queue in self.flying.items() if queue}
        return self.now, queues


class _Problem:
    """Tasks to arrange, and the simulation of their runs."""

    def __init__(self, tasks: Sequence[Task], depths: Mapping[str, int]) -> None:
        self._tasks = tasks
        self._depths = depths
        self._readers: list[list[int]] = [[] for _ in tasks]
        self._needs = [sum(1 << need for need in task.needs) for task in tasks]
        for number, task in enumerate(tasks):
            for need in task.needs:
                self._readers[need].append(number)
        self._paths = [0] * len(tasks)
        """By task: the time of the longest chain of tasks that begins with it."""
        for number in reversed(range(len(tasks))):
            after = max((self._paths[reader] for reader in self._readers[number]), default=0)
            self._paths[number] = tasks[number].cycles + after

    def start(self) -> _Partial:
        """Return the simulation before the first task."""
        left: dict[str | None, int] = {None: 0}
        for task in self._tasks:
            left[task.device] = left.get(task.device, 0) + task.cycles
            if task.device is not None and not task.begins:
                left[None] += task.cycles
        return _Partial(left=left, ready=frozenset(n for n, needs in enumerate(self._needs) if not needs))

    def run(self, order: Iterable[int], waiting: Container[int] = ()) -> _Partial:
        """Return the simulation of a whole run; the core waits for the tasks in `waiting`."""
        partial = self.start()
        for number in order:
            partial = self.after(partial, number, waits=number in waiting)
        return partial

    def waiting(self, order: Sequence[int]) -> set[int]:
        """Return the tasks that could be begun, but for which the core may as well wait: the run takes no longer.

        Less memory is in use then, and the devices are free for others earlier.
        """
        found: set[int] = set()
        states = [self.start()]
        """Before each task, and after the last one."""
        for number in order:
            states.append(self.after(states[-1], number))
        for position, number in enumerate(order):
            if self._tasks[number].begins:
                changed = [self.after(states[position], number, waits=True)]
                for later in range(position + 1, len(order)):
                    if changed[-1].situation == states[later].situation:
                        break
                    changed.append(self.after(changed[-1], order[later]))
                end = position + len(changed)
                if changed[-1].situation == states[end].situation or changed[-1].total <= states[-1].total:
                    states[position + 1 : end + 1] = changed
                    found.add(number)
        return found

    def after(self, partial: _Partial, number: int, *, waits: bool = False) -> _Partial:
        """Return the simulation after one more task; with `waits`, the core waits for it in any case."""
        task, done = self._tasks[number], partial.done | 1 << number
        if waits:
            task = replace(task, begins=False)
        counts = self._collected(partial, task)
        over, ends, left = partial.over, partial.ends, {**partial.left}
        flying = {device: queue[counts.get(device, 0) :] for device, queue in partial.flying.items()}
        collected = [each for device, count in counts.items() for each in partial.flying[device][:count]]
        now = max(partial.now, *(over[each] for each in collected), 0)
        if collected:
            ends = {**ends, **dict.fromkeys(collected, len(partial.order) - 1)}
        left[task.device] -= task.cycles
        if task.device is not None and task.begins:
            queue = flying.get(task.device, ())
            over = {**over, number: max(now, over[queue[-1]] if queue else 0) + task.cycles}
            flying[task.device] = (*queue, number)
        else:
            now += task.cycles
            left[None] -= task.cycles if task.device is not None and not waits else 0
        freed = (each for each in self._readers[number] if self._needs[each] & ~done == 0)
        return _Partial(
            now=now,
            order=(*partial.order, number),
            done=done,
            ready=(partial.ready - {number}).union(freed),
            flying=flying,
            over=over,
            ends=ends,
            left=left,
        )

    def _collected(self, partial: _Partial, task: Task) -> dict[str, int]:
        """Return how many of its oldest results are collected of each device before a task.

        A device works in order, so a command may read the results of those before it in the queue.
        """
        counts: dict[str, int] = {}
        for need in task.needs if task.cycles else ():
            device = self._tasks[need].device
            queue = () if device is None else partial.flying.get(device, ())
            in_order = device == task.device and task.begins and not task.copies
            if device is not None and need in queue and not in_order:
                counts[device] = max(counts.get(device, 0), queue.index(need) + 1)
        if task.device is not None:
            room = self._depths[task.device] - 1 if task.begins else 0
            excess = len(partial.flying.get(task.device, ())) - room
            if excess > counts.get(task.device, 0):
                counts[task.device] = excess
        return counts

    def search(self) -> _Partial:
        """Return the best simulation found by following the most promising partial orders.

        The earlier task wins a tie.
        """
        level = [self.start()]
        width = max(min(_WIDTH, _MOST_WORK // max(len(self._tasks), 1)), 1)
        for _ in self._tasks:
            best: dict[int, tuple[tuple[int, int, tuple[int, ...]], _Partial]] = {}
            for partial in level:
                for number in partial.ready:
                    longer = self.after(partial, number)
                    key = (self._bound(longer), longer.now, longer.order)
                    if longer.done not in best or key < best[longer.done][0]:
                        best[longer.done] = key, longer
            level = [partial for _, partial in sorted(best.values(), key=lambda each: each[0])[:width]]
        return level[0]

    def _bound(self, partial: _Partial) -> int:
        """Return a time that no continuation falls below."""
        least = partial.total
        for device, left in partial.left.items():
            queue = () if device is None else partial.flying.get(device, ())
            least = max(least, max(partial.now, partial.over[queue[-1]] if queue else 0) + left)
        for number in partial.ready:
            begin = max((partial.over.get(need, 0) for need in self._tasks[number].needs), default=0)
            least = max(least, max(partial.now, begin) + self._paths[number])
        return least


# ---- the tasks of a graph


def _tasks(
    lowered: LoweredGraph, idle: Collection[str], waiting: Container[str], copying: Container[str]
) -> tuple[Task, ...]:
    """Return the tasks of the layers; `idle` are the outputs of views, which do nothing.

    The core waits for the layers in `waiting`, and copies what those in `copying` read.
    """
    writers: dict[str, tuple[int, ...]] = {}
    """By tensor: the layer that writes it; for a view, the layers of its chain, too."""
    tasks = []
    for number, item in enumerate(lowered.layers):
        is_view = item.layer.outputs[0] in idle
        needs = tuple(dict.fromkeys(each for name in item.layer.present_inputs for each in writers.get(name, ())))
        writers |= dict.fromkeys(item.layer.outputs, (*needs, number) if is_view else (number,))
        tasks.append(
            Task(
                cycles=0 if is_view else _cycles(lowered, item),
                needs=needs,
                device=None if item.use is None or item.call is None else item.use.name,
                begins=item.layer.name not in waiting,
                copies=item.layer.name in copying,
            )
        )
    return tuple(tasks)


def _begins(item: LoweredLayer) -> bool:
    return item.use is not None and item.call is not None and item.op.start is not None and item.use.driver.depth > 0


def _cycles(lowered: LoweredGraph, item: LoweredLayer) -> int:
    """Return the estimated time of a layer, planned where the core's table has its kernel; at least 1."""
    if item.op.cycles is not None:
        return max(item.op.cycles, 1)
    if item.is_copy:
        copied = sum(info.size_bytes for info in lowered.graph.output_infos(item.layer))
        return max(copied // _BYTES_PER_CYCLE, 1)
    pace = lowered.plan.targets[item.layer.name].pace
    works = item.op.planned_works(lowered.graph, item.layer)
    if pace is not None and item.call is None and all(map(pace.knows, works)):
        return sum(map(pace.cycles, works))
    return core_cycles(lowered.graph, item.layer, pace)
