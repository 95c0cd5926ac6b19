# SPDX-License-Identifier: Apache-2.0
"""The check of ownership: which layer may access which bytes of the workspace, and the error for other accesses.

The plan comes from the artifact and the firmware's ELF file; an engine that can watch memory compares every access of
the core and of the devices with it. docs/emulation.md describes the rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from enum import IntEnum

from ferrule._frozen import frozen
from ferrule.architectures import address_text
from ferrule.codegen import Artifact, Call
from ferrule.codegen.executor import default_arena
from ferrule.devices import Range
from ferrule.emulation.crash import CrashReport, EngineError
from ferrule.firmware import Image
from ferrule.interface import either
from ferrule.memory import STATE_WORD, AliasKind, BufferKind, Request, scratch_name
from ferrule.memory.storage import group_names

OF_DEVICES = frozenset({Call.RUN, Call.COPY_TO, Call.COPY_FROM})
"""The device calls of a layer itself; a layer of a device without one is the core's, such as a copy."""
UNANNOUNCED = -2
"""In place of a step: FERRULE_STEP_UNKNOWN of the unicorn engine."""
UNCHECKED = "ownership cannot be checked: "
_HINT = (
    "docs/emulation.md, 'Ownership', has the rules; "
    f"{either('--keep FOLDER', 'out=FOLDER')} keeps the executor and its offsets"
)
NEXT, RAN, FINISH = "ferrule_held_next", "ferrule_held_ran", "ferrule_held_finish"


class Violation(IntEnum):
    """How an access breaks the rules; mirrors enum ferrule_violation of the unicorn engine."""

    READS_NOTHING = 1
    """Reads a byte that was not written in this inference."""
    READS_OTHER = 2
    """Reads a tensor that the running layer does not use."""
    WRITES_OUTSIDE = 3
    """Writes where the running layer has no output and no scratch."""
    OVERWRITES = 4
    """Writes over a tensor that is needed later."""
    ACCESSES_BUSY = 5
    """The core accesses a tensor of a layer that a device is running."""
    OUTSIDE_LAYER = 6
    """A device accesses the workspace while it runs no layer."""
    READS_STALE = 7
    """The core reads bytes that a device wrote behind the data cache, which was not invalidated."""
    READS_UNCLEAN = 8
    """A device reads bytes that the core wrote to the data cache, which was not cleaned."""
    WRITES_UNDER = 9
    """A device writes under a dirty line of the data cache."""
    DROPS = 10
    """An invalidation of the data cache drops bytes that are needed and not cleaned."""
    SHARES_LINE = 11
    """The core writes to a line of the data cache in which a device wrote other bytes."""
    WRITES_CONSTANT = 12
    """Writes to a constant."""


@frozen
class OwnedBuffer:
    """The storage of a tensor and of its views, or a layer's scratch, in the workspace."""

    name: str
    address: int
    size_bytes: int
    last: int
    """The last step that needs its value."""
    is_input: bool = False
    """Whether its value is written before the inference."""
    is_kept: bool = False
    """Whether its value is that of a reset, or of the inference before."""
    becomes: int | None = None
    """The index of the kept buffer in whose place it has the value for the next inference."""


@frozen
class OwnedStep:
    """The buffers that a layer uses, as indices."""

    layer: str
    device: str | None = None
    """The device that runs it; None on the core."""
    begun: bool = False
    """Whether the device only begins it there, and goes on beside the next layers until its result is collected."""
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    replaces: tuple[int, ...] = ()
    """The inputs whose bytes its outputs may overwrite, since the kernel has read them by then."""


@frozen
class OwnershipPlan:
    """What an engine needs to check the ownership of a firmware's workspace."""

    workspace: tuple[Range, ...]
    """The workspace, with its part in each memory."""
    buffers: tuple[OwnedBuffer, ...]
    steps: tuple[OwnedStep, ...] = ()
    """The layers in the order of execution; the last step copies outputs that no layer writes."""
    numbers: Mapping[str, int] = field(default_factory=dict)
    """The index of each tensor's buffer in the workspace, and of each layer's scratch."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """The size of each of these in bytes, without the bytes that fill a tensor's last cache line."""
    run: int
    """The address of the executor's function; 0 if the program has the one with a deadline alone."""
    until: int = 0
    """The address of the executor's function with a deadline; 0 if there is none."""
    info_argument: int = 3
    """The place of the `struct ferrule_run_info *` among its arguments, from 0."""
    next: int = 0
    """The address of the function that announces layers of a firmware with devices; 0 without devices."""
    ran: int = 0
    """The address of the function that announces the end of a device's layer; 0 without devices."""
    finish: int = 0
    """The address of the function that collects the result of a layer that was begun; 0 if there is none."""
    exact: bool = False
    """Whether an error of the core names its instruction instead of its basic block; such a check is much slower."""


