# SPDX-License-Identifier: Apache-2.0
"""The firmware's end of the link alone: the frames that it answers, and the frames that it must ignore."""

from __future__ import annotations

import subprocess
import zlib
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from host_link import HostFirmware
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.link.frame import Frame, FrameReceiver
from ferrule.link.protocol import (
    RESPONSE,
    ErrorCode,
    MessageType,
    decode_counters,
    decode_error,
    request,
)

pytestmark = pytest.mark.cc

HELLO = Frame(version=1, type=MessageType.HELLO, sequence=7, payload=b"")
WRITE_INPUT, READ_OUTPUT, DEVICE_TRACE = (
    partial(request, kind) for kind in (MessageType.WRITE_INPUT, MessageType.READ_OUTPUT, MessageType.DEVICE_TRACE)
)
many = settings(max_examples=150)


def ask(firmware: HostFirmware, kind: int, payload: bytes = b"", *, version: int = 1, sequence: int = 9) -> list[Frame]:
    sent = Frame(version=version, type=kind, sequence=sequence, payload=payload)
    return list(FrameReceiver().feed(firmware.exchange(sent.encode())))


def error_code(frames: list[Frame]) -> int:
    (frame,) = frames
    assert (frame.type, frame.sequence, frame.version) == (MessageType.ERROR, 9, 1)
    code, text = decode_error(frame.payload)
    assert text
    return code


def test_a_delimiter_precedes_and_ends_each_answer(firmware: HostFirmware) -> None:
    """The first delimiter ends noise on the line, such as the output of a boot loader, so that the frame survives."""
    answer = firmware.exchange(HELLO.encode())
    assert (answer[:1], answer[-1:]) == (b"\0", b"\0")
    (frame,) = [each for each in FrameReceiver().feed(b"boot\xff" + answer) if each.sequence == HELLO.sequence]
    assert frame.type == MessageType.HELLO | RESPONSE


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 17, 253, 254, 255, 256, 1024])
def test_crc_is_zlibs(firmware: HostFirmware, size: int) -> None:
    data = np.random.default_rng(size).bytes(size)
    assert firmware.library.ferrule_crc32(data, size) == zlib.crc32(data)


def test_crc_check_value(firmware: HostFirmware) -> None:
    assert firmware.library.ferrule_crc32(b"123456789", 9) == 0xCBF43926


@pytest.mark.parametrize(
    ("kind", "payload", "code"),
    [
        (0x00, b"", ErrorCode.TYPE),
        (0x0B, b"", ErrorCode.TYPE),
        (0x45, b"", ErrorCode.TYPE),
        (0x81, b"", ErrorCode.TYPE),
        (0xFF, b"", ErrorCode.TYPE),
        (MessageType.HELLO, b"x", ErrorCode.LENGTH),
        (MessageType.MODEL_INFO, b"x", ErrorCode.LENGTH),
        (MessageType.TENSOR_INFO, b"\0\0\0", ErrorCode.LENGTH),
        (MessageType.TENSOR_INFO, b"\0\0\2\0", ErrorCode.INDEX),
        (MessageType.TENSOR_INFO, b"\1\0\xff\xff", ErrorCode.INDEX),
        (MessageType.WRITE_INPUT, b"\0" * 7, ErrorCode.LENGTH),
        (MessageType.WRITE_INPUT, WRITE_INPUT(2, 0) + b"x", ErrorCode.INDEX),
        (MessageType.WRITE_INPUT, WRITE_INPUT(1, 6) + b"x", ErrorCode.RANGE),
        (MessageType.WRITE_INPUT, WRITE_INPUT(1, 0) + b"1234567", ErrorCode.RANGE),
        (MessageType.WRITE_INPUT, WRITE_INPUT(1, 2**32 - 1) + b"12", ErrorCode.RANGE),
        (MessageType.RUN, b"", ErrorCode.LENGTH),
        (MessageType.RUN, b"\4", ErrorCode.FLAGS),
        (MessageType.DEVICE_TRACE, b"\0\0\0", ErrorCode.LENGTH),
        (MessageType.DEVICE_TRACE, DEVICE_TRACE(1), ErrorCode.RANGE),
        (MessageType.DEVICE_TRACE, DEVICE_TRACE(2**32 - 1), ErrorCode.RANGE),
        (MessageType.READ_COUNTERS, b"\x59\2\0\0", ErrorCode.RANGE),
        (MessageType.READ_OUTPUT, READ_OUTPUT(0, 0, 1)[:-1], ErrorCode.LENGTH),
        (MessageType.READ_OUTPUT, READ_OUTPUT(2, 0, 1), ErrorCode.INDEX),
        (MessageType.READ_OUTPUT, READ_OUTPUT(1, 0, 7), ErrorCode.RANGE),
        (MessageType.READ_OUTPUT, READ_OUTPUT(1, 7, 0), ErrorCode.RANGE),
        (MessageType.READ_OUTPUT, READ_OUTPUT(1, 2, 2**32 - 1), ErrorCode.RANGE),
        (MessageType.READ_OUTPUT, READ_OUTPUT(0, 0, 1025), ErrorCode.RANGE),
    ],
)
def test_refused_requests(firmware: HostFirmware, kind: int, payload: bytes, code: ErrorCode) -> None:
    firmware.exchange(HELLO.encode())
    assert [each.type for each in ask(firmware, MessageType.RUN, b"\0", sequence=8)] == [0x45, 0x85]
    assert error_code(ask(firmware, kind, payload)) == code
    assert [each.type for each in ask(firmware, MessageType.STACK)] == [0x88]


