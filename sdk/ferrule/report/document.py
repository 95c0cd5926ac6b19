# SPDX-License-Identifier: Apache-2.0
"""The parts of the report of a run as data; `ferrule.report.run_document` has the whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from enum import StrEnum

from ferrule._frozen import frozen
from ferrule.emulation.ownership import OwnershipCounts
from ferrule.firmware.arena import ArenaPart
from ferrule.graph import Rounding
from ferrule.link import CounterSource
from ferrule.report.estimates import EstimatePart
from ferrule.report.evidence import NO_EVIDENCE, Evidence
from ferrule.report.sections import (
    Conclusion,
    Fact,
    Only,
    State,
    Table,
    Text,
    joined,
    names,
    numbers,
    plural,
    runner,
    share,
)


class Verdict(StrEnum):
    """The result of comparing outputs with the numpy reference."""

    EXACT = "exact"
    """Equal bit for bit; a NaN equals a NaN."""
    WITHIN_BOUND = "within_bound"
    """float32 of other code than Ferrule's own C: each element within its bound; see `ferrule.report.verdicts`."""
    NOTHING_COMPARED = "nothing_compared"
    """No element that is a number was compared, such as where all are NaN: neither a success nor a difference."""
    DIFFERENT = "different"

    @property
    def agrees(self) -> bool:
        """Whether something was compared, and agrees with the reference."""
        return self not in {Verdict.NOTHING_COMPARED, Verdict.DIFFERENT}

    @property
    def words(self) -> str:
        """The verdict in words."""
        return self.replace("_", " ")

    @property
    def state(self) -> State:
        """How a reader is to take it."""
        return State.GOOD if self.agrees else State.BAD


@frozen
class ModelPart:
    """The model that ran."""

    name: str
    digest: str
    """SHA-256 of the network."""
    macs: int
    """Multiply-accumulates of one inference."""
    file: str = ""
    """The model's file, relative to the working folder, or its name; empty if it is not known."""


@frozen
class BuildPart:
    """How the firmware that ran was built, as it states itself; a text that it does not state is empty."""

    board: str
    """The board that it was built for; if the firmware does not state it, the board of the job."""
    cpu: str
    """The core of the job's board."""
    toolchain: str
    """The toolchain's name; empty if the firmware on a real board is another build than the job's."""
    toolchain_version: str
    optimization: str
    build_s: float | None
    """Wall-clock seconds of the compiler and the linker; None if the firmware is another build than the job's."""
    platform: str = ""
    flags: str = ""
    """The flags that select the core, and the optimization level."""
    model: str = ""
    """Digest of the network, as `ferrule verify` prints it, like those below."""
    plan: str = ""
    sources: str = ""

    @property
    def compiler(self) -> str:
        """The compiler and its level of optimization, in words; empty if neither is stated."""
        return joined(self.toolchain_version, self.optimization and f"-{self.optimization}", by=" ")

    @property
    def text(self) -> str:
        """How it was built, in words; they say so if the firmware on the board is another build than the job's."""
        if self.build_s is not None:
            return f"in {self.build_s:.1f} s by {self.compiler}"
        if not self.sources:
            return "the firmware does not state how"
        by = f" by {self.toolchain_version}" if self.toolchain_version else ""
        level = f" -{self.optimization}" if self.optimization else ""
        return f"for {self.platform} on {self.board}{by}{level}, as the firmware states; sources {self.sources}"


@frozen
class CountPart:
    """The instructions or cycles counted."""

    unit: str
    """"instructions" or "cycles"."""
    resolution: int
    """The counter\'s step; counts can be off by a few steps."""
    source: str
    """The counter: the emulator's cycle counter ("dwt") or a timer ("systick")."""
    per_inference: int
    """Count of one whole inference, without the per-layer measurement."""
    exact: bool = False
    """Whether every instruction is counted and nothing else; never on a real board, whose cycles vary."""
    modelled: bool = False
    """Whether the cycles are those of a model of the core, and not counted by a chip."""

    def fact(self, macs: int) -> Fact:
        """Return the count of an inference of so many multiply-accumulates."""
        label = f"{self.unit} per inference"
        if self.source == CounterSource.NONE:
            return Fact(label, "not counted: the firmware has no counter")
        ratio = f", {self.per_inference / macs:.2f} per MAC" if macs else ""
        counted = "by a model of the core" if self.modelled else "measured"
        exactness = "exact" if self.exact else counted if self.resolution <= 1 else f"in steps of {self.resolution}"
        return Fact(label, f"{self.per_inference:,}", f" ({exactness}, by {self.source}{ratio})")


