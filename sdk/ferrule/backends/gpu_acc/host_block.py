# SPDX-License-Identifier: Apache-2.0
"""Host memory in place: one OpenCL buffer per block, which the processor and the device use in turn, piece by piece.

OpenCL may cache host memory on the device, and defines what both sides see only where map and unmap commands bracket
the processor's accesses; buffers over overlapping host memory are undefined. So each block has one buffer, its tensors
are places in it, and each piece of it is mapped unless a command of the device uses the piece.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ferrule.backends.gpu_acc.session import DeviceMemory, GpuEvent, Session
from ferrule.backends.shared.host_memory import address
from ferrule.backends.tensor_handle import MemoryAccess, MemoryRef
from ferrule.graph import Array

IMPORT_ALIGNMENT_BYTES = 64
"""A cache line: the alignment that drivers require to use host memory in place; others keep a copy."""


@dataclass(slots=True, eq=False)
class _Piece:
    """A part of a block; `mapping` is None while the device uses it."""

    start: int
    end: int
    mapping: Array | None = None


class HostBlock:
    """A block of host memory in one buffer; the processor may access all pieces that no command uses."""

    def __init__(self, session: Session, data: Array, access: MemoryAccess | None) -> None:
        self.start = address(data)
        self.end = self.start + data.nbytes
        self.writable = bool(data.flags.writeable)
        self.users = 0
        """Number of handles with a tensor in the block."""
        self._session = session
        self._data = data
        self._access = access
        self._buffer = session.host_buffer(data)
        self._pieces = [_Piece(start=0, end=data.nbytes)]
        self._return(self._pieces)

    def tensor(self, start: int, size_bytes: int) -> DeviceMemory | None:
        """Return the place of a tensor; None if elements there would be misaligned in a copy on the device."""
        if start % IMPORT_ALIGNMENT_BYTES:
            return None
        for cut in (start, self._round_up(start + size_bytes)):
            self._cut(cut)
        return DeviceMemory(buffer=self._buffer, offset=start)

    def give(self, start: int, size_bytes: int) -> None:
        """Give a tensor's pieces to the device, for commands that are submitted from now on."""
        if self._access is not None:
            self._access.begin()
        for piece in self._within(start, size_bytes):
            mapping, piece.mapping = piece.mapping, None
            if mapping is not None:
                self._session.unmap_host(mapping)

    def take(self, start: int, size_bytes: int, event: GpuEvent) -> GpuEvent:
        """Return an event that completes when the processor may access a tensor's pieces, after all commands so far."""
        mapped = self._map(self._within(start, size_bytes))
        event = event if mapped is None else mapped.followed_as(event)
        return event if self._access is None else event.followed_by(self._access.end)

    def close(self) -> None:
        """Wait for all commands and release the buffer; the owner of the memory may then free it."""
        for piece in self._pieces:
            if piece.mapping is not None:
                self._session.return_host(piece.mapping)
        self._session.finish()
        self._pieces = []

    def _map(self, pieces: list[_Piece]) -> GpuEvent | None:
        """Map the pieces that are not mapped; return the event of the last of them, None if all were mapped."""
        event = None
        for piece in pieces:
            if piece.mapping is None:
                part = self._data[piece.start : piece.end]
                piece.mapping, event = self._session.map_host(self._buffer, piece.start, part, writing=self.writable)
        return event

    def _within(self, start: int, size_bytes: int) -> list[_Piece]:
        return [piece for piece in self._pieces if piece.start < start + size_bytes and piece.end > start]

    def _round_up(self, end: int) -> int:
        return min(-(-end // IMPORT_ALIGNMENT_BYTES) * IMPORT_ALIGNMENT_BYTES, self.end - self.start)

    def _cut(self, place: int) -> None:
        """Divide the piece around a place into two."""
        for index, piece in enumerate(self._pieces):
            if piece.start < place < piece.end:
                if piece.mapping is not None:
                    self._session.unmap_host(piece.mapping)
                parts = [_Piece(start=piece.start, end=place), _Piece(start=place, end=piece.end)]
                self._pieces[index : index + 1] = parts
                self._return(parts)
                return

    def _return(self, pieces: list[_Piece]) -> None:
        """Map pieces and wait: a command that runs later may copy over what the process writes."""
        event = self._map(pieces)
        if event is not None:
            event.wait()


class HostBlocks:
    """The blocks of host memory that one session uses."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._blocks: list[HostBlock] = []

    def join(self, memory: MemoryRef, data: Array, *, writing: bool) -> HostBlock | None:
        """Return the block in which an array lies, with one more user; None if it overlaps a buffer in part.

        FerruleError if the device refuses the memory.
        """
        start = address(data)
        for block in self._blocks:
            if block.start <= start and start + data.nbytes <= block.end and (block.writable or not writing):
                block.users += 1
                return block
        whole = memory.block.array if memory.block is not None else data
        assert whole is not None, "a part is mapped, and its block is not"
        first = address(whole)
        if any(block.start < first + whole.nbytes and block.end > first for block in self._blocks):
            return None
        block = HostBlock(self._session, whole.reshape(-1).view(np.uint8), memory.access)
        block.users = 1
        self._blocks.append(block)
        return block

    def leave(self, block: HostBlock) -> None:
        """Release the block with its last user."""
        block.users -= 1
        if not block.users:
            self._blocks.remove(block)
            block.close()