@frozen
class OwnershipCounts:
    """What a check without an error has covered."""

    inferences: int
    """Inferences in which each layer was known."""
    accesses: int
    """Accesses of the core to the memory that is watched, while the running layer was known."""
    transfers: int
    """Transfers of devices, while the running layer was known."""
    cacheable: bool
    """Whether memory that is watched is cacheable."""
    cache: bool
    """Whether the core's data cache was on at the end of the run, so that its lines were modelled."""


@frozen
class Violated:
    """An access that breaks the rules, as the engine found it."""

    violation: Violation
    device: str | None
    """The device that made the access; None for the core."""
    write: bool
    address: int
    size_bytes: int
    step: int
    """Index of the step; UNANNOUNCED in an inference whose layers are not known, -1 outside of inferences."""
    holder: int | None = None
    """Index of the buffer whose value the byte holds; None if it is none."""
    target: int | None = None
    """Index of the buffer that the layer may write there; None if it may write none."""
    busy: tuple[str, ...] = ()
    """The devices at work."""
    pc: int = 0
    exact: bool = False
    cause: str = ""
    """For a device: the register access that caused the transfer."""
    constant: str = ""
    """The constant that is written; empty if it is none."""


class OwnershipError(EngineError):
    """An access to the workspace that the plan does not allow."""

    def __init__(
        self, message: str, found: Violated, *, layer: str, tensor: str, report: CrashReport | None = None
    ) -> None:
        super().__init__(message, hint=_HINT, report=report)
        self.reason = message
        self.violation = found.violation
        self.layer = layer
        self.tensor = tensor
        """The tensor that is accessed by mistake or whose bytes would be lost; empty if the byte belongs to none."""
        self.device = found.device
        """The device that made the access; None for the core."""
        self.address = found.address
        self.pc = found.pc if report is None else report.pc
        self.exact = found.exact
        """Whether `pc` is the accessing instruction; otherwise, it is the start of its basic block."""
        self._found = found

    def reported(self, report: CrashReport) -> OwnershipError:
        """Return the error with the state of the firmware."""
        return OwnershipError(self.reason, self._found, layer=self.layer, tensor=self.tensor, report=report)


def ownership_plan(artifact: Artifact, image: Image) -> OwnershipPlan:
    """Return the plan of a firmware's workspace.

    Raises:
        EngineError: the ELF file lacks the symbols of the executor or of its default workspace.
    """
    owned = owned_storage(artifact, image)
    steps = (*_steps(artifact, owned.numbers), _late(artifact, owned.numbers))
    devices = bool(artifact.devices)
    return replace(
        owned,
        steps=steps,
        info_argument=2 if artifact.arena else 3,  # without the memory, which is the arena
        next=_address(image, NEXT) if devices else 0,
        ran=image.find(RAN) if devices else 0,
        finish=_address(image, FINISH) if any(step.begun for step in steps) else 0,
    )


def owned_storage(artifact: Artifact, image: Image) -> OwnershipPlan:
    """Return the plan without steps: the places of a model's tensors; raises as `ownership_plan` does."""
    prefix = f"ferrule_{artifact.symbol}"
    arenas = {
        arena.name: Range(
            name=arena.name,
            address=_address(image, default_arena(artifact.symbol, artifact.arena, arena)),
            size_bytes=max(artifact.storage.plan.region(arena.name).peak_bytes, 1),
        )
        for arena in artifact.storage.blocks
    }
    numbers, buffers = _buffers(artifact, arenas)
    run, until = f"{prefix}_run_shared" if artifact.arena else f"{prefix}_run", f"{prefix}_run_until"
    return OwnershipPlan(
        workspace=tuple(arenas.values()),
        buffers=buffers,
        numbers=numbers,
        sizes={each.name: _size(artifact, each) for each in artifact.storage.requests if each.name in numbers},
        run=_address(image, run) if image.has(run) or not image.has(until) else 0,
        until=image.find(until),
    )