@frozen
class DeviceWorkPart:
    """What the model of a device did in one inference."""

    read_bytes: int
    """Bytes that it read by DMA."""
    written_bytes: int
    busy: int
    """The time during which it was at work, in units of the clock; the core waits for it, unless other layers run
    meanwhile. For a layer with an `estimate`, the model's time is an estimate, too."""
    exact: bool = True
    """Whether every transfer and every instruction is counted, and nothing else."""


@frozen
class LayerPart:
    """One layer."""

    index: int
    name: str
    type: str
    backend: str
    kernel: str
    macs: int
    count: int
    """Count of the layer, in the unit of `CountPart`."""
    share: float
    """Share of the counts of all layers, 0 to 1."""
    constant_bytes: int
    scratch_bytes: int
    device: str = ""
    """Name of the device instance that ran the layer; the backend's name if no devices are declared."""
    beside: tuple[str, ...] = ()
    """The layers, begun before, that devices went on with; if one was collected after this layer, the count includes
    the wait."""
    work: DeviceWorkPart | None = None
    """What the device's model did for the layer; None without a model, or if the engine cannot tell."""
    rounding: str = Rounding.TFLM.value
    """The rule by which it requantises; "tflm" if it does not."""
    inputs: tuple[str, ...] = ()
    """The tensors that it reads, without constants; empty in a document of an older version."""
    outputs: tuple[str, ...] = ()
    """The tensors that it writes."""
    estimate: EstimatePart | None = None
    """What the compiler of a pre-compiled layer expects; None for other layers, or if it states nothing."""
    copies: tuple[str, ...] = ()
    """The tensors that it expects inside its scratch, but that the core copies to it or from it, with the reasons."""
    bound: int | None = None
    """Instructions that the best kernels known take at least for such a layer; null if none are known."""
    advice: str = ""
    """If it takes much more than `bound`: what would help, or why nothing does."""

    @property
    def runner(self) -> str:
        """The backend, followed by its device if that has another name."""
        return runner(self.backend, self.device)


@frozen
class FlashPart:
    """Read-only memory, in bytes."""

    code: int
    constants: int
    """Tables of code and kernels, and initial values of variables."""
    weights: int
    total: int


@frozen
class RamPart:
    """Writeable memory, in bytes."""

    workspace: int
    """The arenas of all models of the firmware, and their states."""
    stack_used: int
    """Deepest stack use of an inference, measured with a pattern written before it and checked after it."""
    stack_reserved: int
    stack_bound: int | None
    """An upper bound of its stack, under the assumptions in docs/boards.md; None if no bound is known."""
    stack_bound_reason: str
    """Why no bound is known; empty if one is."""
    link: int | None
    """Variables of the link to the host: its buffer and the layers' counters; None where `other` is."""
    fault_stack: int | None
    """The stack of the fault handler; None where `other` is."""
    other: int | None
    """Variables of the drivers and the start-up code; None where the flash's size is unknown. They contain the link and
    the fault handler's stack (and both are 0) if another build than the job's ran."""
    total: int | None


@frozen
class MemoryPart:
    """The memory that the firmware uses."""

    flash: FlashPart | None
    """None if the size is unknown: another build than the job's ran, and states no size, as Zephyr's does not."""
    ram: RamPart
    arena: ArenaPart
    """The model's own part of the workspace."""

    def facts(self) -> Iterator[Fact]:
        """Yield the memories and their parts."""
        flash, ram, arena = self.flash, self.ram, self.arena
        if flash is not None:
            parts = f" = code {flash.code:,} + constants {flash.constants:,} + weights {flash.weights:,}"
            yield Fact("flash", f"{flash.total:,} B", parts)
        parts = f"workspace {ram.workspace:,} + stack {ram.stack_used:,} used of {ram.stack_reserved:,}"
        if ram.total is None:
            yield Fact("RAM", parts)
        else:
            apart = f" + link {ram.link:,} + fault stack {ram.fault_stack:,}" if ram.link or ram.fault_stack else ""
            yield Fact("RAM", f"{ram.total:,} B", f" = {parts}{apart} + other {ram.other:,}")
        if ram.stack_bound is None:
            yield Fact("stack bound", "none", f": {ram.stack_bound_reason}")
        else:
            times = ram.stack_bound / max(ram.stack_used, 1)
            yield Fact("stack bound", f"{ram.stack_bound:,} B", f", {times:.2f} times the measured use")
        yield Fact("arena", f"{arena.size_bytes:,} B", f", {arena.certificate}", (arena.bounds,))
        if arena.state_bytes:
            yield Fact("state", f"{arena.state_bytes:,} B", " of the workspace, from one inference to the next")


