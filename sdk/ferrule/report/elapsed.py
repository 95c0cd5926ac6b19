# SPDX-License-Identifier: Apache-2.0
"""Makes the report's part on time from the durations of runs: milliseconds, their error, deadlines and energy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from ferrule._frozen import frozen
from ferrule.boards import Board
from ferrule.codegen import Artifact
from ferrule.errors import FerruleError
from ferrule.report.base import part_of
from ferrule.report.duration import (
    CommandPart,
    DeadlinePart,
    DurationPart,
    ErrorPart,
    Judgement,
    LayerTimePart,
    PausePart,
    WaitPart,
)
from ferrule.report.energy import BatteryPart, EnergyPart
from ferrule.report.sections import plural
from ferrule.timing import DataWaits, Duration, core_timing
from ferrule.timing.energy import NO_ERROR, battery_life, energy_of
from ferrule.timing.evidence import model_error
from ferrule.timing.usage import Battery, Rate

CYCLES = "cycles"


@frozen
class TimeQuestions:
    """What a caller asks about the time of an inference."""

    deadline_s: Fraction | None = None
    """The most that an inference may take."""
    rate: Rate | None = None
    """How often an inference begins, which it must keep up with, too."""
    battery: Battery | None = None

    def limits(self) -> Iterator[tuple[str, Fraction]]:
        """Yield the names and the seconds of the limits of an inference's time."""
        if self.deadline_s is not None:
            yield "deadline", self.deadline_s
        if self.rate is not None:
            yield f"rate {self.rate}", 1 / self.rate.per_second


NO_QUESTIONS = TimeQuestions()


@frozen
class Timed:
    """What is known of the times of a run's inferences."""

    board: Board
    engine: str
    unit: str
    """Of the counts: "instructions", or "cycles"."""
    modelled: bool
    """Whether the unit is that of a model, and not of a chip."""
    durations: Sequence[Duration] | None
    """By sample; None if the engine cannot tell."""
    counted: Sequence[int]
    """By sample, what the firmware's own counter has counted."""


def duration_part(artifact: Artifact, timed: Timed, questions: TimeQuestions = NO_QUESTIONS) -> DurationPart:
    """Return the time of the inferences."""
    part = _elapsed(artifact, timed)
    if part.elapsed is None or timed.unit != CYCLES:
        return part
    clock_hz = timed.board.clock_hz
    part = replace(
        part,
        clock_hz=clock_hz,
        milliseconds=1e3 * part.elapsed / clock_hz,
        modelled=timed.modelled,
        error=_error(timed.board) if timed.modelled else None,
    )
    part = judged(part, questions)
    return replace(part, energy=_energy(timed.board, part, questions))


def judged(part: DurationPart, questions: TimeQuestions, longest: int | None = None) -> DurationPart:
    """Return the part with the judgements of limits, where it has milliseconds; another inference may be longer."""
    if part.longest is None or part.clock_hz is None:
        return part
    if longest is not None and longest > part.longest:
        part = replace(part, longest=longest, longest_sample=None)
    return replace(part, deadlines=tuple(_judged(part, name, limit_s) for name, limit_s in questions.limits()))


def waits_note(numbers: Mapping[DataWaits, int]) -> str:
    """Return what is to be said of where the waits for data of so many inferences come from; empty if nothing is."""
    repeated, estimated = (numbers.get(each, 0) for each in (DataWaits.REPEATED, DataWaits.ESTIMATED))
    if not repeated + estimated:
        return ""
    measured = f"the waits for data of {repeated + estimated} of {plural(sum(numbers.values()), 'inference')} are"
    if not estimated:
        return f"{measured} those of a measured one, with which they agree"
    return f"{measured} those of a measured one; {estimated} of them differ from it, so that their times are estimates"


