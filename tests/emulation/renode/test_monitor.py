# SPDX-License-Identifier: Apache-2.0
"""The Monitor client against recorded messages of Renode 1.16.1, and against misbehaving peers."""

from __future__ import annotations

import contextlib
import socket

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transcript import Player, chunks

from ferrule.emulation.renode import Monitor, RenodeConnectionError, RenodeError, Stream
from ferrule.emulation.renode.monitor import Telnet


def stream(end: socket.socket, timeout_s: float = 10.0) -> Stream:
    return Stream(end, name="Monitor", timeout_s=timeout_s)


@pytest.mark.parametrize("split", [0, 1, 3])
def test_a_session_with_renode_1_16_1(split: int) -> None:
    player = Player(chunks("monitor"), split=split)
    monitor = Monitor(stream(player.ends["monitor"]))
    assert monitor.banner.startswith("Renode, version 1.16.1")
    assert monitor.machine is None
    assert monitor.execute("version").startswith("Renode, version 1.16.1")
    assert monitor.execute('mach create "m"') == ""
    assert monitor.machine == "m"
    assert monitor.execute("machine LoadPlatformDescription @board.repl") == ""
    assert monitor.execute("sysbus ReadDoubleWord 0x20000000") == "0x00000000"
    assert monitor.execute("nosuch command") == "No such command or device: nosuch"
    text = monitor.execute("machine LoadPlatformDescription @nosuch.repl")
    assert text.splitlines()[-1] == "Could not find file 'nosuch.repl'."
    assert monitor.execute("sysbus LoadELF @hello.elf") == ""
    assert monitor.execute('emulation RunFor "0.001"') == ""
    assert "Elapsed Virtual Time: 00:00:00.001000000" in monitor.execute("machine ElapsedVirtualTime")
    monitor.quit()
    player.finish()
    assert player.differences == []


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"\xff\xfd\x00\xff\xfb\x01\xff\xfb\x03\xff\xfc\x22a", b"a"),
        (b"a\xff\xffb", b"a\xffb"),
        (b"a\xff\xfa\x18\x00x\xff\xf0b", b"ab"),
        (b"a\xff\xf9b", b"ab"),
        (b"a\xff", b"a"),
        (b"a\xff\xfa\xff", b"a"),
    ],
)
def test_commands_of_telnet(data: bytes, found: bytes) -> None:
    assert Telnet().decode(data) == found
    telnet = Telnet()
    assert b"".join(telnet.decode(data[at : at + 1]) for at in range(len(data))) == found


@given(st.binary(max_size=64), st.integers(0, 64))
def test_pieces_do_not_matter(data: bytes, cut: int) -> None:
    whole, pieces = Telnet(), Telnet()
    assert pieces.decode(data[:cut]) + pieces.decode(data[cut:]) == whole.decode(data)


@pytest.mark.parametrize(
    ("data", "message"), [(b"", "before its prompt: ''"), (b"bye (monitor", r"before its prompt: 'bye \(monitor'")]
)
def test_no_prompt(data: bytes, message: str) -> None:
    client, server = socket.socketpair()
    with client, server:
        server.sendall(data)
        server.shutdown(socket.SHUT_WR)
        with pytest.raises(RenodeConnectionError, match=message):
            Monitor(stream(client))


def test_silence_ends() -> None:
    client, server = socket.socketpair()
    with client, server, pytest.raises(RenodeConnectionError, match=r"no data arrived within 0\.05 s"):
        Monitor(stream(client, 0.05))


def test_a_command_is_one_line() -> None:
    client, server = socket.socketpair()
    with client, server:
        server.sendall(b"(monitor) ")
        with pytest.raises(RenodeConnectionError, match="one line"):
            Monitor(stream(client)).execute("start\nquit")


def test_parentheses_in_the_output_are_no_prompt() -> None:
    client, server = socket.socketpair()
    with client, server:
        server.sendall(b"(monitor) ")
        monitor = Monitor(stream(client))
        server.sendall(b"help\n\rtext (a) \r\nmore\r\n(m 1) ")
        assert monitor.execute("help") == "text (a) \r\nmore"
        assert monitor.machine == "m 1"


@settings(max_examples=100)
@given(st.binary(max_size=80))
def test_any_bytes_are_a_prompt_or_one_clear_error(data: bytes) -> None:
    client, server = socket.socketpair()
    with client, server:
        server.sendall(data)
        server.shutdown(socket.SHUT_WR)
        with contextlib.suppress(RenodeError):
            Monitor(stream(client)).execute("version")
