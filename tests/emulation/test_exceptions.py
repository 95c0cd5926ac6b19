# SPDX-License-Identifier: Apache-2.0
"""Exceptions, interrupts and time: a firmware gives the same trace as on qemu."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import guest
import pytest
from covering import covering
from gate import some_of
from manual_clock import ManualClock

from ferrule.emulation import Engine, EngineError, Machine, engine

pytestmark = [pytest.mark.cc, pytest.mark.emu]

BOARDS = ("mps2-an385", "mps2-an386", "mps2-an500", "mps2-an505")
AWAKE = re.compile(r"awake \w{8}")
PROGRAMS = ("nesting", "masks", "calls", "faults", "unaligned", "derived", "sleep", "kernel")
WITH_FPU = ("mps2-an386", "mps2-an500", "mps2-an505")
Build = Callable[..., Machine]


def trace(machine: Machine, each: Engine) -> list[str]:
    with each.start(machine) as session:
        return guest.trace(session)


@covering("program, board", PROGRAMS, BOARDS, seed=8, sentinel=("nesting", "mps2-an386"), gate=6)
def test_trace_equals_qemus(unicorn: Engine, qemu: str, build_exceptions: Build, program: str, board: str) -> None:
    machine = build_exceptions(program, board)
    ours, qemus = trace(machine, unicorn), trace(machine, engine("qemu"))
    assert len(ours) > 20
    if program == "sleep":  # QEMU's SysTick follows the host's clock, which may run late and skip wake-ups
        assert [line for line in ours if AWAKE.fullmatch(line)] == [f"awake {ticks:08x}" for ticks in range(1, 9)]
        ours, qemus = ([line for line in lines if not AWAKE.fullmatch(line)] for lines in (ours, qemus))
    assert ours == qemus


@pytest.mark.parametrize("board", ["mps2-an385", "mps2-an386"])
def test_bit_bands_equal_qemus(unicorn: Engine, qemu: str, build_exceptions: Build, board: str) -> None:
    machine = build_exceptions("bitband", board)
    assert trace(machine, unicorn) == trace(machine, engine("qemu"))


def test_a_bit_of_nothing_is_a_bus_fault(unicorn: Engine, build_exceptions: Build) -> None:
    lines = trace(build_exceptions("bitband", "mps2-an386", "-DNOTHING"), unicorn)
    assert lines.count("cfsr 00008200") == lines.count("bfar 43e0000c") == 2


def test_a_bit_band_needs_a_base(unicorn: Engine, build_exceptions: Build) -> None:
    machine = build_exceptions("bitband", "mps2-an386")
    bare = [replace(each, properties={}) if "BitBanding" in each.type else each for each in machine.board.peripherals]
    with pytest.raises(EngineError, match="the bit-band alias bitbandSram has no property peripheralBase"):
        unicorn.start(replace(machine, board=replace(machine.board, peripherals=tuple(bare))))


@pytest.mark.parametrize("board", WITH_FPU)
def test_floats_equal_qemus(unicorn: Engine, qemu: str, build_exceptions: Build, board: str) -> None:
    machine = build_exceptions("floats", board)
    assert trace(machine, unicorn) == trace(machine, engine("qemu"))


@pytest.mark.parametrize("seed", some_of([1, 2, 3], [1]))
@pytest.mark.parametrize("board", ["mps2-an386", "mps2-an505"])
def test_random_priorities_equal_qemus(
    unicorn: Engine, qemu: str, build_exceptions: Build, board: str, seed: int
) -> None:
    machine = build_exceptions("random", board, f"-DSEED={seed}")
    ours = trace(machine, unicorn)
    assert len(ours) > 500
    assert ours == trace(machine, engine("qemu"))


DEVIATIONS = {
    "mpu": ([], ["cfsr 00000082"]),
    "fpu": ([], ["cfsr 00080000"]),
    "div_0_trp": ([], ["cfsr 02000000"]),
    "sp": (["low bits 00000003"], ["low bits 00000000"]),
    "exclusive": (["failed 00000000"], ["failed 00000001"]),
}
"""The limits that docs/emulation.md lists: what follows from them on unicorn, and on qemu, which is as a core."""


def test_the_deviations_are_those_of_the_documentation(unicorn: Engine, qemu: str, build_exceptions: Build) -> None:
    machine = build_exceptions("deviations", "mps2-an386")
    for number, each in enumerate((unicorn, engine("qemu"))):
        found: dict[str, list[str]] = {}
        for line in trace(machine, each):
            if line in DEVIATIONS:
                found[line] = []
            elif line.startswith(("cfsr", "low bits", "failed")):
                found[list(found)[-1]].append(line)
        assert found == {name: results[number] for name, results in DEVIATIONS.items()}


def echoed(data: bytes) -> bytes:
    """Return the firmware's answer to the bytes."""
    return bytes(byte ^ 0x55 for byte in data)


