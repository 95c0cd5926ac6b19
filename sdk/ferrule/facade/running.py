# SPDX-License-Identifier: Apache-2.0
"""Runs a firmware on an engine and reports what came out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ferrule._version import VERSION
from ferrule.boards import Board, load_board
from ferrule.devices import Fault
from ferrule.emulation import (
    Counters,
    Engine,
    EngineError,
    EngineOptions,
    Machine,
    Session,
    engine,
    engine_names,
    require_gdb,
)
from ferrule.errors import FerruleError
from ferrule.facade.attachment import attached_devices, attached_wires, check_faults, inject
from ferrule.facade.locating import ObservedRun, first_difference
from ferrule.facade.samples import Sample, pattern_sample, split
from ferrule.facade.step import Progress, Step
from ferrule.facade.tracing import device_parts, explained, trace_part
from ferrule.firmware import Group, Image
from ferrule.graph import Array
from ferrule.link import CounterSource, LinkRun, LinkSession, LinkTimeoutError, ModelInfo, RunFailedError
from ferrule.report import (
    BuildPart,
    CountPart,
    DifferencePart,
    FlashPart,
    LayerPart,
    MemoryPart,
    ModelPart,
    RamPart,
    ReportDocument,
    RunReport,
    SamplePart,
    Verdict,
    compare,
    worst,
)

if TYPE_CHECKING:
    from ferrule.facade.compilation import Firmware


def check_engine(name: str, board: str, options: EngineOptions | None = None) -> None:
    """Refuse an engine that is unknown, not installed, or lacks what it needs, before anything is built.

    Raises:
        FerruleError: see above; MissingToolError has the command that installs it.
    """
    chosen = _usable(name, load_board(board))
    if options is not None:
        lacking = chosen.lacks(options)
        if lacking is not None:
            raise lacking
        if options.gdb is not None:
            require_gdb(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Runs:
    """What the firmware gave: every sample's outputs, the first sample twice."""

    info: ModelInfo
    profiled: LinkRun
    """The first sample, with every operator's count."""
    runs: list[LinkRun]
    traced: LinkRun | None
    """The first sample once more, with the calls of devices, if they were asked for."""
    counters: Counters
    run_s: float


def run(
    firmware: Firmware,
    inputs: Sequence[Array] | Mapping[str, Array] | None,
    *,
    engine: str,
    options: EngineOptions,
    timeout_s: float,
    source: str | None,
    trace_devices: bool,
    faults: Mapping[str, Fault],
    locate: bool,
    progress: Progress,
) -> RunReport:
    """Run the firmware; see `Firmware.run`.

    The first sample runs twice: once with each operator counted, and once, as all others, without; and before, if the
    calls of devices are to be traced, once with these.
    """
    network = firmware.network
    samples = [pattern_sample(network.inputs)] if inputs is None else split(network.inputs, inputs)
    check_faults(firmware.artifact, faults)
    models = [use.name for use in firmware.artifact.devices if use.driver.model is not None]
    chosen = _usable(engine, firmware.board, models)
    _check_wires(chosen, firmware)
    if options.gdb is not None:
        require_gdb(engine)
    traced = trace_devices and bool(firmware.artifact.devices)
    _check_locate(chosen, locate=locate)

    def execute(what: Firmware) -> _Runs:
        return _execute(what, chosen, options, samples, timeout_s, progress, trace=traced, faults=faults)

    done = execute(firmware)
    progress(Step(phase="comparing with the numpy reference"))
    parts = []
    for index, (sample, result) in enumerate(zip(samples, done.runs, strict=True)):
        first = (done.traced, done.profiled) if index == 0 else ()
        parts.append(_sample_part(index, network.run(sample), [result, *(run for run in first if run is not None)]))
    layers = _layer_parts(firmware, done)
    verdict = worst(part.verdict for part in parts)
    document = ReportDocument(
        ferrule_version=VERSION,
        verdict=verdict,
        engine=engine,
        input=source or ("pattern" if inputs is None else "arrays"),
        model=ModelPart(name=network.name, digest=firmware.artifact.digest, macs=network.macs()),
        build=_build_part(firmware),
        count=_count_part(firmware.board, done),
        layers=layers,
        memory=_memory_part(firmware, done),
        run_s=done.run_s,
        samples=tuple(parts),
        devices=device_parts(firmware.artifact, layers),
        device_trace=trace_part(firmware.artifact, done.traced.calls if done.traced else ()) if trace_devices else None,
        faults=tuple(f"{device}: {fault}" for device, fault in faults.items()),
        first_difference=(
            _located(firmware, samples, execute, progress) if locate and verdict is Verdict.DIFFERENT else None
        ),
    )
    return RunReport(document=document, outputs=_stacked([result.outputs for result in done.runs]))


