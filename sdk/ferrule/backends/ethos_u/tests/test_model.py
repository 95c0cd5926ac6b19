# SPDX-License-Identifier: Apache-2.0
"""The device model, controlled through its registers: streams, faults, resets, interrupts, time and counters."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from ethos_u_streams import U55, copy, maximum, settings, short, stop
from hypothesis import given
from hypothesis import strategies as st

from ferrule._typing import override
from ferrule.backends.ethos_u.commands import Kind, Long, Short
from ferrule.backends.ethos_u.configuration import ARCH_ID, configuration
from ferrule.backends.ethos_u.model import EthosUModel
from ferrule.backends.ethos_u.pmu import Event, Monitor
from ferrule.backends.ethos_u.registers import TABLE
from ferrule.backends.ethos_u.stream import operations
from ferrule.backends.ethos_u.timing import KNOWN, START, KnownDurations, estimate, work_of
from ferrule.devices import BusError, InterruptLine, MemoryBus

MEMORY, STREAM, END = 0x2000_0000, 0x800, 0x1000
RUN, CLEAR_IRQ = 1, 2
COUNT = 24
LARGER = maximum(0, 32, 64, COUNT)
WHOLE = [*copy(0, 64, COUNT), *copy(32, 96, COUNT), *maximum(64, 96, 128, COUNT), *stop(0x0101)]


class Line(InterruptLine):
    """Notes its level."""

    level = False

    @override
    def set(self, level: bool) -> None:
        self.level = level


class Board:
    """A model with memory, of which region 1 is the first part, and an interrupt line."""

    def __init__(self, name: str = U55.name) -> None:
        self.model = EthosUModel(name)
        self.bus, self.line = MemoryBus(), Line()
        self.memory = self.bus.add(MEMORY, np.zeros(END, np.uint8))
        self.memory[:64] = np.random.default_rng(3).integers(0, 256, 64)
        self.model.attach(bus=self.bus, irq=self.line)

    def get(self, name: str) -> int:
        return self.model.read(TABLE.register(name).offset, 4)

    def set(self, name: str, value: int) -> None:
        self.model.write(TABLE.register(name).offset, 4, value)

    def field(self, name: str) -> int:
        return self.model.field("STATUS", name)

    def put(self, commands: Iterable[int]) -> None:
        """Place a stream in memory, and set the addresses."""
        data = np.array(list(commands), "<u4").view(np.uint8)
        self.memory[STREAM : STREAM + data.size] = data
        self.set("BASEP1", MEMORY)
        self.set("QBASE", MEMORY + STREAM)
        self.set("QSIZE", data.size)

    def finish(self) -> int:
        """Let time pass until nothing is pending, and return the cycles."""
        passed = 0
        while (cycles := self.model.next_event()) is not None:
            self.model.advance(cycles)
            passed += cycles
        return passed

    def run(self, commands: Iterable[int]) -> int:
        self.put(commands)
        self.set("CMD", RUN)
        return self.finish()

    @property
    def is_right(self) -> bool:
        first, second, output = (self.memory[at : at + COUNT].view(np.int8) for at in (0, 32, 128))
        return bool((output == np.maximum(first, second)).all())


def test_a_stream() -> None:
    board = Board()
    board.put(WHOLE)
    board.set("CMD", RUN)
    assert board.get("STATUS") == 1
    assert board.model.next_event() == START + COUNT // 8
    assert not board.line.level
    board.finish()
    assert board.is_right
    assert board.get("STATUS") == 0x0101_0022  # history, end reached, interrupt
    assert board.get("QREAD") == 4 * len(WHOLE)
    assert board.line.level
    board.set("CMD", CLEAR_IRQ)
    assert board.get("STATUS") == 0x0101_0020
    assert not board.line.level
    board.set("CMD", 0x0001_0000)
    assert board.get("STATUS") == 0x0100_0020
    board.set("QBASE", MEMORY)
    assert board.get("STATUS") == 0x0100_0000
    assert board.model.failure() == ""


def test_an_operation_writes_at_its_end() -> None:
    board = Board()
    board.put(WHOLE)
    board.set("CMD", RUN)
    first = board.model.next_event()
    assert first is not None
    board.model.advance(first - 1)
    assert not board.memory[64:88].any()
    board.model.advance(1)
    assert (board.memory[64:88] == board.memory[0:24]).all()
    assert not board.memory[96:120].any()
    board.model.advance(10_000)  # all that is left
    assert board.is_right


def test_again() -> None:
    board = Board()
    cycles = board.run(WHOLE)
    for seed in range(3):
        board.memory[:64] = np.random.default_rng(seed).integers(0, 256, 64)
        assert board.run(WHOLE) == cycles
        assert board.is_right
    counts = board.model.statistics()
    assert (counts["streams"], counts["operations"], counts["estimated_cycles"]) == (4, 12, 4 * cycles)


def test_a_start_while_it_runs_changes_nothing() -> None:
    board = Board()
    board.put(WHOLE)
    board.set("CMD", RUN)
    event = board.model.next_event()
    board.set("CMD", RUN)
    board.set("QBASE", 0)
    assert board.model.next_event() == event
    board.finish()
    assert board.is_right


@pytest.mark.parametrize("levels", range(4))
def test_reset(levels: int) -> None:
    board = Board()
    board.put(WHOLE)
    board.set("CMD", RUN)
    board.set("AXI_LIMIT0", 0x0F1F_0000)
    board.set("RESET", levels)
    assert (board.get("STATUS"), board.get("PROT"), board.get("CMD")) == (0, levels, 0xC)
    assert (board.get("AXI_LIMIT0"), board.get("QSIZE"), board.get("BASEP1")) == (0, 0, 0)
    assert board.model.next_event() is None
    assert (board.get("CONFIG"), board.get("ID")) == (U55.register, ARCH_ID)
    board.run(WHOLE)
    assert board.is_right


@pytest.mark.parametrize("name", ["ethos-u55-32", "ethos-u55-256", "ethos-u65-256", "ethos-u65-512"])
def test_configurations(name: str) -> None:
    board = Board(name)
    assert board.get("CONFIG") == configuration(name).register
    board.run(WHOLE)
    assert board.is_right


@pytest.mark.parametrize(
    ("commands", "channel", "message"),
    [
        (copy(END, 0, 8), "DMA_READ", "word 8 (DMA_START)"),
        (copy(0, END, 8), "DMA_WRITE", "word 8 (DMA_START)"),
        (maximum(END, 0, 64, COUNT), "IFM", "(ELEMENTWISE MAX)"),
        (maximum(0, END, 64, COUNT), "IFM", "(ELEMENTWISE MAX)"),
        (maximum(0, 32, END, COUNT), "OFM", "(ELEMENTWISE MAX)"),
    ],
)
def test_memory_that_is_not_there(commands: list[int], channel: str, message: str) -> None:
    board = Board()
    board.set("REGIONCFG", 2 << 2)
    board.run([*commands, *stop()])
    assert board.line.level
    assert [board.field(name) for name in ("RUNNING", "IRQ", "BUS", "PARSE_ERROR", "END_REACHED")] == [0, 1, 1, 0, 0]
    assert board.field("FAULT_CHANNEL") == TABLE.register("STATUS").field("FAULT_CHANNEL").value(channel)
    assert board.field("FAULT_PORT") == 1
    assert message in board.model.failure()
    assert "where there is no memory" in board.model.failure()
    assert board.model.statistics()["faults"] == 1


def test_a_stream_that_is_not_there() -> None:
    board = Board()
    board.put(WHOLE)
    board.set("QBASE", MEMORY + END)
    board.set("CMD", RUN)
    assert (board.field("BUS"), board.field("FAULT_CHANNEL")) == (1, 0)
    assert "the command stream" in board.model.failure()


@pytest.mark.parametrize(
    ("commands", "message"),
    [
        ([0x3FF, *stop()], "no such register"),
        ([0x00FF, *stop()], "no such operation"),
        ([0x8000, *stop()], "is no command"),
        (copy(0, 64, 8), "ends without STOP"),
        ([*LARGER[:-1], *settings({Short.OFM_PRECISION: 2 << 6 | 1}), LARGER[-1]], "OFM has the layout 2"),
        (short(Kind.ELEMENTWISE, 12), "no mode 12"),
        ([], "ends without STOP"),
    ],
)
def test_streams_that_are_wrong(commands: list[int], message: str) -> None:
    board = Board()
    board.run(commands)
    assert board.line.level
    assert [board.field(name) for name in ("RUNNING", "IRQ", "BUS", "END_REACHED")] == [0, 1, 0, 0]
    assert board.field("PARSE_ERROR")
    assert message in board.model.failure()


def test_weights_that_cannot_be_decoded() -> None:
    board = Board()
    convolution = {
        Short.IFM_DEPTH_M1: 7,
        Short.OFM_DEPTH_M1: 7,
        Short.IFM_REGION: 1,
        Short.OFM_REGION: 1,
        Short.WEIGHT_REGION: 1,
        Short.SCALE_REGION: 1,
        Short.IFM_PRECISION: 1,
        Short.OFM_PRECISION: 1,
        Short.OFM_BLK_DEPTH_M1: 7,
        Long.WEIGHT_BASE: 512,
        Long.WEIGHT_LENGTH: 16,
        Long.SCALE_BASE: 256,
        Long.SCALE_LENGTH: 80,
    }
    board.run([*settings(convolution), *short(Kind.CONV), *stop()])
    assert [board.field(name) for name in ("WEIGHT_FAULT", "PARSE_ERROR", "IRQ", "END_REACHED")] == [1, 0, 1, 0]
    assert "weight" in board.model.failure()


@pytest.mark.parametrize("command", ["CMD", "QSIZE"])
def test_only_a_reset_clears_a_fault(command: str) -> None:
    board = Board()
    board.run([0x3FF])
    board.set("CMD", CLEAR_IRQ)
    board.put(WHOLE)
    board.set(command, RUN)
    board.set("CMD", RUN)
    board.finish()
    assert (board.field("PARSE_ERROR"), board.field("RUNNING"), board.field("END_REACHED")) == (1, 0, 0)
    assert not board.memory[64:].view(np.int8)[:64].any()
    board.set("RESET", 1)
    board.run(WHOLE)
    assert board.is_right
    assert board.model.failure() == ""


def test_an_interrupt_within_a_stream() -> None:
    """The stream goes on, and the history tells the interrupts apart."""
    board = Board()
    board.put([*copy(0, 64, 8), *short(Kind.IRQ, 0x8000), *copy(0, 72, 8), *stop(1)])
    board.set("CMD", RUN)
    board.model.advance(board.model.next_event() or 0)
    assert board.line.level
    assert board.get("STATUS") == 0x8000_0003
    board.set("CMD", CLEAR_IRQ)
    assert not board.line.level
    board.finish()
    assert board.get("STATUS") == 0x8001_0022


def test_a_missing_wait_is_counted() -> None:
    board = Board()
    wait = short(Kind.DMA_WAIT)
    board.run([*copy(0, 64, COUNT)[: -len(wait)], *maximum(64, 32, 128, COUNT), *stop()])
    assert board.field("END_REACHED")
    assert board.model.statistics()["hazards"] == 1


def test_high_addresses_count_on_ethos_u65_only() -> None:
    for name, bus in (("ethos-u55-128", 0), ("ethos-u65-256", 1)):
        board = Board(name)
        board.put(WHOLE)
        board.set("BASEP1_HIGH", 1)
        board.set("CMD", RUN)
        board.finish()
        assert board.field("BUS") == bus


@pytest.mark.parametrize(("offset", "width"), [(0x30, 4), (0x0, 1), (0x400, 4), (0x800, 4), (0x200, 4)])
def test_what_is_no_register(offset: int, width: int) -> None:
    with pytest.raises(BusError, match="ethos_u: a read of"):
        EthosUModel().read(offset, width)


@pytest.mark.parametrize("register", ["ID", "STATUS", "QREAD", "PROT", "CONFIG"])
def test_read_only(register: str) -> None:
    with pytest.raises(BusError, match=f"a write of {register}, which is read-only"):
        Board().set(register, 0)


# ---- the performance monitor


def test_counters() -> None:
    board = Board()
    board.set("REGIONCFG", 0)
    board.set("PMCR", 1)
    assert board.get("PMCR") == 4 << 11 | 1
    board.set("PMCNTENSET", 1 << 31 | 0xF)
    kinds = (Event.NPU_ACTIVE, Event.NPU_IDLE, Event.AXI0_WRITE_BEATS, Event.CYCLE)
    for index, kind in enumerate(kinds):
        board.set(f"PMEVTYPER{index}", kind)
    board.model.advance(100)
    cycles = board.run(WHOLE)
    board.model.advance(11)
    counted = [board.get(f"PMEVCNTR{index}") for index in range(4)]
    assert counted == [cycles, 111, 9, cycles + 111]
    assert (board.get("PMCCNTR"), board.get("PMCCNTR_HIGH")) == (cycles + 111, 0)
    board.set("PMCNTENCLR", 0b1001)
    assert board.get("PMCNTENSET") == board.get("PMCNTENCLR") == 1 << 31 | 0b0110
    board.set("PMCR", 0b111)
    assert board.get("PMCR") == 4 << 11 | 1
    assert [board.get(name) for name in ("PMCCNTR", "PMEVCNTR0", "PMEVCNTR3")] == [0, 0, 0]
    board.set("PMCR", 0)
    board.model.advance(5)
    assert board.get("PMCCNTR") == 0


def test_an_overflow_interrupts() -> None:
    board = Board()
    board.set("PMCR", 1)
    board.set("PMCNTENSET", 1 << 31 | 1)
    board.set("PMINTSET", 1 << 31)
    board.set("PMEVTYPER0", Event.CYCLE)
    board.set("PMEVCNTR0", 0xFFFF_FFFF)
    board.model.advance(2)
    assert (board.get("PMEVCNTR0"), board.get("PMOVSSET"), board.line.level) == (1, 1, False)
    board.set("PMCCNTR_HIGH", 0xFFFF)
    board.set("PMCCNTR", 0xFFFF_FFF0)
    board.model.advance(0x20)
    assert (board.get("PMCCNTR"), board.get("PMCCNTR_HIGH")) == (0x10, 0)
    assert board.get("PMOVSCLR") == 1 << 31 | 1
    assert board.line.level
    assert board.field("PMU_IRQ")
    board.set("CMD", CLEAR_IRQ)
    assert (board.line.level, board.get("PMOVSSET"), board.field("PMU_IRQ")) == (False, 0, 0)


def test_a_stream_may_switch_the_counters() -> None:
    masked = [*short(Kind.PMU_MASK, 1), *copy(0, 64, 8), *short(Kind.PMU_MASK, 0), *copy(0, 64, 8), *stop()]
    for control, counts in ((0b1000, True), (0, False)):
        board = Board()
        board.set("PMCR", control)
        board.set("PMCNTENSET", 1 << 31)
        cycles = board.run(masked)
        assert board.get("PMCCNTR") == (cycles // 2 if counts else 0)
        assert not board.get("PMCR") & 1


def test_events_that_are_not_estimated_stay() -> None:
    monitor = Monitor()
    monitor.enabled, monitor.counting, monitor.types = True, 0xF, [51, 0, 999, 17]
    monitor.pass_cycles(7, running=True)
    assert monitor.events == [0, 0, 0, 7]


# ---- time


def test_a_known_duration_is_taken() -> None:
    commands = [*copy(0, 80, COUNT), *copy(32, 112, COUNT), *maximum(80, 112, 144, COUNT), *stop(2)]
    place = len(commands) - 2
    KNOWN.remember(np.array(commands, "<u4").tobytes(), {4 * place: 777})
    board = Board()
    assert board.run(commands) == 777  # copies run beside
    counts = board.model.statistics()
    assert (counts["estimated_cycles"], counts["estimated_cycles_by_vela"]) == (777, 777)


def test_the_most_recent_durations_are_kept() -> None:
    known = KnownDurations()
    for number in range(300):
        known.remember(bytes([number & 255, number >> 8]), {0: number})
    assert known.of(b"\0\0") == {}
    assert known.of(bytes([299 & 255, 1])) == {0: 299}


def test_sizes() -> None:
    shape = {Short.OFM_HEIGHT_M1: 9, Short.OFM_WIDTH_M1: 4, Short.OFM_DEPTH_M1: 15, Short.IFM_DEPTH_M1: 31}
    kernel = {
        Short.KERNEL_HEIGHT_M1: 2,
        Short.KERNEL_WIDTH_M1: 4,
        Short.KERNEL_STRIDE: 0b1010,
    }  # stride 1x2, dilated in x
    lengths = {Long.WEIGHT_LENGTH: 1000, Long.SCALE_LENGTH: 160}
    words = np.array(
        [
            *settings({**shape, **kernel, **lengths}),
            *short(Kind.CONV),
            *short(Kind.DEPTHWISE),
            *short(Kind.POOL, 0),
            *short(Kind.ELEMENTWISE, 1),
            *copy(0, 0, 80),
            *stop(),
        ],
        "<u4",
    )
    conv, depthwise, pool, add, dma, wait, end = operations(words)
    area = (4 + 5) * (9 * 2 + 3) * 32
    assert work_of(conv) == (10 * 5 * 16 * 9 * 32, area + 800 + 1160)
    assert work_of(depthwise)[0] == 10 * 5 * 16 * 9
    assert work_of(pool) == (10 * 5 * 16 * 9, area + 800)
    assert work_of(add) == (800, 2400)
    assert work_of(dma) == (0, 80)
    assert estimate(conv, U55) == START + work_of(conv)[0] // 128
    assert estimate(dma, U55) == START + 10
    assert estimate(dma, configuration("ethos-u65-256")) == START + 5
    assert (estimate(wait, U55), estimate(end, U55)) == (0, 0)


WRITABLE = [register.offset for register in TABLE if register.access != "ro"]
PLACES = [MEMORY, MEMORY + STREAM, MEMORY + END - 8]
_MOST = (1 << 32) - 1
STEPS = st.one_of(
    st.tuples(
        st.sampled_from(WRITABLE), st.one_of(st.integers(0, 8), st.sampled_from(PLACES), st.integers(0, 2**32 - 1))
    ),
    st.tuples(st.just(-1), st.integers(0, 200)),
    st.tuples(st.just(TABLE.register("CMD").offset), st.integers(0, 3)),
)


@given(st.lists(STEPS, max_size=30))
def test_whatever_is_written_it_keeps_its_word(steps: list[tuple[int, int]]) -> None:
    """It runs exactly while an event is pending, the line is that of STATUS, and a device with a fault does nothing."""
    board = Board()
    board.put(WHOLE)
    for offset, value in steps:
        if offset < 0:
            board.model.advance(value)
        else:
            board.model.write(offset, 4, value)
        status = board.get("STATUS")
        assert bool(status & 1) == (board.model.next_event() is not None)
        assert board.line.level == bool(status & (1 << 1 | 1 << 6))
        assert not (status & 1 and status & (1 << 2 | 1 << 4 | 1 << 7))
    board.finish()
    board.set("RESET", 0)
    board.run(WHOLE)
    assert board.field("END_REACHED")
