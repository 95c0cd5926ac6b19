# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time

import pytest

from ferrule.link import LinkError, LinkSession, LinkTimeoutError, SerialChannel, channel_pair


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
    begin = time.monotonic()
    assert there.read(2, 0.05) == b""
    assert time.monotonic() - begin >= 0.05
    threading.Timer(0.05, here.write, [b"late"]).start()
    assert there.read(9, 5.0) == b"late"
    there.close()
    with pytest.raises(LinkError, match="closed"):
        there.read(1, 1.0)


def test_a_silent_pipe_times_out_on_time() -> None:
    here, _ = channel_pair()
    begin = time.monotonic()
    with pytest.raises(LinkTimeoutError, match=r"3 attempts of 0\.03 s"):
        LinkSession(here, timeout_s=0.03, retries=2).hello()
    assert 0.09 <= time.monotonic() - begin < 1.0


def test_serial_is_imported_late() -> None:
    code = "import sys, ferrule.link; sys.exit('serial' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
