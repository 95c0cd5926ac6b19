# SPDX-License-Identifier: Apache-2.0
"""Reports about firmware that fails."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from manual_clock import ManualClock

from ferrule.emulation import CrashReport, Engine, EngineError, Machine, Session, engine
from ferrule.emulation.unicorn.session import UnicornSession
from ferrule.errors import FerruleError
from ferrule.firmware import read_image
from ferrule.link import Channel

pytestmark = [pytest.mark.cc, pytest.mark.emu]


def misled(session: Session, misdeed: str) -> Channel:
    """Ask the firmware for a misdeed."""
    channel = session.channel()
    assert channel.read(1, 10) == b"!"
    channel.write(misdeed.encode())
    return channel


def commit(session: Session, misdeed: str) -> CrashReport:
    """Make the firmware commit a misdeed, and return the crash report."""
    channel = misled(session, misdeed)
    with pytest.raises(EngineError) as caught:
        channel.read(1, 10)
    with pytest.raises(EngineError) as again:
        channel.read(1, 10)
    assert str(again.value) == str(caught.value)
    assert caught.value.report is not None
    return caught.value.report


BOTH = {
    "r": ("0x7000_0000", "main"),
    "w": ("0x7000_0000", "main"),
    "i": ("0x7000_0000", "main"),
    "j": ("", "?"),
    "e": ("Arm state", "main"),
    "u": ("undefined instruction", "main"),
    "b": ("breakpoint|HardFault", "main"),
    "s": ("SVCall, which the firmware does not handle", "main"),
    "t": ("SysTick, which the firmware does not handle", "spin"),
    "p": ("PendSV, which the firmware does not handle", "main"),
}
UNICORN = {
    "c": "read-only 0x0000_0040 .ssram1.",
    "z": "sleeps .wfi. and nothing is left that could wake it",
    "l": "lockup.* .bus error on a data access.: read of 4 B at 0x7000_0000, where mps2-an386 has nothing",
    "q": "requested a reset",
}


@pytest.mark.parametrize("misdeed", BOTH)
def test_fault_has_reason_and_place(either: Engine, build: Callable[..., Machine], misdeed: str) -> None:
    reason, function = BOTH[misdeed]
    machine = build("misdeed")
    with either.start(machine) as session:
        report = commit(session, misdeed)
    assert any(part in report.reason for part in reason.split("|"))
    assert report.symbol.partition("+")[0] == function
    assert report.registers["sp"] > 0x2000_0000
    assert read_image(machine.elf).describe(report.pc) == report.symbol


def test_both_engines_name_the_same_instruction(unicorn: Engine, qemu: str, build: Callable[..., Machine]) -> None:
    places = []
    for each in (unicorn, engine("qemu")):
        for misdeed in "rwiu":
            with each.start(build("misdeed")) as session:
                places.append((misdeed, commit(session, misdeed).pc))
    assert places[:4] == places[4:]


@pytest.mark.parametrize("misdeed", UNICORN)
def test_what_unicorn_refuses(unicorn: Engine, build: Callable[..., Machine], misdeed: str) -> None:
    with unicorn.start(build("misdeed")) as session:
        report = commit(session, misdeed)
    assert re.search(UNICORN[misdeed], report.reason)
    assert report.symbol.startswith("main")


def test_hang_is_placed(either: Engine, build: Callable[..., Machine]) -> None:
    with either.start(build("misdeed")) as session:
        channel = misled(session, "h")
        assert channel.read(1, 0.4) == b""
        report = session.crash_report("sent nothing for 0.4 s")
    assert report.symbol.partition("+")[0] == "spin"
    assert "main" in " ".join(report.notes)
    assert str(EngineError("", report=report)).startswith("sent nothing for 0.4 s at pc 0x0000_")


def test_time_out_holds_on_slow_registers(
    unicorn: Engine, build: Callable[..., Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock()
    monkeypatch.setattr("ferrule.emulation.unicorn.session.time", clock)

    def read(_offset: int, _size: int) -> int:
        clock.now_s += 1e-6
        return 0

    with unicorn.start(build("misdeed")) as session:
        assert isinstance(session, UnicornSession)
        session._guest.map_python(0x4F00_0000, 4096, read, lambda _offset, _size, _value: None)
        channel = misled(session, "v")
        channel.read(1, 1.5)  # the session adapts its pace
        begin_s = clock.now_s
        assert channel.read(1, 0.1) == b""
        assert 0.1 <= clock.now_s - begin_s < 0.2


def test_a_peripheral_without_a_model_is_named(unicorn: Engine, build: Callable[..., Machine]) -> None:
    machine = build("misdeed")
    extra = replace(machine.board.link_uart, name="radio0", type="Wireless.Radio", address=0x7000_0000)
    board = replace(machine.board, peripherals=(*machine.board.peripherals, extra))
    with unicorn.start(replace(machine, board=board)) as session:
        report = commit(session, "r")
    assert "radio0, a Wireless.Radio, of which the unicorn engine has no model" in report.reason


def test_no_vector_table(unicorn: Engine, build: Callable[..., Machine]) -> None:
    machine = build("echo")
    placement = replace(machine.board.placement, code="psram")
    with pytest.raises(EngineError, match="no reset vector at 0x2100_0004"):
        unicorn.start(replace(machine, board=replace(machine.board, placement=placement)))


def test_a_core_that_unicorn_lacks(unicorn: Engine, build: Callable[..., Machine]) -> None:
    machine = build("echo")
    board = replace(machine.board, cpu=replace(machine.board.cpu, type="cortex-m55"))
    with pytest.raises(EngineError, match="no cortex-m55"):
        unicorn.start(replace(machine, board=board))
    assert "cortex-m55" in (unicorn.refuses(board) or "")
    assert unicorn.refuses(machine.board) is None


def test_a_switched_off_transmitter_is_told(unicorn: Engine, build: Callable[..., Machine]) -> None:
    with unicorn.start(build("misdeed")) as session:
        channel = misled(session, "m")
        assert channel.read(1, 10) == b""
        assert "uart0 dropped 2 B" in str(session.crash_report("silent"))


def test_words_before_a_fault_are_not_lost(unicorn: Engine, build: Callable[..., Machine]) -> None:
    with unicorn.start(build("misdeed")) as session:
        channel = session.channel()
        channel.write(b"..r")
        assert channel.read(99, 10) == b"!.."
        with pytest.raises(EngineError, match="0x7000_0000"):
            channel.read(99, 10)


def test_not_a_firmware(either: Engine, build: Callable[..., Machine], tmp_path: Path) -> None:
    text = tmp_path / "notes.elf"
    text.write_text("hello")
    with pytest.raises(FerruleError, match="not a valid ELF"):
        either.start(Machine(board=build("echo").board, elf=text))


def test_firmware_of_another_board(unicorn: Engine, build: Callable[..., Machine]) -> None:
    wrong = Machine(board=build("echo", "mps2-an505").board, elf=build("echo", "mps2-an386").elf)
    with pytest.raises(EngineError, match="has no memory"):
        unicorn.start(wrong)
