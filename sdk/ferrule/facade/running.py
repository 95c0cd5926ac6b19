# SPDX-License-Identifier: Apache-2.0
"""Runs a firmware on an engine and reports the result."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from numpy.typing import ArrayLike

from ferrule.boards import Board
from ferrule.codegen import DeviceUse, Program
from ferrule.devices import Fault
from ferrule.emulation import (
    AttachedDevice,
    DeviceWork,
    Engine,
    EngineError,
    EngineOptions,
    Machine,
    OwnershipError,
    OwnershipPlan,
    Session,
    engine,
    engine_names,
    ownership_plan,
    require_gdb,
    require_ownership,
)
from ferrule.emulation.attached import attached_devices, attached_wires, check_faults, failures, inject, statistics
from ferrule.emulation.contract import contract_plan
from ferrule.errors import FerruleError, NothingComparedError
from ferrule.facade import claims
from ferrule.facade.reference import References
from ferrule.firmware import Job, platform
from ferrule.link import DirectTensors, LinkSession, LinkTimeoutError, RunFailedError
from ferrule.network.samples import Sample, beginnings, joined, pattern_sample, split
from ferrule.progress import Progress, Step
from ferrule.report import ContractPart, DifferencePart, RunReport, Verdict
from ferrule.report.assembly import BuiltFirmware, EngineRun, Statistics, Work, assemble, layer_parts
from ferrule.report.locating import first_difference
from ferrule.report.tracing import explained


def check_engine(name: str, job: Job, options: EngineOptions | None = None, *, check_ownership: bool = False) -> None:
    """Check, before anything is built, that an engine can run a job's board here and has the options it needs.

    Raises:
        MissingToolError: the engine is not installed; the hint gives the command that installs it.
        FerruleError: the engine cannot run the board, or an option is missing or not supported.
    """
    chosen = _usable(name, job.load_board())
    if check_ownership:
        require_ownership(name)
    if options is not None:
        lacking = chosen.lacks(options)
        if lacking is not None:
            raise lacking
        if options.gdb is not None:
            require_gdb(name)


def run(
    firmware: BuiltFirmware,
    inputs: Sequence[ArrayLike] | Mapping[str, ArrayLike] | None,
    observed: Callable[[], BuiltFirmware],
    *,
    engine: str,
    options: EngineOptions,
    timeout_s: float,
    source: str | None,
    trace_devices: bool,
    faults: Mapping[str, Fault],
    locate: bool,
    check_ownership: bool,
    reset_each: bool | Sequence[bool],
    real: bool,
    progress: Progress,
) -> RunReport:
    """Run the firmware, see `Firmware.run`; `observed` builds it once more with every tensor as an output.

    A model with state begins with its initial state, and keeps what each sample leaves for the next one, unless
    `reset_each` says that this one begins anew. The runs besides that of each sample begin with the initial state, too,
    and so does the first sample after them.

    The first sample runs twice: once with a count for each operator and once without, like the others. If device calls
    are traced, a run of the first sample with tracing precedes them. If ownership is checked in a firmware without
    devices, all samples but that run without a count have one, since only then the firmware announces its layers.
    """
    network = firmware.network
    samples = [pattern_sample(network.inputs)] if inputs is None else split(network.inputs, inputs, real=real)
    begins = (True, *beginnings(len(samples), reset_each)[1:])
    check_faults(firmware.program, faults)
    chosen = engine_for(engine, firmware.board, firmware.program)
    if options.gdb is not None:
        require_gdb(engine)
    if check_ownership and firmware.program.single is None and firmware.program.devices:
        raise FerruleError(
            "ownership can't be checked in a firmware with several models and devices: the other models' runs announce "
            "layers, too",
            hint="check each model in a firmware of its own",
        )
    traced = trace_devices and bool(firmware.artifact.devices)
    _check_locate(chosen, locate=locate)
    if check_ownership:
        require_ownership(engine)

    def execute(what: BuiltFirmware) -> EngineRun:
        def once(plan: OwnershipPlan | None) -> EngineRun:
            resets = tuple(bool(network.states) and begin for begin in begins)
            return _execute(
                what, chosen, options, samples, resets, timeout_s, progress, trace=traced, faults=faults, plan=plan
            )

        return _checked(once, what, attended=options.gdb is not None) if check_ownership else once(None)

    done = execute(firmware)
    if done.ownership is not None and not done.ownership.accesses:
        raise NothingComparedError(
            "the check of ownership has seen no access to check: the firmware announced the layers of no inference",
            hint="build the firmware again with this version of ferrule, whose link announces them",
        )
    progress(Step(phase="comparing with the numpy reference"))
    expected = References(firmware, done.build)
    document = assemble(
        firmware,
        done,
        expected.of(samples, begins),
        engine=engine,
        source=source or ("pattern" if inputs is None else "arrays"),
        trace=trace_devices,
        faults=faults,
    )
    document = expected.noted(document)
    if locate and document.verdict is Verdict.DIFFERENT:
        document = replace(document, first_difference=_located(observed, samples, execute, begins))
    outputs = joined(network.outputs, [result.outputs for result in done.runs], real=real)
    return RunReport.of(document, outputs)


def _checked(once: Callable[[OwnershipPlan | None], EngineRun], what: BuiltFirmware, *, attended: bool) -> EngineRun:
    """Run with a check of ownership; an error is found again with its exact instruction, which is slower."""
    plan = ownership_plan(what.artifact, what.image)
    if attended:
        return once(replace(plan, exact=True))
    try:
        return once(plan)
    except OwnershipError as error:
        raise (error if error.exact else _exact(once, plan, error)) from error.__cause__


def _exact(
    once: Callable[[OwnershipPlan | None], EngineRun], plan: OwnershipPlan, error: OwnershipError
) -> OwnershipError:
    """Return the error of another run with its exact instruction, or the first if the fault does not occur again."""
    try:
        once(replace(plan, exact=True))
    except OwnershipError as again:
        return again
    except FerruleError:
        return error
    return error


def _check_locate(chosen: Engine, *, locate: bool) -> None:
    if locate and chosen.name == "serial":
        raise FerruleError(
            "the first differing layer can't be located on a real board: that needs a second firmware on it",
            hint="run the model on an emulated board",
        )


def _located(
    observed: Callable[[], BuiltFirmware],
    samples: Sequence[Sample],
    execute: Callable[[BuiltFirmware], EngineRun],
    begins: Sequence[bool],
) -> DifferencePart:
    """Repeat the run with every tensor as an output, in the same order, so that faults occur again."""
    try:
        again = observed()
        done = execute(again)
    except FerruleError as error:
        return DifferencePart(note=f"not found, since the firmware with every tensor as an output fails: {error}")
    expected = References(again, done.build).of(samples, begins)
    runs = [(run.outputs, each) for runs, each in zip(done.by_sample(), expected, strict=True) for run in runs]
    return first_difference(again.network, again.optimized, layer_parts(again, done), runs)


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


def engine_for(name: str, board: Board, program: Program) -> Engine:
    """Return an engine; raises as `check_engine` does, also if it cannot attach the models of the devices."""
    chosen = _usable(name, board, [use.name for use in program.devices if use.driver.model is not None])
    names = [use.name for use in program.devices if use.driver.wire is not None]
    reason = chosen.refuses_wires(names) if names else None
    if reason is not None:
        raise FerruleError(f"engine {chosen.name} cannot run this firmware: {reason}")
    return chosen


def _execute(
    firmware: BuiltFirmware,
    chosen: Engine,
    options: EngineOptions,
    samples: Sequence[Sample],
    resets: Sequence[bool],
    timeout_s: float,
    progress: Progress,
    *,
    trace: bool,
    faults: Mapping[str, Fault],
    plan: OwnershipPlan | None,
) -> EngineRun:
    started = time.perf_counter()
    phase = f"running on {firmware.board.name} by {chosen.name}"
    progress(Step(phase=phase))

    def said(done: int) -> None:
        progress(Step(phase=phase, done=done, total=len(samples)))

    devices = attached_devices(firmware.artifact, firmware.image, faults, program=firmware.program)
    machine = Machine(
        board=linked_board(firmware),
        elf=firmware.image.path,
        devices=devices,
        wires=attached_wires(firmware.program),
        options=options,
        ownership=plan,
        contract=contract_plan(firmware.program, firmware.image),
        callback_s=timeout_s,
    )
    with chosen.start(machine) as session:
        try:
            link = connect(firmware, session, timeout_s)
            reach_tensors(firmware, session, link, machine)
            inject(devices, faults)
            announced = plan is not None and not firmware.artifact.devices
            done = _serve(
                link,
                session,
                devices,
                samples,
                resets,
                said,
                started,
                uses=firmware.artifact.devices,
                trace=trace,
                announced=announced,
            )
            done = replace(
                done,
                self_test=claims.self_test(firmware, link),
                contract=_contract(machine, session, chosen.name),
                observations=session.observations(),
            )
        except RunFailedError as error:
            raise explained(error, firmware.artifact, failures(devices)) from error
        except LinkTimeoutError as error:
            report = session.crash_report(str(error))
            raise EngineError(str(error), hint=error.hint, report=report) from error
    return done


def _contract(machine: Machine, session: Session, engine: str) -> ContractPart | None:
    """Return what the check of the devices' contract has covered; None without devices."""
    plan, counts = machine.contract, session.contract()
    if not (plan.devices or plan.unchecked):
        return None
    if plan.unchecked:
        return ContractPart(unchecked=plan.unchecked)
    if counts is None:
        return ContractPart(unchecked=f"engine {engine} does not check it; unicorn does")
    return ContractPart(commands=counts.commands, transfers=counts.transfers)


