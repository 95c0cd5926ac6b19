# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from host_link import HostChannel, HostFirmware
from numpy.testing import assert_array_equal

from ferrule.errors import InputError
from ferrule.graph.datatype import DataType
from ferrule.link import (
    CounterSource,
    FirmwareError,
    LinkCall,
    LinkError,
    LinkSession,
    LinkTimeoutError,
    ProtocolVersionError,
    RunFailedError,
    StackUse,
    Status,
    status_text,
)
from ferrule.link.frame import Frame, FrameReceiver
from ferrule.link.protocol import TYPE_CODES, WRITE_HEADER_BYTES, MessageType
from ferrule.resources import root

pytestmark = pytest.mark.cc

SHAPE = (1, 100, 103, 3)
OPERATORS = 600


def make_inputs(seed: int = 1) -> list[np.ndarray[Any, Any]]:
    generator = np.random.default_rng(seed)
    image = generator.integers(0, 256, SHAPE, dtype=np.uint8)
    return [image, generator.integers(-3000, 3000, 3, dtype=np.int16)]


def check_outputs(inputs: list[np.ndarray[Any, Any]], outputs: tuple[np.ndarray[Any, Any], ...]) -> None:
    image, bias = inputs
    flat = image.reshape(-1)
    assert_array_equal(outputs[0], flat[::-1].reshape(SHAPE[1:]))
    wide = bias + flat.reshape(-1, 3).astype(np.int64).sum(axis=0)
    assert_array_equal(outputs[1], wide.astype(np.int16))
    assert outputs[1].dtype == np.int16


def test_hello(session: LinkSession) -> None:
    hello = session.hello()
    assert (hello.firmware, hello.firmware_version, hello.max_payload_bytes) == ("host", "1.2.3", 1024)


def test_model_info(session: LinkSession) -> None:
    info = session.model_info()
    assert (info.name, info.input_hash, info.operator_count) == ("reverse", "00ff", OPERATORS)
    assert (info.workspace_bytes, info.stack_bytes, info.counter) == (4096, 4096, CounterSource.DWT)
    assert [(each.name, each.dtype, each.shape, each.size_bytes) for each in info.inputs] == [
        ("image", DataType.UINT8, SHAPE, 30900),
        ("bias ä", DataType.INT16, (3,), 6),
    ]
    assert [each.name for each in info.outputs] == ["reversed", "sums"]
    assert session.model_info() is info


def test_thirty_kilobytes_there_and_back(session: LinkSession, firmware: HostFirmware) -> None:
    for seed in range(3):
        inputs = make_inputs(seed)
        result = session.run(inputs)
        check_outputs(inputs, result.outputs)
        assert result.counters == ()
        assert not result.profiled
        result.outputs[0][0] = 1  # the array belongs to the caller
    assert firmware.state.runs == 3


def test_non_contiguous_inputs(session: LinkSession) -> None:
    image, bias = make_inputs()
    turned = np.asfortranarray(image)
    check_outputs([image, bias], session.run([turned, np.repeat(bias, 2)[::2]]).outputs)


@pytest.mark.parametrize("source", [CounterSource.DWT, CounterSource.SYSTICK])
def test_counters_leave_the_callback_out(session: LinkSession, firmware: HostFirmware, source: CounterSource) -> None:
    firmware.reset(dwt_step=3 if source is CounterSource.DWT else 0, systick_step=2)
    cycles = [(index * 7919) % 5000 for index in range(OPERATORS)]
    for index, count in enumerate(cycles):
        firmware.state.operator_cycles[index] = count
        firmware.state.operator_ticks[index] = count
    profiled = session.run(make_inputs(), profile=True)
    assert profiled.counter is source
    assert profiled.unit == {"dwt": "cycles", "systick": "ticks"}[source]
    assert list(profiled.counters) == cycles
    assert profiled.total > sum(cycles)  # includes the callbacks
    plain = session.run(make_inputs())
    assert plain.total == sum(cycles)


def test_dwt_wraps(session: LinkSession, firmware: HostFirmware) -> None:
    firmware.state.cycles = 2**32 - 100_000
    firmware.state.operator_cycles[3] = 2**32 - 100
    firmware.state.operator_cycles[4] = 2**31
    result = session.run(make_inputs(), profile=True)
    assert result.counters[3:5] == (2**32 - 100, 2**31)
    assert result.total > 2**32 + 2**31


def test_systick_wraps(session: LinkSession, firmware: HostFirmware) -> None:
    firmware.reset(dwt_step=0, systick_step=2)
    for index in range(4):
        firmware.state.operator_ticks[index] = 2**24 - 50
    assert session.run(make_inputs(), profile=True).counters[:5] == (2**24 - 50,) * 4 + (0,)
    assert session.run(make_inputs()).total == 4 * (2**24 - 50)


def test_one_systick_turn_too_many_is_seen_by_its_flag(session: LinkSession, firmware: HostFirmware) -> None:
    firmware.reset(dwt_step=0, systick_step=2)
    firmware.state.operator_ticks[5] = 2**24 + 10  # the difference of two readings is 10, and COUNTFLAG is set
    assert session.run(make_inputs(), profile=True).counters[4:7] == (0, 2**24 + 10, 0)


