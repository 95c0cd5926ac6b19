# SPDX-License-Identifier: Apache-2.0
"""The connection to a GDB: first a listening socket on this machine, then the connected one."""

from __future__ import annotations

import socket
from collections import deque

from ferrule.emulation.crash import EngineError
from ferrule.emulation.gdb.packets import Event, Packet, PacketReader, frame
from ferrule.link.channel import arrives

HOST = "127.0.0.1"
CHUNK_BYTES = 65536


class GdbConnection:
    """Waits for a GDB and exchanges packets with it."""

    def __init__(self, port: int) -> None:
        """Listen on a TCP port of this machine; 0 selects a free port.

        Raises:
            EngineError: the port is not available.
        """
        try:
            self._listener = socket.create_server((HOST, port))
        except OSError as error:
            raise EngineError(
                f"can't wait for gdb at port {port}: {error.strerror}", hint="take another port"
            ) from error
        self.port = int(self._listener.getsockname()[1])
        self._peer: socket.socket | None = None
        self._reader = PacketReader()
        self._items: deque[Packet | Event] = deque()

    def accept(self) -> None:
        """Wait until GDB connects; return at once if it is connected."""
        if self._peer is None:
            self._peer, _ = self._listener.accept()
            self._peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, payload: bytes) -> None:
        """Send a packet; a lost connection is reported by the next `receive`, not here."""
        self.send_raw(frame(payload))

    def send_raw(self, data: bytes) -> None:
        """Send bytes that are not a packet."""
        try:
            if self._peer is not None:
                self._peer.sendall(data)
        except OSError:
            self._close_peer()

    def receive(self, timeout_s: float | None) -> Packet | Event | None:
        """Return the next packet or event, or None if none arrives in time or GDB has disconnected."""
        while not self._items:
            if self._peer is None or not arrives(self._peer, timeout_s):
                return None
            try:
                data = self._peer.recv(CHUNK_BYTES)
            except OSError:
                data = b""
            if not data:
                self._close_peer()
                return None
            self._items += self._reader.feed(data)
        return self._items.popleft()

    @property
    def connected(self) -> bool:
        """Whether GDB is connected."""
        return self._peer is not None

    def _close_peer(self) -> None:
        if self._peer is not None:
            self._peer.close()
            self._peer = None

    def close(self) -> None:
        """Close the connection and the listening socket; a second call does nothing."""
        self._close_peer()
        self._listener.close()
