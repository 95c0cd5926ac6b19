# SPDX-License-Identifier: Apache-2.0
"""A channel that waits for TCP connections."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from ferrule._typing import override
from ferrule.link.channel import Channel, arrives
from ferrule.link.errors import LinkError

SCHEME = "listen"


class ListeningChannel(Channel):
    """The server's side of TCP connections, one at a time: `listen://127.0.0.1:4000`; port 0 selects a free port.

    Raises:
        LinkError: the URL is malformed, or the port is not available.
    """

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise LinkError(f"'{url}' is not a URL: {error}", hint=f"{SCHEME}://127.0.0.1:4000") from error
        if parts.scheme != SCHEME or host is None or port is None:
            raise LinkError(f"'{url}' names no port to listen at", hint=f"{SCHEME}://127.0.0.1:4000")
        try:
            self._server = socket.create_server((host, port))
        except OSError as error:
            raise LinkError(f"cannot listen at '{url}': {error}") from error
        self._connection: socket.socket | None = None

    @property
    def url(self) -> str:
        """The URL on which the channel listens, with the actual port."""
        host, port = self._server.getsockname()[:2]
        return f"{SCHEME}://{host}:{port}"

    @override
    def read(self, max_bytes: int, timeout_s: float) -> bytes:
        if not arrives(self._connection or self._server, timeout_s):
            return b""
        if self._connection is None:
            self._connection, _ = self._server.accept()
            return b""
        try:
            data = self._connection.recv(max_bytes)
        except ConnectionError:
            data = b""
        if not data:
            self._hang_up()
        return data

    @override
    def write(self, data: bytes) -> None:
        """Send all bytes of `data`; they are lost if no client is connected, as on a wire."""
        if self._connection is not None:
            try:
                self._connection.sendall(data)
            except ConnectionError:
                self._hang_up()

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @override
    def close(self) -> None:
        self._hang_up()
        self._server.close()
