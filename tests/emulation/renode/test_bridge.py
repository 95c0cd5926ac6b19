# SPDX-License-Identifier: Apache-2.0
"""Our end of the bridge, against a scripted peer."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading

import pytest
from copier import Copier
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.devices import BusError, DeviceModel
from ferrule.emulation.renode import RenodeError, Stream
from ferrule.emulation.renode.bridge import BridgeServer

HEADER = struct.Struct("<IIIIQ")
HELLO, READ, WRITE, RESET, EVENT, GET, PUT, DATA, LINE, ANSWER = 1, 2, 3, 4, 5, 16, 17, 18, 19, 32


class Bridge:
    """The peer at the other end of the bridge."""

    def __init__(self, model: DeviceModel) -> None:
        self.end, ours = socket.socketpair()
        self.end.settimeout(5)
        self.server = BridgeServer(model, Stream(ours, name="bridge", timeout_s=5))
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        try:
            self.server.serve()
        except RenodeError as error:
            self.error = error
        self.server.close()

    def send(self, kind: int, a: int = 0, b: int = 0, c: int = 0, d: int = 0, data: bytes = b"") -> None:
        self.end.sendall(HEADER.pack(kind, a, b, c, d) + data)

    def hear(self) -> tuple[tuple[int, int, int, int, int], bytes]:
        header = HEADER.unpack(self.end.recv(24, socket.MSG_WAITALL))
        follows = header[3] if header[0] in {PUT, ANSWER} else 0
        return header, self.end.recv(follows, socket.MSG_WAITALL) if follows else b""

    def finish(self) -> Exception | None:
        self.end.close()
        self._thread.join(5)
        assert not self._thread.is_alive()
        return self.error


def expect_copy(bridge: Bridge) -> None:
    assert bridge.hear()[0] == (GET, 0x1000, 100, 0, 0)
    block = bytes(range(100))
    bridge.send(DATA, c=100, data=block)
    assert bridge.hear() == ((PUT, 0x2000, 0, 100, 0), block[::-1])
    bridge.send(DATA)
    assert bridge.hear()[0] == (LINE, 1, 0, 0, 0)


def test_work_is_done_in_blocks_before_the_answer() -> None:
    model = Copier()
    bridge = Bridge(model)
    bridge.send(HELLO, 1, 0x1000)
    assert bridge.hear()[0] == (ANSWER, 0, 0, 0, 0)
    bridge.send(WRITE, 0, 4, 0)
    expect_copy(bridge)
    assert bridge.hear()[0] == (ANSWER, 0, 0, 0, 0)
    bridge.send(RESET)
    assert bridge.hear()[0] == (LINE, 0, 0, 0, 0)
    assert bridge.hear()[0] == (ANSWER, 0, 0, 0, 0)
    assert bridge.finish() is None
    assert model.resets == 2


def test_time_passes_with_requests_and_events() -> None:
    bridge = Bridge(Copier())
    bridge.send(WRITE, 0, 4, 1000)
    assert bridge.hear()[0] == (ANSWER, 0, 0, 0, 1000)
    bridge.send(READ, 4, 4, 0, 300)
    assert bridge.hear()[0] == (ANSWER, 0, 700, 0, 700)
    bridge.send(EVENT, d=700)
    expect_copy(bridge)
    assert bridge.hear()[0] == (ANSWER, 0, 0, 0, 0)
    assert bridge.finish() is None


def test_a_refused_access_is_said() -> None:
    bridge = Bridge(Copier())
    bridge.send(READ, 8, 4)
    reason = b"no register at 0x8"
    assert bridge.hear() == ((ANSWER, 1, 0, len(reason), 0), reason)
    bridge.send(READ, 4, 2)
    assert bridge.hear()[0] == (ANSWER, 0, 0, 0, 0)
    assert bridge.finish() is None


def test_refused_dma_is_a_refused_access() -> None:
    bridge = Bridge(Copier())
    bridge.send(WRITE, 0, 4, 0)
    assert bridge.hear()[0][0] == GET
    bridge.send(DATA, 1, c=4, data=b"nope")
    assert bridge.hear() == ((ANSWER, 1, 0, 4, 0), b"nope")
    assert bridge.finish() is None


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ((HELLO, 2, 0x1000, 0, 0), "the bridge has version 2"),
        ((HELLO, 1, 0x2000, 0, 0), "a window of 0x2000 B"),
        ((READ, 0, 8, 0, 0), "the bridge requests 2"),
        ((99, 0, 0, 0, 0), "the bridge requests 99"),
    ],
)
def test_what_the_protocol_does_not_have(request_: tuple[int, ...], message: str) -> None:
    bridge = Bridge(Copier())
    bridge.send(*request_)
    assert bridge.end.recv(1) == b""
    assert message in str(bridge.finish())


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ((READ, 0, 0, 0, 0), "sent 2 where DATA was expected"),
        ((DATA, 0, 0, 0, 0), "returned 0 B, 100 were requested"),
        ((DATA, 0, 0, 1 << 30, 0), "a message of 1073741824 B"),
    ],
)
def test_wrong_replies_to_dma(reply: tuple[int, ...], message: str) -> None:
    bridge = Bridge(Copier())
    bridge.send(WRITE, 0, 4, 0)
    assert bridge.hear()[0][0] == GET
    bridge.send(*reply)
    assert bridge.end.recv(1) == b""
    assert message in str(bridge.finish())


def test_a_connection_that_breaks_inside_of_a_message() -> None:
    bridge = Bridge(Copier())
    bridge.end.sendall(b"\x02\x00")
    assert "22 B were expected" in str(bridge.finish())


def test_a_view_is_a_copy() -> None:
    bridge = Bridge(model := Copier())
    with pytest.raises(BusError, match="can't be written"):
        model.bus.view(0, 4, writable=True)
    assert bridge.finish() is None


@settings(max_examples=100)
@given(st.binary(max_size=120))
def test_any_bytes_are_served_or_one_clear_error(data: bytes) -> None:
    theirs, ours = socket.socketpair()
    with theirs, Stream(ours, name="bridge", timeout_s=2) as stream:
        theirs.sendall(data)
        theirs.shutdown(socket.SHUT_WR)
        with contextlib.suppress(RenodeError):
            BridgeServer(Copier(), stream).serve()
