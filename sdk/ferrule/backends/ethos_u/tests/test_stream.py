# SPDX-License-Identifier: Apache-2.0
"""The parser of command streams: payloads, registers that persist, and malformed streams."""

from __future__ import annotations

import numpy as np
import pytest
from ethos_u_streams import U55, copy, long, payload, settings, short, stop

from ferrule.backends.ethos_u.commands import Elementwise, Kind, Long, Pool, Short
from ferrule.backends.ethos_u.errors import StreamError, UnsupportedModeError
from ferrule.backends.ethos_u.stream import MAX_WORDS, Operation, Registers, operations, parse_payload


def parsed(words: list[int]) -> list[Operation]:
    return list(operations(np.array(words, np.uint32)))


def test_a_payload_states_the_configuration() -> None:
    found = parse_payload(payload(stop(), U55))
    assert found.config_register == U55.register
    assert found.words.tolist() == stop()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "has 0 bytes"),
        (b"COP1x", "has 5 bytes"),
        (b"COP2" + bytes(12), "COP2"),
        (b"TFL3" + bytes(12), "expected COP1"),
        (payload(stop())[:8], "ends inside of its configuration"),
        (payload(stop())[:32], "truncated: it has 1 words, the payload 0"),
        (payload(stop())[:28], "no command stream"),
        (b"COP1" + bytes([9, 0, 0, 0]), "tag 0x09"),
        (b"COP1" + bytes([2, 0, 0, 0]), "no configuration before"),
    ],
)
def test_malformed_payloads_are_named(data: bytes, message: str) -> None:
    with pytest.raises(StreamError, match=message):
        parse_payload(data)


def test_registers_keep_their_values_from_operation_to_operation() -> None:
    first, wait, second, _, end = parsed(
        [*copy(16, 32, 48), *long(Long.DMA0_DST, 64), *short(Kind.DMA_START), *short(Kind.DMA_WAIT, 1), *stop(5)]
    )
    assert [each.kind for each in (first, wait, second, end)] == [
        Kind.DMA_START,
        Kind.DMA_WAIT,
        Kind.DMA_START,
        Kind.STOP,
    ]
    assert (first.registers.address(Long.DMA0_DST), second.registers.address(Long.DMA0_DST)) == (32, 64)
    assert second.registers.address(Long.DMA0_SRC) == 16
    assert end.parameter == 5
    assert first.word_offset == len(copy(0, 0, 0)) - 2


@pytest.mark.parametrize(
    ("payload_bits", "parameter", "expected"),
    [
        (0x10, 0, 16),
        (0xFFFF_FFF0, 0, -16),
        (0xFFFF_FFF0, 0xFF, -16),
        (0xFFFF_FFF0, 0xFFFF, -16),
        (0x0000_0000, 0x01, 1 << 32),
        (0x8000_0000, 0x01, (1 << 32) + (1 << 31)),
    ],
)
def test_strides_are_signed(payload_bits: int, parameter: int, expected: int) -> None:
    registers = Registers({}, {Long.OFM_STRIDE_Y: (payload_bits, parameter)})
    assert registers.stride(Long.OFM_STRIDE_Y) == expected


def test_operations_are_named_with_their_mode() -> None:
    words = [*short(Kind.POOL, Pool.AVERAGE), *short(Kind.ELEMENTWISE, Elementwise.CLZ), *stop()]
    assert [each.name for each in parsed(words)] == ["POOL AVERAGE", "ELEMENTWISE CLZ", "STOP"]


@pytest.mark.parametrize(
    ("words", "offset", "message"),
    [
        ([*short(Kind.DMA_WAIT), 0x004], 1, "no such operation"),
        ([0x1FF], 0, "no such register"),
        ([0x4000 | 0x0FF, 0], 0, "no such register with payload"),
        ([0x8000], 0, "no command"),
        ([0x0400], 0, "no command"),
        ([*settings({Short.BLOCKDEP: 1}), 0x4000 | Long.IFM_BASE0], 1, "truncated in front of a payload"),
        ([*short(Kind.POOL, 3)], 0, "POOL has no mode 3"),
        ([*short(Kind.ELEMENTWISE, 10)], 0, "ELEMENTWISE has no mode 10"),
        ([*short(Kind.DMA_WAIT)], 1, "without STOP"),
        ([], 0, "without STOP"),
    ],
)
def test_malformed_streams_are_located(words: list[int], offset: int, message: str) -> None:
    with pytest.raises(StreamError, match=message) as caught:
        parsed(words)
    assert caught.value.word_offset == offset
    assert f"word {offset}" in str(caught.value)


def test_a_stream_longer_than_the_hardware_accepts_is_refused() -> None:
    with pytest.raises(UnsupportedModeError, match="words"):
        next(operations(np.zeros(MAX_WORDS + 1, np.uint32)))
