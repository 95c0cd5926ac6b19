# SPDX-License-Identifier: Apache-2.0
"""Allocators of memory that several backends import: memory of the process, and dma-bufs of Linux."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import struct
import sys
from collections.abc import Callable

import numpy as np

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.backends.context import CustomAllocator
from ferrule.backends.shared.host_memory.aligned import aligned_empty
from ferrule.backends.tensor_handle import MemoryRef, MemorySource
from ferrule.errors import FerruleError
from ferrule.graph import DataType

__all__ = ["STAND_IN", "DmaBufAllocator", "LinuxCalls", "MallocAllocator", "default_allocators", "dma_bufs_here"]

DMA_HEAP = "/dev/dma_heap/system"
UDMABUF = "/dev/udmabuf"
STAND_IN = "stand-in for dma-buf (memfd)"
"""The name of a DmaBufAllocator on a machine with neither device."""

# The numbers are those of x86 and Arm. Linux, include/uapi/linux/dma-heap.h: _IOWR('H', 0, {len, fd, flags, heap})
DMA_HEAP_IOCTL_ALLOC = 0xC018_4800
_HEAP_ALLOCATION = struct.Struct("=QIIQ")
# Linux, include/uapi/linux/udmabuf.h: _IOW('u', 0x42, {memfd, flags, offset, size}), which returns the dma-buf
UDMABUF_CREATE = 0x4018_7542
UDMABUF_FLAGS_CLOEXEC = 1
_UDMABUF_CREATION = struct.Struct("=IIQQ")
# Linux, include/uapi/linux/dma-buf.h: _IOW('b', 0, {flags}), to be repeated after EINTR and EAGAIN
DMA_BUF_IOCTL_SYNC = 0x4008_6200
DMA_BUF_SYNC_RW = 3
DMA_BUF_SYNC_START = 0
DMA_BUF_SYNC_END = 4
_SYNC = struct.Struct("=Q")


class MallocAllocator(CustomAllocator):
    """Allocates memory of the process."""

    source = MemorySource.MALLOC
    name = "malloc"

    @override
    def allocate(self, size_bytes: int, alignment_bytes: int) -> MemoryRef:
        return MemoryRef.of_array(aligned_empty((size_bytes,), DataType.UINT8, alignment_bytes))

    @override
    def free(self, memory: MemoryRef) -> None:
        """Do nothing: the memory is returned with its last array."""


class LinuxCalls:
    """The calls of Linux that `DmaBufAllocator` makes; each raises OSError."""

    def open(self, path: str) -> int:
        """Open a device for reading and writing."""
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def close(self, fd: int) -> None:
        """Close a file descriptor."""
        os.close(fd)

    def ioctl(self, fd: int, request: int, argument: bytearray) -> int:
        """Control a device; the argument is read and written."""
        return int(fcntl.ioctl(fd, request, argument))

    def memfd(self, name: str) -> int:
        """Return an empty file in memory that can be sealed."""
        return os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)

    def truncate(self, fd: int, size_bytes: int) -> None:
        """Set the size of a file."""
        os.ftruncate(fd, size_bytes)

    def seal(self, fd: int) -> None:
        """Seal a file in memory against shrinking."""
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)

    def map(self, fd: int, size_bytes: int) -> mmap.mmap:
        """Map a file, shared and writable; the mapping ends with the last array in it."""
        return mmap.mmap(fd, size_bytes)


@frozen(eq=False, kw_only=False)
class DmaBufAccess:
    """Brackets the processor's accesses to a dma-buf with DMA_BUF_IOCTL_SYNC."""

    _calls: LinuxCalls
    _fd: int

    def begin(self) -> None:
        """Wait for devices and make what they wrote visible; FerruleError if Linux refuses."""
        self._sync(DMA_BUF_SYNC_START, "begin")

    def end(self) -> None:
        """Make what the processor wrote visible to devices; FerruleError if Linux refuses."""
        self._sync(DMA_BUF_SYNC_END, "end")

    def _sync(self, edge: int, what: str) -> None:
        while True:
            try:
                self._calls.ioctl(self._fd, DMA_BUF_IOCTL_SYNC, bytearray(_SYNC.pack(DMA_BUF_SYNC_RW | edge)))
            except OSError as error:
                if error.errno not in {errno.EINTR, errno.EAGAIN}:
                    raise FerruleError(f"the access to dma-buf {self._fd} cannot {what}: {error}") from error
            else:
                return


