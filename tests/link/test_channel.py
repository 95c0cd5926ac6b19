# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest
from manual_clock import ManualClock

from ferrule._typing import override
from ferrule.errors import MissingToolError
from ferrule.link import LinkError, LinkSession, LinkTimeoutError, SerialChannel, channel_pair
from ferrule.link.channel import PipeChannel


@pytest.fixture
def server() -> socket.socket:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(10)
    return listener


def test_serial_channel_over_a_socket(server: socket.socket) -> None:
    port = server.getsockname()[1]
    with server, SerialChannel(f"socket://127.0.0.1:{port}") as channel:
        peer, _ = server.accept()
        with peer:
            assert channel.read(10, 0.05) == b""
            channel.write(b"ping")
            assert peer.recv(10) == b"ping"
            peer.sendall(bytes(range(256)) * 20)
            came = b""
            while len(came) < 5120:
                piece = channel.read(1000, 5.0)
                assert 1 <= len(piece) <= 1000
                came += piece
            assert came == bytes(range(256)) * 20
        with pytest.raises(LinkError, match=f"socket://127.0.0.1:{port}' failed"):
            channel.read(10, 1.0)


class Port:
    """A serial port holding 4 bytes, which records the count and time-out of each `read`."""

    def __init__(self) -> None:
        self.timeout = 0.0
        self.in_waiting = 4
        self.reads: list[tuple[int, float]] = []

    def read(self, count: int) -> bytes:
        self.reads.append((count, self.timeout))
        count = min(count, self.in_waiting)
        self.in_waiting -= count
        return b"x" * count

    def close(self) -> None: ...


def test_only_the_first_byte_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    port = Port()
    monkeypatch.setattr("serial.serial_for_url", lambda _url, **_options: port)
    with SerialChannel("/dev/port") as channel:
        assert channel.read(10, 1.5) == b"xxxx"
        assert port.reads == [(1, 1.5), (3, 0)]
        assert channel.read(10, 1.5) == b""
        port.in_waiting = 3
        assert channel.read(1, 1.5) == b"x"
    assert port.reads[2:] == [(1, 1.5), (1, 1.5)]


def test_pyserial_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ferrule.link.channel.find_spec", lambda _name: None)
    with pytest.raises(MissingToolError, match="pyserial is missing") as caught:
        SerialChannel("/dev/port")
    assert caught.value.hint == "pip install 'ferrule[serial]'"


def test_a_port_that_is_not_there(tmp_path: object) -> None:
    with pytest.raises(LinkError, match=r"serial port '/dev/no-such-port' cannot be opened") as raised:
        SerialChannel("/dev/no-such-port")
    assert "list_ports" in (raised.value.hint or "")
    with pytest.raises(LinkError, match="cannot be opened"):
        SerialChannel("nonsense://x")


def test_pipe() -> None:
    here, there = channel_pair()
    here.write(b"abc")
    assert there.read(2, 1.0) == b"ab"
    assert there.read(2, 1.0) == b"c"
    assert there.read(2, 0.05) == b""
    threading.Timer(0.05, here.write, [b"late"]).start()
    assert there.read(9, 60.0) == b"late"
    there.close()
    with pytest.raises(LinkError, match="closed"):
        there.read(1, 1.0)


class Impatient(threading.Condition):
    """A condition that records each requested wait and does not wait."""

    def __init__(self) -> None:
        super().__init__()
        self.waits_s: list[float | None] = []

    @override
    def wait(self, timeout: float | None = None) -> bool:
        self.waits_s.append(timeout)
        return False

    @override
    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        if not (found := predicate()):
            self.waits_s.append(timeout)
        return found


def test_a_pipe_waits_as_long_as_it_is_told() -> None:
    condition, incoming = Impatient(), bytearray()
    pipe = PipeChannel(condition, incoming, bytearray())
    assert pipe.read(2, 0.05) == b""
    incoming += b"here"
    assert pipe.read(2, 3.0) == b"he"
    assert condition.waits_s == [0.05]


class Silent:
    """A channel that returns no bytes and advances a clock by each read's time-out."""

    def __init__(self, clock: ManualClock) -> None:
        self.written: list[bytes] = []
        self._clock = clock

    def read(self, max_bytes: int, timeout_s: float) -> bytes:
        del max_bytes
        self._clock.now_s += timeout_s
        return b""

    def clock(self) -> float:
        return self._clock.now_s

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


def test_a_silent_channel_times_out_on_time() -> None:
    """By the channel's clock: what the host's clock says does not matter."""
    clock = ManualClock()
    channel, begin_s = Silent(clock), clock.now_s
    with pytest.raises(LinkTimeoutError, match=r"3 attempts of 0\.03 s"):
        LinkSession(channel, timeout_s=0.03, retries=2).hello()
    assert clock.now_s - begin_s == pytest.approx(3 * 0.03)
    assert len(channel.written) == 3
    assert len(set(channel.written)) == 1


def test_serial_is_imported_late() -> None:
    code = "import sys, ferrule.link; sys.exit('serial' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