def linked_board(firmware: BuiltFirmware) -> Board:
    """Return the board with its link on the UART that the firmware uses for it."""
    board, chosen = firmware.board, platform(firmware.project.manifest.platform)
    return replace(board, link_uart=chosen.link_uart(firmware.program, board))


def connect(firmware: BuiltFirmware, session: Session, timeout_s: float) -> LinkSession:
    """Return the link to a firmware that runs; FerruleError if it is another one."""
    link = LinkSession(session.channel(), run_timeout_s=timeout_s, start_timeout_s=timeout_s)
    claims.choose_model(firmware, link)
    claims.self_test(firmware, link)
    claims.check_claims(firmware, link.model_info(), link.build_info())
    return link


def reach_tensors(firmware: BuiltFirmware, session: Session, link: LinkSession, machine: Machine) -> None:
    """Let inputs and outputs bypass the link where the engine reaches the firmware's memory.

    They do not where ownership is checked: the core must write inputs to its data cache and read outputs through it, or
    no missing maintenance of these is found.
    """
    if machine.options.through_link or machine.ownership is not None:
        return
    memory, model = session.memory(), f"ferrule_{firmware.artifact.symbol}_link_model"
    if memory is not None and firmware.image.has(model):
        link.use_direct(DirectTensors.of(memory, firmware.image.address_of(model)))


