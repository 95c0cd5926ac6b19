# SPDX-License-Identifier: Apache-2.0
"""What an inference takes of boards, from planned costs. The times and currents of these boards are made up."""

from __future__ import annotations

from dataclasses import replace

import pytest
import small_networks

from ferrule.boards import Board, load_board
from ferrule.codegen import Artifact
from ferrule.codegen.artifact import VIEW
from ferrule.firmware import Job, emit
from ferrule.firmware.arena import ArenaPart
from ferrule.firmware.board_use import NOTHING_ASKED, BoardUse, Usage, board_use
from ferrule.firmware.fitting import BoardFit, MemoryNeed, RankBy, rank
from ferrule.firmware.planned_time import PlannedLayer, PlannedTime
from ferrule.timing import BoardTiming
from ferrule.timing.energy import BoardEnergy, Current, Range
from ferrule.timing.evidence import MeasuredError
from ferrule.timing.usage import parse_battery, parse_rate

NAME = "mps2-an386"


@pytest.fixture
def artifact() -> Artifact:
    return emit(small_networks.dense(), Job(board=NAME))


def thousands(artifact: Artifact, board: Board) -> PlannedTime:
    """Return a plan in which each layer with a kernel takes a thousand cycles."""
    layers = tuple(
        PlannedLayer(layer=each.layer, kernel=each.kernel, cycles=1_000, milliseconds=1e6 / board.clock_hz)
        for each in artifact.operators
        if each.kernel != VIEW
    )
    assert len(layers) == len(artifact.operators)
    return PlannedTime(
        board=board.name,
        cycles=1_000 * len(layers),
        milliseconds=1e6 * len(layers) / board.clock_hz,
        clock_hz=board.clock_hz,
        layers=layers,
        assumed=("a thousand cycles for each layer",),
    )


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch) -> Board:
    """A board on which each layer takes a thousand cycles, and whose currents are known."""
    monkeypatch.setattr("ferrule.firmware.board_use.planned_time", thousands)
    energy = BoardEnergy(
        supply_v=3.0,
        running=Current(ua_per_mhz=(100.0, 100.0), source="run"),
        asleep=Current(ua=(10.0, 20.0), source="sleep"),
    )
    return replace(load_board(NAME), energy=energy)


def measured(monkeypatch: pytest.MonkeyPatch, low: float, high: float) -> None:
    error = MeasuredError(low=low, high=high, median=0.01, figures=9, sources=3)
    monkeypatch.setattr("ferrule.timing.evidence.measured_error", lambda _core, waits: None if waits else error)


def test_a_board_without_a_table_has_instructions_only(artifact: Artifact, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ferrule.firmware.board_use.planned_time", lambda _artifact, _board: None)
    use = board_use(artifact, load_board(NAME), Usage(rate=parse_rate("10/s")))
    assert use.instructions
    assert (use.cycles, use.milliseconds, use.energy_mj, use.busy, use.too_slow) == (None, None, None, None, False)
    assert use.time_text == f"{use.instructions:,} instructions"
    assert use.rate_text == "not known: no planned time"


def test_time_and_energy_follow_from_planned_cycles(
    artifact: Artifact, board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ferrule.timing.evidence.measured_error", lambda _core, waits: None)
    use = board_use(artifact, board, NOTHING_ASKED)
    assert use.instructions is not None
    assert use.cycles == 1_000 * len(artifact.operators)
    assert use.milliseconds == pytest.approx(1e3 * use.cycles / board.clock_hz)
    assert use.energy_mj == pytest.approx((use.cycles * 3e-7,) * 2)  # 100 uA/MHz are 100 pC for each cycle
    assert use.time_text.endswith(" ms, no measured error")
    assert (use.rate, use.busy, use.rate_text) == ("", None, "")
    assert use.assumed == ("a thousand cycles for each layer",)


def test_the_error_counts_against_the_rate(artifact: Artifact, board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    measured(monkeypatch, -0.1, 0.25)
    plain = board_use(artifact, board, NOTHING_ASKED)
    assert plain.cycles is not None
    fast = parse_rate(f"{board.clock_hz // plain.cycles}/s")
    use = board_use(artifact, board, Usage(rate=fast, battery=parse_battery("220mAh")))
    assert use.error == (-0.1, 0.25)
    assert use.busy == pytest.approx(1.25, rel=0.01)
    assert use.too_slow
    assert use.battery_hours == {}
    assert use.rate_text == f"{use.busy:.3g} times too slow", "1 times would say that it is not"
    assert use.time_text.endswith(" ms, -10 % to +25 %")
    assert use.energy_mj == pytest.approx((0.9 * plain.cycles * 3e-7, 1.25 * plain.cycles * 3e-7))


def test_the_error_of_a_calibrated_board_is_what_the_calibration_left(artifact: Artifact, board: Board) -> None:
    calibrated = replace(board, timing=BoardTiming(source="calibrated", memories={}, residual=(-0.2, 0.0)))
    assert board_use(artifact, calibrated, NOTHING_ASKED).error == pytest.approx((0.0, 0.25))


def test_a_battery_lasts_as_the_currents_say(artifact: Artifact, board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    measured(monkeypatch, 0.0, 0.0)
    use = board_use(artifact, board, Usage(rate=parse_rate("1/h"), battery=parse_battery("240mAh")))
    assert list(use.battery_hours) == ["asleep"]
    low, high = use.battery_hours["asleep"]
    assert 240_000 / 20 * 0.99 < low < 240_000 / 20
    assert 240_000 / 10 * 0.99 < high < 240_000 / 10
    assert use.rate_text.startswith("0% busy\n")
    assert use.rate_text.endswith(" days asleep")


def fit(
    name: str,
    *,
    fits: bool = True,
    ms: float | None = None,
    instructions: int | None = None,
    energy: Range | None = None,
    busy: float | None = None,
    flash: int = 0,
    ram: int = 0,
) -> BoardFit:
    needs = tuple(
        MemoryNeed(memory=kind, kind=kind, parts={}, need_bytes=size, have_bytes=10_000)
        for kind, size in (("flash", flash), ("ram", ram))
    )
    use = BoardUse(
        clock_hz=1_000_000, instructions=instructions, milliseconds=ms, energy_mj=energy, busy=busy, rate="1/s"
    )
    arena: ArenaPart | None = None
    return BoardFit(board=name, fits=fits, memories=needs, arena=arena, use=use)


FITS = (
    fit("a", ms=3.0, energy=(1.0, 2.0), flash=30, ram=3),
    fit("b", ms=2.0, flash=40, ram=2, busy=1.01),
    fit("c", instructions=10, flash=10, ram=9),
    fit("d", instructions=5, energy=(0.5, 0.6), flash=20, ram=1),
    fit("e", fits=False, ms=1.0, energy=(0.1, 0.1), flash=1, ram=0),
    fit("f", ms=3.0, energy=(1.0, 1.0), flash=30, ram=3),
    replace(fit("g"), fits=False, use=None, memories=(), problem="no place"),
)


@pytest.mark.parametrize(
    ("by", "order"),
    [(RankBy.TIME, "fadcbeg"), (RankBy.ENERGY, "dfacbeg"), (RankBy.FLASH, "cdfabeg"), (RankBy.RAM, "dfacbeg")],
)
def test_boards_that_suit_come_first(by: RankBy, order: str) -> None:
    assert "".join(each.board for each in rank(FITS, by)) == order
    assert "".join(each.board for each in rank(reversed(FITS), by)) == order
