# SPDX-License-Identifier: Apache-2.0
"""Divides a device's subgraph where the core, or another device, can then work beside one of its parts.

A reader is a layer that runs elsewhere and reads a result of the subgraph. The first part is what the reader needs of
the subgraph, and the second part, beside which the reader runs, is the rest. A writer is a layer outside of the
subgraph that writes an input of it. The second part is what needs the writer, and the first part, which runs beside the
layers that lead to the writer, is the rest. The first part reads nothing of the second, and the subgraph as one step
closes no cycle, so neither do the parts. Each part may be divided again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_

from ferrule._frozen import frozen
from ferrule.backends.backend import Policy
from ferrule.backends.capability import subgraph_cost
from ferrule.backends.device import Device
from ferrule.backends.firmware import DeviceTarget
from ferrule.backends.optimization_views import Estimate, PreCompiledDescriptor
from ferrule.backends.target import Face, Goal, MemoryKind
from ferrule.graph import Graph, SubgraphView
from ferrule.optimizer.candidate import Bench, Candidate
from ferrule.optimizer.decisions import Decisions
from ferrule.optimizer.effort import LEAST_GAIN, core_cycles
from ferrule.optimizer.policy import too_small
from ferrule.optimizer.substitution import Answer
from ferrule.timing.planned import Pace

_CYCLES_PER_BYTE = 1
"""Of the core, for a tensor that passes between two parts and is at different places in their programs. Measured for
Ethos-U on mps2-an505: 0.6 instructions; often the tensor needs no copy."""
_CACHE_CYCLES = 8000
"""Of the core, to clean and invalidate its data cache around one more subgraph. Measured for Ethos-U on mps2-an500 with
ic: 6,400 and 8,100 instructions."""

_GOALS = (Goal.SPEED, Goal.BALANCED, Goal.TIME)
"""Those that allow what it costs: memory for tensors that are needed at once, and flash for another program."""


@frozen
class Division:
    """The parts of a subgraph, and what dividing it saves."""

    parts: tuple[SubgraphView, ...]
    """Connected, in the order of their first layers; the subgraph alone if it stays whole."""
    concurrent: tuple[str, ...] = ()
    """The layers that run elsewhere and need not wait for the whole subgraph, or for which not all of it waits."""
    gain: int = 0
    """The time saved, less the cost, in estimated cycles."""


def divide(
    views: Sequence[SubgraphView], owned: Collection[str], cycles: Mapping[str, int], cost: int
) -> list[Division]:
    """Return the divisions of a device's subgraphs that are estimated to save the most time.

    `owned` are all layers of the device, which runs one subgraph after another; the layers of `views` are among them.
    `cycles` are the estimated times of all layers of the graph, and `cost` is that of one more subgraph.
    """
    if not views:
        return []
    divider = _Divider(views[0].graph, owned, cycles, cost)
    return [divider.division(view) for view in views]


@frozen
class _Cut:
    """One division in two."""

    first: frozenset[str]
    rest: frozenset[str]
    concurrent: str
    """A layer that runs beside a part: it reads the first one, or the second one waits for it."""
    saved: int
    """Cycles during which both sides work."""
    idle_first: int
    idle_rest: int
    """Cycles that dividing the first part, or the rest, again may save at most; negative for none."""
    gain: int
    """What is saved less the cost."""


class _Divider:
    """Divides the subgraphs of one device of a graph."""

    def __init__(self, graph: Graph, owned: Collection[str], cycles: Mapping[str, int], cost: int) -> None:
        self._graph = graph
        self._cycles = cycles
        self._cost = cost
        self._bits = {name: 1 << index for index, name in enumerate(owned)}
        self._following = {
            layer.name: [reader.name for tensor in layer.outputs for reader in graph.consumers(tensor)]
            for layer in graph.layers
        }
        self._preceding = {
            layer.name: [writer.name for writer in map(graph.producer, layer.present_inputs) if writer is not None]
            for layer in graph.layers
        }
        self._needs: dict[str, int] = {}
        """By layer: a bit mask of the device's layers that it needs, directly or not; one of them needs itself, too."""
        for layer in graph.layers:
            self._needs[layer.name] = self._bits.get(layer.name, 0) | self._needs_of(self._preceding[layer.name])

    def division(self, view: SubgraphView) -> Division:
        names = frozenset(view.names)
        whole = self._time(names)
        if self._cut(names, whole) is None:
            return Division(parts=(view,))
        idle = whole - self._time(self._independent(view))
        parts: list[frozenset[str]] = []
        cuts: list[_Cut] = []
        waiting = [(names, idle)]
        while waiting:
            names, idle = waiting.pop()
            found = self._cut(names, idle)
            if found is None:
                parts.append(names)
                continue
            cuts.append(found)
            left = idle - found.saved
            waiting += [(found.first, min(left, found.idle_first)), (found.rest, min(left, found.idle_rest))]
        groups = [group for part in parts for group in self._connected(part)]
        return Division(
            parts=tuple(
                sorted((SubgraphView.of(self._graph, group) for group in groups), key=lambda view: view.position)
            ),
            concurrent=tuple(sorted({cut.concurrent for cut in cuts}, key=self._graph.position)),
            gain=sum(cut.gain for cut in cuts),
        )

    def _cut(self, names: frozenset[str], idle: int) -> _Cut | None:
        """Return the cut of a part that gains the most, None if none gains; the core would idle for `idle` cycles."""
        best: _Cut | None = None
        if idle > self._cost:
            for cut in (*self._before_readers(names, idle), *self._behind_writers(names, idle)):
                if cut.gain > (0 if best is None else best.gain):
                    best = cut
        return best

    def _before_readers(self, names: frozenset[str], idle: int) -> Iterator[_Cut]:
        """Yield the cuts after which a reader can begin."""
        tried = {names}
        for reader in self._neighbours(names, self._following, self._bits):
            first = frozenset(name for name in names if self._bits[name] & self._needs[reader])
            if first in tried:
                continue
            tried.add(first)
            before, rest = self._needs_of(first), names - first
            early, late = self._time(self._released(first, before)), self._time(rest)
            saved = min(early, late, idle)
            yield _Cut(
                first=first,
                rest=rest,
                concurrent=reader,
                saved=saved,
                idle_first=early - late,
                idle_rest=late - early,
                gain=self._gain(first, rest, saved),
            )

    def _behind_writers(self, names: frozenset[str], idle: int) -> Iterator[_Cut]:
        """Yield the cuts whose first part need not wait for a writer."""
        tried = {names}
        for writer in self._neighbours(names, self._preceding, names):
            rest = names & _closure([writer], self._following.__getitem__)
            if rest in tried:
                continue
            tried.add(rest)
            first = names - rest
            awaited = self._awaited(first, rest)
            if not awaited:
                continue
            early, late = self._time(first), self._time(awaited) - self._other_work(names, awaited)
            saved = min(early, late, idle)
            yield _Cut(
                first=first,
                rest=rest,
                concurrent=max(awaited, key=self._graph.position),
                saved=saved,
                idle_first=early - late,
                idle_rest=idle,
                gain=self._gain(first, rest, saved),
            )

    def _gain(self, first: frozenset[str], rest: frozenset[str], saved: int) -> int:
        """Return what a cut that saves some cycles gains."""
        if saved <= self._cost:
            return saved - self._cost
        more = sum(len(self._connected(part)) for part in (first, rest)) - len(self._connected(first | rest))
        return saved - self._cost * more - _CYCLES_PER_BYTE * self._crossing(first, rest)

    def _needs_of(self, names: Iterable[str]) -> int:
        """Return the layers of the device that some layers need, as bits."""
        return reduce(or_, (self._needs[name] for name in names), 0)

    def _neighbours(
        self, names: Iterable[str], of: Mapping[str, Iterable[str]], without: Container[str]
    ) -> Iterator[str]:
        """Yield the layers that follow or precede some layers, in the order of those, except for those in `without`."""
        return (each for name in sorted(names, key=self._graph.position) for each in of[name] if each not in without)

    def _awaited(self, first: frozenset[str], rest: frozenset[str]) -> set[str]:
        """Return the layers elsewhere that the rest needs, and that do not need the first part, nor it them."""
        inside = sum(self._bits[name] for name in first)
        awaited = _closure(rest, self._preceding.__getitem__) - _closure(first, self._preceding.__getitem__)
        return {name for name in awaited if name not in self._bits and not self._needs[name] & inside}

    def _other_work(self, names: frozenset[str], awaited: set[str]) -> int:
        """Return the time of the device's other layers that can run beside awaited ones: they neither need them, nor
        are needed by them, nor need the subgraph.
        """
        behind = _closure([*names, *awaited], self._following.__getitem__)
        needed = self._needs_of(awaited)
        return self._time(
            name for name, bit in self._bits.items() if name not in names and name not in behind and not bit & needed
        )

    def _released(self, first: frozenset[str], before: int) -> set[str]:
        """Return the layers elsewhere that need the first part, and of the device at most the layers in `before`."""

        def released(name: str) -> Iterator[str]:
            return (
                reader
                for reader in self._following[name]
                if reader not in self._bits and not self._needs[reader] & ~before
            )

        return _closure(first, released)

    def _independent(self, view: SubgraphView) -> Iterator[str]:
        """Yield the layers elsewhere that run neither before a subgraph nor after a part of it, so beside all of it."""
        inside = sum(self._bits[name] for name in view.names)
        before: set[str] = set(view.names)
        for layer in reversed(self._graph.layers):
            if any(reader in before for reader in self._following[layer.name]):
                before.add(layer.name)
            elif layer.name not in self._bits and not self._needs[layer.name] & inside:
                yield layer.name

    def _crossing(self, first: frozenset[str], rest: frozenset[str]) -> int:
        """Return the bytes that the first part writes and the rest reads."""
        return sum(
            self._graph.info(tensor).size_bytes
            for name in first
            for tensor in self._graph.layer(name).outputs
            if any(reader.name in rest for reader in self._graph.consumers(tensor))
        )

    def _connected(self, names: frozenset[str]) -> list[set[str]]:
        """Return some layers in sets, each of which tensors connect."""
        sets: dict[str, set[str]] = {name: {name} for name in names}
        for name in names:
            for reader in self._following[name]:
                if reader in names and sets[reader] is not sets[name]:
                    small, large = sorted((sets[reader], sets[name]), key=len)
                    large |= small
                    sets |= dict.fromkeys(small, large)
        return list({id(each): each for each in sets.values()}.values())

    def _time(self, names: Iterable[str]) -> int:
        return sum(self._cycles[name] for name in names)