def _address(image: Image, name: str) -> int:
    if not image.has(name):
        raise EngineError(
            f"{UNCHECKED}{image.path.name} has no symbol {name}",
            hint="run a firmware that uses the model's default workspace and keeps its symbols",
        )
    return image.address_of(name)


def _buffers(artifact: Artifact, arenas: Mapping[str, Range]) -> tuple[Mapping[str, int], tuple[OwnedBuffer, ...]]:
    """Return the index of each tensor's buffer in the workspace, and the buffers."""
    storage = artifact.storage
    placed = storage.plan.placements
    here = {each.name: each for each in storage.requests if placed[each.name].region in arenas}
    views = [
        each for each in storage.aliases if each.kind is AliasKind.VIEW and {each.output, each.input} <= here.keys()
    ]
    roots = group_names(here, views)
    numbers = {root: number for number, root in enumerate(dict.fromkeys(roots.values()))}
    graph = artifact.graph
    inputs, kept = {info.name for info in graph.sources}, {info.name for info in graph.results}
    states = {STATE_WORD, *(state.source for state in graph.states)}
    carried = {alias.output: alias.input for alias in storage.aliases if alias.kind is AliasKind.CARRIED}
    last = len(artifact.operators)
    users: dict[str, int] = {}
    """By tensor or scratch: the end of the last layer that uses it beside others."""
    for operator, end in artifact.ends.items():
        layer = graph.layer(artifact.operators[operator].layer)
        for name in (*layer.present_inputs, *layer.outputs, *storage.scratches(layer.name)):
            users[name] = max(users.get(name, 0), end)
    lost = _lost(artifact, roots)
    members: dict[str, list[str]] = {root: [] for root in numbers}
    for name, root in roots.items():
        members[root].append(name)
    buffers = tuple(
        OwnedBuffer(
            name=root,
            address=arenas[placed[root].region].address + placed[root].offset,
            size_bytes=max(_size(artifact, here[name]) for name in names),
            last=last
            if kept.intersection(names)
            else lost[root]
            if root in lost
            else max(max(here[name].lifetime.last, users.get(name, 0)) for name in names),
            is_input=bool(inputs.intersection(names)),
            is_kept=root in states,
            becomes=numbers[carried[root]] if root in carried else None,
        )
        for root, names in members.items()
    )
    return {name: numbers[root] for name, root in roots.items()}, buffers


def _lost(artifact: Artifact, roots: Mapping[str, str]) -> dict[str, int]:
    """Return, by tensor inside scratch that its last reader may overwrite at once, the step at which that begins."""
    found = {}
    for step, record in enumerate(artifact.operators):
        read = set(artifact.graph.layer(record.layer).present_inputs) & roots.keys()
        for tie in artifact.storage.ties:
            if tie.scratch == scratch_name(record.layer) and tie.buffer in read and not tie.preserved:
                found[roots[tie.buffer]] = step
    return found


def _size(artifact: Artifact, request: Request) -> int:
    """Return the size of a tensor without the bytes that fill its last cache line, or that of a layer's scratch."""
    if request.kind is BufferKind.SCRATCH or request.name == STATE_WORD:
        return request.size_bytes
    return min(request.size_bytes, artifact.graph.info(request.name).size_bytes)


def _steps(artifact: Artifact, groups: Mapping[str, int]) -> Iterator[OwnedStep]:
    begun = artifact.ends
    replaceable = {(each.output, each.input) for each in artifact.storage.overlaps}
    replaceable |= {(tie.scratch, tie.buffer) for tie in artifact.storage.ties if not tie.preserved}
    for index, record in enumerate(artifact.operators):
        layer = artifact.graph.layer(record.layer)
        # the last one counts: a byte of an output inside scratch is the output's
        writes = [name for name in (*artifact.storage.scratches(layer.name), *layer.outputs) if name in groups]
        replaced = [name for name in layer.present_inputs if any((output, name) in replaceable for output in writes)]
        yield OwnedStep(
            layer=record.layer,
            device=record.device if any(call.call in OF_DEVICES for call in record.device_calls) else None,
            begun=index in begun,
            reads=_numbers(layer.present_inputs, groups),
            writes=_numbers(writes, groups),
            replaces=_numbers(replaced, groups),
        )


