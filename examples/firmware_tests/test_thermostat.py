# SPDX-License-Identifier: Apache-2.0
"""A firmware in C, tested as a whole: its console, a device on its bus, faults of the device, and a crash."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferrule import override
from ferrule.devices import Access, FaultInjector, Register, RegisterModel, RegisterTable
from ferrule.emulation import AttachedDevice, EngineError
from ferrule.testing import Board, BoardFixture, ExpectationError, build_program

pytestmark = [pytest.mark.cc, pytest.mark.emu]


class Sensor(RegisterModel):
    """A sensor that measures for 500 cycles."""

    table = RegisterTable(
        name="SENSOR",
        registers=(
            Register(name="CONTROL", offset=0x0),
            Register(name="STATUS", offset=0x4, access=Access.READ_ONLY),
            Register(name="VALUE", offset=0x8, access=Access.READ_ONLY),
        ),
    )

    def __init__(self, degrees: int) -> None:
        super().__init__()
        self.degrees, self.left = degrees, 0
        self.reset()

    @override
    def on_write(self, register: Register, old: int, new: int) -> None:
        self.left = 500
        self.set_value("STATUS", 0)

    @override
    def advance(self, cycles: int) -> None:
        if self.left > 0:
            self.left -= cycles
            if self.left <= 0:
                self.set_value("STATUS", 1)
                self.set_value("VALUE", self.degrees)

    @override
    def next_event(self) -> int | None:
        return self.left if self.left > 0 else None


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The firmware. Your own build system makes yours; any ELF for the board will do."""
    return build_program([Path(__file__).parent / "thermostat.c"], tmp_path_factory.mktemp("thermostat"))


@pytest.fixture
def sensor() -> Sensor:
    """A sensor at 18 degrees."""
    return Sensor(18)


@pytest.fixture
def board(ferrule_board: BoardFixture, elf: Path, sensor: Sensor) -> Board:
    """The board with the sensor, when the firmware is ready."""
    device = AttachedDevice(name="sensor", model=FaultInjector(sensor), address=0xA000_0000)
    board = ferrule_board(elf, devices=[device])
    board.console.expect(r"^thermostat ready")
    return board


@pytest.mark.ferrule_board("mps2-an386", engine="unicorn")
@pytest.mark.ferrule_board("mps2-an386", engine="qemu")
def test_the_wanted_temperature_rises(ferrule_board: BoardFixture, elf: Path) -> None:
    """The console alone, on two engines."""
    board = ferrule_board(elf)  # without a sensor, which QEMU could not have
    board.console.expect("ready")
    board.console.send("++")
    assert board.console.expect(r"wanted: (\d+)\r")[1] == "21"  # with what follows, since text comes in pieces
    assert board.console.expect(r"wanted: (\d+)\r")[1] == "22"


def test_the_heater_follows_the_sensor(board: Board, sensor: Sensor) -> None:
    """A device whose model the test changes."""
    board.console.send("t")
    board.console.expect("18 degrees, heater on")
    sensor.degrees = 25
    board.console.send("t")
    board.console.expect("25 degrees, heater off")
    assert board.word("measurements") == 2


def test_a_sensor_that_hangs_is_reported(board: Board) -> None:
    """A fault of the device."""
    board.inject("sensor", "never-done")
    board.console.send("t")
    board.console.expect("error: the sensor does not answer")
    board.inject("sensor", None)
    board.console.send("t")
    board.console.expect("18 degrees")


def test_after_a_reset_all_is_as_before(board: Board) -> None:
    """A reset, and a variable of the firmware."""
    board.console.send("+t")
    board.console.expect("18 degrees")
    board.reset()
    board.console.expect("ready")
    assert board.word("measurements") == 0


def test_a_crash_names_the_place(board: Board) -> None:
    """The report of a crash."""
    board.console.send("!")
    with pytest.raises(EngineError, match=r"bus error .*write of 0x1 \(4 B\) to 0xdead_0000.*\(main\+0x"):
        board.console.expect("heater", timeout_s=1)


def test_what_does_not_come_is_said_with_what_did(board: Board) -> None:
    """The report of text that does not come."""
    board.console.send("+")
    with pytest.raises(ExpectationError, match=r"(?s)/heater/ did not come: 0.1 s of the board .* \| wanted: 21.* r0 "):
        board.console.expect("heater", timeout_s=0.1)
