# SPDX-License-Identifier: Apache-2.0
"""The External Control client against recorded messages of Renode 1.16.1, and against misbehaving peers."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transcript import Player, chunks

from ferrule.emulation.renode.errors import RenodeConnectionError, RenodeError
from ferrule.emulation.renode.external_control import (
    Command,
    ControlError,
    ExternalControl,
    FramedControl,
    LegacyControl,
    RenodeMachine,
    Width,
)
from ferrule.emulation.renode.stream import Stream


def stream(end: socket.socket, timeout_s: float = 10.0) -> Stream:
    return Stream(end, name="external control", timeout_s=timeout_s)


@pytest.mark.parametrize("split", [0, 1, 3])
def test_a_session_with_renode_1_16_1(split: int) -> None:
    player = Player(chunks("external_control", 1), split=split)
    transport = LegacyControl(stream(player.ends["external_control"]))
    with ExternalControl(transport) as control:
        assert control.time_s() == 0.0
        machine = control.machine("m")
        assert machine == RenodeMachine("m", 0)
        control.run_for(0.001)
        assert control.time_s() == 0.001
        data = bytes(range(16))
        control.write(machine, 0x2000_2000, data)
        assert control.read(machine, 0x2000_2000, 16) == data
        for width in (Width.BYTE, Width.WORD, Width.DOUBLE_WORD, Width.QUAD_WORD):
            assert control.read(machine, 0x2000_2000, 16 // width, width=width) == data
        words = struct.pack("<II", 0xDEAD_BEEF, 1)
        control.write(machine, 0x2000_2010, words, width=Width.DOUBLE_WORD)
        assert control.read(machine, 0x2000_2010, 2, width=Width.DOUBLE_WORD) == words
        with pytest.raises(ControlError, match="Renode refuses GET_MACHINE: Machine not found"):
            control.machine("nosuch")
        with pytest.raises(ControlError, match="Renode refuses SYSTEM_BUS: Instance not found"):
            control.read(machine, 0, 1, bus="nosuch")
        with pytest.raises(ControlError, match="Renode does not know the command 99"):
            transport.ask(99, b"")  # type: ignore[arg-type]
    player.finish()
    assert player.differences == []


def test_a_handshake_that_renode_1_16_1_refused() -> None:
    player = Player(chunks("external_control", 2))
    with pytest.raises(ControlError, match=r"Encountered invalid version \(0x9\) for RunFor, expected 0x0"):
        LegacyControl(stream(player.ends["external_control"]), {Command.RUN_FOR: 9})
    player.ends["external_control"].close()
    player.finish()
    assert player.differences == []


@contextlib.contextmanager
def answering(*answers: bytes) -> Iterator[socket.socket]:
    """Yield the client's end of a peer that sends these bytes and closes."""
    client, server = socket.socketpair()
    with client, server:
        server.sendall(b"".join(answers))
        server.shutdown(socket.SHUT_WR)
        yield client


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"", "closed the connection: 1 B were expected, 0 came"),
        (b"\x03\x02\x08\x00\x00\x00\x01", "8 B were expected, 1 came"),
        (b"\x03\x02\xff\xff\xff\xff", "announces 4294967295 B"),
        (b"\x03\x01\x00\x00\x00\x00", "answers RUN_FOR, GET_TIME was requested"),
        (b"\x03\x02\x04\x00\x00\x00abcd", "answers with 4 B, expected 8"),
        (b"\x04\x02", "answers with 0 B, expected 8"),
        (b"\x01\x03\x00\x00\x00off", "ends the connection: off"),
        (b"\x00\x63\x02\x00\x00\x00no", "refuses command 99: no"),
        (b"\x07", "unknown code 7"),
        (b"\x05", "unknown code 5"),
    ],
)
def test_answers_that_do_not_fit(answer: bytes, message: str) -> None:
    with answering(b"\x05", answer) as client, pytest.raises(RenodeError, match=message):
        ExternalControl(LegacyControl(stream(client))).time_s()


def test_events_are_passed_over() -> None:
    event = b"\x06\x05" + struct.pack("<iI", 7, 3) + b"abc"
    with answering(b"\x05", event, b"\x04\x01") as client:
        ExternalControl(LegacyControl(stream(client))).run_for(1)


