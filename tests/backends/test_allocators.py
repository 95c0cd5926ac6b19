# SPDX-License-Identifier: Apache-2.0
"""Allocators of memory between backends: the calls of Linux, their order, and their failures."""

from __future__ import annotations

import errno
import gc
import mmap
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from needs import lacking
from numpy.testing import assert_array_equal

from ferrule._typing import override
from ferrule.backends.cpu_ref import CpuRef
from ferrule.backends.shared.allocators import (
    DMA_BUF_IOCTL_SYNC,
    DMA_BUF_SYNC_END,
    DMA_BUF_SYNC_RW,
    DMA_HEAP,
    DMA_HEAP_IOCTL_ALLOC,
    STAND_IN,
    UDMABUF,
    UDMABUF_CREATE,
    DmaBufAllocator,
    LinuxCalls,
    MallocAllocator,
    default_allocators,
)
from ferrule.backends.shared.host_memory import HostMemoryManager, HostTensorHandle, HostTensorHandleFactory, is_aligned
from ferrule.backends.tensor_handle import MemoryRef, MemorySource
from ferrule.errors import FerruleError
from ferrule.graph import DataType, TensorInfo

X = TensorInfo("x", (2, 3), DataType.FLOAT32)
WAYS = pytest.mark.parametrize("devices", [(DMA_HEAP,), (UDMABUF,), ()], ids=["heap", "udmabuf", "stand-in"])


class FakeCalls(LinuxCalls):
    """Linux with some of the devices; their dma-bufs are memfds. The call of number `fails_at` fails."""

    def __init__(self, devices: tuple[str, ...], fails_at: int | None = None, error: int = errno.ENOMEM) -> None:
        self.devices = devices
        self.log: list[str] = []
        self.fails_at = fails_at
        self.error = error
        self._paths: dict[int, str] = {}

    def _call(self, text: str) -> None:
        self.log.append(text)
        if len(self.log) - 1 == self.fails_at:
            raise OSError(self.error, os.strerror(self.error))

    @override
    def open(self, path: str) -> int:
        self._call(f"open {path}")
        if path not in self.devices:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        fd = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        self._paths[fd] = path
        return fd

    @override
    def close(self, fd: int) -> None:
        super().close(fd)
        self.log.append(f"close {self._paths.pop(fd, 'memory')}")

    @override
    def ioctl(self, fd: int, request: int, argument: bytearray) -> int:
        if request == DMA_BUF_IOCTL_SYNC:
            (flags,) = struct.unpack("=Q", argument)
            self._call(f"sync {'end' if flags & DMA_BUF_SYNC_END else 'start'}")
            assert flags & ~DMA_BUF_SYNC_END == DMA_BUF_SYNC_RW
            return 0
        self._call(f"ioctl {self._paths[fd]}")
        if request == DMA_HEAP_IOCTL_ALLOC:
            assert self._paths[fd] == DMA_HEAP
            size, no_fd, flags, heap = struct.unpack("=QIIQ", argument)
            assert (no_fd, flags, heap) == (0, os.O_RDWR | os.O_CLOEXEC, 0)
            argument[:] = struct.pack("=QIIQ", size, self._dma_buf(size), flags, heap)
            return 0
        assert (request, self._paths[fd]) == (UDMABUF_CREATE, UDMABUF)
        memfd, flags, offset, size = struct.unpack("=IIQQ", argument)
        assert (flags, offset, size) == (1, 0, os.fstat(memfd).st_size)
        with pytest.raises(PermissionError):
            os.ftruncate(memfd, 0)  # sealed
        return os.dup(memfd)

    def _dma_buf(self, size: int) -> int:
        fd = os.memfd_create("dma-buf")
        os.ftruncate(fd, size)
        return fd

    @override
    def memfd(self, name: str) -> int:
        self._call("memfd")
        return super().memfd(name)

    @override
    def truncate(self, fd: int, size_bytes: int) -> None:
        self._call("truncate")
        super().truncate(fd, size_bytes)

    @override
    def seal(self, fd: int) -> None:
        self._call("seal")
        super().seal(fd)

    @override
    def map(self, fd: int, size_bytes: int) -> mmap.mmap:
        self._call("map")
        return super().map(fd, size_bytes)


