# SPDX-License-Identifier: Apache-2.0
"""Assembles the report of a run from the firmware, the engine's results and the numpy reference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ferrule._frozen import frozen
from ferrule._version import VERSION
from ferrule.devices import Fault
from ferrule.emulation import Counters, DeviceWork, Observation, OwnershipCounts
from ferrule.errors import FerruleError
from ferrule.firmware import BuiltFirmware, StackBound, planned_time
from ferrule.firmware.arena import arena_of
from ferrule.firmware.identification import linked_sizes, read_identities
from ferrule.link import BuildInfo, CounterSource, LinkRun, ModelInfo, SelfTest
from ferrule.report.advice import advice
from ferrule.report.base import part_of
from ferrule.report.document import (
    BuildPart,
    ContractPart,
    CountPart,
    DeviceWorkPart,
    FlashPart,
    LayerPart,
    LayerRefusalsPart,
    MemoryPart,
    ModelPart,
    OwnershipPart,
    RamPart,
    SamplePart,
)
from ferrule.report.elapsed import NO_QUESTIONS, Timed, TimeQuestions, duration_part
from ferrule.report.estimates import estimate_part
from ferrule.report.evidence import Evidence, evidence_of
from ferrule.report.islands import islands_of
from ferrule.report.plans import firmware_plan
from ferrule.report.run_document import ReportDocument
from ferrule.report.surroundings import environment
from ferrule.report.timeline import timeline
from ferrule.report.tracing import device_parts, trace_part
from ferrule.report.verdicts import Expected, judge, worst
from ferrule.timing import Duration

Work = Mapping[tuple[str, int | None], DeviceWork]
"""What devices did, by device and operator; see `Session.device_work`."""
Statistics = Mapping[str, Mapping[str, int | float]]
"""The counts of device models, by device and name."""


@frozen
class EngineRun:
    """An engine's results for a firmware: the runs of all samples, with extra runs of the first sample."""

    info: ModelInfo
    build: BuildInfo | None
    """The firmware's statement of its build; None if it makes none."""
    profiled: LinkRun
    """The run of the first sample with a count per operator."""
    runs: Sequence[LinkRun]
    traced: LinkRun | None
    """Another run of the first sample with its device calls, if they were requested."""
    counters: Counters
    durations: Sequence[Duration] | None
    """The times of `runs`; None if the engine cannot tell."""
    modelled: bool
    """Whether time was counted by a model of the core's cycles."""
    run_s: float
    self_test: SelfTest | None
    """The result of the firmware's self-test; None if it has none."""
    ownership: OwnershipCounts | None
    """What the check of ownership has covered; None without it."""
    contract: ContractPart | None
    """What the check of the devices' contract has covered; None without devices."""
    observations: Mapping[str, Observation]
    """What was remarkable about devices."""
    work: Work | None
    """What devices did in the profiled run; None if the engine cannot tell."""
    statistics: Statistics
    """The counts of device models for that run."""
    driver_counts: Mapping[str, Mapping[str, int]]
    """Those of the drivers on the board."""

    def by_sample(self) -> Iterator[list[LinkRun]]:
        """Yield all runs of each sample, in the order of execution."""
        for index, run in enumerate(self.runs):
            first = (self.traced, self.profiled) if index == 0 else ()
            yield [*(other for other in first if other is not None), run]


