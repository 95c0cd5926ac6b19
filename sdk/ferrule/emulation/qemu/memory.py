# SPDX-License-Identifier: Apache-2.0
"""The memory of a board in QEMU, through QEMU's server for gdb: its machine protocol (QMP) only reads memory.

Through the link, QEMU handles each byte apart, and takes up to twenty seconds for a megabyte.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable

from ferrule._typing import override
from ferrule.boards import Board, MemoryKind
from ferrule.emulation.crash import EngineError
from ferrule.emulation.gdb.packets import Packet, PacketReader, frame
from ferrule.emulation.qemu.monitor import TIMEOUT_S
from ferrule.link import BoardMemory
from ferrule.link.errors import LinkError

SERVER = "stub"
"""The name of the server's character device."""
PIECE_BYTES = 1024
"""Bytes of one packet: a packet has two digits for each, and QEMU accepts 4096 characters."""
_ACKNOWLEDGED = b"+"
_STOPPED = (b"T", b"S")
"""First letters of the packets by which the server says, unasked, that the core has stopped."""


class QemuMemory(BoardMemory):
    """Stops QEMU at the first access, since its server answers only then, until `release`.

    A firmware that polls its UART would otherwise keep a core of the host busy between the accesses.
    """

    def __init__(self, connection: socket.socket, board: Board, command: Callable[[str], object]) -> None:
        """Use the server at the other end of the connection, which runs; `command` executes one of the monitor."""
        connection.settimeout(TIMEOUT_S)
        self._connection, self._board, self._command = connection, board, command
        self._held = False
        self._reader = PacketReader()
        self._received: deque[bytes] = deque()

    @override
    def read(self, address: int, size_bytes: int) -> bytes:
        data = b""
        self._hold()
        for offset in range(0, size_bytes, PIECE_BYTES):
            step = min(PIECE_BYTES, size_bytes - offset)
            answer = self._ask(b"m%x,%x" % (address + offset, step))
            if answer.startswith(b"E"):
                break
            data += bytes.fromhex(answer.decode("ascii"))
        return data

    @override
    def write(self, address: int, data: bytes) -> None:
        end = address + len(data)
        memory = next((each for each in self._board.memories if address in each and end <= each.end), None)
        if memory is None or memory.kind is not MemoryKind.RAM:
            raise LinkError(
                f"the {len(data)} bytes of an input at {address:#010x} do not lie within a RAM of the board"
            )
        self._hold()
        for offset in range(0, len(data), PIECE_BYTES):
            piece = data[offset : offset + PIECE_BYTES]
            answer = self._ask(b"M%x,%x:%s" % (address + offset, len(piece), piece.hex().encode()))
            if answer != b"OK":
                raise LinkError(f"QEMU cannot write to {address + offset:#010x}: {answer.decode('ascii')}")

    def release(self) -> None:
        """Let QEMU run on; EngineError if it has ended."""
        if self._held:
            self._held = False
            self._command("cont")

    def _hold(self) -> None:
        if not self._held:
            self._command("stop")
            self._held = True

    def _ask(self, payload: bytes) -> bytes:
        """Return the server's answer to a packet."""
        try:
            self._connection.sendall(frame(payload))
            while True:
                while self._received:
                    answer = self._received.popleft()
                    if not answer.startswith(_STOPPED):
                        return answer
                data = self._connection.recv(65536)
                if not data:
                    raise EngineError("QEMU's server for gdb has closed the connection")
                for item in self._reader.feed(data):
                    if not isinstance(item, Packet):
                        raise EngineError("QEMU's server for gdb has sent a damaged packet")
                    self._received.append(item.payload)
                    self._connection.sendall(_ACKNOWLEDGED)
        except OSError as error:
            raise EngineError(f"QEMU's server for gdb does not answer: {error}") from error