def _late(artifact: Artifact, groups: Mapping[str, int]) -> OwnedStep:
    """Return the step after all layers: it copies outputs that are inputs or constants, and new values of states."""
    graph = artifact.graph
    outputs = [info.name for info in graph.results]
    constants = [name for name in outputs if graph.tensor(name).is_constant]
    states = [*(state.source for state in graph.states), STATE_WORD]
    return OwnedStep(
        layer="the copies of outputs",
        reads=_numbers([*outputs, *states], groups),
        writes=_numbers([*constants, *states], groups),
    )


def _numbers(names: Sequence[str], groups: Mapping[str, int]) -> tuple[int, ...]:
    """Return the buffers of those tensors that lie in the workspace."""
    return tuple(dict.fromkeys(groups[name] for name in names if name in groups))


# ---- the error


def ownership_error(plan: OwnershipPlan, found: Violated) -> OwnershipError:
    """Return the error for an access that the plan does not allow."""
    step = plan.steps[found.step] if 0 <= found.step < len(plan.steps) else OwnedStep(layer="")
    layer = step.layer
    where = f"in layer '{layer}' (step {found.step})" if layer else "outside of all layers"
    where = "in an inference whose layers are not announced" if found.step == UNANNOUNCED else where
    actor = "the core" if found.device is None else f"device {found.device}"
    verb = "writes" if found.write else "reads"
    access = f"{actor} {verb} {found.size_bytes} B at {address_text(found.address)}"
    if found.violation is Violation.DROPS:
        access = f"{actor} invalidates the line at {address_text(found.address)}"
    cause = f", asked for by {found.cause}" if found.cause else ""
    busy = [name for name in found.busy if name != found.device]
    note = f"; device {', '.join(busy)} is still at work" if busy else ""
    own = [plan.buffers[number] for number in (*step.reads, *step.writes)]
    operands = ", ".join(dict.fromkeys(f"'{each.name}'" for each in own)) or "nothing"
    tensor = _tensor(plan, found, own)
    which = f"tensor '{tensor}'" if tensor else "bytes of no tensor"
    reason = _REASONS[found.violation].format(which=which, own=operands)
    message = f"ownership: {where}, {access}{cause}: {reason}{note}"
    return OwnershipError(message, found, layer=layer, tensor=tensor)


def _tensor(plan: OwnershipPlan, found: Violated, own: Sequence[OwnedBuffer]) -> str:
    """Return the tensor at fault: the one that the byte holds, else the one that is placed there at this step."""
    if found.violation is Violation.WRITES_CONSTANT:
        return found.constant
    if found.holder is not None and found.violation is not Violation.WRITES_OUTSIDE:
        return plan.buffers[found.holder].name
    if found.target is not None:
        return plan.buffers[found.target].name
    near = [each for each in plan.buffers if 0 <= found.address - each.address < each.size_bytes]
    chosen = [each.name for each in near if each in own]
    if not chosen and found.holder is not None:
        return plan.buffers[found.holder].name
    return next(iter((*chosen, *(each.name for each in near if each.last >= found.step))), "")


_REASONS: Mapping[Violation, str] = {
    Violation.READS_NOTHING: "{which}, which was not written there in this inference",
    Violation.READS_OTHER: "they hold {which}, and the layer uses {own}",
    Violation.WRITES_OUTSIDE: "the layer has no output or scratch there, which is the place of {which}; it uses {own}",
    Violation.OVERWRITES: "they hold {which}, which is needed later",
    Violation.ACCESSES_BUSY: "{which} belongs to the device that runs the layer, until it is done",
    Violation.OUTSIDE_LAYER: "{which}, and the device runs no layer now",
    Violation.READS_STALE: "{which} was written by a device, and the data cache was not invalidated since",
    Violation.READS_UNCLEAN: "{which} was written by the core, and the data cache was not cleaned since",
    Violation.WRITES_UNDER: "{which}, and the data cache has a dirty line there, which may be written back later",
    Violation.DROPS: "{which} is needed, and the bytes that the core wrote are only in the data cache",
    Violation.WRITES_CONSTANT: "{which} is constant",
    Violation.SHARES_LINE: "the line has bytes of {which}, which a device wrote and the data cache does not have",
}
"""By violation: the reason in words; `own` are the operands of the layer."""