def _serve(
    link: LinkSession,
    session: Session,
    devices: Sequence[AttachedDevice],
    samples: Sequence[Sample],
    resets: Sequence[bool],
    report: Callable[[int], None],
    started: float,
    *,
    uses: Sequence[DeviceUse],
    trace: bool,
    announced: bool,
) -> EngineRun:
    traced = link.run(samples[0], trace=True, reset=resets[0]) if trace else None
    before, counted, driven = session.device_work(), statistics(devices), _driver_counts(link, uses)
    profiled = link.run(samples[0], profile=True, reset=resets[0])
    work, counts = _worked(before, session.device_work()), _grown(counted, statistics(devices))
    own = _passed(driven, _driver_counts(link, uses))
    runs = []
    for number, (sample, reset) in enumerate(zip(samples, resets, strict=True), start=1):
        runs.append(link.run(sample, profile=announced and number > 1, reset=reset))
        claims.check_run(link.model_info(), runs[-1])
        report(number)
    return EngineRun(
        info=link.model_info(),
        build=link.build_info(),
        profiled=profiled,
        runs=runs,
        traced=traced,
        counters=session.counters(),
        ownership=session.ownership(),
        work=work,
        statistics=counts,
        driver_counts=own,
        run_s=time.perf_counter() - started,
    )


def _driver_counts(link: LinkSession, uses: Sequence[DeviceUse]) -> dict[str, dict[str, int]]:
    """Return the present counts of the drivers that have some, by device."""
    return {use.device.name: link.statistics(use.index) for use in uses if use.driver.statistics}


def _passed(
    before: Mapping[str, Mapping[str, int]], after: Mapping[str, Mapping[str, int]]
) -> dict[str, dict[str, int]]:
    """Return the growths of counts of 32 bits, which may have wrapped once."""
    return {
        device: {name: (number - before[device].get(name, 0)) % (1 << 32) for name, number in counts.items()}
        for device, counts in after.items()
    }


def _worked(before: Work | None, after: Work | None) -> Work | None:
    """Return what devices did in between; None if the engine cannot tell."""
    if before is None or after is None:
        return None
    return {key: work.plus(before.get(key, DeviceWork()), -1) for key, work in after.items()}


def _grown(before: Statistics, after: Statistics) -> Statistics:
    return {
        device: {name: number - before[device].get(name, 0) for name, number in found.items()}
        for device, found in after.items()
    }
