# SPDX-License-Identifier: Apache-2.0
"""The model on the wire: its responses to valid requests and to any other input."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from woofles_bench import jobs

from ferrule.backends.uart_woofles import UartWooflesModel
from ferrule.backends.uart_woofles.protocol import (
    ADDRESS,
    CHECKED,
    EXECUTED,
    GREETING,
    HELLO,
    MAX_PAYLOAD_BYTES,
    RANGE,
    RESPONSE,
    VERSION,
    ErrorCode,
    MessageType,
    request,
)
from ferrule.backends.woofles.command import Command
from ferrule.devices import FaultyLine, LineFault, LineFaultKind
from ferrule.link.frame import Frame, FrameReceiver

MEMORY_BYTES = 4096


class Client:
    """Sends requests to a model, one after the other."""

    def __init__(self, model: UartWooflesModel, sequence: int = 0xFFFE) -> None:
        self.model = model
        self.sequence = sequence

    def send(self, frame: Frame) -> Frame:
        (answer,) = FrameReceiver().feed(self.model.receive(frame.encode()))
        assert answer.version == VERSION
        assert answer.sequence == frame.sequence
        return answer

    def ask(self, kind: MessageType, payload: bytes = b"") -> bytes:
        self.sequence += 1
        answer = self.send(request(kind, self.sequence, payload))
        assert answer.type == kind | RESPONSE, answer
        return answer.payload

    def refused(self, kind: MessageType, payload: bytes = b"") -> ErrorCode:
        self.sequence += 1
        answer = self.send(request(kind, self.sequence, payload))
        assert answer.type == MessageType.ERROR
        assert len(answer.payload) > 1
        return ErrorCode(answer.payload[0])

    def hello(self, token: int = 0) -> tuple[int, int, int]:
        payload_bytes, zero, memory_bytes, new = GREETING.unpack(self.ask(MessageType.HELLO, HELLO.pack(token)))
        assert zero == 0
        return payload_bytes, memory_bytes, new


@pytest.fixture
def client() -> Client:
    return Client(UartWooflesModel(memory_bytes=MEMORY_BYTES, seed=3))


def test_a_greeting_begins_with_a_memory_of_zeros(client: Client) -> None:
    payload_bytes, memory_bytes, token = client.hello()
    assert (payload_bytes, memory_bytes) == (MAX_PAYLOAD_BYTES, MEMORY_BYTES)
    client.ask(MessageType.WRITE, ADDRESS.pack(8) + b"abc")
    assert client.ask(MessageType.READ, RANGE.pack(7, 5)) == b"\0abc\0"
    assert client.hello(token)[2] == token
    assert client.ask(MessageType.READ, RANGE.pack(8, 3)) == b"abc"
    assert client.hello(token ^ 1)[2] not in {0, token}
    assert client.ask(MessageType.READ, RANGE.pack(8, 3)) == bytes(3)


def test_tokens_differ_between_models() -> None:
    tokens = {Client(UartWooflesModel(memory_bytes=16)).hello()[2] for _ in range(20)}
    assert len(tokens) == 20


def test_the_last_request_is_answered_again_and_done_once(client: Client) -> None:
    client.hello()
    job = jobs()["add"]
    client.ask(MessageType.WRITE, ADDRESS.pack(0) + job.arrays["input"].tobytes())
    client.ask(MessageType.WRITE, ADDRESS.pack(64) + job.arrays["second"].tobytes())
    command = replace(job.command, second=64, output=128, sequence=77)
    frame = request(MessageType.EXECUTE, client.sequence + 1, command.encode())
    answers = [client.send(frame) for _ in range(3)]
    assert answers[0] == answers[1] == answers[2]
    assert EXECUTED.unpack(answers[0].payload) == (77, 1)
    assert client.model.executed == 1
    client.sequence += 1
    assert client.ask(MessageType.READ, RANGE.pack(128, 24)) == job.expected.tobytes()


@pytest.mark.parametrize("step", [-2, -1, 2, 100])
def test_missed_requests_are_noticed(client: Client, step: int) -> None:
    client.hello()
    client.ask(MessageType.CHECK)
    answer = client.send(request(MessageType.CHECK, client.sequence + step))
    assert (answer.type, answer.payload[0]) == (MessageType.ERROR, ErrorCode.SEQUENCE)
    client.ask(MessageType.CHECK)  # the sequence number has not advanced


def test_another_request_with_the_last_number_is_refused(client: Client) -> None:
    client.hello()
    client.ask(MessageType.WRITE, ADDRESS.pack(0) + b"a")
    answer = client.send(request(MessageType.WRITE, client.sequence, ADDRESS.pack(0) + b"b"))
    assert (answer.type, answer.payload[0]) == (MessageType.ERROR, ErrorCode.SEQUENCE)
    assert client.ask(MessageType.READ, RANGE.pack(0, 1)) == b"a"


def test_refusals(client: Client) -> None:
    assert client.refused(MessageType.CHECK) is ErrorCode.STATE
    *_, token = client.hello()
    assert client.refused(MessageType.WRITE, ADDRESS.pack(MEMORY_BYTES - 1) + b"ab") is ErrorCode.RANGE
    assert client.refused(MessageType.READ, RANGE.pack(MEMORY_BYTES, 1)) is ErrorCode.RANGE
    assert client.refused(MessageType.READ, RANGE.pack(0, MAX_PAYLOAD_BYTES + 1)) is ErrorCode.LENGTH
    assert client.refused(MessageType.READ, b"") is ErrorCode.LENGTH
    assert client.refused(MessageType.HELLO, b"12345") is ErrorCode.LENGTH
    assert client.refused(MessageType.ERROR) is ErrorCode.TYPE
    good = Command(operation=1, count=16, second=16, output=32)
    spoilt = bytearray(good.encode())
    spoilt[0] ^= 1
    assert client.refused(MessageType.EXECUTE, bytes(spoilt)) is ErrorCode.COMMAND
    assert client.refused(MessageType.EXECUTE, replace(good, operation=9).encode()) is ErrorCode.COMMAND
    assert client.refused(MessageType.EXECUTE, replace(good, count=0).encode()) is ErrorCode.SHAPE
    for wrong in ({"input": MEMORY_BYTES}, {"second": MEMORY_BYTES - 15}, {"output": MEMORY_BYTES}):
        assert client.refused(MessageType.EXECUTE, replace(good, **wrong).encode()) is ErrorCode.RANGE
    assert client.model.executed == 0
    assert CHECKED.unpack(client.ask(MessageType.CHECK)) == (token,)


def test_another_version_is_refused(client: Client) -> None:
    client.hello()
    answer = client.send(replace(request(MessageType.CHECK, client.sequence + 1), version=9))
    assert (answer.type, answer.payload[0]) == (MessageType.ERROR, ErrorCode.VERSION)
    client.ask(MessageType.CHECK)


def test_a_command_may_take_time() -> None:
    now = [10.0]
    client = Client(UartWooflesModel(memory_bytes=MEMORY_BYTES, clock_hz=1000, now_s=lambda: now[0]))
    client.hello()
    frame = request(MessageType.EXECUTE, client.sequence + 1, Command(operation=2, count=64).encode())
    assert client.model.receive(frame.encode()) == b""
    assert client.model.receive(b"") == b""
    now[0] += 1
    (answer,) = FrameReceiver().feed(client.model.receive(b""))
    assert EXECUTED.unpack(answer.payload)[1] == 1


def test_what_happens_is_logged(client: Client) -> None:
    lines: list[str] = []
    client.model.log = lines.append
    client.hello()
    client.refused(MessageType.READ, b"")
    client.model.receive(b"\0noise\0")
    assert [line.split()[0] for line in lines] == ["HELLO:", "READ", "dropped"]
    assert client.model.damaged_frames == 1


@given(st.lists(st.binary(max_size=200), max_size=8))
def test_noise_is_borne(pieces: list[bytes]) -> None:
    model = UartWooflesModel(memory_bytes=256, seed=0)
    for piece in pieces:
        for answer in FrameReceiver().feed(model.receive(piece)):
            assert answer.type in {MessageType.ERROR, *(kind | RESPONSE for kind in MessageType)}
    Client(model).hello()


words = st.sampled_from([0, 1, 4, 250, 255, 256, 1 << 31, 0xFFFF_FFFF]) | st.integers(0, 0xFFFF_FFFF)
payloads = (
    st.binary(max_size=24)
    | st.lists(words, max_size=4).map(lambda values: np.array(values, "<u4").tobytes())
    | st.builds(
        lambda **values: Command(**values).encode(),
        operation=st.integers(0, 6),
        count=st.integers(-1, 300),
        input=words,
        second=words,
        output=words,
        bias=words,
        multipliers=words,
        shifts=words,
        output_channels=st.integers(-1, 20),
        input_channels=st.integers(-1, 20),
        output_height=st.integers(0, 5),
        kernel_height=st.integers(0, 3),
        left_shift=st.integers(0, 31),
    )
)


@given(st.lists(st.tuples(st.sampled_from([0x20, 0x21, 0x22, 0x23, 0x24, 0x01, 0xFF]), payloads), max_size=12))
def test_any_frame_gets_one_answer(frames: list[tuple[int, bytes]]) -> None:
    model = UartWooflesModel(memory_bytes=256, seed=0)
    client = Client(model, 0)
    client.hello()
    for kind, payload in frames:
        client.sequence += 1
        answer = client.send(Frame(version=VERSION, type=kind, sequence=client.sequence & 0xFFFF, payload=payload))
        assert answer.type in {kind | RESPONSE, MessageType.ERROR}


def test_faults_of_a_line() -> None:
    class Echo(UartWooflesModel):
        def receive(self, data: bytes) -> bytes:
            return data

    def through(*faults: LineFault) -> list[bytes]:
        line = FaultyLine(Echo(memory_bytes=16), faults)
        return [line.receive(piece) for piece in (b"abc", b"def", b"", b"", b"")]

    def fault(kind: LineFaultKind, **values: int) -> LineFault:
        return LineFault(at=1, kind=kind, to_device=True, **values)

    assert through() == [b"abc", b"def", b"", b"", b""]
    assert through(fault(LineFaultKind.LOST)) == [b"ac", b"def", b"", b"", b""]
    assert through(fault(LineFaultKind.DAMAGED, mask=3)) == [b"aac", b"def", b"", b"", b""]
    assert through(fault(LineFaultKind.REPEATED, count=2)) == [b"abbbc", b"def", b"", b"", b""]
    assert through(fault(LineFaultKind.LATE, count=3)) == [b"a", b"", b"", b"bcdef", b""]
    back = LineFault(at=4, kind=LineFaultKind.LOST, to_device=False)
    assert through(back) == [b"abc", b"df", b"", b"", b""]
