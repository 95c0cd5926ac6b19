# SPDX-License-Identifier: Apache-2.0
"""The time of an inference in a report: its milliseconds and error, the judgement of limits, and energy."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import cast

import pytest
from saved_documents import run_document

from ferrule.boards import Board, load_board
from ferrule.codegen import Artifact
from ferrule.report.base import Case, Outcome, Rule
from ferrule.report.comparison import compare_documents
from ferrule.report.duration import DurationPart, Judgement, WaitPart
from ferrule.report.elapsed import NO_QUESTIONS, Timed, TimeQuestions, duration_part, judged
from ferrule.report.html import html_page
from ferrule.report.limits import parse_limits
from ferrule.report.sections import Picture, Strip
from ferrule.report.writers.markdown import markdown_text
from ferrule.timing import BoardTiming, DataWaits, Duration, Wait, evidence
from ferrule.timing.energy import BoardEnergy, Current, DeviceCurrents
from ferrule.timing.evidence import MeasuredError
from ferrule.timing.usage import parse_battery, parse_rate

SLEEPS = Duration(total=1_000, work=600, asleep=0, waits=(Wait(device="npu0", awake=50, asleep=350, waits=2),))
MEASURED = MeasuredError(low=-0.0625, high=0.125, median=0.04, figures=9, sources=3)


class _NoDevices:
    """As much of an artifact as times need."""

    operators = ()
    devices = ()


ALONE = cast("Artifact", _NoDevices())


@pytest.fixture
def board() -> Board:
    """25 MHz."""
    return load_board("mps2-an386")


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the core have a measured error."""
    monkeypatch.setattr(evidence, "measured_error", lambda core, *, waits: None if waits else MEASURED)


def timed(board: Board, *durations: Duration, unit: str = "cycles") -> Timed:
    """Return what is known of inferences that a model of the core has timed."""
    return Timed(
        board=board,
        engine="unicorn",
        unit=unit,
        modelled=unit == "cycles",
        durations=durations,
        counted=[each.work for each in durations],
    )


def asked(milliseconds: str) -> TimeQuestions:
    """Return the question for a deadline."""
    return TimeQuestions(deadline_s=Fraction(milliseconds) / 1000)


def test_a_report_says_which_waits_are_repeated(board: Board) -> None:
    measured, repeated, estimated = (replace(SLEEPS, data_waits=each) for each in DataWaits)
    assert not duration_part(ALONE, timed(board, measured, measured)).note
    same = "the waits for data of 2 of 3 inferences are those of a measured one, with which they agree"
    assert duration_part(ALONE, timed(board, measured, repeated, repeated)).note == same
    other = "the waits for data of 2 of 2 inferences are those of a measured one; 1 of them differ from it, so that"
    assert duration_part(ALONE, timed(board, repeated, estimated)).note == f"{other} their times are estimates"


def test_milliseconds_follow_from_the_cycles_and_their_error(board: Board, measured: None) -> None:
    del measured
    part = duration_part(ALONE, timed(board, SLEEPS))
    assert part.elapsed == part.work + part.asleep + sum(each.total for each in part.waits) == 1_000
    assert part.milliseconds == 0.04
    assert part.range_ms == (0.04 * 0.9375, 0.04 * 1.125)
    assert part.text == "0.04 ms at 25 MHz, -7 % to +13 %"
    elapsed_, error = part.facts()
    assert elapsed_.value + elapsed_.note == "0.04 ms = 1,000 cycles at 25 MHz, -7 % to +13 %"
    assert "core at work 600 (60.0%), waiting for npu0 400 (40.0%)" in elapsed_.more
    assert error.note == ", median 4 %, of 9 public measurements in 3 sources"


