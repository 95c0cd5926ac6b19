# SPDX-License-Identifier: Apache-2.0
"""Waits for data that some inferences measure and others repeat: on a bare core, whose piece is the inference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from system_control import write_register
from timed_code import CODE, START, assemble, board_of

from ferrule.emulation.unicorn.attachment import Attachment
from ferrule.emulation.unicorn.guest import Guest
from ferrule.emulation.unicorn.layout import Stop
from ferrule.emulation.unicorn.processor import Processor
from ferrule.emulation.unicorn.timing import Timing
from ferrule.firmware import Image
from ferrule.timing import BoardTiming, CacheTiming, DataWaits, MemoryTiming, core_timing

pytestmark = [pytest.mark.cc, pytest.mark.emu]
CORE = "cortex-m4"
FLASH, RAM = "ssram1", "ssram23"
DEVICE = 0x4001_0000
ICSR, PENDSVSET = 0xD04, 1 << 28
MEASURED, REPEATED, ESTIMATED = DataWaits
UNCACHED = {RAM: MemoryTiming(wait_states=3, write_wait_states=1)}
CACHED = {RAM: MemoryTiming(wait_states=3, data_cache=CacheTiming(sets=1, ways=2, line_bytes=16))}
"""Of the walk below, each fourth load waits."""
WALK = "mov r6, r1\nmov r2, r4\n1: ldr r5, [r6], #4\nsubs r2, #1\nbne 1b\n"
"""As many loads as r4 says, each in a block of its own."""
SYSTICK = "ldr r5, =0xE000E010\nldr r6, =0xFFFFFF\nstr r6, [r5, #4]\nstr r6, [r5, #8]\nmovs r6, #5\nstr r6, [r5]\nisb\n"
PIECES = {
    "walk": WALK,
    "branch": f"{WALK}cmp r0, #0\nbeq 2f\nldr r5, [r1]\nb 2f\n2: nop",
    "clock": f"{SYSTICK}{WALK}ldr r5, =0xE000E018\nldr r0, [r5]",
    "device": f"ldr r5, ={DEVICE}\nldr r6, [r5]\n{WALK}",
    "call": f"{WALK}svc #0\n",
    "sleep": f"{SYSTICK.replace('#5', '#7')}{WALK}wfi\n",
}


@pytest.fixture(scope="module")
def image(arm_gcc: str, tmp_path_factory: pytest.TempPathFactory) -> Image:
    return assemble(arm_gcc, CORE, PIECES, tmp_path_factory.mktemp("repeated"))


class Register:
    """A device whose register reads as 0."""

    def read(self, offset: int, width: int) -> int:
        del offset, width
        return 0

    def write(self, offset: int, width: int, value: int) -> None:
        raise AssertionError((offset, width, value))

    def advance(self, cycles: int) -> None:
        del cycles

    def next_event(self) -> int | None:
        return None


@dataclass
class Inferences:
    """A core that runs a piece again and again."""

    image: Image
    piece: str
    memories: Mapping[str, MemoryTiming]
    repeat: bool = True
    slice_: int = 1_000_000
    step: bool = False
    watched: list[bool] = field(default_factory=list)
    """By run, whether accesses had a hook at its end."""

    def __post_init__(self) -> None:
        board = board_of(CORE, BoardTiming(source="a test", memories=self.memories))
        guest = self.guest = Guest(board)
        self.processor = Processor(guest, board, CODE)
        numbers = core_timing(CORE)
        assert numbers is not None
        self.timing = Timing(guest, board, numbers)
        self.device = Attachment(self.processor, Register(), address=DEVICE, size_bytes=0x1000)
        guest.load(self.image)
        if self.repeat:
            self.timing.repeat()
        self.start, self.end = (self.image.address_of(f"{self.piece}{end}") for end in ("", "_end"))
        self.took: list[int] = []
        self.origins: list[DataWaits] = []
        guest.on_call(self.start, self._begin)
        guest.on_call(self.end, self._done)

    def _now(self, address: int) -> int:
        return sum(self.processor.moment(address))

    def _begin(self) -> None:
        self.began = self._now(self.start)
        self.timing.begin()

    def _done(self) -> None:
        self.took.append(self._now(self.end) - self.began)
        self.watched.append(self.timing.watches)
        self.origins.append(self.timing.end())
        self.processor.cut()

    def run(self, count: int, flag: int = 0) -> int:
        """Run the piece with two registers; return what it took."""
        guest, done = self.guest, len(self.took)
        for name, value in {**START, "r4": count, "r0": flag}.items():
            guest.set_register(name, value)
        guest.set_register("pc", self.start)
        while len(self.took) == done:
            if self.step:
                self.processor.step()
            else:
                assert self.processor.run(self.slice_) is Stop.BUDGET
        return self.took[-1]


def runs(image: Image, piece: str, memories: Mapping[str, MemoryTiming], *counts: int, **more: object) -> Inferences:
    """Return a core that has run a piece with these counts."""
    found = Inferences(image, piece, memories, **more)  # type: ignore[arg-type]
    for count in counts:
        found.run(count)
    return found


@pytest.mark.parametrize("memories", [UNCACHED, CACHED], ids=["uncached", "cached"])
@pytest.mark.parametrize("piece", ["walk", "branch"])
def test_equal_runs_are_repeated_to_the_cycle(image: Image, piece: str, memories: Mapping[str, MemoryTiming]) -> None:
    counts = (16,) * 6
    whole = runs(image, piece, memories, *counts)
    assert whole.origins == [MEASURED, MEASURED, REPEATED, REPEATED, REPEATED, REPEATED]
    assert whole.watched == [True, True, False, False, False, False]
    assert set(whole.took[1:]) == {whole.took[1]}
    followed = runs(image, piece, memories, *counts, repeat=False)
    assert followed.origins == [MEASURED] * 6
    assert all(followed.watched)
    assert followed.took == whole.took
    assert runs(image, piece, memories, *counts, slice_=1).took == whole.took
    plain = runs(image, piece, {}, *counts)
    assert plain.origins == [MEASURED] * 6
    assert whole.took[1] - plain.took[1] == (16 * 3 if memories is UNCACHED else 4 * 3)


def test_instructions_are_the_same_when_waits_are_repeated(image: Image) -> None:
    counts = (16,) * 5
    repeated, followed = (runs(image, "walk", CACHED, *counts, repeat=each) for each in (True, False))
    assert repeated.guest.executed() == followed.guest.executed()


def test_blocks_that_always_wait_the_same_may_be_executed_otherwise(image: Image) -> None:
    counts = (16, 16, 16, 21, 7)
    repeated, followed = (runs(image, "walk", UNCACHED, *counts, repeat=each) for each in (True, False))
    assert repeated.origins == [MEASURED, MEASURED, REPEATED, REPEATED, REPEATED]
    assert repeated.took == followed.took


def test_other_counts_of_blocks_whose_waits_vary_are_estimates(image: Image) -> None:
    found = runs(image, "walk", CACHED, 16, 16, 16, 20, 20, 20, 20)
    assert found.origins == [MEASURED, MEASURED, REPEATED, ESTIMATED, MEASURED, MEASURED, REPEATED]
    assert found.watched == [True, True, False, False, True, True, False]
    followed = runs(image, "walk", CACHED, 16, 16, 16, 20, 20, 20, 20, repeat=False)
    assert found.took[4:] == followed.took[4:]


def test_counts_that_differ_each_time_are_never_repeated(image: Image) -> None:
    counts = (16, 17, 18, 19, 20, 21)
    assert runs(image, "walk", CACHED, *counts).origins == [MEASURED] * len(counts)


@pytest.mark.parametrize(("memories", "origin"), [(UNCACHED, REPEATED), (CACHED, ESTIMATED)])
def test_the_hook_comes_back_for_a_block_that_is_not_known(
    image: Image, memories: Mapping[str, MemoryTiming], origin: DataWaits
) -> None:
    found, followed = (runs(image, "branch", memories, 16, 16, 16, repeat=each) for each in (True, False))
    assert found.run(16, flag=1) == followed.run(16, flag=1)
    assert (found.watched[-1], found.origins[-1]) == (True, origin)
    found.run(16)
    assert found.origins[-1] is (REPEATED if memories is UNCACHED else MEASURED)
    found.run(16, flag=1)
    assert (found.watched[-1], found.origins[-1]) == (False, REPEATED)  # it is known now


@pytest.mark.parametrize("piece", ["clock", "device", "sleep"])
def test_what_depends_on_the_time_of_single_blocks_is_not_repeated(image: Image, piece: str) -> None:
    assert runs(image, piece, CACHED, *(16,) * 4).origins == [MEASURED] * 4
    repeated, followed = (runs(image, piece, UNCACHED, *(16,) * 4, repeat=each) for each in (True, False))
    assert repeated.origins == [MEASURED, MEASURED, REPEATED, REPEATED]
    assert repeated.took == followed.took


def test_an_exception_makes_a_repeated_run_an_estimate(image: Image) -> None:
    found = runs(image, "walk", CACHED, *(16,) * 2)
    timer = found.processor.timer(lambda: write_register(found.processor, ICSR, 4, PENDSVSET))
    timer.set(found.processor.now + 60)
    found.run(16)
    assert found.origins[-1] is ESTIMATED


def test_a_block_that_ends_by_an_exception_or_its_return_waits_as_a_whole(image: Image) -> None:
    repeated, followed = (runs(image, "call", UNCACHED, *(16,) * 4, repeat=each) for each in (True, False))
    assert repeated.origins == [MEASURED, MEASURED, REPEATED, REPEATED]
    assert repeated.took == followed.took


def test_single_steps_end_the_repetition(image: Image) -> None:
    found = runs(image, "walk", CACHED, *(16,) * 3)
    found.step = True
    found.run(16)
    found.step = False
    found.run(16)
    found.run(16)
    assert found.origins == [MEASURED, MEASURED, REPEATED, MEASURED, MEASURED, MEASURED]
    assert found.watched[-1]


def test_other_code_is_measured_anew(image: Image) -> None:
    found = runs(image, "walk", CACHED, *(16,) * 3)
    found.guest.load(image)
    for _ in range(3):
        found.run(16)
    assert found.origins[-3:] == [MEASURED, MEASURED, REPEATED]