def assemble(
    firmware: BuiltFirmware,
    done: EngineRun,
    expected: Iterable[Expected],
    *,
    engine: str,
    source: str,
    trace: bool = False,
    faults: Mapping[str, Fault] | None = None,
    questions: TimeQuestions = NO_QUESTIONS,
) -> ReportDocument:
    """Return the report of a run; `expected` has the reference outputs for each sample.

    `source` names the origin of the inputs; `trace` includes the device calls in the report.
    """
    artifact, network = firmware.artifact, firmware.network
    samples = tuple(_samples(done, expected))
    layers, count, build = layer_parts(firmware, done), _count(done), _build(firmware, done.build)
    counted = [round(each.total * _scale(done)) for each in done.runs]
    timed = Timed(
        board=firmware.board,
        engine=engine,
        unit=count.unit,
        modelled=done.modelled,
        durations=done.durations,
        counted=counted if done.info.counter is not CounterSource.NONE else [0],
    )
    duration = duration_part(artifact, timed, questions)
    return ReportDocument(
        ferrule_version=VERSION,
        verdict=worst(part.verdict for part in samples),
        engine=engine,
        input=source,
        model=ModelPart(name=network.name, digest=artifact.digest, macs=network.macs()),
        build=build,
        count=count,
        duration=duration,
        layers=layers,
        memory=_memory(firmware, done, is_own=build.build_s is not None),
        self_test="" if done.self_test is None else done.self_test.name.lower(),
        run_s=done.run_s,
        samples=samples,
        evidence=sum((part.evidence for part in samples), Evidence(layers=len(layers))),
        devices=device_parts(
            artifact,
            layers,
            _total_work(done),
            done.statistics,
            done.driver_counts,
            done.observations,
            count.unit,
        ),
        contract=done.contract,
        device_trace=trace_part(artifact, done.traced.calls if done.traced else ()) if trace else None,
        ownership=None if done.ownership is None else part_of(OwnershipPart, done.ownership),
        faults=tuple(f"{device}: {fault}" for device, fault in (faults or {}).items()),
        plan=firmware_plan(artifact),
        timeline=timeline(layers, [use.device.name for use in artifact.devices], duration, exact=count.exact),
        refusals=_refusals(firmware),
        islands=islands_of(artifact, planned_time(artifact, firmware.board)),
        environment=environment(),
    )


def _refusals(firmware: BuiltFirmware) -> tuple[LayerRefusalsPart, ...]:
    """Return why backends did not get layers, of the model as given and as it runs, in the order of the layers.

    A backend that only a hint names precedes the others, as it does for that layer.
    """
    given = (*firmware.network.layers, *firmware.optimized.graph.layers)
    ranks = {name: rank for rank, name in enumerate(firmware.job.backends)}
    found: dict[str, dict[str, str]] = {layer.name: {} for layer in given}
    refusals = firmware.optimized.refusals.items()
    for (layer, backend), reason in sorted(refusals, key=lambda each: ranks.get(str(each[0][1]), -1)):
        if layer in found:
            found[layer][str(backend)] = reason
    return tuple(LayerRefusalsPart(layer=layer, reasons=reasons) for layer, reasons in found.items() if reasons)


def layer_parts(firmware: BuiltFirmware, done: EngineRun) -> tuple[LayerPart, ...]:
    """Return the description and the cost of each layer, in the order of execution."""
    scale, operators = _scale(done), firmware.artifact.operators
    counts = [round(count * scale) for count in done.profiled.counters]
    whole = sum(counts) or 1
    layers = [firmware.artifact.graph.layer(record.layer) for record in operators]
    works = {place: part_of(DeviceWorkPart, work) for place, work in (done.work or {}).items()}
    return tuple(
        part_of(
            LayerPart,
            record,
            index=index,
            name=record.layer,
            count=count,
            share=count / whole,
            beside=beside,
            work=works.get((record.device, index)),
            rounding=layer.rounding.value,
            inputs=tuple(each for each in layer.present_inputs if not firmware.artifact.graph.tensor(each).is_constant),
            outputs=tuple(layer.outputs),
            estimate=estimate_part(layer),
            copies=tuple(copy.text for copy in record.copies),
            advice=advice(record, count, whole) if done.counters.unit == "instructions" else "",
        )
        for index, (record, layer, count, beside) in enumerate(
            zip(operators, layers, counts, firmware.artifact.beside, strict=True)
        )
    )


def _total_work(done: EngineRun) -> Mapping[str, DeviceWorkPart]:
    """Return the work of each device, including what was not for a layer."""
    totals: dict[str, DeviceWork] = {}
    for (device, _), work in (done.work or {}).items():
        totals[device] = totals.get(device, DeviceWork()).plus(work)
    return {device: part_of(DeviceWorkPart, work) for device, work in totals.items()}