def test_a_page_draws_the_parts_of_the_time(board: Board) -> None:
    slept = Duration(total=1_100, work=600, asleep=100, waits=SLEEPS.waits)
    (picture,) = duration_part(ALONE, timed(board, slept)).sections()
    assert isinstance(picture, Picture)
    assert isinstance(picture.data, Strip)
    assert picture.data.unit == "cycles"
    assert picture.data.parts == {
        "core at work": 600,
        "core asleep": 100,
        "waiting for npu0, awake": 50,
        "waiting for npu0, asleep": 350,
    }
    assert list(duration_part(ALONE, timed(board, Duration(total=9, work=9, asleep=0, waits=()))).sections()) == []
    page = html_page(replace(run_document(), duration=duration_part(ALONE, timed(board, slept))))
    assert "Elapsed: 1,100 cycles" in page
    assert 'title="core asleep: 100 cycles"' in page
    assert 'title="code: ' in page
    assert "cycles" not in page.split('title="code: ')[1].split('"')[0]


def test_a_core_without_evidence_has_no_measured_error(board: Board) -> None:
    part = replace(duration_part(ALONE, timed(board, SLEEPS)), error=None)
    assert part.text == "0.04 ms at 25 MHz, no measured error"
    assert part.range_ms is None


def test_a_calibrated_board_has_the_error_that_is_left(board: Board) -> None:
    timing = BoardTiming(source="calibrated", memories={}, residual=(-0.02, 0.03))
    part = duration_part(ALONE, timed(replace(board, timing=timing), SLEEPS))
    assert part.error is not None
    assert part.text == "0.04 ms at 25 MHz, -3 % to +3 %"
    assert "calibration" in part.error.origin


def test_instructions_are_no_milliseconds(board: Board) -> None:
    """The clock of cycles is named, where the core has a model."""
    part = duration_part(ALONE, timed(board, SLEEPS, unit="instructions"))
    assert (part.elapsed, part.milliseconds, part.text) == (1_000, None, "")
    (remark,) = part.remarks()
    assert "cycles" in remark.text
    assert not judged(part, asked("1")).deadlines


def test_the_counter_of_a_chip_is_the_time_only_where_the_core_cannot_sleep(board: Board) -> None:
    chip = Timed(board=board, engine="serial", unit="cycles", modelled=False, durations=None, counted=[1_000, 1_200])
    part = duration_part(ALONE, chip, asked("0.048"))
    assert (part.elapsed, part.longest, part.longest_sample) == (1_000, 1_200, 1)
    assert part.text == "0.04 ms at 25 MHz"
    assert part.judgements == (Judgement.KEPT,)  # nothing is modelled

    class WithDevice(_NoDevices):
        devices = ("npu0",)

    part = duration_part(cast("Artifact", WithDevice()), chip)
    assert part.elapsed is None
    assert "sleeps" in part.note
    qemu = replace(chip, engine="qemu", unit="instructions")
    assert (
        duration_part(ALONE, qemu).note == "the elapsed time is not known: engine qemu does not time runs; unicorn does"
    )


@pytest.mark.parametrize(
    ("deadline", "judgement"),
    [("0.045", Judgement.KEPT), ("0.0449999", Judgement.MISSED), ("0.04", Judgement.MISSED), ("1", Judgement.KEPT)],
)
def test_the_measured_error_counts_against_a_deadline(
    deadline: str, judgement: Judgement, board: Board, measured: None
) -> None:
    """0.04 ms and an eighth: exactly 0.045 ms."""
    del measured
    part = duration_part(ALONE, timed(board, SLEEPS), asked(deadline))
    assert part.judgement is judgement
    assert part.deadlines[0].upper_ms == 0.045


@pytest.mark.parametrize(("deadline", "judgement"), [("0.04", Judgement.UNPROVED), ("0.0399", Judgement.MISSED)])
def test_a_deadline_is_not_proved_without_a_measured_error(
    deadline: str, judgement: Judgement, board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "measured_error", lambda core, *, waits: None)
    part = duration_part(ALONE, timed(board, SLEEPS), asked(deadline))
    assert part.judgement is judgement
    (case,) = part.cases("there")
    assert case.outcome is Outcome.FAILURE
    rules = {Judgement.UNPROVED: Rule.UNPROVED_DEADLINE, Judgement.MISSED: Rule.OVER_DEADLINE}
    assert case.rule is rules[judgement]