@frozen
class DevicePart:
    """A device that runs layers through the device API."""

    name: str
    backend: str
    activation_lead: int
    """How many operators before its first one the device is activated."""
    memory_bytes: int
    """Size of its own memory; 0 if it uses the core's memory."""
    memory_used: int
    """The part of its own memory used by tensors and scratch."""
    layers: int = 0
    """Number of layers that it ran, including copies into and out of its memory."""
    count: int = 0
    """Count of these layers, in the unit of `CountPart`, on the core, which drives the device and waits for it."""
    share: float = 0.0
    """Share of the counts of all layers, 0 to 1."""
    work: DeviceWorkPart | None = None
    """What its model did, for layers and besides; None without a model, or if the engine cannot tell."""
    statistics: dict[str, int | float] = field(default_factory=dict)
    """The growth of its model's own counts in one inference, exact; see `DeviceModel.statistics`."""
    driver_counts: dict[str, int] = field(default_factory=dict)
    """The growth of its driver's own counts on the board in one inference; see `struct ferrule_driver`."""
    estimated: bool = False
    """Whether the time of its model is an estimate of that of the real device; the counts of this run are exact."""
    notes: tuple[str, ...] = ()
    """What was remarkable although the run has not failed, such as an interrupt that was masked; one sentence each."""
    registers: dict[str, int] = field(default_factory=dict)
    """The registers of its model at the end of the run, by name; empty unless there are notes."""

    def fact(self, unit: str) -> Fact:
        """Return what it did, in so many of a unit."""
        memory = f", {self.memory_used:,} of {self.memory_bytes:,} B" if self.memory_bytes else ""
        counts = (
            (self.statistics, "", " (exact, but for estimates)" if self.estimated else " (exact)"),
            (self.driver_counts, "by its driver: ", ""),
        )
        more = tuple(
            f"{before}{joined(*(f'{name} {value:,}' for name, value in found.items()))}{after}"
            for found, before, after in counts
            if found
        )
        took = took_text(self.layers, self.count, self.share, unit)
        return Fact(f"device {self.name}", self.backend, f", {took}{memory}", more)

    def conclusion(self) -> Conclusion:
        """Return that it has notes, which a verdict on the outputs does not say."""
        sentences = "; ".join(self.notes)
        return Conclusion(f"look at device {self.name}", State.WARN, f"{sentences[0].upper()}{sentences[1:]}.", "note")

    def remarks(self, *, only: Only | None = None) -> Iterator[Text]:
        """Yield what was remarkable, for some readers or all, and the registers then."""
        from ferrule.devices.register_text import registers_text

        for note in self.notes:
            yield Text(f"device {self.name}: {note}", "note", State.WARN, only=only)
        if self.registers:
            yield Text(registers_text(self.registers), f"registers of {self.name}")


def took_text(layers: int, count: int, part: float, unit: str) -> str:
    """Return the cost of layers in words; `part` is their share of all counts, 0 to 1."""
    return f"{plural(layers, 'layer')}, {count:,} {unit} ({share(part)})"


@frozen
class DeviceCallPart:
    """One device call."""

    operator: int
    """Index of the layer that the call belongs to."""
    layer: str
    device: str
    call: str
    """The kind of call: activate, open, copy_to, copy_from, run, close or deactivate."""
    status: int
    """0 for success, or a negative `enum ferrule_status`."""


@frozen
class DeviceTracePart:
    """The device calls of one run, in order."""

    calls: tuple[DeviceCallPart, ...]
    as_planned: bool
    """Whether the calls are exactly those that the generator scheduled, in the same order."""


@frozen
class SamplePart:
    """One inference."""

    index: int
    verdict: Verdict
    max_difference: float | None
    """The largest difference of an output element from the reference, in stored units for integers.

    None if it is undefined: only one of the two has a NaN or an infinity."""
    evidence: Evidence = NO_EVIDENCE


