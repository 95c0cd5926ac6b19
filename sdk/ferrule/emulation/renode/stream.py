# SPDX-License-Identifier: Apache-2.0
"""A connection to one of Renode's servers with reads of exact sizes."""

from __future__ import annotations

import contextlib
import socket
from typing import Self

from ferrule._typing import override
from ferrule.closing import Closing
from ferrule.emulation.renode.errors import RenodeConnectionError


class Stream(Closing):
    """A byte stream to a server, for use by one thread, or by one that reads and one that writes.

    Every wait is limited to `timeout_s` unless it is None. Written data is sent at once, without Nagle's delay.
    """

    def __init__(self, connected: socket.socket, *, name: str, timeout_s: float | None = 10.0) -> None:
        self._socket = connected
        self._name = name
        self._timeout_s = timeout_s
        connected.settimeout(timeout_s)
        if connected.family in {socket.AF_INET, socket.AF_INET6}:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @classmethod
    def connect(cls, host: str, port: int, *, name: str, timeout_s: float = 10.0) -> Self:
        """Connect to a server; RenodeConnectionError if that fails."""
        try:
            connected = socket.create_connection((host, port), timeout=timeout_s)
        except OSError as error:
            raise RenodeConnectionError(
                f"{name}: cannot connect to {host}:{port}: {error}", hint="is Renode running, with this server?"
            ) from error
        return cls(connected, name=name, timeout_s=timeout_s)

    def send(self, data: bytes) -> None:
        """Send all bytes."""
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise RenodeConnectionError(f"{self._name}: Renode no longer accepts data: {error}") from error

    def read(self, size_bytes: int) -> bytes:
        """Read exactly `size_bytes` bytes.

        Raises:
            RenodeConnectionError: the bytes did not arrive in time, or the connection was closed before.
        """
        data = bytearray()
        while len(data) < size_bytes:
            state = f": {size_bytes} B were expected, {len(data)} came"
            more = self._receive(size_bytes - len(data), "no answer", state)
            if not more:
                raise RenodeConnectionError(f"{self._name}: Renode closed the connection{state}")
            data += more
        return bytes(data)

    def read_some(self, most_bytes: int = 65536) -> bytes:
        """Wait for at least one byte and return the received bytes; empty if Renode has closed the connection."""
        return self._receive(most_bytes, "no data arrived")

    def _receive(self, most_bytes: int, missing: str, state: str = "") -> bytes:
        try:
            return self._socket.recv(most_bytes)
        except TimeoutError:
            raise RenodeConnectionError(f"{self._name}: {missing} within {self._timeout_s:g} s{state}") from None
        except OSError as error:
            raise RenodeConnectionError(f"{self._name}: {error}{state}") from error

    def shut_down(self) -> None:
        """Tell Renode that nothing more will come; for any thread."""
        with contextlib.suppress(OSError):  # it is closed already
            self._socket.shutdown(socket.SHUT_RDWR)

    @override
    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        self._socket.close()
