# SPDX-License-Identifier: Apache-2.0
"""Time in cycles: what follows it, what does not, and which engines have it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from timed_code import assemble, board_of, run

from ferrule.boards import load_board
from ferrule.emulation import Clock, Engine, Machine, engine
from ferrule.emulation.unicorn.attachment import Attachment
from ferrule.emulation.unicorn.guest import Guest
from ferrule.emulation.unicorn.processor import Processor
from ferrule.emulation.unicorn.timing import Timing
from ferrule.errors import FerruleError
from ferrule.timing import BoardTiming, MemoryTiming, core_timing

pytestmark = [pytest.mark.cc, pytest.mark.emu]
CORES = ("cortex-m3", "cortex-m4", "cortex-m33", "cortex-m7")
DEVICE = 0x4001_0000
SYSTICK = "ldr r4, =0xE000E010\nldr r0, =0xFFFFFF\nstr r0, [r4, #4]\nstr r0, [r4, #8]\nmovs r0, #5\nstr r0, [r4]\n"
LONG = "udiv r6, r7, r12\n.rept 7\nadd.w r6, r6, r6, lsl #1\n.endr\n"
"""Between two readings: a division of 12 cycles and seven sums of one cycle, of two on a Cortex-M33 or M7."""
PIECES = {
    "systick": f"{SYSTICK}isb\nldr r0, [r4, #8]\n{LONG}ldr r5, [r4, #8]\nsubs r0, r0, r5",
    "device": f"ldr r4, ={DEVICE}\nisb\nldr r0, [r4]\n{LONG}ldr r5, [r4]\nsubs r0, r5, r0",
    "timer": ".rept 40\nb 1f\nnop\n1:\n.endr",
}


class Elapsed:
    """A device whose register holds the time that has passed for it."""

    def __init__(self) -> None:
        self.passed = 0

    def read(self, offset: int, width: int) -> int:
        del offset, width
        return self.passed

    def write(self, offset: int, width: int, value: int) -> None:
        raise AssertionError((offset, width, value))

    def advance(self, cycles: int) -> None:
        self.passed += cycles

    def next_event(self) -> int | None:
        return None


def attach(processor: Processor) -> Attachment:
    return Attachment(processor, Elapsed(), address=DEVICE, size_bytes=0x1000)


@pytest.mark.parametrize("core", CORES)
def test_systick_and_devices_follow_cycles(arm_gcc: str, tmp_path: Path, core: str) -> None:
    image = assemble(arm_gcc, core, PIECES, tmp_path)
    cycles = {"cortex-m3": 2 + 12 + 7, "cortex-m4": 2 + 12 + 7, "cortex-m33": 1 + 12 + 13, "cortex-m7": 1 + 12 + 13}
    for piece in ("systick", "device"):
        whole = run(image, core, piece, attach=attach)
        assert abs(whole.r0 - cycles[core]) <= (core == "cortex-m7"), piece  # the first reading may begin with another
        assert run(image, core, piece, attach=attach, slice_=1) == whole
        assert run(image, core, piece, attach=attach, step=True) == whole


def test_a_timer_follows_cycles(arm_gcc: str, tmp_path: Path) -> None:
    image = assemble(arm_gcc, "cortex-m4", PIECES, tmp_path)
    seen: list[int] = []

    def schedule(processor: Processor) -> object:
        timer = processor.timer(lambda: seen.append(processor.now))
        timer.set(41)
        return timer

    assert run(image, "cortex-m4", "timer", attach=schedule).cycles == 80
    assert seen == [42]  # the end of the block in which it is due, each of which takes two cycles


def test_a_core_that_is_awake_waits_for_devices_transfers(arm_gcc: str, tmp_path: Path) -> None:
    asleep = f"{SYSTICK}movs r0, #7\nstr r0, [r4]\nwfi\nsubs r0, r0, r0"
    image = assemble(arm_gcc, "cortex-m4", {**PIECES, "asleep": asleep}, tmp_path)

    def transfers(at: int) -> Callable[[Processor], object]:
        def schedule(processor: Processor) -> object:
            timer = processor.timer(lambda: processor.contend(7))
            timer.set(at)
            return timer

        return schedule

    assert run(image, "cortex-m4", "timer", attach=transfers(41)).cycles == 80 + 7
    whole = run(image, "cortex-m4", "asleep")
    assert run(image, "cortex-m4", "asleep", attach=transfers(100_000)).cycles == whole.cycles > 0xFFFFFF


@pytest.mark.parametrize(
    ("offset", "size_bytes", "cycles"), [(0, 16, 2 * 3), (4, 8, 2 * 3), (8, 8, 3), (7, 0, 3), (0x40_0000, 8, 0)]
)
def test_each_access_of_a_device_counts(offset: int, size_bytes: int, cycles: int) -> None:
    memory = MemoryTiming(dma_wait_states=3, width_bytes=8)
    board = board_of("cortex-m4", BoardTiming(source="a test", memories={"ssram23": memory}))
    numbers = core_timing("cortex-m4")
    assert numbers is not None
    timing = Timing(Guest(board), board, numbers)
    assert timing.contention(board.memory("ssram23").address + offset, size_bytes) == cycles


def words(session_machine: Machine, unicorn: Engine, count: int) -> tuple[tuple[int, ...], int | None, int | None]:
    """Return the words that a firmware sends, its instructions and its time."""
    with unicorn.start(session_machine) as session:
        channel, data = session.channel(), b""
        while len(data) < 4 * count:
            data += channel.read(4 * count - len(data), 60)
        return struct.unpack(f"<{count}I", data), session.counters().instructions, session.elapsed()


@pytest.mark.parametrize("board", ["mps2-an385", "mps2-an386", "mps2-an500", "mps2-an505"])
def test_instructions_are_the_same_with_both_clocks(unicorn: Engine, build: Callable[..., Machine], board: str) -> None:
    machine = build("calibrate", board)
    plain, instructions, units = words(machine, unicorn, 8)
    timed, same, cycles = words(replace(machine, clock=Clock.CYCLES), unicorn, 8)
    assert instructions == same == units
    assert cycles is not None
    assert cycles != units
    assert timed[0] == {"mps2-an385": 3, "mps2-an386": 3}.get(board, timed[0])  # a load whose address is computed
    assert timed[1] > plain[1] / 2
    assert timed[5] == plain[5] == 4  # additions, not time


def test_the_unit_of_the_firmwares_counter_is_the_clocks(unicorn: Engine, build: Callable[..., Machine]) -> None:
    machine = build("count")
    for clock in Clock:
        with unicorn.start(replace(machine, clock=clock)) as session:
            assert session.counters().unit == clock.value


@pytest.mark.parametrize("name", ["qemu", "renode", "serial"])
def test_other_engines_refuse_cycles(name: str, build: Callable[..., Machine]) -> None:
    with pytest.raises(
        FerruleError, match=r"the clock cycles cannot be had: .*(has no model|counts its own cycles)"
    ) as caught:
        engine(name).start(replace(build("count"), clock=Clock.CYCLES))
    assert "the engine unicorn" in str(caught.value.hint)


def test_a_core_without_a_model_is_refused(unicorn: Engine, build: Callable[..., Machine]) -> None:
    board = load_board("mps3-an547")
    with pytest.raises(
        FerruleError, match="the cycles of the cortex-m55, the core of board mps3-an547, have no model"
    ) as caught:
        unicorn.start(replace(build("count"), board=board, clock=Clock.CYCLES))
    assert "cortex-m4" in str(caught.value.hint)
