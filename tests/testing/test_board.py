# SPDX-License-Identifier: Apache-2.0
"""Firmware on a board under test: consoles, ends, resets, devices and what a failure says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from board_programs import talker
from needs import require_module
from numpy.testing import assert_array_equal
from small_networks import dense

import ferrule
from ferrule.backends import BackendId, Device
from ferrule.boards import load_board
from ferrule.devices import DeviceModel
from ferrule.emulation import AttachedDevice, Counters, EngineError, EngineOptions, Session
from ferrule.emulation.console import Console, ExpectationError
from ferrule.emulation.crash import CrashReport, ExitError
from ferrule.errors import FerruleError
from ferrule.link import Channel, RunFailedError
from ferrule.testing import Board, start

CLOCK_HZ = 1_000_000
AN386 = load_board("mps2-an386")
ELSEWHERE = replace(AN386, memories=tuple(each for each in AN386.memories if each.address))
"""A board without the memory at 0, for which the firmware is linked."""


class Script(Channel):
    """A channel that gives a piece of text per read, each after some instructions; in between it has waited."""

    def __init__(self, *pieces: tuple[int, bytes | Exception]) -> None:
        self.pieces = list(pieces)
        self.instructions = 0
        self.sent = b""

    def read(self, max_bytes: int, timeout_s: float) -> bytes:
        if not self.pieces:
            return b""
        instructions, data = self.pieces.pop(0)
        self.instructions += instructions
        if isinstance(data, Exception):
            raise data
        return data

    def write(self, data: bytes) -> None:
        self.sent += data


class ScriptSession(Session):
    """A session with one scripted UART."""

    def __init__(self, *pieces: tuple[int, bytes | Exception]) -> None:
        self.script = Script(*pieces)

    def channel(self, name: str = "link") -> Channel:
        return self.script

    def counters(self) -> Counters:
        return Counters(instructions=self.script.instructions, resolution=1)

    def crash_report(self, reason: str) -> CrashReport | None:
        return None


def console(*pieces: tuple[int, bytes | Exception]) -> Console:
    return Console(ScriptSession(*pieces), CLOCK_HZ)


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_pattern_matches_across_pieces(cut: int) -> None:
    text = b"caf\xc3\xa9 ready\r\n"
    found = console((1, text[:cut]), (1, text[cut:]), (1, b"")).expect("café ready")
    assert found[0] == "café ready"


def test_a_text_is_matched_once_and_in_order() -> None:
    ours = console((1, b"a1 a2 b1 a3 "))
    assert [ours.expect(r"a(\d) ")[1] for _ in range(3)] == ["1", "2", "3"]
    with pytest.raises(ExpectationError, match="it sleeps until it gets input"):
        ours.expect("b1")


def test_bytes_that_are_no_text_are_shown() -> None:
    assert console((1, b"\xff\x00ok")).expect("ok").string == "\\xff\x00ok"


def test_the_time_is_the_boards() -> None:
    late = (CLOCK_HZ, b"")
    assert console(*[late] * 3, (1, b"x")).expect("x", timeout_s=4)
    with pytest.raises(ExpectationError, match=r"2 s of the board \(2,000,000 instructions\) have passed"):
        console(*[late] * 3, (1, b"x")).expect("x", timeout_s=2)


def test_a_firmware_that_prints_without_an_end_does_not_pass_its_time() -> None:
    endless = console(*[(CLOCK_HZ // 10, b"tick\n")] * 1000)
    with pytest.raises(ExpectationError, match="1 s of the board"):
        endless.expect("tock", timeout_s=1)
    assert endless.text.count("tick") == 10


def test_the_end_of_a_firmware_ends_the_wait_and_its_last_words_count() -> None:
    ours = console((1, b"bye"), (1, ExitError(3)))
    assert ours.expect("bye")
    with pytest.raises(ExpectationError, match="it has ended with status 3"):
        ours.expect("more")
    assert ours.exit_status == 3


def test_a_crash_says_what_was_printed_before() -> None:
    with pytest.raises(EngineError, match="HardFault") as caught:
        console((1, b"so far\n"), (1, EngineError("HardFault"))).expect("more")
    assert "| so far" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    ("pattern", "timeout_s", "message"),
    [
        ("(", 1.0, "is not a regular expression"),
        ("x", 0.0, "expected a positive"),
        ("x", float("nan"), "expected a pos"),
    ],
)
def test_bad_arguments(pattern: str, timeout_s: float, message: str) -> None:
    with pytest.raises(FerruleError, match=message):
        console().expect(pattern, timeout_s=timeout_s)


# ---- on the engine unicorn


@pytest.fixture
def board() -> Iterator[Board]:
    """A board with the small firmware, which is ready."""
    require_module("unicorn", "pip install 'ferrule[run]'")
    with start(talker()) as running:
        running.console.expect("^ready")
        yield running


@pytest.mark.cc
@pytest.mark.emu
class TestBoard:
    def test_talk_and_reset(self, board: Board) -> None:
        board.console.send("h")
        assert board.console.expect(r"^hello, (\w+)\r")[1] == "one"
        assert board.word("lines") == 2
        before = board.instructions
        board.reset()
        assert board.console.expect("ready")
        assert board.word("lines") == 1
        assert (board.instructions or 0) > (before or 0)

    def test_semihosting(self, board: Board) -> None:
        board.console.send("we")
        assert board.console.expect("by semihosting")
        assert "by semihosting" not in board.console.read_until_quiet()
        assert board.console.exit_status == 7

    @pytest.mark.parametrize(
        ("command", "message"),
        [("o", "semihosting call 0x01, which is not carried out"), ("b", "has reached a breakpoint instruction")],
    )
    def test_what_semihosting_is_not(self, board: Board, command: str, message: str) -> None:
        board.console.send(command)
        with pytest.raises(EngineError, match=message):
            board.console.expect("nothing")

    def test_without_semihosting_its_call_is_a_fault(self) -> None:
        with start(talker(), options=EngineOptions()) as board:
            board.console.expect("ready")
            board.console.send("e")
            with pytest.raises(EngineError, match="breakpoint or another debug event"):
                board.console.expect("nothing")

    def test_a_sleep_without_an_end_is_the_engines_error(self, board: Board) -> None:
        board.console.send("s")
        with pytest.raises(EngineError, match="nothing is left that could wake it"):
            board.console.expect("nothing")

    def test_text_without_an_end(self, board: Board) -> None:
        board.console.send("f")
        with pytest.raises(ExpectationError, match=r"(?s)0.05 s of the board.*\| again and again.* pc 0"):
            board.console.expect("never", timeout_s=0.05)

    def test_registers_and_state(self, board: Board) -> None:
        assert board.image.describe(board.registers()["pc"]).startswith("main")
        assert "| ready" in board.state_text()

    def test_after_close(self, board: Board) -> None:
        board.close()
        for use in (lambda: board.console, board.counters, lambda: board.memory):
            with pytest.raises(EngineError, match="the board has been closed"):
                use()
        assert (board.instructions or 0) > 0


@pytest.mark.cc
@pytest.mark.emu
def test_a_compiled_model_with_a_fault(arm_gcc: str, tmp_path: Path) -> None:
    network, out = dense(), tmp_path / "project"
    firmware = ferrule.compile(network, backends=("Woofles", "CpuAcc"), toolchain="arm-none-eabi-gcc", out=out)
    inputs = np.arange(18, dtype=np.int8).reshape(3, 6)
    with start(firmware) as board:
        wanted = np.concatenate([network.run([each[None]])[0] for each in inputs])
        assert_array_equal(board.run([inputs])[0], wanted)
        (name,) = board.devices
        board.inject(name, "never-done")
        with pytest.raises(RunFailedError):
            board.run([inputs[:1]])
        board.inject(name, None)
        board.reset()
        assert_array_equal(board.run([inputs[:1]])[0], wanted[:1])
        with pytest.raises(FerruleError, match="there is no device 'npu9'"):
            board.inject("npu9", None)
    with start(firmware.elf, devices=[Device(name="npu", backend=BackendId("Woofles"))]) as board:
        assert_array_equal(board.run([inputs[:1]])[0], wanted[:1])
        with pytest.raises(FerruleError, match="does not name its model's inputs"):
            board.run()
    with pytest.raises(FerruleError, match="was compiled for mps2-an386, not for mps2-an385"):
        start(firmware, board="mps2-an385")


class Silent(DeviceModel):
    """A device that does nothing."""

    size_bytes = 4

    def reset(self) -> None: ...
    def read(self, offset: int, width: int) -> int:
        return 0

    def write(self, offset: int, width: int, value: int) -> None: ...


@pytest.mark.cc
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"board": ELSEWHERE}, r"has [\d,]+ B at 0x00000000, where board mps2-an386 has no memory"),
        ({"board": "nowhere"}, "there is no board 'nowhere'"),
        ({"engine": "bochs"}, "there is no engine 'bochs'"),
        ({"engine": "serial"}, "needs the board's port"),
        (
            {"engine": "qemu", "devices": [AttachedDevice(name="x", model=Silent(), address=0xA000_0000)]},
            r"engine qemu cannot run this on board mps2-an386: device models .*\(x\)",
        ),
        ({"devices": [Device(name="npu", backend=BackendId("CpuAcc"))]}, "CpuAcc has no devices"),
        ({"devices": [Device(name="npu", backend=BackendId("Nobody"))]}, "there is no backend 'Nobody'"),
    ],
)
def test_what_cannot_be_started(options: dict[str, object], message: str, request: pytest.FixtureRequest) -> None:
    if options.get("engine") == "qemu":
        request.getfixturevalue("qemu")
    with pytest.raises(FerruleError, match=message):
        start(talker(), **options)  # type: ignore[arg-type]


def test_what_is_no_firmware(tmp_path: Path) -> None:
    (tmp_path / "text.elf").write_text("no ELF")
    for path, message in (("text.elf", "is not a valid ELF file"), ("none.elf", "cannot read")):
        with pytest.raises(FerruleError, match=message):
            start(tmp_path / path)
