# SPDX-License-Identifier: Apache-2.0
"""Instruction counts of programs whose length is known."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from ferrule.emulation import Engine, Machine, Session, engine
from ferrule.emulation.unicorn import session as unicorn_session
from ferrule.emulation.unicorn.layout import Stop
from ferrule.emulation.unicorn.session import UnicornSession

pytestmark = [pytest.mark.cc, pytest.mark.emu]

BOARDS = ("mps2-an385", "mps2-an386", "mps2-an500", "mps2-an505")
CALIBRATION = (
    1,  # no instruction between two readings
    1 + 2 + 3 * 2_000_000,
    1 + 1 + 7 * 1000,  # IT blocks: suppressed instructions are counted, too
    1 + 3000,  # straight-line code longer than a page and the longest block
    3,  # a reading inside an IT block
    4,  # additions executed after the reading in the IT block
    1,  # after CYCCNT was set: the instruction that sets it
    0,  # counter switched off
)
DWT, SYSTICK = 1, 2


def words(session: Session, count: int) -> tuple[int, ...]:
    """Receive `count` 32-bit words."""
    channel, data = session.channel(), b""
    while len(data) < 4 * count:
        chunk = channel.read(4 * count - len(data), 30)
        assert chunk, session.crash_report("too few words")
        data += chunk
    return struct.unpack(f"<{count}I", data)


@pytest.mark.parametrize("board", BOARDS)
def test_cycle_counter_is_exact(unicorn: Engine, build: Callable[..., Machine], board: str) -> None:
    with unicorn.start(build("calibrate", board)) as session:
        assert words(session, len(CALIBRATION)) == CALIBRATION


def test_counts_do_not_depend_on_where_emulation_pauses(
    unicorn: Engine, build: Callable[..., Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    with unicorn.start(build("count")) as session:
        whole = words(session, 2)
    monkeypatch.setattr(unicorn_session, "SLICE_INSTRUCTIONS", 9973)
    with unicorn.start(build("count")) as session:
        assert words(session, 2) == whole


def test_total_counts_every_instruction_since_reset(unicorn: Engine, build: Callable[..., Machine]) -> None:
    with unicorn.start(build("calibrate")) as session:
        words(session, len(CALIBRATION))
        total = session.counters().instructions
    assert total is not None
    assert sum(CALIBRATION) < total < sum(CALIBRATION) + 200_000  # the firmware polls the UART at the end


def test_blocks_are_whole_wherever_emulation_pauses(unicorn: Engine, build: Callable[..., Machine]) -> None:
    with unicorn.start(build("misdeed")) as session:
        assert isinstance(session, UnicornSession)
        session.channel().write(b"h")  # an endless loop: every block starts at the same address
        guest = session._guest
        for _ in range(2000):
            before = guest.executed()
            assert session._processor.run(1) is Stop.BUDGET
            assert guest.executed() == guest.state.entered > before


def test_rewritten_code_is_counted_anew(unicorn: Engine, build: Callable[..., Machine]) -> None:
    with unicorn.start(build("rewrite")) as session:
        narrow, wide, again = words(session, 3)
    assert narrow - wide == 3
    assert again == narrow


@pytest.mark.parametrize("board", BOARDS)
def test_equals_qemu_within_a_tick(unicorn: Engine, qemu: str, build: Callable[..., Machine], board: str) -> None:
    machine = build("count", board)
    with unicorn.start(machine) as session:
        source, instructions = words(session, 2)
        assert source == DWT
        assert session.counters().resolution == 1
    with engine("qemu").start(machine) as session:
        source, ticks = words(session, 2)
        assert source == SYSTICK
        counters = session.counters()
    assert counters.instructions is None
    # Different code reads the two counters, so they differ by about ten instructions.
    assert abs(ticks * counters.resolution - instructions) <= counters.resolution + 20
