# SPDX-License-Identifier: Apache-2.0
"""Cycles that memories add: wait states of fetches and data, prefetch, and caches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from timed_code import assemble, run

from ferrule.emulation.unicorn.processor import Processor
from ferrule.firmware import Image
from ferrule.timing import BoardTiming, CacheTiming, MemoryTiming

pytestmark = [pytest.mark.cc, pytest.mark.emu]
CORE = "cortex-m4"
FLASH, RAM = "ssram1", "ssram23"
PIECES = {
    "straight": ".rept 64\nadds r0, r0, #1\n.endr",  # 8 pieces of 16 bytes
    "loop": "movs r4, #100\n1: subs r4, #1\nbne 1b",
    "long_loop": "movs r4, #10\n1:\n.rept 60\nadds r0, r0, #1\n.endr\nsubs r4, #1\nbne 1b",  # 8 pieces of 16 bytes
    "literal": "ldr r0, =0x12345678\nnop",
    "loads": ".rept 8\nldr r0, [r1]\nnop\n.endr",
    "walk": ".rept 8\nldr r0, [r1], #4\nnop\n.endr",
    "stores": ".rept 8\nstr r0, [r1]\n.endr",
    # the sum at the label does not depend on the condition of the load that the core came from
    "if_then": "movs r4, #4\nmovs r5, #0\n1: adds r5, #8\ncmp r4, #0\nit pl\nldrpl r0, [r1]\n"
    "subs r4, #1\nbeq 2f\ncmp r4, #100\nb 1b\n2: subs r5, #1\nbgt 2b",
    "division": "udiv r0, r7, r12\nldr r0, [r1]\nadds r0, r0, #1",
    # functions of one to three pieces, called from several places, in a loop that takes one of two ways
    "calls": "movs r4, #20\n1: bl 4f\ntst r4, #1\nbeq 2f\nbl 5f\nb 3f\n2: bl 6f\nbl 4f\n3: subs r4, #1\nbne 1b\nb 7f\n"
    "4: bx lr\n.balign 16\n5:\n.rept 20\nnop\n.endr\nbx lr\n6:\n.rept 9\nnop\n.endr\nbx lr\n7: nop",
    # more blocks, each at the end of another piece, than states of fetches have numbers
    "many": "movs r4, #3\nb 1f\n.balign 16\n1:\n.rept 9000\nb . + 16\n.balign 16\n.endr\nsubs r4, #1\nbne.w 1b",
}


@pytest.fixture(scope="module")
def image(arm_gcc: str, tmp_path_factory: pytest.TempPathFactory) -> Image:
    return assemble(arm_gcc, CORE, PIECES, tmp_path_factory.mktemp("waits"))


def added(image: Image, piece: str, **memories: MemoryTiming) -> int:
    """Return the cycles that the timings of memories add to a piece, whatever the slices are."""
    board = BoardTiming(source="a test", memories=memories)
    whole = run(image, CORE, piece, board=board)
    assert run(image, CORE, piece, board=board, slice_=1) == whole
    assert run(image, CORE, piece, board=board, step=True) == whole
    return whole.cycles - run(image, CORE, piece).cycles


def flash(wait_states: int, **more: object) -> Mapping[str, MemoryTiming]:
    return {FLASH: MemoryTiming(wait_states=wait_states, width_bytes=16, **more)}  # type: ignore[arg-type]


CACHE = CacheTiming(sets=1, ways=8, line_bytes=16)
SMALL = CacheTiming(sets=1, ways=4, line_bytes=16)


@pytest.mark.parametrize(
    ("piece", "more", "cycles"),
    [
        ("straight", {}, 8 * 5),  # each piece of 16 bytes waits
        ("straight", {"prefetch": True}, 5),  # eight instructions take longer than a read, except before the first
        ("straight", {"instruction_cache": CACHE}, 8 * 5),  # nothing is read twice
        ("loop", {}, 5),  # it stays in the 16 bytes that are there
        ("long_loop", {}, 10 * 8 * 5),
        ("long_loop", {"instruction_cache": CACHE}, 8 * 5),  # the first round fills the cache
        ("long_loop", {"instruction_cache": SMALL}, 10 * 8 * 5),  # which is too small: the oldest line is needed next
        ("literal", {}, 5 + 5),  # the code and the literal
    ],
)
def test_fetches_wait(image: Image, piece: str, more: Mapping[str, object], cycles: int) -> None:
    assert added(image, piece, **flash(5, **more)) == cycles


@dataclass
class Fetches:
    """The lines that a piece executes, each instruction in turn; a line is what a fetch delivers."""

    lines: list[int] = field(default_factory=list)

    def attach(self, processor: Processor) -> object:
        import unicorn

        def note(_engine: object, address: int, bytes_: int, _data: object) -> None:
            self.lines += range(address // 16, (address + bytes_ - 1) // 16 + 1)

        return processor.guest.engine.hook_add(unicorn.UC_HOOK_CODE, note)

    def missed(self, sets: int, ways: int) -> int:
        """Return how many fetches a cache does not have that replaces the line that was used longest ago."""
        cache: list[list[int]] = [[] for _ in range(sets)]
        missed = 0
        for line, before in zip(self.lines, [None, *self.lines[:-1]], strict=True):
            if line != before:
                held = cache[line % sets]
                missed += line not in held
                cache[line % sets] = [line, *(each for each in held if each != line)][:ways]
        return missed


@pytest.mark.parametrize("piece", ["calls", "long_loop"])
@pytest.mark.parametrize(("sets", "ways"), [(1, 0), (1, 1), (1, 2), (2, 1), (2, 2), (4, 1), (1, 4), (4, 2)])
def test_a_fetch_waits_if_the_cache_lacks_its_line(image: Image, piece: str, sets: int, ways: int) -> None:
    # caches of up to four lines have numbers for their states; those with more are followed
    fetches = Fetches()
    run(image, CORE, piece, attach=fetches.attach)
    cache = CacheTiming(sets=sets, ways=ways, line_bytes=16) if ways else None
    memories = flash(5, instruction_cache=cache)
    assert added(image, piece, **memories) == 5 * fetches.missed(sets, ways)


def test_states_of_fetches_are_forgotten_when_there_are_too_many(image: Image) -> None:
    fetches = Fetches()
    plain = run(image, CORE, "many", attach=fetches.attach)
    for ways in (2, 4):
        memories = flash(5, instruction_cache=CacheTiming(sets=1, ways=ways, line_bytes=16))
        waiting = run(image, CORE, "many", board=BoardTiming(source="a test", memories=memories))
        assert waiting.cycles - plain.cycles == 5 * fetches.missed(1, ways) > 3 * 9000 * 5


def test_a_prefetch_is_not_waited_for_twice(image: Image) -> None:
    # a read takes 10 cycles, and 8 instructions hide 8 of them
    assert added(image, "straight", **flash(9, prefetch=True)) == 9 + 7 * 2


def test_data_wait(image: Image) -> None:
    assert added(image, "loads", **{RAM: MemoryTiming(wait_states=3)}) == 8 * 3
    assert added(image, "stores", **{RAM: MemoryTiming(write_wait_states=2)}) == 8 * 2
    assert added(image, "loads", **{RAM: MemoryTiming(write_wait_states=2)}) == 0


def test_a_hook_leaves_no_condition_for_the_next_block(image: Image) -> None:
    assert added(image, "if_then", **{RAM: MemoryTiming(wait_states=3)}) == 4 * 3


def test_a_data_cache_waits_once_for_each_line(image: Image) -> None:
    cached = {RAM: MemoryTiming(wait_states=3, data_cache=CACHE)}
    assert added(image, "loads", **cached) == 3
    assert added(image, "walk", **cached) == 2 * 3  # 32 bytes


def test_divisions_and_data_do_not_change_fetches(image: Image) -> None:
    data = {RAM: MemoryTiming(wait_states=3)}
    assert added(image, "division", **data, **flash(9, prefetch=True)) == 3 + 9