def _elapsed(artifact: Artifact, timed: Timed) -> DurationPart:
    """Return the times in units of the clock."""
    found = timed.durations
    if found:
        totals = [each.total for each in found]
        names = [record.layer for record in artifact.operators]
        first = found[0]
        return DurationPart(
            unit=timed.unit,
            elapsed=first.total,
            work=first.work,
            asleep=first.asleep,
            waits=tuple(part_of(WaitPart, each) for each in first.waits),
            layers=tuple(
                part_of(LayerTimePart, each, layer=names[each.index], elapsed=each.total)
                for each in first.steps
                if each.index < len(names)
            ),
            commands=tuple(
                part_of(CommandPart, each, layer=names[each.index] if 0 <= each.index < len(names) else "")
                for each in first.commands
            ),
            pauses=tuple(part_of(PausePart, each) for each in first.pauses),
            longest=max(totals),
            longest_sample=totals.index(max(totals)),
            has_model=core_timing(timed.board.cpu.type) is not None,
            note=waits_note(Counter(each.data_waits for each in found)),
        )
    if timed.unit == CYCLES and not timed.modelled and not artifact.devices and timed.counted[0]:
        longest = max(timed.counted)
        return DurationPart(
            unit=CYCLES,
            elapsed=timed.counted[0],
            work=timed.counted[0],
            longest=longest,
            longest_sample=list(timed.counted).index(longest),
        )
    if timed.unit == CYCLES and artifact.devices:
        reason = "the board's counter stops while the core sleeps, as it may while it waits for a device"
    else:
        reason = f"engine {timed.engine} does not time runs; unicorn does"
    return DurationPart(note=f"the elapsed time is not known: {reason}")


def _error(board: Board) -> ErrorPart | None:
    """Return the error of the model's cycles on a board."""
    found = model_error(board.cpu.type, board.timing)
    return None if found is None else part_of(ErrorPart, found)


def _judged(part: DurationPart, name: str, limit_s: Fraction) -> DeadlinePart:
    """Compare the longest inference with a limit, exactly; the measured error counts against it."""
    assert part.longest is not None
    assert part.clock_hz is not None
    longest_s = Fraction(part.longest, part.clock_hz)
    high = Fraction(0) if part.error is None else Fraction(part.error.high)
    upper_s = max(longest_s, longest_s * (1 + high))
    unproved = part.modelled and part.error is None
    kept = Judgement.UNPROVED if unproved else Judgement.KEPT
    return DeadlinePart(
        name=name,
        limit_ms=float(1000 * limit_s),
        longest_ms=float(1000 * longest_s),
        upper_ms=float(1000 * upper_s),
        judgement=Judgement.MISSED if upper_s > limit_s else kept,
    )


def _energy(board: Board, part: DurationPart, questions: TimeQuestions) -> EnergyPart | None:
    """Return the energy; None if the board states no currents."""
    assert part.elapsed is not None
    if board.energy is None:
        return None
    asleep = part.asleep + sum(each.asleep for each in part.waits)
    busy: dict[str, int] = {}
    for each in part.commands:
        begun, done = each.begun, each.done
        known = each.end - each.start if begun is None or done is None else done - begun
        busy[each.device] = busy.get(each.device, 0) + known
    found = energy_of(
        board.energy,
        clock_hz=board.clock_hz,
        work_cycles=part.elapsed - asleep,
        asleep_cycles=asleep,
        device_cycles=busy,
        error=NO_ERROR if part.error is None else (part.error.low, part.error.high),
    )
    if found is None:
        return None
    energy = part_of(EnergyPart, found, parts=dict(found.parts))
    if questions.rate is None or questions.battery is None:
        return energy
    asked = replace(energy, rate=str(questions.rate), battery=str(questions.battery))
    try:
        lives = battery_life(
            board.energy,
            found,
            clock_hz=board.clock_hz,
            elapsed_cycles=part.elapsed,
            rate=questions.rate,
            battery=questions.battery,
        )
    except FerruleError as error:
        return replace(asked, note=str(error))
    return replace(
        asked,
        lives=tuple(
            BatteryPart(
                between=each.between,
                low_hours=each.hours[0],
                high_hours=each.hours[1],
                low_ua=each.average_ua[0],
                high_ua=each.average_ua[1],
                text=str(each),
            )
            for each in lives
        ),
    )