def test_nothing_counts(session: LinkSession, firmware: HostFirmware) -> None:
    firmware.reset(dwt_step=0, systick_step=0)
    result = session.run(make_inputs(), profile=True)
    assert result.counter is CounterSource.NONE
    assert result.unit == "none"
    assert result.total == 0
    assert result.counters == (0,) * OPERATORS


def test_stack_is_measured(session: LinkSession, firmware: HostFirmware) -> None:
    result = session.run(make_inputs())
    assert result.stack_used == result.stack.run_bytes == 4 * 25
    assert (result.stack.peak_bytes, result.stack.size_bytes) == (4 * (24 + 25), 4096)
    firmware.state.stack_words = 999
    assert session.run(make_inputs()).stack_used == 4 * 999


def test_stack_used_up(session: LinkSession, firmware: HostFirmware) -> None:
    firmware.state.stack_words = 1000
    with pytest.raises(LinkError, match="used all 4096 bytes of the stack") as raised:
        session.run(make_inputs())
    assert "stack_bytes" in (raised.value.hint or "")


def test_stack_that_the_firmware_does_not_know(session: LinkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zephyr's native_sim runs threads on the host's stacks, so all figures are 0."""
    unknown = StackUse(run_bytes=0, peak_bytes=0, size_bytes=0)
    monkeypatch.setattr(StackUse, "decode", lambda _: unknown)
    assert session.run(make_inputs()).stack == unknown


def test_calls_of_devices_come_in_pages(session: LinkSession, firmware: HostFirmware) -> None:
    assert session.run(make_inputs()).calls == ()
    calls = session.run(make_inputs(), trace=True).calls
    assert calls == tuple(LinkCall(operator=i, device=i % 3, call=i % 7, status=0) for i in range(600))
    firmware.state.failing = 200
    with pytest.raises(RunFailedError) as caught:
        session.run(make_inputs(), trace=True)
    assert caught.value.calls[-1] == LinkCall(operator=200, device=2, call=4, status=-7)
    assert len(caught.value.calls) == 201


def test_a_firmware_without_devices_refuses_to_trace(session: LinkSession, firmware: HostFirmware) -> None:
    firmware.library.host_hide_calls()
    with pytest.raises(FirmwareError, match="refused RUN: no layer of this firmware runs on a device"):
        session.run(make_inputs(), trace=True)


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"\3\0\0", "3 bytes are too few"),
        (b"\1\0\0\0" + bytes(11), "15 bytes are too few"),
        (b"\1\0\0\0", "calls from 0 on were requested, 0 of 1 arrived"),
        (b"\1\0\0\0" + bytes(24), "2 of 1 arrived"),
    ],
)
def test_a_malformed_trace_is_an_error(
    session: LinkSession, channel: HostChannel, payload: bytes, message: str
) -> None:
    session.model_info()

    def forge(data: bytes) -> bytes:
        frames = list(FrameReceiver().feed(data))
        if [frame.type for frame in frames] != [MessageType.DEVICE_TRACE | 0x80]:
            return data
        return replace(frames[0], payload=payload).encode()

    channel.to_host = forge
    with pytest.raises(LinkError, match=message):
        session.run(make_inputs(), trace=True)


def test_every_status_has_its_name() -> None:
    header = (root() / "include/ferrule/status.h").read_text()
    found = {name: int(value) for name, value in re.findall(r"FERRULE_(?:ERR_)?(\w+) = (-?\d+),", header)}
    assert found == {status.name: status.value for status in Status}
    assert status_text(-9) == "-9 (TIMEOUT)"
    assert status_text(-99) == "-99"


def test_failing_operator(session: LinkSession, firmware: HostFirmware) -> None:
    firmware.state.failing = 17
    with pytest.raises(RunFailedError, match="in operator 17 with status -7") as raised:
        session.run(make_inputs(), profile=True)
    assert (raised.value.status, raised.value.failed_operator) == (-7, 17)
    firmware.state.failing = 2**32 - 1
    check_outputs(make_inputs(), session.run(make_inputs()).outputs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda image, bias: [image], "takes 2 inputs, 1 were given"),
        (lambda image, bias: [image, bias, bias], "takes 2 inputs, 3 were given"),
        (
            lambda image, bias: [image[0], bias],
            "'image' is uint8 of shape [1, 100, 103, 3], given is uint8 of shape [100",
        ),
        (lambda image, bias: [image, bias.astype(np.int32)], "is int16 of shape [3], given is int32 of shape [3]"),
    ],
)
def test_wrong_inputs_are_refused_before_anything_is_sent(
    session: LinkSession, channel: HostChannel, change: Callable[..., list[Any]], message: str
) -> None:
    session.model_info()
    sent = bytearray()
    channel.to_firmware = lambda data: sent.extend(data) or data
    with pytest.raises(InputError, match=re.escape(message)):
        session.run(change(*make_inputs()))
    assert not sent


def test_another_version_is_named(session: LinkSession, channel: HostChannel) -> None:
    def newer(data: bytes) -> bytes:
        frames = FrameReceiver().feed(data)
        return b"".join(
            Frame(version=9, type=each.type, sequence=each.sequence, payload=each.payload).encode() for each in frames
        )

    channel.to_host = newer
    with pytest.raises(
        ProtocolVersionError, match="firmware speaks version 9 of the link protocol, this host version 1"
    ):
        session.hello()
    channel.to_host = bytes
    channel.to_firmware = newer
    with pytest.raises(FirmwareError, match="unknown version of the protocol"):
        session.hello()


@pytest.mark.parametrize(("most_bytes", "is_enough"), [(0, False), (WRITE_HEADER_BYTES, False), (9, True)])
def test_a_payload_has_to_hold_data(
    session: LinkSession, channel: HostChannel, most_bytes: int, is_enough: bool
) -> None:
    def narrow(data: bytes) -> bytes:
        frames = FrameReceiver().feed(data)
        return b"".join(
            replace(each, payload=most_bytes.to_bytes(2, "little") + each.payload[2:]).encode() for each in frames
        )

    channel.to_host = narrow
    if is_enough:
        assert session.hello().max_payload_bytes == most_bytes
        return
    with pytest.raises(LinkError, match=f"payloads of {most_bytes} bytes: too few for any data"):
        session.hello()


def test_silence_times_out(session: LinkSession, channel: HostChannel) -> None:
    sent: list[bytes] = []
    channel.to_firmware = lambda data: sent.append(data) or b""
    with pytest.raises(LinkTimeoutError, match="did not answer HELLO: 6 attempts"):
        session.hello()
    assert len(sent) == 6
    assert len(set(sent)) == 1


def test_a_firmware_may_take_its_time_before_the_first_answer(channel: HostChannel) -> None:
    session = LinkSession(channel, timeout_s=0.01, retries=0, start_timeout_s=10.0)
    sent = []

    def late(data: bytes) -> bytes:
        sent.append(data)
        return data if len(sent) > 3 else b""

    channel.to_firmware = late
    assert session.hello().firmware
    assert len(sent) == 4
    channel.to_firmware = lambda data: b""
    with pytest.raises(LinkTimeoutError, match="did not answer MODEL_INFO: 1 attempts"):
        session.model_info()


def test_a_run_that_never_ends_times_out(channel: HostChannel) -> None:
    session = LinkSession(channel, timeout_s=0.0, run_timeout_s=0.05)
    session.model_info()

    def only_started(data: bytes) -> bytes:
        frames = FrameReceiver().feed(data)
        return b"".join(each.encode() for each in frames if each.type != MessageType.RUN | 0x80)

    channel.to_host = only_started
    with pytest.raises(LinkTimeoutError, match=r"the run did not end within 0\.05 s"):
        session.run(make_inputs())


def test_a_lost_response_does_not_run_the_model_again(
    session: LinkSession, channel: HostChannel, firmware: HostFirmware
) -> None:
    session.model_info()
    lost = 0

    def lose(data: bytes) -> bytes:
        nonlocal lost
        frames = list(FrameReceiver().feed(data))
        if any(each.type == MessageType.RUN | 0x80 for each in frames) and lost < 3:
            lost += 1
            return b""
        return data

    channel.to_host = lose
    inputs = make_inputs()
    check_outputs(inputs, session.run(inputs).outputs)
    assert (lost, firmware.state.runs) == (3, 1)


def test_a_new_session_runs_again_though_its_numbers_repeat(channel: HostChannel, firmware: HostFirmware) -> None:
    for number in range(2):
        session = LinkSession(channel, timeout_s=0.0)
        session._sequence = 100
        session.run(make_inputs(number))
    assert firmware.state.runs == 2


def test_sequence_numbers_wrap(session: LinkSession) -> None:
    session._sequence = 65530
    check_outputs(make_inputs(), session.run(make_inputs()).outputs)


def test_a_run_never_has_the_number_of_the_run_before(session: LinkSession, firmware: HostFirmware) -> None:
    session.run(make_inputs())
    requests_before_run = 33  # 31 pieces of the image, one of the bias, and RUN's own
    for seed in range(3):
        assert session._run_sequence is not None
        session._sequence = (session._run_sequence - requests_before_run) % 65536
        check_outputs(make_inputs(seed), session.run(make_inputs(seed)).outputs)
    assert firmware.state.runs == 4


def test_a_firmware_that_starts_anew_is_noticed(session: LinkSession, firmware: HostFirmware) -> None:
    session.model_info()
    firmware.reset()
    with pytest.raises(FirmwareError, match="has restarted") as raised:
        session.run(make_inputs())
    assert raised.value.code == 7
    session.hello()
    check_outputs(make_inputs(), session.run(make_inputs()).outputs)


def test_close_closes_the_channel(channel: HostChannel) -> None:
    with LinkSession(channel) as session:
        session.hello()
    assert channel.closed


def test_every_element_type_has_a_number() -> None:
    assert set(TYPE_CODES) == set(DataType)
