# SPDX-License-Identifier: Apache-2.0
"""A UART over Renode's socket terminal, against recorded messages of Renode 1.16.1."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest
from transcript import Player, chunks

from ferrule.emulation.renode import ExternalControl, Monitor, RenodeConnectionError, SocketTerminal
from ferrule.emulation.renode.monitor import Telnet
from ferrule.emulation.renode.robot import RobotServer


def read_until(terminal: SocketTerminal, end: bytes) -> bytes:
    data = b""
    while not data.endswith(end):
        piece = terminal.read(7, 5.0)
        assert piece, data
        data += piece
    return data


@pytest.mark.parametrize("split", [0, 1])
def test_a_session_with_renode_1_16_1(split: int) -> None:
    player = Player(chunks("uart", 1), split=split)
    terminal = SocketTerminal(player.ends["uart"])
    assert read_until(terminal, b"> ").endswith(b"utf8 \xc3\xa9 ff \xff end\r\nready> ")
    terminal.write(b"ping\r")
    assert read_until(terminal, b"> ") == b"ping\r\nok\r\nready> "
    terminal.write(b"\x00\xff\x80A\r")
    assert read_until(terminal, b"> ") == b"\x00\xff\x80A\r\nok\r\nready> "
    terminal.close()
    player.finish()
    assert player.differences == []


def test_a_terminal_with_telnet_is_another() -> None:
    """The client requests `false`, since with `true` the terminal speaks Telnet and changes bytes."""
    player = Player(chunks("uart", 2))
    terminal = SocketTerminal(player.ends["uart"])
    data = read_until(terminal, b"> ")
    assert data.startswith(b"\xff\xfd")
    assert b"ff \xff\xff end" in data
    assert Telnet().decode(data).startswith(b"hello")
    terminal.write(b"ping\r")
    read_until(terminal, b"> ")
    terminal.write(b"\x00\xff\x80A\r")
    assert read_until(terminal, b"> ") == b"\x00\r\nok\r\nready> "
    with pytest.raises(RenodeConnectionError, match="closed the connection"):
        terminal.read(1, 5.0)
    terminal.close()
    player.finish()


def test_nothing_comes() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert SocketTerminal(ours).read(1, 0.01) == b""


def test_renode_takes_nothing() -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    terminal = SocketTerminal(ours)
    with pytest.raises(RenodeConnectionError, match="no longer accepts data"):
        terminal.write(b"x")
    terminal.close()
    with pytest.raises(RenodeConnectionError, match="the connection broke"):
        terminal.read(1, 0.01)


@pytest.mark.parametrize(
    ("connect", "message"),
    [
        (SocketTerminal.connect, "cannot connect to 127.0.0.1:"),
        (Monitor.connect, "cannot connect to 127.0.0.1:"),
        (ExternalControl.connect, "cannot connect to 127.0.0.1:"),
        (lambda port: RobotServer(port).execute("version"), "refused"),
    ],
)
def test_nobody_listens(connect: Callable[[int], object], message: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(RenodeConnectionError, match=message) as caught:
        connect(port)
    assert str(port) in str(caught.value)
    assert str(caught.value.hint).startswith("is Renode running, with this ")