def _sample_part(index: int, expected: Sequence[Array], runs: Sequence[LinkRun]) -> SamplePart:
    """Return how the worst of some runs of a sample compares with the reference."""
    compared = [compare(run.outputs, expected) for run in runs]
    verdict = worst(each for each, _ in compared)
    extents = [extent for each, extent in compared if each is verdict]
    largest = None if None in extents else max(extent for extent in extents if extent is not None)
    return SamplePart(index=index, verdict=verdict, max_difference=largest)


def _check_locate(chosen: Engine, *, locate: bool) -> None:
    if locate and chosen.name == "serial":
        raise FerruleError(
            "where a real board begins to differ can't be located: that takes another firmware on it",
            hint="run the model on an emulated board",
        )


def _located(
    firmware: Firmware, samples: Sequence[Sample], execute: Callable[[Firmware], _Runs], progress: Progress
) -> DifferencePart:
    """Run everything once more with every tensor as an output, in the same order, so that faults strike again."""
    try:
        observed = firmware.observed(progress)
        done = execute(observed)
    except FerruleError as error:
        return DifferencePart(note=f"it can't be found out, with every tensor as an output: {error}")
    expected = [observed.network.run(sample) for sample in samples]
    first = [run for run in (done.traced, done.profiled) if run is not None]
    runs = [ObservedRun(outputs=run.outputs, expected=expected[0]) for run in first]
    runs += [ObservedRun(outputs=run.outputs, expected=each) for run, each in zip(done.runs, expected, strict=True)]
    return first_difference(observed.network, observed.optimized, _layer_parts(observed, done), runs)


def _usable(name: str, board: Board, models: Sequence[str] = ()) -> Engine:
    chosen = engine(name)
    missing = chosen.missing()
    if missing is not None:
        raise missing
    reason = chosen.refuses(board, models)
    if reason is not None:
        able = [each for each in engine_names() if engine(each).refuses(board, models) is None]
        raise FerruleError(
            f"engine {name} cannot run board {board.name}: {reason}",
            hint=f"engines that can: {', '.join(able)}" if able else None,
        )
    return chosen


def _check_wires(chosen: Engine, firmware: Firmware) -> None:
    names = [use.name for use in firmware.artifact.devices if use.driver.wire is not None]
    reason = chosen.refuses_wires(names) if names else None
    if reason is not None:
        raise FerruleError(f"engine {chosen.name} cannot run this firmware: {reason}")


def _execute(
    firmware: Firmware,
    chosen: Engine,
    options: EngineOptions,
    samples: Sequence[Sample],
    timeout_s: float,
    progress: Progress,
    *,
    trace: bool,
    faults: Mapping[str, Fault],
) -> _Runs:
    started = time.perf_counter()
    phase = f"running on {firmware.board.name} by {chosen.name}"
    progress(Step(phase=phase))

    def said(done: int) -> None:
        progress(Step(phase=phase, done=done, total=len(samples)))

    devices = attached_devices(firmware.artifact, firmware.image, faults)
    machine = Machine(
        board=firmware.board,
        elf=firmware.elf,
        devices=devices,
        wires=attached_wires(firmware.artifact),
        options=options,
    )
    with chosen.start(machine) as session:
        try:
            link = _connect(firmware, session, timeout_s)
            inject(devices, faults)
            return _serve(link, session, samples, said, started, trace=trace)
        except RunFailedError as error:
            raise explained(error, firmware.artifact) from error
        except LinkTimeoutError as error:
            report = session.crash_report(str(error))
            raise EngineError(str(error), hint=error.hint, report=report) from error