@pytest.mark.parametrize("payload", [READ_OUTPUT(0, 0, 1024), READ_OUTPUT(1, 6, 0)])
def test_limits_that_are_still_allowed(firmware: HostFirmware, payload: bytes) -> None:
    firmware.exchange(HELLO.encode())
    ask(firmware, MessageType.RUN, b"\0")
    (frame,) = ask(firmware, MessageType.READ_OUTPUT, payload)
    assert frame.type == MessageType.READ_OUTPUT | 0x80


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (MessageType.READ_OUTPUT, READ_OUTPUT(0, 0, 1)),
        (MessageType.STACK, b""),
        (MessageType.DEVICE_TRACE, DEVICE_TRACE(0)),
    ],
)
def test_results_before_a_run(firmware: HostFirmware, kind: MessageType, payload: bytes) -> None:
    firmware.exchange(HELLO.encode())
    assert error_code(ask(firmware, kind, payload)) == ErrorCode.STATE


def test_nothing_but_hello_after_the_start(firmware: HostFirmware) -> None:
    assert error_code(ask(firmware, MessageType.MODEL_INFO)) == ErrorCode.STATE
    assert error_code(ask(firmware, MessageType.RUN, b"\0")) == ErrorCode.STATE
    assert firmware.state.runs == 0


def test_another_version_is_refused(firmware: HostFirmware) -> None:
    assert error_code(ask(firmware, MessageType.HELLO, version=2)) == ErrorCode.VERSION


def test_a_repeated_run_is_answered_from_memory(firmware: HostFirmware) -> None:
    firmware.exchange(HELLO.encode())
    started, first = ask(firmware, MessageType.RUN, b"\1")
    assert (started.type, started.payload) == (MessageType.STARTED, b"")
    assert ask(firmware, MessageType.RUN, b"\1") == [first]
    assert firmware.state.runs == 1
    assert len(ask(firmware, MessageType.RUN, b"\1", sequence=10)) == 2
    assert firmware.state.runs == 2


@pytest.mark.parametrize("size", [1024, 1025, 1032, 1033, 5000])
def test_frames_longer_than_the_buffer_are_dropped(firmware: HostFirmware, size: int) -> None:
    firmware.exchange(HELLO.encode())
    answers = ask(firmware, MessageType.WRITE_INPUT, WRITE_INPUT(0, 0) + bytes(size - 8))
    assert [each.type for each in answers] == ([0x84] if size == 1024 else [])
    (hello,) = ask(firmware, MessageType.HELLO)
    assert hello.type == 0x81


def test_a_block_that_is_cut_off_is_dropped_though_the_crc_is_right(firmware: HostFirmware) -> None:
    wire = bytearray(HELLO.encode())
    assert firmware.exchange(bytes(wire))
    assert wire[5] == 5  # the code of the last block, which contains the CRC
    wire[5] = 6
    assert not firmware.exchange(bytes(wire))