@pytest.mark.parametrize("board", BOARDS)
def test_a_console_by_interrupts(unicorn: Engine, qemu: str, build_exceptions: Build, board: str) -> None:
    data = bytes(range(256)) * 3
    for each in (unicorn, engine("qemu")):
        with each.start(build_exceptions("console", board)) as session:
            channel, received = session.channel(), b""
            assert channel.read(1, 0.05) == b""  # asleep until input arrives
            for first in range(0, len(data), 64):
                channel.write(data[first : first + 64])
                while len(received) < first + 64:
                    chunk = channel.read(64, 10)
                    assert chunk, session.crash_report("silent")
                    received += chunk
            assert received == echoed(data)


def test_a_firmware_that_polls_is_not_given_up_while_a_timer_runs(unicorn: Engine, build_exceptions: Build) -> None:
    with unicorn.start(build_exceptions("heartbeat", "mps2-an386")) as session:
        assert [session.channel().read(1, 10) for _ in range(3)] == [b"*"] * 3
        session.channel().write(b"x")
        assert session.channel().read(5, 10) == b"polls"


def test_sleep_for_input_takes_no_time(
    unicorn: Engine, build_exceptions: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ferrule.emulation.unicorn.session.time", ManualClock())  # no read ever times out
    with unicorn.start(build_exceptions("console", "mps2-an386")) as session:
        assert session.channel().read(1, 60) == b""


@pytest.mark.parametrize("board", BOARDS)
def test_systick_counts_instructions(unicorn: Engine, build_exceptions: Build, board: str) -> None:
    assert trace(build_exceptions("ticks", board), unicorn) == [
        "went down by 00000029",
        "within 00000001",
        "stands 00000001",
        *["on time 00000001"] * 4,
        "no drift 00000001",
        ".",
    ]


DOOMS = {
    1: "lockup.*read of 4 B at 0x7000_0004",
    2: "lockup.*bus error on a vector fetch",
    3: "HardFault .bus error while entering an exception. at pc .* .main",
    4: "sleeps .wfi. and nothing is left that could wake it",
    5: "HardFault",  # SVCall at priority 0 cannot preempt with PRIMASK set
    7: "sleeps .wfi. and nothing is left that could wake it",
    8: "read of 4 B at 0x7000_0000",
}


@pytest.mark.parametrize("doom", DOOMS)
def test_what_cannot_go_on_says_why(unicorn: Engine, build_exceptions: Build, doom: int) -> None:
    with (
        unicorn.start(build_exceptions("doomed", "mps2-an386", f"-DDOOM={doom}")) as session,
        pytest.raises(EngineError, match=DOOMS[doom]) as caught,
    ):
        session.channel().read(1, 10)
    assert caught.value.report is not None


def test_a_breakpoint_is_a_debug_event(unicorn: Engine, build_exceptions: Build) -> None:
    assert trace(build_exceptions("doomed", "mps2-an386", "-DDOOM=6"), unicorn) == ["hfsr 80000000", "."]


@pytest.mark.parametrize("program", ["kernel", "nesting", "sleep"])
def test_traces_do_not_depend_on_where_emulation_pauses(
    unicorn: Engine, build_exceptions: Build, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    machine = build_exceptions(program, "mps2-an386")
    whole = trace(machine, unicorn)
    monkeypatch.setattr("ferrule.emulation.unicorn.session.SLICE_INSTRUCTIONS", 97)
    assert trace(machine, unicorn) == whole
