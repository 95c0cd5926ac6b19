# SPDX-License-Identifier: Apache-2.0
"""The figures of these boards are made up, so that every result can be computed by hand."""

from __future__ import annotations

import pytest

from ferrule.errors import FerruleError
from ferrule.timing.energy import BoardEnergy, Current, DeviceCurrents, battery_life, energy_of, range_text
from ferrule.timing.usage import parse_battery, parse_rate

HZ = 100_000_000
BOARD = BoardEnergy(
    supply_v=3.0,
    running=Current(ua_per_mhz=(100.0, 120.0), source="run"),
    asleep=Current(ua=(50.0, 60.0), ua_per_mhz=(20.0, 20.0), source="sleep"),
    devices={"npu0": DeviceCurrents(work_ua=(5_000.0, 6_000.0), idle_ua=(10.0, 20.0), source="npu")},
)


def test_the_core_at_work() -> None:
    found = energy_of(BOARD, clock_hz=HZ, work_cycles=HZ / 100)  # 10 ms at 10 to 12 mA and 3 V
    assert found is not None
    assert (found.low_mj, found.high_mj) == pytest.approx((0.3, 0.36))
    assert str(found) == "0.3 to 0.36 mJ"
    assert list(found.parts) == ["core at work"]
    assert found.sources == ("run", "sleep", "npu")


def test_the_parts_add_up() -> None:
    found = energy_of(
        BOARD,
        clock_hz=HZ,
        work_cycles=HZ / 100,
        asleep_cycles=HZ / 50,
        device_cycles={"npu0": HZ / 50, "dma0": 7},
    )
    assert found is not None
    assert found.parts["core asleep"] == pytest.approx((2_050 * 3 * 0.02 / 1e3, 2_060 * 3 * 0.02 / 1e3))
    assert found.parts["npu0"] == pytest.approx(
        ((5_000 * 0.02 + 10 * 0.01) * 3 / 1e3, (6_000 * 0.02 + 20 * 0.01) * 3 / 1e3)
    )
    assert found.low_mj == pytest.approx(sum(low for low, _ in found.parts.values()))
    assert found.high_mj == pytest.approx(sum(high for _, high in found.parts.values()))
    assert found.unstated == ("dma0",)


def test_the_error_of_the_time_widens_the_range() -> None:
    found = energy_of(BOARD, clock_hz=HZ, work_cycles=HZ / 100, error=(-0.1, 0.2))
    assert found is not None
    assert (found.low_mj, found.high_mj) == pytest.approx((0.27, 0.432))


def test_a_board_that_states_no_currents_has_no_energy() -> None:
    assert energy_of(None, clock_hz=HZ, work_cycles=1) is None


def test_a_sleeping_core_of_unknown_current_takes_at_most_that_of_one_at_work() -> None:
    board = BoardEnergy(supply_v=3.0, running=Current(ua_per_mhz=(100.0, 120.0), source="run"))
    found = energy_of(board, clock_hz=HZ, work_cycles=HZ / 100, asleep_cycles=HZ / 100)
    assert found is not None
    assert (found.low_mj, found.high_mj) == pytest.approx((0.3, 0.72))
    assert found.unstated == ("core asleep",)
    rate, battery = parse_rate("1/s"), parse_battery("1mAh")
    with pytest.raises(FerruleError, match="the board states no current between inferences"):
        battery_life(board, found, clock_hz=HZ, elapsed_cycles=HZ / 50, rate=rate, battery=battery)


def test_a_battery_that_feeds_a_sleeping_chip() -> None:
    inference = energy_of(BOARD, clock_hz=HZ, work_cycles=HZ / 100)
    assert inference is not None
    (life,) = battery_life(
        BOARD,
        inference,
        clock_hz=HZ,
        elapsed_cycles=HZ / 100,
        rate=parse_rate("10/s"),
        battery=parse_battery("220mAh"),
    )
    low, high = 0.1 * 10_000 + 0.9 * 2_050, 0.1 * 12_000 + 0.9 * 2_060
    assert life.between == "asleep"
    assert life.average_ua == pytest.approx((low, high))
    assert life.hours == pytest.approx((220_000 / high, 220_000 / low))
    assert str(life) == "3 to 3.22 days"


def test_a_chip_that_stops_between_inferences_lives_longer() -> None:
    board = BoardEnergy(
        supply_v=BOARD.supply_v,
        running=BOARD.running,
        asleep=BOARD.asleep,
        stopped=Current(ua=(2.0, 3.0), source="stop"),
        devices=BOARD.devices,
    )
    inference = energy_of(
        board, clock_hz=HZ, work_cycles=HZ / 100, asleep_cycles=HZ / 100, device_cycles={"npu0": HZ / 100}
    )
    assert inference is not None
    asleep, stopped = battery_life(
        board,
        inference,
        clock_hz=HZ,
        elapsed_cycles=HZ / 50,
        rate=parse_rate("1/min"),
        battery=parse_battery("1Ah"),
    )
    assert (asleep.between, stopped.between) == ("asleep", "stopped")
    assert stopped.hours[0] > asleep.hours[1]
    idle = 1 - 0.02 / 60
    assert stopped.average_ua[0] == pytest.approx(inference.low_mj / 3 * 1e3 / 60 + (2 + 10) * idle)
    assert "stop" in board.sources


def test_a_rate_that_an_inference_exceeds_is_refused() -> None:
    inference = energy_of(BOARD, clock_hz=HZ, work_cycles=HZ / 10)
    assert inference is not None
    with pytest.raises(FerruleError, match=r"cannot run 20/s: one inference takes 100 ms, and every 50 ms one begins"):
        battery_life(
            BOARD,
            inference,
            clock_hz=HZ,
            elapsed_cycles=HZ / 10,
            rate=parse_rate("20/s"),
            battery=parse_battery("220mAh"),
        )


@pytest.mark.parametrize(
    ("values", "text"),
    [((0.0123, 0.0151), "0.0123 to 0.0151"), ((1.001, 1.002), "1"), ((999.7, 12_345.6), "1,000 to 12,346")],
)
def test_ranges_have_three_digits(values: tuple[float, float], text: str) -> None:
    assert range_text(values) == text