def test_the_longest_inference_decides(board: Board, measured: None) -> None:
    del measured
    longer = replace(SLEEPS, total=2_000, work=1_600)
    part = duration_part(ALONE, timed(board, SLEEPS, longer), asked("0.06"))
    assert (part.elapsed, part.longest, part.longest_sample) == (1_000, 2_000, 1)
    assert part.judgement is Judgement.MISSED
    assert judged(part, asked("0.09")).judgement is Judgement.KEPT
    assert judged(part, asked("0.09"), longest=2_001).judgement is Judgement.MISSED


def test_a_rate_is_a_deadline(board: Board, measured: None) -> None:
    del measured
    keeps, misses = (TimeQuestions(rate=parse_rate(text)) for text in ("20000/s", "23000/s"))
    part = duration_part(ALONE, timed(board, SLEEPS), keeps)
    assert (part.deadlines[0].name, part.judgement) == ("rate 20000/s", Judgement.KEPT)
    assert duration_part(ALONE, timed(board, SLEEPS), misses).judgement is Judgement.MISSED


def test_energy_counts_the_core_asleep_and_names_what_is_not_stated(board: Board, measured: None) -> None:
    del measured
    energy = BoardEnergy(
        supply_v=3.0,
        running=Current(ua_per_mhz=(100.0, 200.0), source="a"),
        asleep=Current(ua_per_mhz=(10.0, 10.0), source="b"),
    )
    questions = TimeQuestions(rate=parse_rate("10/s"), battery=parse_battery("220mAh"))
    part = duration_part(ALONE, timed(replace(board, energy=energy), SLEEPS), questions)
    found = part.energy
    assert found is not None
    # 2.5 mA * 3 V for 650 cycles of 25 MHz, and 0.25 mA for 350, the least error of the time on both
    assert found.low_mj == pytest.approx((2.5 * 650 + 0.25 * 350) * 3 / 25e6 * 0.9375)
    assert found.sources == ("a", "b")
    assert sum(low for low, _ in found.parts.values()) == pytest.approx(found.low_mj)
    (life,) = found.lives
    assert life.low_hours <= life.high_hours
    assert life.between == "asleep"
    labels = [fact.label for fact in part.facts()]
    assert labels == ["elapsed", "measured error", "energy", "battery"]
    assert duration_part(ALONE, timed(board, SLEEPS), replace(questions, battery=None)).energy is None
    with_device = replace(energy, devices={"npu0": DeviceCurrents(work_ua=(1e3, 1e3), idle_ua=(0, 0), source="c")})
    assert duration_part(ALONE, timed(replace(board, energy=with_device), SLEEPS)).energy is not None


def test_a_device_that_is_late_is_a_conclusion() -> None:
    late = WaitPart(device="npu0", awake=5, asleep=900, waits=6, limited=6, late=850)
    document = replace(
        run_document(), duration=DurationPart(unit="cycles", elapsed=1_000, work=95, waits=(late,), longest=1_000)
    )
    page = markdown_text([document])
    assert "6 of 6 waits for npu0 ended by the limit although the work was done, 850 cycles late (85.0%" in page


def test_milliseconds_are_compared(board: Board) -> None:
    slower = replace(SLEEPS, total=1_030, work=630)
    before, after = (
        replace(run_document(), duration=replace(duration_part(ALONE, timed(board, each)), error=None))
        for each in (SLEEPS, slower)
    )
    found = {text: compare_documents(before, after, parse_limits([f"milliseconds={text}"])) for text in ("2%", "4%")}
    assert [bool(each.worse) for each in found.values()] == [True, False]
    (change,) = [each for each in found["2%"].changes if each.counter == "milliseconds"]
    assert (change.old, change.new, change.failed) == (0.04, 0.0412, True)


def test_a_deadline_is_a_case_of_the_suite(board: Board, measured: None) -> None:
    del measured
    document = replace(run_document(), duration=duration_part(ALONE, timed(board, SLEEPS), asked("1")))
    case = next(each for each in document.suite().cases if each.name == "deadline")
    assert isinstance(case, Case)
    assert case.outcome is Outcome.PASSED
    assert document.suite().properties["milliseconds"] == 0.04


def test_no_questions_have_no_limits() -> None:
    assert list(NO_QUESTIONS.limits()) == []
