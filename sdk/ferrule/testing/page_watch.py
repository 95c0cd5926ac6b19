# SPDX-License-Identifier: Apache-2.0
"""Pages of tensors with a mapping for each backend; a forbidden access ends the process and is named in a file."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ferrule._typing import override
from ferrule.backends.context import CustomAllocator
from ferrule.backends.shared.host_memory import address
from ferrule.backends.tensor_handle import MemoryRef, MemorySource
from ferrule.errors import FerruleError
from ferrule.graph import Array, TensorInfo
from ferrule.nativelib import NativeLibrary

NONE = 0
READ = mmap.PROT_READ
WRITE = mmap.PROT_READ | mmap.PROT_WRITE
NOTE_BYTES = 4096

_LIBRARY = NativeLibrary(
    name="page_watch",
    title="handler of forbidden accesses",
    purpose="the check of ownership",
    sources=(Path(__file__).with_name("src") / "page_watch.c",),
    flags=("-std=c11", "-O2", "-fvisibility=hidden"),
)


class _Region(ctypes.Structure):
    """`struct region` of page_watch.c."""

    _fields_ = (
        ("address", ctypes.c_uint64),
        ("size_bytes", ctypes.c_uint64),
        ("protection", ctypes.c_int64),
        ("label", ctypes.c_char_p),
    )


class Pages(CustomAllocator):
    """Allocates memfds in whole pages, and maps each once per backend and once for the application's accesses.

    The array of a block is a mapping that is never protected; `view` returns those of the backends.
    """

    name = "ownership check"
    source = MemorySource.MALLOC | MemorySource.DMA_BUF

    def __init__(self) -> None:
        self.regions: list[tuple[Array, str]] = []
        """All mappings of backends, each with a text that names the tensor and the mapping."""
        self._names: dict[int, str] = {}
        self._views: dict[tuple[int, str], tuple[MemoryRef, int]] = {}

    def of_tensor(self, info: TensorInfo) -> MemoryRef:
        """Return a new block for a tensor, as an array of its shape and dtype."""
        block = self.allocate(max(info.size_bytes, 1), 1).part(0, info)
        assert block.fd is not None
        self._names[block.fd] = info.name
        return block

    @override
    def allocate(self, size_bytes: int, alignment_bytes: int) -> MemoryRef:
        fd = os.memfd_create("ferrule", os.MFD_CLOEXEC)
        os.ftruncate(fd, -(-size_bytes // mmap.PAGESIZE) * mmap.PAGESIZE)
        return MemoryRef(self.source, size_bytes, _bytes(fd)[:size_bytes], fd)

    @override
    def free(self, memory: MemoryRef) -> None:
        """Do nothing: the process of the check ends soon."""

    @override
    def view(self, memory: MemoryRef, backend: str) -> MemoryRef:
        return self._view(memory, backend)[0]

    def region(self, memory: MemoryRef, backend: str) -> int:
        """Return the index of a backend's mapping of a tensor's block in `regions`."""
        return self._view(memory, backend)[1]

    def _view(self, memory: MemoryRef, backend: str) -> tuple[MemoryRef, int]:
        assert memory.fd is not None
        assert memory.array is not None
        key = memory.fd, backend
        if key not in self._views:
            pages = _bytes(memory.fd)
            array = pages[: memory.size_bytes].view(memory.array.dtype).reshape(memory.array.shape)
            self._views[key] = MemoryRef(self.source, memory.size_bytes, array, memory.fd), len(self.regions)
            self.regions.append((pages, f"tensor '{self._names[memory.fd]}' in the memory of {backend}"))
        return self._views[key]


class PageWatch:
    """The protection of regions, and the note of what runs; all regions are writable at first."""

    def __init__(self, pages: Pages, output: int) -> None:
        """Install the handler, which writes to the file descriptor `output`.

        Raises:
            FerruleError: there is no compiler, or the system refuses the handler.
        """
        library = ctypes.CDLL(str(_LIBRARY.file()))
        self._protect = library.ferrule_page_protect
        self._protect.argtypes = (ctypes.POINTER(_Region), ctypes.c_int)
        self._arrays = pages.regions  # the mappings end with their last array
        self._table = (_Region * len(pages.regions))(
            *(_Region(address(array), array.nbytes, WRITE, _line(label)) for array, label in pages.regions)
        )
        self._note = ctypes.create_string_buffer(NOTE_BYTES)
        library.ferrule_page_watch.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int)
        if library.ferrule_page_watch(self._table, len(self._table), self._note, output) != 0:
            raise FerruleError("the system refuses a handler of SIGSEGV")

    def allow(self, note: str, allowed: Mapping[int, int]) -> None:
        """Set the protection of all regions: as given by index, NONE for the others; FerruleError on a refusal."""
        self._note.value = _line(note)[: NOTE_BYTES - 1]
        for index, region in enumerate(self._table):
            wanted = allowed.get(index, NONE)
            if region.protection != wanted and self._protect(ctypes.byref(region), wanted) != 0:
                raise FerruleError(f"the system refuses the protection {wanted} of memory")

    def release(self) -> None:
        """Make all regions writable."""
        self.allow("", dict.fromkeys(range(len(self._table)), WRITE))


def _bytes(fd: int) -> Array:
    """Return a new mapping of a whole file."""
    return np.frombuffer(mmap.mmap(fd, os.fstat(fd).st_size), np.uint8)


def _line(text: str) -> bytes:
    """Return a text for the handler, which ends it with a line break."""
    return text.replace("\n", " ").replace("\0", " ").encode(errors="replace")