def open_files() -> set[str]:
    """Return the open file descriptors of the process, with what they refer to.

    Those of onnxruntime's own database are left out: a thread of it opens and closes them at any time.
    """
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        try:
            place = entry.readlink()
        except OSError:  # of the directory itself
            continue
        if ".onnxruntime" not in place.parts:
            found.add(f"{entry.name} {place}")
    return found


def mappings() -> int:
    return Path("/proc/self/maps").read_text().count("memfd:")


ORDERS = {
    "heap": (
        (DMA_HEAP,),
        f"dma-buf ({DMA_HEAP})",
        [f"open {DMA_HEAP}", f"ioctl {DMA_HEAP}", f"close {DMA_HEAP}", "map"],
    ),
    "udmabuf": (
        (UDMABUF,),
        f"dma-buf ({UDMABUF})",
        [
            *("memfd", "truncate", "seal", f"open {UDMABUF}", f"ioctl {UDMABUF}"),
            *(f"close {UDMABUF}", "close memory", "map"),
        ],
    ),
    "stand-in": ((), STAND_IN, ["memfd", "truncate", "map"]),
}


@pytest.mark.parametrize("way", ORDERS)
def test_a_dma_buf_is_made_by_the_calls_of_its_way(way: str) -> None:
    devices, name, order = ORDERS[way]
    calls = FakeCalls(devices)
    allocator = DmaBufAllocator(calls)
    assert allocator.name == name
    assert allocator.is_stand_in == (way == "stand-in")
    missing = {"heap": (), "udmabuf": (DMA_HEAP,), "stand-in": (DMA_HEAP, UDMABUF)}[way]
    assert allocator.reason == ", ".join(f"{path}: No such file or directory" for path in missing)
    calls.log.clear()
    memory = allocator.allocate(5000, 64)
    assert calls.log == order
    allocator.free(memory)
    assert calls.log == [*order, "close memory"]


@WAYS
def test_memory_is_mapped_aligned_and_given_back(devices: tuple[str, ...]) -> None:
    gc.collect()  # what earlier tests have left
    files, maps = open_files(), mappings()
    allocator = DmaBufAllocator(FakeCalls(devices))
    memory = allocator.allocate(5000, 4096)
    assert memory.source == MemorySource.MALLOC | MemorySource.DMA_BUF
    assert memory.array is not None
    assert (memory.size_bytes, memory.array.shape, memory.offset, memory.block) == (5000, (5000,), 0, None)
    assert is_aligned(memory.array, mmap.PAGESIZE)
    assert memory.fd is not None
    assert os.fstat(memory.fd).st_size == 2 * mmap.PAGESIZE
    memory.array[4999] = 7
    assert os.pread(memory.fd, 1, 4999) == b"\x07"
    allocator.free(memory)
    with pytest.raises(FerruleError, match="does not hold: 5000 B"):
        allocator.free(memory)
    assert mappings() == maps + 1
    del memory
    gc.collect()
    assert (open_files(), mappings()) == (files, maps)


@pytest.mark.parametrize("way", ORDERS)
def test_a_failure_at_any_call_leaks_nothing(way: str) -> None:
    devices, name, order = ORDERS[way]
    gc.collect()  # what earlier tests have left
    files, maps = open_files(), mappings()
    failing = [index for index, call in enumerate(order) if not call.startswith("close")]
    for index in failing:
        allocator = DmaBufAllocator(calls := FakeCalls(devices))
        calls.fails_at = len(calls.log) + index
        with pytest.raises(MemoryError, match="Cannot allocate memory") as caught:
            allocator.allocate(100, 64)
        assert str(caught.value).startswith(name)
        del caught
        gc.collect()
        assert (open_files(), mappings()) == (files, maps), order[index]
        allocator.free(allocator.allocate(100, 64))
    assert (open_files(), mappings()) == (files, maps)