def _connect(firmware: Firmware, session: Session, timeout_s: float) -> LinkSession:
    link = LinkSession(session.channel(), run_timeout_s=timeout_s, start_timeout_s=timeout_s)
    _check_identity(firmware, link.model_info())
    return link


def _serve(
    link: LinkSession,
    session: Session,
    samples: Sequence[Sample],
    report: Callable[[int], None],
    started: float,
    *,
    trace: bool,
) -> _Runs:
    traced = link.run(samples[0], trace=True) if trace else None
    profiled = link.run(samples[0], profile=True)
    runs = []
    for number, sample in enumerate(samples, start=1):
        runs.append(link.run(sample, profile=False))
        report(number)
    return _Runs(
        info=link.model_info(),
        profiled=profiled,
        runs=runs,
        traced=traced,
        counters=session.counters(),
        run_s=time.perf_counter() - started,
    )


def _check_identity(firmware: Firmware, info: ModelInfo) -> None:
    if not firmware.artifact.digest.startswith(info.input_hash) or not info.input_hash:
        raise FerruleError(
            f"the firmware on the board was generated from another model ({info.name}, {info.input_hash})",
            hint="build and load the firmware again",
        )


def _stacked(results: Sequence[Sequence[Array]]) -> list[Array]:
    first = list(results[0])
    if len(results) == 1:
        return first
    return [np.concatenate([np.atleast_1d(result[index]) for result in results], axis=0) for index in range(len(first))]


def _build_part(firmware: Firmware) -> BuildPart:
    manifest = firmware.project.manifest
    return BuildPart(
        board=firmware.board.name,
        cpu=firmware.board.cpu.type,
        toolchain=manifest.toolchain,
        toolchain_version=firmware.toolchain_version,
        optimization=manifest.optimization,
        build_s=firmware.build_s,
    )


def _count_part(board: Board, done: _Runs) -> CountPart:
    scale = _scale(board, done.info)
    return CountPart(
        unit=done.counters.unit,
        resolution=round(done.counters.resolution),
        source=str(done.info.counter),
        per_inference=round(done.runs[0].total * scale),
    )


def _scale(board: Board, info: ModelInfo) -> float:
    """Return how many instructions one count of the firmware stands for."""
    if info.counter is CounterSource.SYSTICK and board.qemu is not None:
        return board.qemu.instructions_per_tick
    return 1.0


def _layer_parts(firmware: Firmware, done: _Runs) -> tuple[LayerPart, ...]:
    counts = [round(count * _scale(firmware.board, done.info)) for count in done.profiled.counters]
    whole = sum(counts) or 1
    return tuple(
        LayerPart(
            index=index,
            name=record.layer,
            type=record.type,
            backend=record.backend,
            kernel=record.kernel,
            macs=record.macs,
            count=count,
            share=count / whole,
            constant_bytes=record.constant_bytes,
            scratch_bytes=record.scratch_bytes,
            device=record.device,
        )
        for index, (record, count) in enumerate(zip(firmware.artifact.operators, counts, strict=True))
    )


def _memory_part(firmware: Firmware, done: _Runs) -> MemoryPart:
    image: Image = firmware.image
    groups = image.groups
    region = firmware.artifact.storage.plan.regions[0]
    reserved = groups[Group.STACK]
    return MemoryPart(
        flash=FlashPart(
            code=groups[Group.CODE],
            constants=groups[Group.CONSTANTS] + groups[Group.DATA],
            weights=groups[Group.WEIGHTS],
            total=image.flash_bytes,
        ),
        ram=RamPart(
            workspace=groups[Group.WORKSPACE],
            activations=region.activation_peak_bytes,
            activations_certificate=region.activation_certificate,
            stack_used=max(result.stack.peak_bytes for result in (done.profiled, *done.runs)),
            stack_reserved=reserved,
            other=groups[Group.DATA] + groups[Group.BSS],
            total=image.ram_bytes,
        ),
    )
