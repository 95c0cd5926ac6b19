# SPDX-License-Identifier: Apache-2.0
"""The device model: queue, timing, errors, interrupt."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule._typing import override
from ferrule.backends.woofles import arithmetic
from ferrule.backends.woofles.command import COMMAND_BYTES, Command, Operation
from ferrule.backends.woofles.host import Operated
from ferrule.backends.woofles.model import DEFAULT_TIMING, IMMEDIATE, MAX_QUEUE, Timing, WooflesModel
from ferrule.backends.woofles.registers import ID, TABLE, ErrorCode
from ferrule.devices import BusError, InterruptLine, MemoryBus
from ferrule.errors import FerruleError

RING, DATA, LENGTH = 0x2000_0000, 0x2100_0000, 4
ENABLE, IRQ_ENABLE, RESET = 1, 2, 4
BUSY, DONE, ERROR = 1, 2, 4
COPY = Command(
    operation=Operation.ADD,
    count=4,
    input=DATA,
    second=DATA + 8,
    output=DATA + 16,
    input_multiplier=1 << 30,
    second_multiplier=1 << 30,
    output_multiplier=1 << 30,
    input_shift=1,
    second_shift=1,
    output_shift=1,
)
"""Adds four unscaled numbers."""


class Line(InterruptLine):
    def __init__(self) -> None:
        self.level = False

    @override
    def set(self, level: bool) -> None:
        self.level = level


class Board:
    """The device with memory, and the operations of its software."""

    def __init__(self, timing: Timing = IMMEDIATE, length: int = LENGTH, control: int = ENABLE) -> None:
        self.model, self.bus, self.line = WooflesModel(timing), MemoryBus(), Line()
        self.ring = self.bus.add(RING, length * COMMAND_BYTES)
        self.data = self.bus.add(DATA, 64)
        self.data[:12] = [1, 2, 3, 4, 0, 0, 0, 0, 10, 20, 30, 40]
        self.model.attach(bus=self.bus, irq=self.line)
        self.set("QUEUE_BASE", RING)
        self.set("QUEUE_LENGTH", length)
        self.set("CONTROL", control)

    def get(self, register: str) -> int:
        return self.model.read(TABLE.register(register).offset, 4)

    def set(self, register: str, value: int) -> None:
        self.model.write(TABLE.register(register).offset, 4, value)

    def put(self, place: int, command: Command | bytes) -> None:
        data = command if isinstance(command, bytes) else command.encode()
        self.ring[place * COMMAND_BYTES : (place + 1) * COMMAND_BYTES] = np.frombuffer(data, np.uint8)

    @property
    def result(self) -> list[int]:
        return self.data[16:20].tolist()


def stopped(board: Board, code: ErrorCode) -> bool:
    return board.get("STATUS") == ERROR | code << 8 and board.get("INTERRUPT") == 2


def test_after_a_reset() -> None:
    model = WooflesModel()
    values = {register.name: model.read(register.offset, 4) for register in TABLE}
    assert values == {register.name: register.reset for register in TABLE}
    assert values["ID"] == ID == int.from_bytes(b"WOFL", "little")
    assert model.next_event() is None
    assert model.size_bytes == 0x1000


def test_one_command() -> None:
    board = Board()
    board.put(0, replace(COPY, sequence=77))
    board.set("QUEUE_HEAD", 1)
    assert board.result == [11, 22, 33, 44]
    names = ("STATUS", "INTERRUPT", "QUEUE_TAIL", "COMPLETED", "SEQUENCE")
    assert [board.get(name) for name in names] == [DONE, 1, 1, 1, 77]


def test_several_commands_take_their_time() -> None:
    board = Board(Timing(command=100), control=ENABLE | IRQ_ENABLE)
    for place in range(3):
        board.put(place, replace(COPY, sequence=place + 1, output=DATA + 16 + 4 * place))
    board.set("QUEUE_HEAD", 3)
    assert (board.get("STATUS"), board.model.next_event()) == (BUSY, 100)
    board.model.advance(99)
    assert (board.result, board.model.next_event()) == ([0] * 4, 1)
    board.model.advance(0)
    board.model.advance(1)
    assert (board.result, board.get("COMPLETED"), board.get("STATUS")) == ([11, 22, 33, 44], 1, BUSY)
    assert not board.line.level
    board.model.advance(150)
    assert (board.get("SEQUENCE"), board.model.next_event()) == (2, 50)
    board.model.advance(10_000)
    assert (board.get("SEQUENCE"), board.get("STATUS"), board.model.next_event()) == (3, DONE, None)
    assert board.line.level
    counts = {"commands": 3, "busy_cycles": 300, "macs": 3 * arithmetic.macs(COPY)}
    assert board.model.statistics() == counts
    board.model.reset()
    assert board.model.statistics() == counts


@pytest.mark.parametrize(("timing", "cycles"), [(DEFAULT_TIMING, 32 + 1 + 43), (Timing(macs_per_cycle=1), 4)])
def test_timing(timing: Timing, cycles: int) -> None:
    assert timing.cycles(COPY) == cycles  # 160 B of command and 12 of data by 4


def test_the_queue_wraps() -> None:
    board = Board()
    for index in range(3 * LENGTH):
        board.put(index % LENGTH, replace(COPY, sequence=index))
        board.set("QUEUE_HEAD", (index + 1) % LENGTH)
        assert (board.get("SEQUENCE"), board.get("QUEUE_TAIL")) == (index, (index + 1) % LENGTH)
    for place in (3, 0, 1):
        board.put(place, COPY)
    board.model.set_value("QUEUE_TAIL", 3)
    board.set("QUEUE_HEAD", 2)
    assert board.get("COMPLETED") == 3 * LENGTH + 3


@pytest.mark.parametrize("timing", [IMMEDIATE, DEFAULT_TIMING])
def test_a_full_queue_of_the_largest_size(timing: Timing) -> None:
    board = Board(timing, MAX_QUEUE)
    for place in range(MAX_QUEUE - 1):
        board.put(place, COPY)
    board.set("QUEUE_HEAD", MAX_QUEUE - 1)
    board.model.advance(1_000_000)
    assert (board.get("COMPLETED"), board.get("STATUS")) == (MAX_QUEUE - 1, DONE)


def test_commands_wait_until_it_is_enabled() -> None:
    board = Board(control=0)
    board.put(0, COPY)
    board.set("QUEUE_HEAD", 1)
    assert (board.get("STATUS"), board.get("COMPLETED")) == (0, 0)
    board.set("CONTROL", ENABLE)
    assert board.get("COMPLETED") == 1


def test_disabled_it_ends_the_command_and_takes_no_other() -> None:
    board = Board(Timing(command=10))
    for place in range(2):
        board.put(place, COPY)
    board.set("QUEUE_HEAD", 2)
    board.set("CONTROL", 0)
    board.model.advance(1000)
    assert (board.get("COMPLETED"), board.get("STATUS"), board.model.next_event()) == (1, BUSY, None)
    board.set("CONTROL", ENABLE)
    board.model.advance(10)
    assert (board.get("COMPLETED"), board.get("STATUS")) == (2, DONE)


def test_reset_while_busy() -> None:
    board = Board(Timing(command=10), control=ENABLE | IRQ_ENABLE)
    board.put(0, COPY)
    board.set("QUEUE_HEAD", 1)
    board.set("CONTROL", RESET | ENABLE)
    assert [board.get(register.name) for register in TABLE] == [register.reset for register in TABLE]
    board.model.advance(1000)
    assert (board.result, board.line.level) == ([0] * 4, False)


def test_doorbell_without_anything_new() -> None:
    board = Board()
    board.set("QUEUE_HEAD", 0)
    assert (board.get("STATUS"), board.get("INTERRUPT")) == (0, 0)


def test_done_goes_when_the_doorbell_rings() -> None:
    board = Board(Timing(command=10))
    board.put(0, COPY)
    board.set("QUEUE_HEAD", 1)
    board.model.advance(10)
    assert board.get("STATUS") == DONE
    board.put(1, COPY)
    board.set("QUEUE_HEAD", 2)
    assert board.get("STATUS") == BUSY


# ---- the interrupt


def test_the_line_is_a_level() -> None:
    board = Board()
    board.put(0, COPY)
    board.set("QUEUE_HEAD", 1)
    assert not board.line.level
    board.set("CONTROL", ENABLE | IRQ_ENABLE)
    assert board.line.level
    board.set("INTERRUPT", 2)
    assert board.line.level
    board.set("CONTROL", ENABLE)
    assert not board.line.level
    board.set("CONTROL", ENABLE | IRQ_ENABLE)
    board.set("INTERRUPT", 1)
    assert (board.line.level, board.get("INTERRUPT")) == (False, 0)


def test_an_error_raises_it_too_and_a_reset_lowers_it() -> None:
    board = Board(control=ENABLE | IRQ_ENABLE)
    board.set("QUEUE_HEAD", 99)
    assert board.line.level
    board.set("CONTROL", RESET)
    assert not board.line.level
    board.set("CONTROL", IRQ_ENABLE)
    board.set("QUEUE_HEAD", 99)
    board.model.set_power(on=False)
    assert not board.line.level
    board.model.set_power(on=True)
    assert board.get("STATUS") == 0


# ---- errors


@pytest.mark.parametrize("data", [bytes(COMMAND_BYTES), Command(operation=9).encode()])
def test_a_bad_command(data: bytes) -> None:
    board = Board()
    board.put(0, data)
    board.set("QUEUE_HEAD", 1)
    assert stopped(board, ErrorCode.COMMAND)
    assert (board.get("QUEUE_TAIL"), board.get("COMPLETED")) == (0, 0)


def test_a_bad_shape() -> None:
    board = Board()
    board.put(0, replace(COPY, count=0))
    board.set("QUEUE_HEAD", 1)
    assert stopped(board, ErrorCode.SHAPE)


def test_a_bad_shift_in_memory() -> None:
    board = Board(DEFAULT_TIMING)
    board.data[32:36] = 99
    conv = replace(COPY, operation=Operation.CONV_2D, count=1, multipliers=DATA + 24, shifts=DATA + 32)
    board.put(0, conv)
    board.set("QUEUE_HEAD", 1)
    board.model.advance(1000)
    assert stopped(board, ErrorCode.SHAPE)


@pytest.mark.parametrize("member", ["input", "second", "output"])
def test_memory_that_is_not_there(member: str) -> None:
    board = Board()
    board.put(0, replace(COPY, **{member: 0x1234_5678}))
    board.set("QUEUE_HEAD", 1)
    assert stopped(board, ErrorCode.BUS)
    assert board.get("ERROR_ADDRESS") == 0x1234_5678


@pytest.mark.parametrize("member", ["bias", "multipliers", "shifts"])
def test_parameters_that_are_not_there(member: str) -> None:
    board = Board()
    places = {"multipliers": DATA + 24, "shifts": DATA + 32, "bias": 0, member: 0x999}
    board.put(0, replace(COPY, operation=Operation.FULLY_CONNECTED, count=1, **places))
    board.set("QUEUE_HEAD", 1)
    assert stopped(board, ErrorCode.BUS)
    assert board.get("ERROR_ADDRESS") == 0x999


def test_a_queue_that_is_not_there() -> None:
    board = Board()
    board.set("QUEUE_BASE", 0x5000)
    board.set("QUEUE_HEAD", 1)
    assert stopped(board, ErrorCode.BUS)
    assert board.get("ERROR_ADDRESS") == 0x5000


@pytest.mark.parametrize(
    ("register", "value"), [("QUEUE_LENGTH", 0), ("QUEUE_LENGTH", 257), ("QUEUE_BASE", RING + 2), ("QUEUE_LENGTH", 1)]
)
@pytest.mark.parametrize("late", [False, True])
def test_a_queue_that_makes_no_sense(register: str, value: int, late: bool) -> None:
    """The error is found at the doorbell, or at enabling after the doorbell."""
    board = Board(control=0)
    board.put(0, COPY)
    if late:
        board.set("QUEUE_HEAD", 1)
    board.set(register, value)
    if not late:
        board.set("QUEUE_HEAD", 1)
    board.set("CONTROL", ENABLE)
    assert stopped(board, ErrorCode.QUEUE)


@pytest.mark.parametrize("register", ["QUEUE_BASE", "QUEUE_LENGTH"])
def test_the_queue_is_left_alone_while_it_is_busy(register: str) -> None:
    board = Board(Timing(command=10))
    board.put(0, COPY)
    board.set("QUEUE_HEAD", 1)
    board.set(register, 4)
    assert stopped(board, ErrorCode.QUEUE)
    board.model.advance(100)
    assert board.result == [0] * 4


def test_only_a_reset_helps_and_the_first_error_stays() -> None:
    board = Board()
    board.put(0, replace(COPY, input=4))
    board.set("QUEUE_HEAD", 1)
    board.set("QUEUE_HEAD", 99)
    assert board.get("STATUS") == ERROR | ErrorCode.BUS << 8
    board.put(0, COPY)
    board.set("QUEUE_HEAD", 1)
    board.set("CONTROL", ENABLE)
    assert board.get("COMPLETED") == 0


@pytest.mark.parametrize(("offset", "width"), [(0x30, 4), (0x0, 1), (0x2, 2), (0xFFC, 4), (0x1, 4)])
def test_what_is_no_register(offset: int, width: int) -> None:
    model = WooflesModel()
    with pytest.raises(BusError, match="woofles: a read of"):
        model.read(offset, width)
    with pytest.raises(BusError, match="woofles: a write of"):
        model.write(offset, width, 0)


@pytest.mark.parametrize("register", [r.name for r in TABLE if r.access == "ro"])
def test_read_only(register: str) -> None:
    with pytest.raises(BusError, match=f"a write of {register}, which is read-only"):
        Board().set(register, 0)


def test_operated_names_the_error() -> None:
    with pytest.raises(FerruleError, match=r"the error BUS \(3\)"):
        Operated().run(COPY)


WRITABLE = [register.offset for register in TABLE if register.access != "ro"]
STEPS = st.one_of(
    st.tuples(st.sampled_from(WRITABLE), st.one_of(st.integers(0, 8), st.just(RING), st.integers(0, 2**32 - 1))),
    st.tuples(st.just(-1), st.integers(0, 200)),
)


@given(st.lists(STEPS, max_size=30), st.sampled_from([IMMEDIATE, DEFAULT_TIMING]))
def test_whatever_is_written_it_keeps_its_word(steps: list[tuple[int, int]], timing: Timing) -> None:
    """BUSY ends, the line equals INTERRUPT and its enable bit, and a stopped device does nothing."""
    board = Board(timing)
    for place in range(LENGTH):
        board.put(place, COPY)
    for offset, value in steps:
        if offset < 0:
            board.model.advance(value)
        else:
            board.model.write(offset, 4, value)
        status, control = board.get("STATUS"), board.get("CONTROL")
        assert board.line.level == bool(control & IRQ_ENABLE and board.get("INTERRUPT"))
        assert bool(status & ERROR) == bool(status >> 8)
        if board.model.next_event() is not None:
            assert status & BUSY
            assert not status & (DONE | ERROR)
    board.set("CONTROL", ENABLE)
    board.model.advance(100_000)
    assert not board.get("STATUS") & BUSY
