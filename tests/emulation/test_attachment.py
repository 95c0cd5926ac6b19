# SPDX-License-Identifier: Apache-2.0
"""Device models with time, interrupts and DMA."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from guest import trace

from ferrule.emulation import Engine, EngineError, Machine, Session
from ferrule.emulation.unicorn.attachment import Attachment
from ferrule.emulation.unicorn.guest import Guest
from ferrule.emulation.unicorn.layout import TIMERS
from ferrule.emulation.unicorn.processor import InterruptLine
from ferrule.emulation.unicorn.session import UnicornSession

pytestmark = [pytest.mark.cc, pytest.mark.emu]

BASE, LINE = 0x4F00_0000, 26
LENGTH, BUFFER, START, STATUS = 0x0, 0x4, 0x8, 0xC
Build = Callable[[str, str], Machine]


class Squarer:
    """Squares int32 numbers in the guest's memory."""

    def __init__(self, guest: Guest, irq: InterruptLine) -> None:
        self._guest = guest
        self._irq = irq
        self._registers = {LENGTH: 0, BUFFER: 0, START: 0, STATUS: 0}
        self._left: int | None = None
        self.passed = 0
        self.finished_at: list[int] = []

    def read(self, offset: int, width: int) -> int:
        assert width == 4
        return self._registers[offset]

    def write(self, offset: int, width: int, value: int) -> None:
        self._registers[offset] = value
        if offset == START:
            self._left = value
        if offset == STATUS:
            self._irq.set(False)

    def advance(self, cycles: int) -> None:
        self.passed += cycles
        if self._left is None:
            return
        self._left -= cycles
        if self._left <= 0:
            self._left = None
            self._finish()

    def _finish(self) -> None:
        view = self._guest.memory_view(self._registers[BUFFER], 4 * self._registers[LENGTH])
        numbers = np.frombuffer(view, np.int32)
        numbers *= numbers
        self._registers[STATUS] = 1
        self.finished_at.append(self.passed)
        self._irq.set(True)

    def next_event(self) -> int | None:
        return self._left


def attach(session: Session, kind: type[Squarer] = Squarer) -> Squarer:
    """Attach the device at the address that the firmware expects."""
    assert isinstance(session, UnicornSession)
    model = kind(session._guest, session._processor.line(LINE))
    Attachment(session._processor, model, address=BASE, size_bytes=0x1000)
    return model


def run(unicorn: Engine, machine: Machine) -> tuple[list[str], Squarer, int]:
    """Run the firmware with the device; return the trace, the model and the number of executed instructions."""
    with unicorn.start(machine) as session:
        model = attach(session)
        lines = trace(session)
        return lines, model, session.counters().instructions or 0


@pytest.mark.parametrize("board", ["mps2-an386", "mps2-an505"])
def test_a_device_takes_its_time_and_interrupts(unicorn: Engine, build_exceptions: Build, board: str) -> None:
    lines, model, executed = run(unicorn, build_exceptions("device", board))
    assert lines == [
        "asleep",
        "status 00000001", "first 00000001", "last 00000010",
        "busy",
        "status 00000001", "first 00000001", "last 00000100",
        "soon enough 00000001",
        "polling",
        "polls 00000001",
        "pending 04000000",
        ".",
    ]  # fmt: skip
    assert model.finished_at[0] >= 100_000
    assert executed < 100_000  # the core slept most of the time


def test_time_is_the_same_in_every_run(
    unicorn: Engine, build_exceptions: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = build_exceptions("device", "mps2-an386")
    _, first, executed = run(unicorn, machine)
    monkeypatch.setattr("ferrule.emulation.unicorn.session.SLICE_INSTRUCTIONS", 331)
    _, second, _ = run(unicorn, machine)
    assert first.finished_at == second.finished_at
    assert executed > 0


def test_what_a_model_raises_ends_the_run(unicorn: Engine, build_exceptions: Build) -> None:
    class Broken(Squarer):
        def advance(self, cycles: int) -> None:
            raise KeyError("lost")

    with unicorn.start(build_exceptions("device", "mps2-an386")) as session:
        attach(session, Broken)
        with pytest.raises(KeyError, match="lost"):
            session.channel().read(1, 10)


def test_a_models_complaint_comes_with_a_report(unicorn: Engine, build_exceptions: Build) -> None:
    class Careful(Squarer):
        def write(self, offset: int, width: int, value: int) -> None:
            self._guest.memory_view(0x9000_0000, 16)

    with unicorn.start(build_exceptions("device", "mps2-an386")) as session:
        attach(session, Careful)
        with pytest.raises(EngineError, match="16 B at 0x9000_0000 do not lie in one memory of mps2-an386") as caught:
            session.channel().read(1, 10)
    assert caught.value.report is not None
    assert caught.value.report.symbol.startswith("main")


def test_memory_is_viewed_without_a_copy(unicorn: Engine, build_exceptions: Build) -> None:
    with unicorn.start(build_exceptions("device", "mps2-an386")) as session:
        assert isinstance(session, UnicornSession)
        guest = session._guest
        view = guest.memory_view(0x2030_0000, 8)
        np.frombuffer(view, np.uint8)[:] = 7
        assert guest.read_memory(0x2030_0000, 8) == bytes([7] * 8)
        assert guest.memory_view(0, 4).readonly
        for address, size in ((0x203F_FFFC, 8), (0x1FFF_FFFF, 2), (0x2000_0000, -1), (0x4000_4000, 4)):
            with pytest.raises(EngineError, match=re.escape(f"{size} B at 0x{address >> 16:04x}_")):
                guest.memory_view(address, size)


def test_timers_run_out(unicorn: Engine, build_exceptions: Build) -> None:
    with unicorn.start(build_exceptions("device", "mps2-an386")) as session:
        assert isinstance(session, UnicornSession)
        for _ in range(TIMERS):
            session._processor.timer(lambda: None)
        with pytest.raises(EngineError, match="16 timers"):
            session._processor.timer(lambda: None)


def test_timers_are_punctual_to_a_block(unicorn: Engine, build: Callable[..., Machine]) -> None:
    with unicorn.start(build("misdeed")) as session:
        assert isinstance(session, UnicornSession)
        processor, seen = session._processor, []
        timer = processor.timer(lambda: seen.append(processor.now))
        session.channel().write(b"h")  # an endless loop of short blocks
        processor.run(1000)
        for wait in (1, 2, 500, 1333):
            due = processor.now + wait
            timer.set(due)
            processor.run(3000)
            assert due <= seen[-1] <= due + 4
        timer.set(processor.now + 100)
        timer.set(None)
        processor.run(1000)
        assert len(seen) == 4
