# SPDX-License-Identifier: Apache-2.0
"""Checks plans independently: it replays the run, without lifetimes and without the planner's code.

Each byte of each arena carries the tag of the buffer last written to it. When a buffer is read, every byte of it must
carry its tag. Neighbouring bytes with the same tag are kept as one interval, so the cost does not depend on the size
of an arena.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ferrule._frozen import frozen, positional
from ferrule.graph import Graph
from ferrule.memory.lifetimes import scheduled_layers
from ferrule.memory.placement import MemoryPlan
from ferrule.memory.region import Region
from ferrule.memory.request import Access, Alias, AliasKind, BufferKind, Overlap, Request, Tie

_NOTHING = -1


class PlanError(Exception):
    """A plan is wrong because of a bug in the planner or wrong facts about the kernels, not because of the user."""


@frozen
class Step:
    """The reads and writes of one layer."""

    name: str
    reads: tuple[str, ...] = ()
    """Buffers read in full, while the step writes."""
    writes: tuple[str, ...] = ()
    """Outputs and scratch, written in full."""
    end: int = 0
    """The index of the step until whose end it goes on; 0 or its own if it ends before the next one begins."""
    queue: str = ""
    """The queue whose steps are carried out one after the other; empty for a step that ends before the next begins."""


@frozen
class Schedule:
    """A run: the buffers written and read at each step."""

    steps: tuple[Step, ...]
    inputs: tuple[str, ...] = ()
    """Buffers written before the first step."""
    outputs: tuple[str, ...] = ()
    """Buffers read after the last step."""


def schedule_of_graph(
    graph: Graph,
    order: Sequence[str] | None = None,
    scratch: Mapping[str, Sequence[str]] | None = None,
    ends: Mapping[str, int] | None = None,
    queues: Mapping[str, str] | None = None,
) -> Schedule:
    """Return the run of a graph; `scratch` maps a layer's name to the names of its scratch buffers, `ends` a layer that
    goes on beside later ones to the step at which it ends, and `queues` such a layer to its queue.
    """
    scratch, ends, queues = scratch or {}, ends or {}, queues or {}
    steps = []
    for layer in scheduled_layers(graph, order):
        reads = tuple(name for name in layer.present_inputs if not graph.tensor(name).is_constant)
        steps.append(
            Step(
                name=layer.name,
                reads=tuple(dict.fromkeys(reads)),
                writes=(*layer.outputs, *scratch.get(layer.name, ())),
                end=ends.get(layer.name, 0),
                queue=queues.get(layer.name, ""),
            )
        )
    return Schedule(
        steps=tuple(steps),
        inputs=tuple(info.name for info in graph.sources),
        outputs=tuple(info.name for info in graph.results if not graph.tensor(info.name).is_constant),
    )


def verify(
    plan: MemoryPlan,
    requests: Sequence[Request],
    regions: Sequence[Region],
    schedule: Schedule,
    *,
    aliases: Sequence[Alias] = (),
    overlaps: Sequence[Overlap] = (),
    ties: Sequence[Tie] = (),
) -> None:
    """Check that a plan is complete, in bounds and aligned, and that no byte is lost in its replay.

    A buffer with an `Access` must be in a region that each of its masters reaches, and have its cache lines for itself:
    the lines are part of the buffer, so the replay shows that no other buffer uses them. A step that writes scratch
    writes all of it, over the inputs tied to it unless they are preserved, and then its outputs.

    Raises:
        PlanError: a check fails; for a lost byte the message names the step, the buffer and the byte.
    """
    _check_placements(plan, requests, regions)
    _check_figures(plan, requests)
    replay = _Replay(
        plan=plan,
        requests={request.name: request for request in requests},
        aliases={alias.output: alias for alias in aliases},
    )
    for tie in ties:
        replay.ties.setdefault(tie.scratch, []).append(tie)
    for overlap in overlaps:
        replay.overlaps.setdefault((overlap.output, overlap.input), []).append(overlap)
    replay.run(schedule)


def _check_placements(plan: MemoryPlan, requests: Sequence[Request], regions: Sequence[Region]) -> None:
    by_name = {region.name: region for region in regions}
    wanted = {request.name for request in requests}
    for name in plan.placements:
        if name not in wanted:
            raise PlanError(f"buffer '{name}' is placed, but no request names it")
    for request in requests:
        placement = plan.placements.get(request.name)
        if placement is None:
            raise PlanError(f"buffer '{request.name}' is not placed")
        place = f"buffer '{request.name}' is at offset {placement.offset} of region '{placement.region}'"
        region = by_name.get(placement.region)
        if region is None or placement.region not in request.regions:
            raise PlanError(f"{place}, expected one of {list(request.regions)}")
        if placement.offset % request.alignment or placement.offset % region.alignment:
            raise PlanError(f"{place}, expected multiples of {request.alignment} and {region.alignment}")
        if request.access is not None:
            _check_access(place, request, request.access, placement.offset, region)
        if placement.offset < 0 or placement.offset + request.size_bytes > region.size_bytes:
            raise PlanError(f"{place} with {request.size_bytes} B, which is not inside its {region.size_bytes} B")


def _check_access(place: str, request: Request, access: Access, offset: int, region: Region) -> None:
    for master in sorted(access.masters - region.reachable_by):
        raise PlanError(f"{place}, which '{master}' does not reach")
    if offset % access.alignment:
        raise PlanError(f"{place}, expected a multiple of {access.alignment} for {sorted(access.masters)}")
    if offset % access.line_bytes or request.size_bytes % access.line_bytes:
        raise PlanError(f"{place} with {request.size_bytes} B, expected whole cache lines of {access.line_bytes} B")


def _check_figures(plan: MemoryPlan, requests: Sequence[Request]) -> None:
    for region in plan.regions:
        peak = activations = 0
        for request in requests:
            placement = plan.placements[request.name]
            if placement.region != region.region:
                continue
            if region.alignment % request.alignment:
                raise PlanError(
                    f"region '{region.region}' promises alignment {region.alignment}, '{request.name}' more"
                )
            end = placement.offset + request.size_bytes
            peak = max(peak, end)
            if request.kind is BufferKind.ACTIVATION:
                activations = max(activations, end)
        if peak != region.peak_bytes or region.activation_peak_bytes > activations:
            raise PlanError(
                f"region '{region.region}' has peak {peak} B and activations up to {activations} B, "
                f"but states {region.peak_bytes} and {region.activation_peak_bytes} B"
            )
        if region.bound_bytes > peak or region.activation_bound_bytes > region.activation_peak_bytes:
            raise PlanError(f"region '{region.region}' is below its proved bound")


@positional
class _Going:
    """A step that goes on beside later ones."""

    step: Step
    permitted: Mapping[str, Collection[int]]
    """By input, and by scratch with tied buffers: the tags that may have replaced its own."""
    written: frozenset[int]
    """The tags of its outputs."""


@dataclass(slots=True, kw_only=True)
class _Replay:
    plan: MemoryPlan
    requests: Mapping[str, Request]
    aliases: Mapping[str, Alias]
    """By output."""
    memories: dict[str, _Tags] = field(default_factory=dict)
    """The tags of each region's memory."""
    tags: dict[str, int] = field(default_factory=dict)
    """By written buffer: the tag on its bytes; a view has the tag of its source."""
    names: list[str] = field(default_factory=list)
    """By tag: the buffer it stands for."""
    ties: dict[str, list[Tie]] = field(default_factory=dict)
    """By scratch."""
    overlaps: dict[tuple[str, str], list[Overlap]] = field(default_factory=dict)
    """By output and input; the storage must keep to all of them."""

    def run(self, schedule: Schedule) -> None:
        for region in self.plan.regions:
            self.memories[region.region] = _Tags()
        for name in schedule.inputs:
            self._write("before the first step", name)
        for name in schedule.inputs:
            self._read("before the first step", name)
        going: list[_Going] = []
        for index, step in enumerate(schedule.steps):
            for other in going:
                self._check_ended(step, other)
            permitted = self._step(step)
            for other in going:
                where = f"at '{step.name}', beside which '{other.step.name}' goes on"
                self._check_kept(where, other.step, other.permitted)
            going.append(_Going(step, permitted, frozenset(self.tags[name] for name in step.writes)))
            going = [other for other in going if other.step.end > index]
        for name in schedule.outputs:
            self._read("after the last step", name)

    def _check_ended(self, step: Step, going: _Going) -> None:
        """Check that a step reads no output of one that goes on, unless both are in one queue or it is only a view."""
        if step.queue and step.queue == going.step.queue:
            return
        aliases = self.aliases
        if step.writes and all(name in aliases and aliases[name].kind is AliasKind.VIEW for name in step.writes):
            return
        for name in step.reads:
            if self.tags.get(name) in going.written:
                raise PlanError(f"at '{step.name}': '{name}' is read before '{going.step.name}' ends")

    def _check_kept(self, where: str, step: Step, permitted: Mapping[str, Collection[int]]) -> None:
        """Check that a step still has its inputs, and that its outputs may be written until it ends."""
        for name in (*step.reads, *step.writes):
            self._read(where, name, permitted=permitted.get(name, ()))

    def _step(self, step: Step) -> Mapping[str, Collection[int]]:
        """Replay a step, and return by input the tags that may have replaced its own."""
        where = f"at '{step.name}'"
        for name in step.reads:
            self._read(where, name)
        permitted: dict[str, set[int]] = {name: set() for name in step.reads}
        held = [name for name in step.writes if name in self.ties]
        for name in held:
            self._write_around(where, step, name, permitted)
        for name in (name for name in step.writes if name not in held):
            alias = self.aliases.get(name)
            if alias is not None:
                self._check_same_place(where, alias)
            if alias is not None and alias.kind is AliasKind.VIEW:
                self._read(where, alias.input, size_bytes=self.requests[name].size_bytes)
                self.tags[name] = self.tags[alias.input]
                continue
            over = {source for source in step.reads if (name, source) in self.overlaps}
            for source in sorted(over):
                for overlap in self.overlaps[name, source]:
                    self._check_overlap(where, overlap)
            self._write(where, name)
            for source in over | {alias.input} if alias is not None and alias.kind is AliasKind.IN_PLACE else over:
                permitted.setdefault(source, set()).add(self.tags[name])
        for scratch in held:
            self._permit_tied(step, scratch, permitted)
        self._check_kept(where, step, permitted)
        return permitted

    def _write_around(self, where: str, step: Step, scratch: str, permitted: dict[str, set[int]]) -> None:
        """Write scratch, but not over inputs that are preserved; check that its tied buffers are at their places."""
        for tie in self.ties[scratch]:
            self._check_tie(where, tie)
        self._write(where, scratch)
        for tie in self.ties[scratch]:
            if tie.preserved and tie.buffer in step.reads:
                self._mark(tie.buffer)

    def _permit_tied(self, step: Step, scratch: str, permitted: dict[str, set[int]]) -> None:
        """Permit what a step does to the bytes of its scratch: it holds inputs and outputs, and inputs may be lost."""
        outputs = {self.tags[tie.buffer] for tie in self.ties[scratch] if tie.buffer in step.writes}
        permitted[scratch] = set(outputs)
        for tie in self.ties[scratch]:
            if tie.buffer in step.reads:
                if tie.preserved:
                    permitted[scratch].add(self.tags[tie.buffer])
                else:
                    permitted[tie.buffer] |= {self.tags[scratch], *outputs}

    def _check_tie(self, where: str, tie: Tie) -> None:
        buffer, scratch = self.plan.placements[tie.buffer], self.plan.placements[tie.scratch]
        if buffer.region != scratch.region or buffer.offset != scratch.offset + tie.offset:
            raise PlanError(
                f"{where}: '{tie.buffer}' is at {buffer.offset} of '{buffer.region}', expected byte {tie.offset} of "
                f"'{tie.scratch}', which is at {scratch.offset} of '{scratch.region}'"
            )

    def _write(self, where: str, name: str) -> None:
        if name not in self.requests:
            raise PlanError(f"{where}: '{name}' is written, but no request names it")
        self.tags[name] = len(self.names)
        self.names.append(name)
        self._mark(name)

    def _mark(self, name: str) -> None:
        """Put a buffer's tag on all of its bytes."""
        placement = self.plan.placements[name]
        end = placement.offset + self.requests[name].size_bytes
        self.memories[placement.region].write(placement.offset, end, self.tags[name])

    def _read(self, where: str, name: str, *, size_bytes: int | None = None, permitted: Collection[int] = ()) -> None:
        """Check that a buffer's bytes carry its tag or one of the `permitted` tags, which may have replaced it."""
        if name not in self.tags:
            raise PlanError(f"{where}: '{name}' is read before it is written")
        placement = self.plan.placements[name]
        size = self.requests[name].size_bytes
        end = placement.offset + (size if size_bytes is None else min(size, size_bytes))
        for start, tag in self.memories[placement.region].read(placement.offset, end):
            if tag != self.tags[name] and tag not in permitted:
                raise PlanError(
                    f"{where}: byte {start - placement.offset} of '{name}' (offset {start} of region "
                    f"'{placement.region}') has been overwritten by '{self.names[tag]}'"
                )

    def _check_same_place(self, where: str, alias: Alias) -> None:
        output, source = self.plan.placements[alias.output], self.plan.placements[alias.input]
        if output != source:
            raise PlanError(
                f"{where}: '{alias.output}' at {output.offset} of '{output.region}' shares storage with "
                f"'{alias.input}' at {source.offset} of '{source.region}', expected the same place"
            )

    def _check_overlap(self, where: str, overlap: Overlap) -> None:
        """Check that no byte of an input is overwritten before the kernel has read it.

        Once byte k of the output is written from the first byte on, the bytes still to be read start no earlier than at
        byte k + 1 - distance of the input. Once all bytes from byte k on are written from the last byte on, the bytes
        still to be read end no later than at byte k + distance of the input.
        """
        output, source = self.plan.placements[overlap.output], self.plan.placements[overlap.input]
        shift = output.offset - source.offset
        byte = max(shift, 0)  # the first byte of the input that the output overwrites
        inside = (
            byte < self.requests[overlap.input].size_bytes and byte - shift < self.requests[overlap.output].size_bytes
        )
        if output.region != source.region or not inside:
            return
        said = f"{where}: '{overlap.output}' overwrites byte {byte} of '{overlap.input}' before it has been read"
        if shift % overlap.step_bytes:
            raise PlanError(f"{said}: they are {abs(shift)} B apart, expected a multiple of {overlap.step_bytes}")
        if shift > 0 and overlap.backward_bytes is not None:
            if shift < overlap.backward_bytes:
                raise PlanError(f"{said}: it starts {shift} B above, expected {overlap.backward_bytes} or more")
        elif overlap.distance_bytes is None or -shift < overlap.distance_bytes:
            least = "no overlap" if overlap.distance_bytes is None else f"{overlap.distance_bytes} or more"
            raise PlanError(f"{said}: the input starts {-shift} B above, expected {least}")


class _Tags:
    """The tags of a memory, kept as intervals of bytes that were last written together."""

    def __init__(self) -> None:
        self._starts = [0]
        """The first byte of each interval, ascending; each ends where the next one starts, and the last has no end."""
        self._tags = [_NOTHING]

    def write(self, start: int, end: int, tag: int) -> None:
        """Set the tag of the bytes from `start` up to, but not including, `end`."""
        first, last = bisect_left(self._starts, start), bisect_right(self._starts, end)
        rest = self._tags[last - 1]  # the tag of the interval that contains `end`
        self._starts[first:last] = [start, end]
        self._tags[first:last] = [tag, rest]

    def read(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the first byte and the tag of each interval from `start` up to, but not including, `end`."""
        index = bisect_right(self._starts, start) - 1
        while index < len(self._starts) and self._starts[index] < end:
            yield max(self._starts[index], start), self._tags[index]
            index += 1