@pytest.mark.parametrize("devices", [(DMA_HEAP,), (UDMABUF,)], ids=["heap", "udmabuf"])
def test_accesses_of_the_processor_are_bracketed(devices: tuple[str, ...]) -> None:
    calls = FakeCalls(devices)
    allocator = DmaBufAllocator(calls)
    memory = allocator.allocate(128, 64)
    calls.log.clear()
    values = np.arange(6, dtype=np.float32).reshape(X.shape)
    allocator.populate_data(memory.part(64, X), values)
    assert calls.log == ["sync start", "sync end"]
    handle = HostTensorHandle(X, managed=False)
    assert handle.import_memory(memory.part(64, X))
    calls.log.clear()
    assert_array_equal(handle.map(), values)
    handle.map()
    handle.unmap()
    assert calls.log == ["sync start"]
    handle.unmap()
    handle.unmap()
    assert calls.log == ["sync start", "sync end"]
    handle.map()
    handle.end_import()
    assert calls.log == ["sync start", "sync end"] * 2
    allocator.free(memory)


def test_a_managers_block_is_bracketed_while_it_is_held() -> None:
    allocator = DmaBufAllocator(calls := FakeCalls((DMA_HEAP,)))
    assert CpuRef().use_custom_memory_allocator(allocator) == ""
    manager = CpuRef().memory_manager(allocator)
    (factory,) = CpuRef().tensor_handle_factories(manager)
    handle = factory.create_handle(X, managed=True)
    handle.manage()
    handle.allocate()
    manager.acquire()
    calls.log.clear()
    handle.map()
    handle.unmap()
    assert calls.log == []
    manager.release()
    assert calls.log == ["sync end", "close memory"]


def test_a_sync_is_repeated_until_linux_accepts_or_refuses_it() -> None:
    allocator = DmaBufAllocator(calls := FakeCalls((DMA_HEAP,), error=errno.EAGAIN))
    memory = allocator.allocate(16, 16)
    assert memory.access is not None
    calls.log.clear()
    calls.fails_at = 0
    memory.access.begin()
    assert calls.log == ["sync start", "sync start"]
    calls.fails_at, calls.error = 2, errno.EIO
    with pytest.raises(FerruleError, match=f"the access to dma-buf {memory.fd} cannot end: .*Input/output error"):
        memory.access.end()
    allocator.free(memory)


def test_a_stand_in_needs_no_sync() -> None:
    allocator = DmaBufAllocator(FakeCalls(()))
    memory = allocator.allocate(16, 16)
    assert memory.access is None
    allocator.free(memory)


def test_more_than_pages_cannot_be_aligned() -> None:
    with pytest.raises(FerruleError, match=r"a stand-in for dma-buf \(memfd\) is aligned to pages"):
        DmaBufAllocator(FakeCalls(())).allocate(16, 2 * mmap.PAGESIZE)


def test_malloc_is_aligned() -> None:
    allocator = MallocAllocator()
    memory = allocator.allocate(100, 4096)
    assert memory.array is not None
    assert is_aligned(memory.array, 4096)
    assert (memory.source, memory.size_bytes, memory.fd, allocator.name) == (MemorySource.MALLOC, 100, None, "malloc")
    allocator.free(memory)


def test_the_allocators_of_this_machine_serve_a_manager() -> None:
    gc.collect()  # what earlier tests have left
    files, maps = open_files(), mappings()
    assert [allocator.source for allocator in default_allocators()] == [
        MemorySource.MALLOC,
        MemorySource.MALLOC | MemorySource.DMA_BUF,
    ]
    for allocator in default_allocators():
        manager = HostMemoryManager(allocator)
        handle = HostTensorHandleFactory(manager=manager).create_handle(X, managed=True)
        handle.manage()
        handle.allocate()
        manager.acquire()
        handle.map()[...] = 3
        manager.release()
    assert (open_files(), mappings()) == (files, maps)


@pytest.mark.parametrize("path", [DMA_HEAP, UDMABUF])
def test_a_real_device_makes_dma_bufs(path: str) -> None:
    if not os.access(path, os.R_OK | os.W_OK):
        lacking(path, "a Linux kernel with this device, and the right to open it", rare=True)

    class Only(LinuxCalls):
        @override
        def open(self, path_: str) -> int:
            if path_ != path:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            return super().open(path_)

    allocator = DmaBufAllocator(Only())
    assert allocator.name == f"dma-buf ({path})"
    memory = allocator.allocate(5000, 64)
    values = np.arange(6, dtype=np.float32).reshape(X.shape)
    allocator.populate_data(memory.part(64, X), values)
    found = np.zeros_like(values)
    allocator.retrieve_data(memory.part(64, X), found)
    assert_array_equal(found, values)
    assert isinstance(memory, MemoryRef)
    allocator.free(memory)