def test_silence_ends() -> None:
    client, server = socket.socketpair()
    with client, server, pytest.raises(RenodeConnectionError, match=r"no answer within 0\.05 s"):
        LegacyControl(stream(client, 0.05))


def test_pins_and_converters_are_asked_by_number() -> None:
    client, server = socket.socketpair()
    instance = struct.pack("<BBIi", 3, 5, 4, 9)
    adc = struct.pack("<BBIi", 3, 4, 4, 2)
    answers = [
        *(b"\x05", instance, b"\x03\x05\x01\x00\x00\x00\x01", b"\x04\x05"),
        *(adc, struct.pack("<BBIi", 3, 4, 4, 3), struct.pack("<BBII", 3, 4, 4, 77), b"\x04\x04"),
    ]
    with client, server:
        server.sendall(b"".join(answers))
        control, machine = ExternalControl(LegacyControl(stream(client))), RenodeMachine("m", 1)
        assert control.pin(machine, "sysbus.gpio", 3)
        control.set_pin(machine, "sysbus.gpio", 3, level=False)
        assert control.adc_channels(machine, "sysbus.adc") == 3
        assert control.adc_value(machine, "sysbus.adc", 1) == 77
        control.set_adc_value(machine, "sysbus.adc", 1, 5)
        client.shutdown(socket.SHUT_WR)
        sent = bytearray()
        while more := server.recv(4096):
            sent += more
    assert sent[14:].startswith(b"RE\x05" + struct.pack("<Iiii", 12 + 11, -1, 1, 11) + b"sysbus.gpio")
    assert struct.pack("<IiBi", 9, 9, 0, 3) in sent
    assert struct.pack("<IiBiB", 10, 9, 1, 3, 0) in sent
    assert struct.pack("<IiBiI", 13, 2, 2, 1, 5) in sent


class FramedPeer:
    """A minimal Renode later than 1.16.1: it sends an event before each answer to GET_TIME."""

    def __init__(self, *, version_answer: int = 2) -> None:
        self.client, self._server = socket.socketpair()
        self._version_answer = version_answer
        self.events_answered: list[bytes] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        end = self._server
        with end:
            while header := end.recv(6, socket.MSG_WAITALL):
                number, size = struct.unpack("<HI", header)
                command, kind = struct.unpack("<HB", end.recv(3, socket.MSG_WAITALL))
                data = end.recv(size - 3, socket.MSG_WAITALL) if size > 3 else b""
                if not number & 0x8000:
                    self.events_answered.append(struct.pack("<HHB", number, command, kind) + data)
                    continue
                if command == 0:
                    end.sendall(struct.pack("<HIHB", number, 3, 0, self._version_answer))
                elif command == Command.GET_TIME:
                    end.sendall(struct.pack("<HIHB", 5, 3, 7, 1))
                    end.sendall(struct.pack("<HIHBQ", number, 11, command, 2, 1_500_000_000))
                elif command == Command.GET_MACHINE:
                    end.sendall(struct.pack("<HIHB", number, 3 + 4, command, 4) + b"none")
                else:
                    end.sendall(struct.pack("<HIHB", number, 3, command, 3))


def test_the_protocol_after_1_16_1() -> None:
    peer = FramedPeer()
    control = ExternalControl(FramedControl(stream(peer.client)))
    assert control.time_s() == 1.5
    with pytest.raises(ControlError, match="Renode refuses GET_MACHINE: none"):
        control.machine("m")
    with pytest.raises(ControlError, match="does not know the command 1"):
        control.run_for(1)
    control.close()
    assert peer.events_answered == [struct.pack("<HHB", 5, 7, 2)]


def test_another_protocol_version_is_refused() -> None:
    with pytest.raises(ControlError, match="refuses command 0"):
        FramedControl(stream(FramedPeer(version_answer=4).client))


@settings(max_examples=200)
@given(st.binary(max_size=64), st.booleans())
def test_any_bytes_are_an_answer_or_one_clear_error(data: bytes, framed: bool) -> None:
    with answering(b"" if framed else b"\x05", data) as client, contextlib.suppress(RenodeError):
        transport = FramedControl(stream(client)) if framed else LegacyControl(stream(client))
        ExternalControl(transport).time_s()
