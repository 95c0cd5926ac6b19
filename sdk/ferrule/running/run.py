# SPDX-License-Identifier: Apache-2.0
"""Runs a firmware on an engine and reports the result."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from numpy.typing import ArrayLike

from ferrule.emulation import Clock, DeviceWork, OwnershipError, OwnershipPlan, ownership_plan
from ferrule.emulation.attached import statistics
from ferrule.errors import FerruleError, NothingComparedError
from ferrule.firmware import BuiltFirmware
from ferrule.firmware.mlperf_tiny import CALIBRATION_APP
from ferrule.network.samples import beginnings, joined, pattern_sample, split
from ferrule.progress import Step
from ferrule.report import ContractPart, DifferencePart, RunReport, Verdict
from ferrule.report.assembly import EngineRun, assemble, layer_parts
from ferrule.report.base import part_of
from ferrule.report.locating import first_difference
from ferrule.running import claims
from ferrule.running.references import Begun, References
from ferrule.running.request import RunRequest
from ferrule.running.session import RunningFirmware
from ferrule.timing import Duration

if TYPE_CHECKING:
    from ferrule.running.compilation import Firmware

_Number = TypeVar("_Number", int, float)
_WRAP = 1 << 32
"""The counts of drivers on the board have 32 bits, and may have wrapped once."""


def run(
    firmware: Firmware, inputs: Sequence[ArrayLike] | Mapping[str, ArrayLike] | None, request: RunRequest
) -> RunReport:
    """Run the firmware, see `Firmware.run`.

    A model with state begins with its initial state, and keeps what each sample leaves for the next one, unless
    `reset_each` says that this one begins anew. The runs besides that of each sample begin with the initial state, too,
    and so does the first sample after them.

    The first sample runs twice: once with a count for each operator and once without, like the others. If device calls
    are traced, a run of the first sample with tracing precedes them. If ownership is checked in a firmware without
    devices, all samples but that run without a count have one, since only then the firmware announces its layers.
    """
    if firmware.job.app != "link":
        if firmware.job.app == CALIBRATION_APP:
            raise FerruleError("this firmware is for `ferrule calibrate`, which drives it (docs/calibrate.md)")
        raise FerruleError(
            f"this firmware is the application {firmware.job.app}, which does not answer Ferrule's link",
            hint="drive it by ferrule.testing.start, or by the runner of MLPerf Tiny (docs/mlperf_tiny.md)",
        )
    network = firmware.network
    given = [pattern_sample(network.inputs)] if inputs is None else split(network.inputs, inputs, real=request.real)
    begins = (True, *beginnings(len(given), request.reset_each)[1:])
    samples = list(zip(given, begins, strict=True))
    request = replace(request, engine=request.engine_for(firmware.board, firmware.program).name)
    done = _execute(firmware, request, samples)
    if done.ownership is not None and not done.ownership.accesses:
        raise NothingComparedError(
            "the check of ownership has seen no access to check: the firmware announced the layers of no inference",
            hint="build the firmware again with this version of ferrule, whose link announces them",
        )
    request.progress(Step(phase="comparing with the numpy reference"))
    expected = References(firmware, done.build)
    document = assemble(
        firmware,
        done,
        expected.of(samples),
        engine=str(request.engine),
        source=request.source or ("pattern" if inputs is None else "arrays"),
        trace=request.trace_devices,
        faults=request.faults,
        questions=request.questions,
    )
    document = expected.noted(document)
    if request.locate and document.verdict is Verdict.DIFFERENT:
        document = replace(document, first_difference=_located(firmware, request, samples))
    outputs = joined(network.outputs, [result.outputs for result in done.runs], real=request.real)
    return RunReport.of(document, outputs)


def _execute(firmware: BuiltFirmware, request: RunRequest, samples: Sequence[Begun]) -> EngineRun:
    """Run the samples; an error of ownership is found again with its exact instruction, which is slower."""
    if not request.check_ownership:
        return _serve(firmware, request, samples)
    plan = ownership_plan(firmware.artifact, firmware.image)
    exact = replace(plan, exact=True)
    if request.options.gdb is not None:
        return _serve(firmware, request, samples, exact)
    try:
        return _serve(firmware, request, samples, plan)
    except OwnershipError as error:
        found = error
        if not error.exact:
            try:
                _serve(firmware, request, samples, exact)
            except OwnershipError as again:
                found = again
            except FerruleError:
                pass
        raise found from error.__cause__


def _located(firmware: Firmware, request: RunRequest, samples: Sequence[Begun]) -> DifferencePart:
    """Repeat the run with every tensor as an output, in the same order, so that faults occur again."""
    try:
        again = firmware.observed(request.progress)
        done = _execute(again, request, samples)
    except FerruleError as error:
        return DifferencePart(note=f"not found, since the firmware with every tensor as an output fails: {error}")
    expected = References(again, done.build).of(samples)
    runs = [(run.outputs, each) for runs, each in zip(done.by_sample(), expected, strict=True) for run in runs]
    return first_difference(again.network, again.optimized, layer_parts(again, done), runs)


def _serve(
    firmware: BuiltFirmware,
    request: RunRequest,
    samples: Sequence[Begun],
    plan: OwnershipPlan | None = None,
) -> EngineRun:
    """Start the firmware and run the samples; with a plan, every access is compared with it."""
    started = time.perf_counter()
    phase = f"running on {firmware.board.name} by {request.engine}"
    request.progress(Step(phase=phase))
    uses = firmware.artifact.devices
    stateful, (first, begin) = bool(firmware.network.states), samples[0]
    announced = plan is not None and not uses
    with RunningFirmware(firmware, request, ownership=plan) as running, running.explaining():
        link, session, devices = running.link, running.session, running.machine.devices

        def driver_counts() -> dict[str, dict[str, int]]:
            return {use.device.name: link.statistics(use.index) for use in uses if use.driver.statistics}

        traced = link.run(first, trace=True, reset=stateful and begin) if request.trace_devices and uses else None
        work, counted, driven = session.device_work(), statistics(devices), driver_counts()
        profiled = link.run(first, profile=True, reset=stateful and begin)
        worked = session.device_work()
        if work is not None and worked is not None:
            worked = {key: each.plus(work.get(key, DeviceWork()), -1) for key, each in worked.items()}
        counts, own = _growth(counted, statistics(devices)), _growth(driven, driver_counts())
        runs = []
        durations: list[Duration] = []
        session.durations()
        for number, (sample, begin) in enumerate(samples, start=1):
            runs.append(link.run(sample, profile=announced and number > 1, reset=stateful and begin))
            claims.check_run(link.model_info(), runs[-1])
            durations += (session.durations() or ())[-1:]
            request.progress(Step(phase=phase, done=number, total=len(samples)))
        return EngineRun(
            info=link.model_info(),
            build=link.build_info(),
            profiled=profiled,
            runs=runs,
            traced=traced,
            counters=session.counters(),
            durations=durations if len(durations) == len(runs) else None,
            modelled=running.machine.clock is Clock.CYCLES,
            ownership=session.ownership(),
            work=worked,
            statistics=counts,
            driver_counts={
                device: {name: number % _WRAP for name, number in grown.items()} for device, grown in own.items()
            },
            run_s=time.perf_counter() - started,
            self_test=claims.self_test(firmware, link),
            contract=_contract(running, str(request.engine)),
            observations=session.observations(),
        )


def _contract(running: RunningFirmware, engine: str) -> ContractPart | None:
    """Return what the check of the devices' contract has covered; None without devices."""
    plan, counts = running.machine.contract, running.session.contract()
    if not (plan.devices or plan.unchecked):
        return None
    if plan.unchecked:
        return ContractPart(unchecked=plan.unchecked)
    if counts is None:
        return ContractPart(unchecked=f"engine {engine} does not check it; unicorn does")
    return part_of(ContractPart, counts)


def _growth(
    before: Mapping[str, Mapping[str, _Number]], after: Mapping[str, Mapping[str, _Number]]
) -> dict[str, dict[str, _Number]]:
    """Return by how much the counts of devices have grown."""
    return {
        device: {name: number - before[device].get(name, 0) for name, number in counts.items()}
        for device, counts in after.items()
    }