@frozen
class DifferencePart:
    """The place where a run first differs from the reference."""

    layer: str = ""
    """The first layer with an output that differs; empty if none was found, with the reason in `note`."""
    type: str = ""
    backend: str = ""
    device: str = ""
    tensor: str = ""
    """The output that differs."""
    max_difference: float | None = None
    """The largest difference, as in `SamplePart`."""
    note: str = ""

    @property
    def text(self) -> str:
        """The place in words."""
        if not self.layer:
            return self.note
        by = runner(self.backend, self.device)
        return f"layer '{self.layer}' ({self.type}) on {by}, tensor '{self.tensor}'{extent(self.max_difference, ', ')}"


def extent(difference: float | None, before: str = " ") -> str:
    """Return the largest difference in words, which begin with `before`; empty if it is undefined."""
    return "" if difference is None else f"{before}by up to {difference:g}"


@frozen
class OwnershipPart(OwnershipCounts):
    """What a check of ownership has covered; a run that breaks a rule ends with an error instead of a report."""

    @property
    def text(self) -> str:
        """What was checked, in words."""
        if not self.inferences:
            return "nothing was checked, since the firmware announced the layers of no inference"
        cache = ", without the lines of the data cache, which was off" if self.cacheable else ""
        cache = ", with the lines of the data cache" if self.cache else cache
        return (
            f"{self.inferences} inference(s) checked, {self.accesses:,} accesses of the core and "
            f"{self.transfers:,} transfers of devices{cache}: all allowed"
        )


@frozen
class ContractPart:
    """What the check of the devices' contract has covered; a run that breaks a rule ends with an error instead."""

    commands: int = 0
    """Commands of devices that were followed."""
    transfers: int = 0
    """Transfers of devices that were judged."""
    unchecked: str = ""
    """Why the contract was not checked; empty if it was."""


@frozen
class BoundPart:
    """How the floats of the firmware's own C, on this machine, compare with float64 and the bound of each element.

    Each layer of the network as it was given is compared from the inputs that the C had.
    """

    layers: int
    """Layers with floats."""
    elements: int
    """Elements of their outputs, of all samples."""
    outside: int
    unknown: int
    """Elements without a bound, such as sums that may overflow; they are not among `elements`."""
    first: str = ""
    """The first layer that is outside."""

    @property
    def text(self) -> str:
        """The counts in words."""
        counts = f"{self.elements:,} elements of {plural(self.layers, 'layer')}"
        rest = f", {self.unknown:,} without a bound" if self.unknown else ""
        if self.outside:
            return f"outside its bounds in {self.outside:,} of {counts}, first in '{self.first}'{rest}"
        return f"within its bounds: {counts}{rest}"


@frozen
class ReferencePart:
    """What the floats of a run were compared with."""

    bits: bool = False
    """Whether only the bits of the firmware's own C would do; otherwise, other code may be within its bounds."""
    reason: str = ""
    """Why that C did not run on this machine, so that the bits are not known; empty if it did."""
    bound: BoundPart | None = None
    """That C compared with float64; None if it did not run."""
    widest: float | None = None
    """The widest bound of an element of the outputs of other code, of those that have one; None where only bits do."""

    @property
    def text(self) -> str:
        """What the floats were compared with, in words."""
        widest = "" if self.widest is None else f" (the widest of an output is {self.widest:.3g})"
        if self.bound is None:
            return f"the bounds of each element{widest}, since the bits are not known: {self.reason}"
        rule = (
            "the bits of the firmware's C" if self.bits else f"the bits of its C, or the bounds of other code{widest}"
        )
        return f"{rule} on this machine, {self.bound.text}"


@frozen
class LayerRefusalsPart:
    """The reasons why backends did not get a layer."""

    layer: str
    reasons: dict[str, str]
    """By backend, in order of preference."""


def reasons_table(refusals: Iterable[tuple[str, str, str]]) -> Table:
    """Return the reasons, given as layer, backend and reason, each with its layers; those for most layers first."""
    layers: dict[tuple[str, str], list[str]] = {}
    for layer, backend, reason in refusals:
        layers.setdefault((backend, reason), []).append(layer)
    ordered = sorted(layers.items(), key=lambda each: -len(each[1]))
    return Table(
        "reasons",
        (*names("backend"), "reason", *numbers("layers"), "which"),
        [(*key, len(found), joined(*found)) for key, found in ordered],
    )
