# SPDX-License-Identifier: Apache-2.0
"""Calibrates a board: builds a firmware of small programs, measures them on the board, and fits its timing to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from ferrule._frozen import frozen
from ferrule._version import VERSION
from ferrule.emulation import Clock, EngineError, EngineOptions
from ferrule.errors import FerruleError
from ferrule.firmware import BuiltFirmware, Job
from ferrule.firmware.micro_programs import Group
from ferrule.firmware.mlperf_tiny import CALIBRATION_APP
from ferrule.link import LinkSession, LinkTimeoutError
from ferrule.progress import Progress, say_nothing
from ferrule.running.calibration.fit import fit
from ferrule.running.calibration.layers import calibration_network
from ferrule.running.calibration.measurement import THE_FIRMWARE, Counts, Programs, measure
from ferrule.running.calibration.prediction import predictor, require_model
from ferrule.running.compilation import Firmware
from ferrule.running.compilation import compile as compile_network
from ferrule.running.request import DEFAULT_OPTIONS, DEFAULT_TIMEOUT_S, engine_for
from ferrule.running.session import linked_machine
from ferrule.timing import BoardTiming, MemoryTiming

UNEXPLAINED = 0.25
"""The error of a program from which on a calibration says that no timing explains it."""
SERIAL = "serial"
MEASURING = (SERIAL, "unicorn")
"""The engines on which cycles can be counted."""


@frozen
class CalibrationRequest:
    """How a board is calibrated; every field has a usable default."""

    engine: str = SERIAL
    """The engine: serial for a real board, or unicorn for the emulated one, in cycles."""
    options: EngineOptions = DEFAULT_OPTIONS
    timeout_s: float = DEFAULT_TIMEOUT_S
    """Limit of one run of all programs, and of the wait for a board's first answer, in seconds."""
    repeats: int = 5
    """Number of runs, of which the least cycles of each program count."""
    progress: Progress = say_nothing


@frozen
class Calibration:
    """The timing of a board that explains what its programs took."""

    timing: BoardTiming
    measured: Counts
    predicted: Counts
    groups: Mapping[str, Group]
    """By program."""
    errors: Mapping[str, float]
    """By program, the predicted cycles less the measured ones, as a part of the measured ones."""
    candidates: int
    """Number of timings that were compared."""

    @property
    def unexplained(self) -> tuple[str, ...]:
        """The programs whose error is beyond `UNEXPLAINED`, the worst first."""
        beyond = [name for name, error in self.errors.items() if abs(error) > UNEXPLAINED]
        return tuple(sorted(beyond, key=lambda name: -abs(self.errors[name])))


def calibration_firmware(job: Job, progress: Progress = say_nothing) -> Firmware:
    """Build the firmware of a board's calibration; the job's application and models do not count.

    Raises:
        FerruleError: as `ferrule.compile`, or the core's cycles have no model.
    """
    require_model(job.load_board())
    return compile_network(calibration_network(), replace(job, app=CALIBRATION_APP), progress=progress)


def calibrate(firmware: BuiltFirmware, request: CalibrationRequest | None = None) -> Calibration:
    """Measure the programs of a firmware that `calibration_firmware` has built, and fit the board's timing to them.

    A real board has to have the firmware already.

    Raises:
        FerruleError: the engine cannot count cycles, or the board has another firmware, or no counter.
        EngineError: the board does not answer.
        LinkError: the port cannot be opened, or the board's answer violates the protocol.
    """
    request = request or CalibrationRequest()
    board, groups = firmware.board, Programs.of(firmware).groups
    measured = measured_counts(firmware, request)
    found = fit(measured, groups, board, predictor(firmware), request.progress)
    source = f"calibrated on {datetime.now(UTC):%Y-%m-%d} by ferrule {VERSION}, {len(measured)} programs"
    return Calibration(
        timing=BoardTiming(source=source, memories=_with_dma(found.memories, board.timing), residual=found.residual),
        measured=measured,
        predicted=found.predicted,
        groups={name: groups[name] for name in measured},
        errors=found.errors,
        candidates=found.candidates,
    )


def _with_dma(found: Mapping[str, MemoryTiming], stated: BoardTiming | None) -> Mapping[str, MemoryTiming]:
    """Return the timings with what the board states of devices' accesses, which no program measures."""
    if stated is None:
        return found
    return {
        name: replace(memory, dma_wait_states=stated.memory(name).dma_wait_states) for name, memory in found.items()
    }


def measured_counts(firmware: BuiltFirmware, request: CalibrationRequest) -> Counts:
    """Return the least cycles of each program on a board; raises as `calibrate`."""
    if request.engine not in MEASURING:
        raise FerruleError(
            f"a calibration needs cycles, which engine {request.engine} does not count",
            hint=f"engines that do: {', '.join(MEASURING)}",
        )
    chosen = engine_for(request.engine, firmware.board)
    clock = Clock.INSTRUCTIONS if request.engine == SERIAL else Clock.CYCLES
    machine = replace(linked_machine(firmware, {}), options=request.options, clock=clock)
    with chosen.start(machine) as session:
        link = LinkSession(session.channel(), run_timeout_s=request.timeout_s, start_timeout_s=request.timeout_s)
        try:
            return measure(link, firmware, repeats=request.repeats, progress=request.progress)
        except LinkTimeoutError as error:
            hint = f"{error.hint}; it has to have {THE_FIRMWARE}" if error.hint else None
            raise EngineError(str(error), hint=hint, report=session.crash_report(str(error))) from error