class DmaBufAllocator(CustomAllocator):
    """Allocates dma-bufs in whole pages, which are mapped here: from a DMA heap, or by udmabuf from a sealed memfd.

    On a machine with neither device the blocks are memfds, which no device driver imports, and `name` is STAND_IN.
    """

    source = MemorySource.MALLOC | MemorySource.DMA_BUF

    def __init__(self, calls: LinuxCalls | None = None) -> None:
        if sys.platform != "linux":
            raise FerruleError(f"dma-bufs are memory of Linux, this is {sys.platform}")
        self._calls = calls or LinuxCalls()
        self._held: dict[int, MemoryRef] = {}
        self.reason = ""
        """The devices that cannot be used, each with the reason."""
        self.name, self._make = self._way()

    def _way(self) -> tuple[str, Callable[[int], int]]:
        """Return the name and the function of the first way that this machine has to make a dma-buf."""
        reasons = []
        for path, make in ((DMA_HEAP, self._from_heap), (UDMABUF, self._from_memfd)):
            try:
                self._calls.close(self._calls.open(path))
            except OSError as error:
                reasons.append(f"{path}: {error.strerror}")
            else:
                self.reason = ", ".join(reasons)
                return f"dma-buf ({path})", make
        self.reason = ", ".join(reasons)
        return STAND_IN, self._memfd

    @property
    def is_stand_in(self) -> bool:
        """Whether the blocks are memfds instead of dma-bufs."""
        return self.name == STAND_IN

    @override
    def allocate(self, size_bytes: int, alignment_bytes: int) -> MemoryRef:
        if alignment_bytes > mmap.PAGESIZE:
            raise FerruleError(
                f"a {self.name} is aligned to pages of {mmap.PAGESIZE} B, {alignment_bytes} B are required"
            )
        pages_bytes = -(-max(size_bytes, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
        try:
            fd = self._make(pages_bytes)
            try:
                mapped = self._calls.map(fd, pages_bytes)
            except BaseException:
                self._calls.close(fd)
                raise
        except OSError as error:
            raise MemoryError(f"{self.name}: {error}") from error
        array = np.frombuffer(mapped, np.uint8, size_bytes)
        access = None if self.is_stand_in else DmaBufAccess(self._calls, fd)
        memory = MemoryRef(self.source, size_bytes, array, fd, access=access)
        self._held[id(memory)] = memory
        return memory

    @override
    def free(self, memory: MemoryRef) -> None:
        """Close the file descriptor; the mapping ends with the last array in it."""
        if self._held.pop(id(memory), None) is None or memory.fd is None:
            raise FerruleError(f"memory is freed that this allocator does not hold: {memory.size_bytes} B")
        self._calls.close(memory.fd)

    def _from_heap(self, size_bytes: int) -> int:
        data = bytearray(_HEAP_ALLOCATION.pack(size_bytes, 0, os.O_RDWR | os.O_CLOEXEC, 0))
        self._control(DMA_HEAP, DMA_HEAP_IOCTL_ALLOC, data)
        return int(_HEAP_ALLOCATION.unpack(data)[1])

    def _control(self, path: str, request: int, data: bytearray) -> int:
        """Open a device for one request, and return its result."""
        device = self._calls.open(path)
        try:
            return self._calls.ioctl(device, request, data)
        finally:
            self._calls.close(device)

    def _from_memfd(self, size_bytes: int) -> int:
        memfd = self._memfd(size_bytes)
        try:
            self._calls.seal(memfd)
            data = bytearray(_UDMABUF_CREATION.pack(memfd, UDMABUF_FLAGS_CLOEXEC, 0, size_bytes))
            return self._control(UDMABUF, UDMABUF_CREATE, data)
        finally:
            self._calls.close(memfd)  # the dma-buf keeps the pages

    def _memfd(self, size_bytes: int) -> int:
        memfd = self._calls.memfd("ferrule")
        try:
            self._calls.truncate(memfd, size_bytes)
        except BaseException:
            self._calls.close(memfd)
            raise
        return memfd


def dma_bufs_here() -> str:
    """Return what the runtime's dma-bufs are on this machine, for messages."""
    if sys.platform != "linux":
        return f"none, they are memory of Linux and this is {sys.platform}"
    found = DmaBufAllocator()
    return f"{found.name}, which no driver of a device imports ({found.reason})" if found.is_stand_in else found.name


def default_allocators() -> tuple[CustomAllocator, ...]:
    """Return the allocators of this machine for memory between backends, in order of preference."""
    malloc = MallocAllocator()
    return (malloc, DmaBufAllocator()) if sys.platform == "linux" else (malloc,)
