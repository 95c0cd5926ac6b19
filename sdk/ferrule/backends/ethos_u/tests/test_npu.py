# SPDX-License-Identifier: Apache-2.0
"""The functional model of Ethos-U: refusals by name, bus errors, limits, and what it keeps from run to run."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from ethos_u_operations import READ_ONLY, SCALES_AT, draw, memory, plain_weights
from ethos_u_streams import SCRATCH, U55, copy, maximum, payload, settings, short, stop

from ferrule.backends.ethos_u import native_structs
from ferrule.backends.ethos_u.commands import Elementwise, Kind, Long, Pool, Short
from ferrule.backends.ethos_u.configuration import configuration
from ferrule.backends.ethos_u.errors import NpuBusError, StreamError, UnsupportedModeError
from ferrule.backends.ethos_u.machine import ArrayMemory, Range
from ferrule.backends.ethos_u.npu import Npu
from ferrule.backends.ethos_u.stream import parse_payload
from ferrule.errors import FerruleError, MissingToolError
from ferrule.record import recording

Bytes = np.ndarray
both_ways = pytest.mark.parametrize("native", [True, False])


def scratch(size_bytes: int = 512) -> Bytes:
    return np.random.default_rng(0).integers(0, 256, size_bytes, np.uint8)


def execute(words: list[int], memory: Bytes, *, native: bool = True) -> None:
    list(Npu(U55, ArrayMemory({SCRATCH: memory}), native=native).steps(np.array(words, np.uint32)))


def changed(values: Mapping[Short | Long, int]) -> list[int]:
    """Return a stream with a maximum of which some registers are set otherwise."""
    return [*maximum(0, 64, 128, 16)[:-1], *settings(values), *short(Kind.ELEMENTWISE, Elementwise.MAX), *stop()]


def test_steps_execute_one_operation_each() -> None:
    data = scratch()
    before = data.copy()
    steps = Npu(U55, ArrayMemory({SCRATCH: data})).steps(
        np.array([*copy(0, 256, 16), *maximum(0, 64, 128, 16), *stop(9)], np.uint32)
    )
    step = next(steps)
    assert (step.operation.kind, step.bytes_read, step.bytes_written) == (Kind.DMA_START, 16, 16)
    assert data[256:272].tolist() == before[:16].tolist()
    assert data[128:144].tolist() == before[128:144].tolist()
    assert [each.operation.kind for each in steps] == [Kind.DMA_WAIT, Kind.ELEMENTWISE, Kind.STOP]
    assert np.array_equal(
        data[128:144].view(np.int8), np.maximum(before[:16].view(np.int8), before[64:80].view(np.int8))
    )


def test_a_run_sums_up() -> None:
    words = [*copy(0, 256, 16), *maximum(0, 64, 128, 16), *stop(9)]
    done = Npu(U55, ArrayMemory({SCRATCH: scratch()})).run(parse_payload(payload(words)))
    assert (len(done), done[-1].operation.parameter, done[-1].operation.word_offset) == (4, 9, len(words) - 1)
    assert [sum(getattr(each, name) for each in done) for name in ("bytes_read", "bytes_written", "macs")] == [
        48,
        32,
        0,
    ]
    assert not any(each.hazards for each in done)


def test_a_stream_for_another_configuration_is_refused() -> None:
    other = configuration("ethos-u55-256")
    with pytest.raises(StreamError, match="compiled for CONFIG 0x00003008, and ethos-u55-128"):
        Npu(U55, ArrayMemory({})).run(parse_payload(payload(stop(), other)))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({Short.OFM_PRECISION: 1 | 1 << 14}, "rounding TRUNCATE"),
        ({Short.IFM_PRECISION: 1 | 3 << 2}, "IFM of type int64"),
        ({Short.IFM_PRECISION: 1 << 2}, "IFM of type uint16"),
        ({Short.IFM2_PRECISION: 1 | 2 << 6}, "IFM2 has the layout 2"),
        ({Short.IFM_UPSCALE: 3}, "upscaling 3"),
        ({Short.ACTIVATION: 1}, "activation function 1"),
        ({Short.ACTIVATION: 3}, "tanh and sigmoid with an OFM of type int8"),
        ({Short.ACTIVATION: 2 << 12}, "FORCE_UINT8"),
        ({Short.ACTIVATION: 5 << 12}, "FORCE_INT16"),
        (
            {Short.OFM_HEIGHT_M1: 0xFFFF, Short.OFM_WIDTH_M1: 0xFFFF, Short.OFM_DEPTH_M1: 0xFFFF},
            "65536 x 65536 x 65536",
        ),
    ],
)
@both_ways
def test_modes_that_vela_never_emits_are_refused(values: dict[Short | Long, int], message: str, native: bool) -> None:
    data = scratch()
    before = data.copy()
    words = changed(values)
    with pytest.raises(UnsupportedModeError, match=message) as caught:
        execute(words, data, native=native)
    assert caught.value.word_offset == len(words) - 2
    assert caught.value.opcode == Kind.ELEMENTWISE
    assert "ELEMENTWISE MAX" in str(caught.value)
    assert np.array_equal(data, before)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({Short.KERNEL_STRIDE: 0x20}, "4 x 4"),
        ({Short.ACC_FORMAT: 2}, "16-bit floating point"),
        ({Short.KERNEL_STRIDE: 8}, "dilation"),
        ({Short.IFM_PAD_TOP: 40}, "the padding exceeds"),
        ({Short.KERNEL_HEIGHT_M1: 0xFFFF, Short.KERNEL_WIDTH_M1: 0xFFFF}, "more than are executed"),
    ],
)
def test_windows_that_vela_never_emits_are_refused(values: dict[Short | Long, int], message: str) -> None:
    words = [*maximum(0, 64, 128, 16)[:-1], *settings(values), *short(Kind.POOL, Pool.MAX), *stop()]
    with pytest.raises(StreamError, match=message):
        execute(words, scratch())


@both_ways
@pytest.mark.parametrize(
    ("values", "access", "writable"),
    [
        ({Long.IFM_BASE0: 500}, "IFM", False),
        ({Long.IFM2_BASE0: 0xFFFF_FFF0}, "IFM2", False),
        ({Long.OFM_BASE0: 497}, "OFM", True),
        ({Long.OFM_BASE0: 8, Long.OFM_STRIDE_X: 0xFFFF_FFFF}, "OFM", True),
        ({Short.OFM_REGION: 5}, "OFM", True),
        ({Long.OFM_BASE0: (1 << 48) - 1}, "OFM", True),
    ],
)
def test_accesses_outside_are_bus_errors(
    values: dict[Short | Long, int], access: str, writable: bool, native: bool
) -> None:
    data = scratch()
    before = data.copy()
    with pytest.raises(NpuBusError, match=f"ELEMENTWISE MAX.*{access}: can't") as caught:
        execute(changed(values), data, native=native)
    assert (caught.value.access, caught.value.writable, caught.value.where.size_bytes) == (access, writable, 16)
    assert np.array_equal(data, before)


def test_a_region_that_is_read_only_cannot_be_written() -> None:
    data = scratch()
    data.flags.writeable = False
    with pytest.raises(NpuBusError, match=r"OFM.*read-only"):
        execute(changed({}), data)
    with pytest.raises(NpuBusError, match=r"destination of the DMA.*read-only"):
        execute([*copy(0, 64, 16), *stop()], data)


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        ({Short.DMA0_SRC_REGION: 1 << 9}, UnsupportedModeError, "two or three dimensions"),
        (
            {Short.DMA0_DST_REGION: 0x100, Long.DMA0_DST: U55.shram_bytes - 8},
            NpuBusError,
            "internal memory has 24576 bytes",
        ),
        ({Long.DMA0_LEN: 1 << 28 | 1}, UnsupportedModeError, "more than the 268435456 that are executed"),
    ],
)
def test_copies_that_are_refused(values: dict[Short | Long, int], kind: type[FerruleError], message: str) -> None:
    words = [*copy(0, 64, 16)[:-2], *settings(values), *short(Kind.DMA_START), *stop()]
    with pytest.raises(kind, match=message):
        execute(words, scratch())


@both_ways
def test_rows_written_backwards_and_rows_that_repeat(native: bool) -> None:
    data = scratch()
    first, second = (data[at : at + 16].view(np.int8).copy() for at in (0, 64))
    execute(changed({Long.OFM_BASE0: 143, Long.OFM_STRIDE_X: 0xFFFF_FFFF}), data, native=native)
    assert data[128:144].view(np.int8).tolist() == np.maximum(first, second)[::-1].tolist()
    execute(changed({Long.IFM_STRIDE_X: 0}), data, native=native)
    assert data[128:144].view(np.int8).tolist() == np.maximum(first[0], second).tolist()


@both_ways
def test_a_result_over_its_own_operand(native: bool) -> None:
    """All operands are read before anything is written."""
    data = scratch()
    first, second = (data[at : at + 16].view(np.int8).copy() for at in (0, 64))
    execute(changed({Long.OFM_BASE0: 4}), data, native=native)
    assert data[4:20].view(np.int8).tolist() == np.maximum(first, second).tolist()


@both_ways
def test_a_shift_out_of_range_is_refused(native: bool) -> None:
    values = {
        Short.IFM_PRECISION: 1 | 2 << 2,
        Short.IFM2_BROADCAST: 0x80,
        Short.IFM2_SCALAR: 64,
        Long.IFM_STRIDE_X: 4,
    }
    words = [*maximum(0, 128, 256, 16)[:-1], *settings(values), *short(Kind.ELEMENTWISE, Elementwise.SHR), *stop()]
    with pytest.raises(UnsupportedModeError, match="SHR by"):
        execute(words, scratch(), native=native)


def test_weights_and_scales_are_read_again_when_they_change() -> None:
    drawn = draw(Kind.CONV, 0, 7, U55)
    assert drawn.weights is not None
    regions, others = memory(drawn), memory(drawn)
    changed_weights = np.frombuffer(plain_weights(drawn.weights[::-1]), np.uint8)
    npu = Npu(U55, ArrayMemory(regions))
    list(npu.steps(drawn.words()))
    for at, data in ((0, changed_weights), (SCALES_AT, np.arange(40, dtype=np.uint8))):
        for each in (regions, others):
            each[READ_ONLY][at : at + len(data)] = data
        others[SCRATCH][:] = regions[SCRATCH]
        list(npu.steps(drawn.words()))
        list(Npu(U55, ArrayMemory(others)).steps(drawn.words()))
        assert np.array_equal(regions[SCRATCH], others[SCRATCH])


def test_weights_that_are_damaged_are_located() -> None:
    drawn = draw(Kind.CONV, 0, 7, U55)
    regions = memory(drawn)
    regions[READ_ONLY][:SCALES_AT] = 0xFF
    with pytest.raises(StreamError, match=r"word \d+, opcode 0x002 \(CONV\).*weight"):
        list(Npu(U55, ArrayMemory(regions)).steps(drawn.words()))


def test_a_stream_that_failed_fails_again() -> None:
    npu = Npu(U55, ArrayMemory({SCRATCH: scratch()}))
    words = np.array([*maximum(0, 64, 128, 16), 0x3FF], np.uint32)
    for _ in range(2):
        with pytest.raises(StreamError, match="no such register"):
            list(npu.steps(words))


def test_work_without_end_is_refused_before_it_begins() -> None:
    """A kernel of 4096 x 4096 taps that meets the same element again and again is inside of its memory."""
    values = {
        **dict.fromkeys((Short.KERNEL_HEIGHT_M1, Short.KERNEL_WIDTH_M1), 2047),
        **dict.fromkeys((Long.IFM_STRIDE_X, Long.IFM_STRIDE_Y), 0),
        **dict.fromkeys((Short.IFM_WIDTH0_M1, Short.IFM_HEIGHT0_M1, Short.IFM_HEIGHT1_M1), 0xFFFF),
        **dict.fromkeys((Short.OFM_WIDTH_M1, Short.OFM_HEIGHT_M1), 99),
    }
    words = [*maximum(0, 64, 128, 16)[:-1], *settings(values), *short(Kind.POOL, Pool.MAX), *stop()]
    with pytest.raises(StreamError, match="more work than is executed"):
        execute(words, scratch())


def test_the_limit_of_work_can_be_changed() -> None:
    words = np.array([*maximum(0, 64, 128, 16), *stop()], np.uint32)
    memory = ArrayMemory({SCRATCH: scratch()})
    with pytest.raises(StreamError, match=r"the limit is 0\.0 s"):
        list(Npu(U55, memory, effort_limit=1000).steps(words))
    assert len(list(Npu(U55, memory, effort_limit=10**6).steps(words))) == 2


def test_without_a_compiler_numpy_executes_and_a_note_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def missing() -> None:
        raise MissingToolError("no C compiler for this host was found", hint="install one")

    monkeypatch.setattr(native_structs, "library", missing)
    native_structs.functions.cache_clear()
    try:
        with caplog.at_level("INFO"):
            assert native_structs.functions() is None
    finally:
        native_structs.functions.cache_clear()
    assert "executed by numpy" in caplog.text


def test_the_processor_is_no_input_of_what_is_generated() -> None:
    native_structs.functions.cache_clear()
    with recording(builds=False) as found:
        native_structs.functions()
    assert "/proc/cpuinfo" not in found.files()


def test_arrays_of_another_form_are_no_memory() -> None:
    with pytest.raises(TypeError, match="region 1"):
        ArrayMemory({1: np.zeros((2, 2), np.uint8)})


def test_a_view_has_the_bytes_of_its_region_only() -> None:
    memory = ArrayMemory({1: np.arange(8, dtype=np.uint8)})
    assert memory.view(Range(1, 0, 8)).tolist() == list(range(8))
    for start, size_bytes in ((-1, 2), (4, -1), (1, 8)):
        with pytest.raises(NpuBusError, match="the region has 8 bytes"):
            memory.view(Range(1, start, size_bytes))