def test_counters_of_operators_that_did_not_run_are_zero(firmware: HostFirmware) -> None:
    firmware.exchange(HELLO.encode())
    for index in range(600):
        firmware.state.operator_cycles[index] = 5
    ask(firmware, MessageType.RUN, b"\1", sequence=1)
    firmware.state.failing = 17
    ask(firmware, MessageType.RUN, b"\1", sequence=2)
    (frame,) = ask(firmware, MessageType.READ_COUNTERS, request(MessageType.READ_COUNTERS, 0))
    assert decode_counters(frame.payload) == (5,) * 17 + (0,) * 239


@many
@given(
    st.lists(st.one_of(st.binary(max_size=300), st.sampled_from([b"\0", b"\xff" * 300, HELLO.encode()])), max_size=8)
)
def test_garbage_is_not_answered_and_not_minded(firmware: HostFirmware, pieces: list[bytes]) -> None:
    noise = b"".join(piece for piece in pieces if piece != HELLO.encode())
    answer = firmware.exchange(noise)
    assert not answer
    answers = list(FrameReceiver().feed(firmware.exchange(HELLO.encode())))
    assert [each.type for each in answers] == [0x81]


@many
@given(st.integers(0, 9), st.binary(max_size=40), st.integers(0, 3))
def test_any_request_gets_one_answer(firmware: HostFirmware, kind: int, payload: bytes, sequence: int) -> None:
    firmware.exchange(HELLO.encode())
    *started, answer = ask(firmware, kind, payload, sequence=sequence)
    assert [each.type for each in started] in ([], [MessageType.STARTED])
    assert answer.sequence == sequence
    assert answer.type in {kind | 0x80, MessageType.ERROR}


def test_the_uart_is_polled_once_per_byte(firmware: HostFirmware) -> None:
    firmware.exchange(HELLO.encode())
    sent = Frame(version=1, type=MessageType.WRITE_INPUT, sequence=1, payload=WRITE_INPUT(0, 0) + bytes(1016))
    data = sent.encode()
    firmware.state.state_reads = 0
    answer = firmware.exchange(data)
    assert firmware.state.state_reads == len(data) + 1 + len(answer)  # the 1 is a read that finds no byte


def test_the_uart_waits_until_its_transmitter_has_room(firmware: HostFirmware) -> None:
    expected = firmware.exchange(HELLO.encode())
    firmware.state.tx_wait = 5
    assert firmware.exchange(HELLO.encode()) == expected
    firmware.state.tx_wait = 0


@pytest.mark.parametrize(
    ("clock_hz", "baud", "divider"),
    [
        (25_000_000, 115_200, 217),
        (25_000_000, 0, 16),
        (25_000_000, 1_562_500, 16),
        (25_000_000, 2_000_000, None),
        (2**31, 1, None),
    ],
)
def test_uart_speed(firmware: HostFirmware, clock_hz: int, baud: int, divider: int | None) -> None:
    firmware.state.uart_control = 0
    status = firmware.library.host_uart_init(clock_hz, baud)
    if divider is None:
        assert (status, firmware.state.uart_control) == (-1, 0)
    else:
        assert (status, firmware.state.uart_control, firmware.state.uart_divider) == (0, 3, divider)


def test_random_bytes_and_frames_under_the_address_sanitizer(sanitized_program: Path) -> None:
    generator = np.random.default_rng(20)
    stream = bytearray()
    for number in range(4000):
        kind = int(generator.integers(10))
        size = int(generator.choice([0, 1, 4, 8, 12, 40, 1100]))
        payload = generator.bytes(size) if generator.random() < 0.5 else b"\1"
        frame = bytearray(Frame(version=1, type=kind, sequence=number, payload=payload).encode())
        if generator.random() < 0.5:
            frame[generator.integers(len(frame))] = generator.integers(256)
        stream += frame + generator.bytes(int(generator.choice([0, 0, 3, 1500])))
    stream += HELLO.encode() + Frame(version=1, type=MessageType.RUN, sequence=1, payload=b"\1").encode()
    result = subprocess.run([sanitized_program], input=bytes(stream), capture_output=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr.decode()
    assert int(result.stdout.split()[0]) > 10  # the number of runs