def _samples(done: EngineRun, expected: Iterable[Expected]) -> Iterator[SamplePart]:
    """Yield the comparison of each sample's worst run with the reference."""
    for index, (runs, reference) in enumerate(zip(done.by_sample(), expected, strict=True)):
        compared = [judge(run.outputs, reference) for run in runs]
        evidence = evidence_of(runs[-1].outputs, reference.outputs)
        verdict = worst(each for each, _ in compared)
        extents = [extent for each, extent in compared if each is verdict]
        largest = None if None in extents else max(extent for extent in extents if extent is not None)
        yield SamplePart(index=index, verdict=verdict, max_difference=largest, evidence=evidence)


def _build(firmware: BuiltFirmware, build: BuildInfo | None) -> BuildPart:
    """Return the image's own statements, and what is known of the job's build if the image is that build."""
    board, is_own = firmware.board, build in read_identities(firmware.image)
    levels = [flag.removeprefix("-") for flag in ("" if build is None else build.flags).split() if flag[:2] == "-O"]
    return part_of(
        BuildPart,
        build,
        board=(build and build.board) or board.name,
        cpu=board.cpu.type,
        toolchain=firmware.toolchain if is_own else "",
        toolchain_version=firmware.toolchain_version if is_own else "" if build is None else build.compiler,
        optimization="".join(levels[-1:]),
        build_s=firmware.build_s if is_own else None,
    )


def _count(done: EngineRun) -> CountPart:
    instructions = done.counters.unit == "instructions"
    return CountPart(
        unit=done.counters.unit,
        resolution=round(done.counters.resolution),
        source=str(done.info.counter),
        per_inference=round(done.runs[0].total * _scale(done)),
        exact=done.info.counter is CounterSource.DWT and instructions and done.counters.resolution <= 1,
        modelled=done.modelled,
    )


def _scale(done: EngineRun) -> float:
    """Return the number of instructions or cycles per count of the firmware's counter."""
    return done.counters.per_tick if done.info.counter is CounterSource.SYSTICK else 1.0


def _memory(firmware: BuiltFirmware, done: EngineRun, *, is_own: bool) -> MemoryPart:
    """Return the memory used; FerruleError if the run used more stack than the bound of the job's build, if it ran."""
    reserved = done.info.stack_bytes
    sizes = None if done.build is None else done.build.sizes
    if sizes is None and is_own:
        sizes = linked_sizes(firmware.image, firmware.program.workspace_bytes)
    used = max(result.stack.peak_bytes for result in (done.profiled, *done.runs))
    bound = firmware.image.stack if is_own else StackBound(reason="the firmware is another build than the job's")
    if bound.size_bytes is not None and used > bound.size_bytes:
        raise FerruleError(
            f"the run used {used:,} B of stack, and the bound from the call graph is {bound.size_bytes:,} B",
            hint="docs/boards.md lists what the bound assumes, such as interrupts of one priority",
        )
    flash, workspace, other, total = None, done.info.workspace_bytes, None, None
    link = fault_stack = None
    if sizes is not None:
        code, constants, weights, data, bss, workspace, stack = sizes
        flash = FlashPart(
            code=code, constants=constants + data, weights=weights, total=code + constants + weights + data
        )
        total = data + bss + workspace + stack
        link, fault_stack = (firmware.image.link_bytes, firmware.image.fault_stack_bytes) if is_own else (0, 0)
        other = total - workspace - reserved - link - fault_stack
    return MemoryPart(
        flash=flash,
        ram=RamPart(
            workspace=workspace,
            stack_used=used,
            stack_reserved=reserved,
            stack_bound=bound.size_bytes,
            stack_bound_reason=bound.reason,
            link=link,
            fault_stack=fault_stack,
            other=other,
            total=total,
        ),
        arena=arena_of(firmware.artifact, firmware.job),
    )