def _closure(names: Iterable[str], neighbours: Callable[[str], Iterable[str]]) -> set[str]:
    """Return all layers that neighbours lead to from some layers, without these unless others lead to them."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        for each in neighbours(waiting.pop()):
            if each not in found:
                found.add(each)
                waiting.append(each)
    return found


def _named(names: Sequence[str]) -> str:
    return f"'{names[0]}'" if len(names) == 1 else f"'{names[0]}' and {len(names) - 1} more"


# ---- in the optimizer


def divide_answers(
    decisions: Decisions,
    bench: Bench,
    candidate: Candidate,
    device: Device,
    answers: Sequence[Answer],
    ask: Callable[[SubgraphView], Answer],
) -> list[Answer]:
    """Return a backend's answers for a device's subgraphs, with those for parts in place of divided subgraphs'.

    Only subgraphs are divided whose answer is one pre-compiled layer with the estimated time of each layer, in firmware
    with a goal that allows more memory, for a backend with the capability RUNS_BESIDE. `ask` returns the answer for a
    part. Notes say what was divided.
    """
    options, cost = candidate.options, subgraph_cost(candidate.backend.capabilities())
    if cost is None or not options.overlap or options.face is not Face.FIRMWARE or options.goal not in _GOALS:
        return list(answers)
    cost += _CACHE_CYCLES * any(memory.line_bytes and memory.kind is MemoryKind.RAM for memory in options.memories)
    cycles = _cycles(decisions, bench, answers, options.pace)
    policy = candidate.backend.policy(options.target(device))
    divisions = [
        division if _allowed(answer, division, policy) else Division(parts=(answer.subgraph,))
        for answer, division in zip(
            answers,
            divide([answer.subgraph for answer in answers], decisions.layers_on(device), cycles, cost),
            strict=True,
        )
    ]
    if sum(division.gain for division in divisions) * LEAST_GAIN < sum(cycles.values()):
        return list(answers)
    found: list[Answer] = []
    for answer, division in zip(answers, divisions, strict=True):
        parts = [ask(part) for part in division.parts] if division.gain else []
        kept, note = _kept(answer, parts, division)
        found += kept
        if note:
            decisions.notes[f"{_named(answer.subgraph.names)} of {device.name}: {note}"] = None
    return found


def _kept(answer: Answer, parts: Sequence[Answer], division: Division) -> tuple[Sequence[Answer], str]:
    """Return the better of the answers for a subgraph and for its parts, and a note; "" if there is no question."""
    if not parts:
        return [answer], ""
    estimates = [each.cycles for part in parts if (each := _estimate(part)) is not None]
    whole, others = _estimate(answer), _named(division.concurrent)
    if whole is None or len(estimates) < len(parts):
        return [answer], f"one subgraph, since a part alone, to run beside {others}, does not compile"
    gain = division.gain - (sum(estimates) - whole.cycles)
    if gain <= 0:
        return [
            answer
        ], f"one subgraph, since in {len(parts)} parts the device takes {division.gain - gain:,} cycles more"
    begins = " and ".join(f"'{part.names[0]}'" for part in division.parts[1:])
    return parts, (
        f"{len(parts)} subgraphs, divided before {begins}, so that {others} can run beside a part: "
        f'about {gain:,} cycles less, as estimated; overlap = "off" leaves one'
    )


def _allowed(answer: Answer, division: Division, policy: Policy) -> bool:
    """Return whether a subgraph's time is known and its backend's policy accepts all parts."""
    return _estimate(answer) is not None and not any(too_small(part, policy) for part in division.parts)


def _cycles(decisions: Decisions, bench: Bench, answers: Sequence[Answer], pace: Pace | None) -> dict[str, int]:
    """Return the estimated times of all layers, of which a device's subgraphs have these answers.

    Layers of other devices that no compiler has seen yet are taken to be as much faster than on the core as these.
    """
    graph = decisions.graph
    known: dict[str, int] = {}
    for answer in answers:
        estimate = _estimate(answer)
        if estimate is not None:
            known |= dict.fromkeys(answer.subgraph.names, 0) | dict(estimate.layers)
    core = {layer.name: core_cycles(graph, layer, pace) for layer in graph.layers}
    slow = sum(core[name] for name in known)
    on_device = {each.id: isinstance(each.backend.firmware_target(), DeviceTarget) for each in bench.candidates}
    found = {}
    for layer in graph.layers:
        estimate = layer.descriptor.estimate if isinstance(layer.descriptor, PreCompiledDescriptor) else None
        if layer.name in known:
            found[layer.name] = known[layer.name]
        elif estimate is not None:
            found[layer.name] = estimate.cycles
        elif on_device[decisions.assignment[layer.name].backend] and slow:
            found[layer.name] = core[layer.name] * sum(known.values()) // slow
        else:
            found[layer.name] = core[layer.name]
    return found


def _estimate(answer: Answer) -> Estimate | None:
    """Return the compiler's estimate if it made one layer of the whole subgraph and knows the time of each layer."""
    if len(answer.views.substitutions) != 1 or answer.views.substitutions[0].replaced.names != answer.subgraph.names:
        return None
    layers = answer.views.substitutions[0].layers
    descriptor = layers[0].descriptor if len(layers) == 1 else None
    estimate = descriptor.estimate if isinstance(descriptor, PreCompiledDescriptor) else None
    return estimate if estimate is not None and {*dict(estimate.layers)} <= {*answer.subgraph.names} else None
