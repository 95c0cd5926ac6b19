# SPDX-License-Identifier: Apache-2.0
"""A UART of an emulated board behind Renode's socket terminal.

In the Monitor, `emulation CreateServerSocketTerminal 3456 "term" false` creates a terminal, and
`connector Connect sysbus.uart0 term` connects it to a UART. Without the `false`, telnet commands are mixed into the
bytes.
"""

from __future__ import annotations

import socket

from ferrule._typing import override
from ferrule.emulation.renode.errors import RenodeConnectionError
from ferrule.emulation.renode.stream import Stream
from ferrule.link import Channel
from ferrule.link.channel import arrives

_CHUNK_BYTES = 65536


class SocketTerminal(Channel):
    """The unmodified bytes of one UART over a connection that the terminal owns; for use by one thread."""

    def __init__(self, connected: socket.socket, *, timeout_s: float = 60.0) -> None:
        """Take over a connection; `timeout_s` limits the duration of a `write`."""
        self._stream = Stream(connected, name="UART", timeout_s=timeout_s)
        self._socket = connected
        self._received = b""

    @classmethod
    def connect(cls, port: int, host: str = "127.0.0.1", *, timeout_s: float = 60.0) -> SocketTerminal:
        """Connect to a terminal; RenodeConnectionError if that fails."""
        try:
            return cls(socket.create_connection((host, port), timeout_s), timeout_s=timeout_s)
        except OSError as error:
            raise RenodeConnectionError(
                f"UART: cannot connect to {host}:{port}: {error}", hint="is Renode running, with this terminal?"
            ) from error

    @override
    def read(self, max_bytes: int, timeout_s: float) -> bytes:
        """Return the received bytes, waiting up to `timeout_s` for the first; empty on a time-out.

        Raises:
            RenodeConnectionError: Renode has closed the terminal.
        """
        if not self._received:
            self._received = self._receive(timeout_s)
        data, self._received = self._received[:max_bytes], self._received[max_bytes:]
        return data

    def _receive(self, timeout_s: float) -> bytes:
        try:
            if not arrives(self._socket, max(0.0, timeout_s)):
                return b""
            data = self._socket.recv(_CHUNK_BYTES)
        except (OSError, ValueError) as error:  # ValueError: the socket is closed
            raise RenodeConnectionError(f"UART: the connection broke: {error}") from error
        if not data:
            raise RenodeConnectionError("UART: Renode closed the connection")
        return data

    @override
    def write(self, data: bytes) -> None:
        """Send bytes to the firmware."""
        self._stream.send(data)

    @override
    def close(self) -> None:
        """Close the connection."""
        self._socket.close()
