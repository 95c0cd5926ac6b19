# SPDX-License-Identifier: Apache-2.0
"""The channel that waits for a connection."""

from __future__ import annotations

import contextlib
import socket

import pytest

from ferrule.link import LinkError, ListeningChannel


def read(channel: ListeningChannel, wanted: int) -> bytes:
    data = b""
    for _ in range(100):
        data += channel.read(wanted - len(data), 0.1)
        if len(data) == wanted:
            break
    return data


def test_one_connection_after_the_other() -> None:
    with contextlib.closing(ListeningChannel("listen://127.0.0.1:0")) as channel:
        port = int(channel.url.rpartition(":")[2])
        assert channel.read(10, 0) == b""
        channel.write(b"to nobody")
        for number in range(3):
            with socket.create_connection(("127.0.0.1", port), 5) as client:
                client.sendall(b"hello")
                assert read(channel, 3) == b"hel"
                assert read(channel, 2) == b"lo"
                channel.write(bytes([number]) * 4)
                assert client.recv(10) == bytes([number]) * 4
            assert channel.read(10, 1) == b""  # the peer hung up


def test_a_client_that_resets_is_no_error() -> None:
    with contextlib.closing(ListeningChannel("listen://127.0.0.1:0")) as channel:
        port = int(channel.url.rpartition(":")[2])
        client = socket.create_connection(("127.0.0.1", port), 5)
        client.sendall(b"x")
        assert read(channel, 1) == b"x"
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()
        for _ in range(5):
            channel.write(b"y" * 1000)
            assert channel.read(1, 0.01) == b""


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("listen://", "names no port"),
        ("listen://127.0.0.1", "names no port"),
        ("socket://127.0.0.1:1", "names no port"),
        ("listen://127.0.0.1:x", "is not a URL"),
        ("listen://[::", "is not a URL"),
        ("listen://127.0.0.1:99999", "is not a URL"),
        ("listen://192.0.2.1:4000", "cannot listen at"),
    ],
)
def test_urls_that_cannot_be(url: str, message: str) -> None:
    with pytest.raises(LinkError, match=message):
        ListeningChannel(url)
