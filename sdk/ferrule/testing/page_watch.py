# SPDX-License-Identifier: Apache-2.0
"""Pages of tensors with a mapping for each backend; a forbidden access ends the process and is named in a file."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from ferrule._frozen import positional
from ferrule._typing import override
from ferrule.backends.context import CustomAllocator
from ferrule.backends.shared.host_memory import address
from ferrule.backends.tensor_handle import MemoryRef, MemorySource
from ferrule.errors import FerruleError
from ferrule.graph import Array, Tensor, TensorInfo
from ferrule.nativelib import NativeLibrary

NONE = 0
READ = mmap.PROT_READ
WRITE = mmap.PROT_READ | mmap.PROT_WRITE
NOTE_BYTES = 4096
CONSTANT_ALIGNMENT_BYTES = 16
"""As that of memory from malloc, in which constants are otherwise."""
BESIDE = 0xC3
"""The bytes beside a tensor on its own pages."""
Region = tuple[Array, str]
"""Whole pages, and a text that names the tensor and the mapping."""

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


@positional
class _Block:
    """The pages of one tensor in a file: one that is never accessible, its own, and another one that never is."""

    info: TensorInfo
    fd: int
    start: int
    """Where the tensor begins in the file; it ends at a page's end, as far as its alignment allows."""
    pages: Array
    """The tensor's own pages, in a mapping that is never protected."""

    @property
    def before(self) -> int:
        """The number of bytes of its own pages before the tensor."""
        return self.start - mmap.PAGESIZE

    def damage(self) -> str:
        """Return a description of the first changed byte beside the tensor on its own pages; "" if there is none."""
        end = self.before + self.info.size_bytes
        for index in np.flatnonzero(self.pages[: self.before] != BESIDE)[-1:]:
            return f"byte {self.before - int(index)} before tensor '{self.info.name}' was written"
        for index in np.flatnonzero(self.pages[end:] != BESIDE)[:1]:
            return f"byte {int(index) + 1} behind tensor '{self.info.name}' was written"
        return ""


class Pages(CustomAllocator):
    """Places each tensor at the end of pages of its own, and maps these once per backend and once for the application.

    The array of a block is a mapping that is never protected; `view` returns those of the backends. A tensor's pages
    lie between two that are never accessible.
    """

    name = "ownership check"
    source = MemorySource.MALLOC | MemorySource.DMA_BUF

    def __init__(self) -> None:
        self.regions: list[Region] = []
        """The pages of tensors in all mappings of backends."""
        self.fixed: list[tuple[Region, int]] = []
        """Pages whose protection never changes, each with the protection."""
        self._blocks: dict[int, _Block] = {}
        self._views: dict[tuple[int, str], tuple[MemoryRef, int]] = {}

    def of_tensor(self, info: TensorInfo, alignment_bytes: int) -> MemoryRef:
        """Return new memory for a tensor, as an array of its shape and dtype."""
        fd, pages, start = _file(info.size_bytes, alignment_bytes)
        pages[:] = BESIDE
        block = self._blocks[fd] = _Block(info, fd, start, pages)
        return self._memory(block, pages)

    def of_constant(self, tensor: Tensor) -> Tensor:
        """Return a constant with its data on pages that can only be read."""
        assert tensor.data is not None
        _, pages, start = _file(tensor.data.nbytes, CONSTANT_ALIGNMENT_BYTES)
        data = pages[start - mmap.PAGESIZE :][: tensor.data.nbytes].view(tensor.data.dtype).reshape(tensor.data.shape)
        np.copyto(data, tensor.data)
        data.flags.writeable = False
        self._fix(pages, f"constant '{tensor.info.name}'", READ)
        return replace(tensor, data=data)

    def damage(self) -> str:
        """Return a description of the first changed byte beside a tensor on its own pages; "" if there is none."""
        return next(filter(None, (block.damage() for block in self._blocks.values())), "")

    @override
    def allocate(self, size_bytes: int, alignment_bytes: int) -> MemoryRef:
        raise MemoryError("the check of ownership allocates memory for tensors only")

    @override
    def free(self, memory: MemoryRef) -> None:
        """Do nothing: the process of the check ends soon."""

    @override
    def view(self, memory: MemoryRef, backend: str) -> MemoryRef:
        return self._view(memory, backend)[0]

    def region(self, memory: MemoryRef, backend: str) -> int:
        """Return the index of a backend's mapping of a tensor's pages in `regions`."""
        return self._view(memory, backend)[1]

    def _view(self, memory: MemoryRef, backend: str) -> tuple[MemoryRef, int]:
        assert memory.fd is not None
        key = memory.fd, backend
        if key not in self._views:
            block = self._blocks[memory.fd]
            label = f"tensor '{block.info.name}' in the memory of {backend}"
            pages = _mapped(memory.fd)
            self._views[key] = self._memory(block, pages), len(self.regions)
            self.regions.append((pages, label))
            self._fix(pages, label, NONE, own=False)
        return self._views[key]

    def _memory(self, block: _Block, pages: Array) -> MemoryRef:
        info = block.info
        array = pages[block.before :][: info.size_bytes].view(info.dtype.numpy).reshape(info.shape)
        return MemoryRef(self.source, info.size_bytes, array, block.fd, block.start)

    def _fix(self, pages: Array, label: str, protection: int, *, own: bool = True) -> None:
        """Fix the protection of the page before a tensor's own, of that behind them, and of its own if `own`."""
        whole = pages.base
        assert isinstance(whole, np.ndarray)
        self.fixed.append(((whole[: mmap.PAGESIZE], f"memory before {label}"), NONE))
        self.fixed.append(((whole[-mmap.PAGESIZE :], f"memory behind {label}"), NONE))
        if own:
            self.fixed.append(((pages, label), protection))


class PageWatch:
    """The protection of pages, and the note of what runs; the pages of tensors are writable at first."""

    def __init__(self, pages: Pages, output: int) -> None:
        """Install the handler, which writes to the file descriptor `output`.

        Raises:
            FerruleError: there is no compiler, or the system refuses the handler.
        """
        library = ctypes.CDLL(str(_LIBRARY.file()))
        self._protect = library.ferrule_page_protect
        self._protect.argtypes = (ctypes.POINTER(_Region), ctypes.c_int)
        self._changing = len(pages.regions)
        everything = [*pages.regions, *(region for region, _ in pages.fixed)]
        self._arrays = everything  # the mappings end with their last array
        self._table = (_Region * len(everything))(
            *(_Region(address(array), array.nbytes, WRITE, _line(label)) for array, label in everything)
        )
        self._note = ctypes.create_string_buffer(NOTE_BYTES)
        library.ferrule_page_watch.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int)
        if library.ferrule_page_watch(self._table, len(self._table), self._note, output) != 0:
            raise FerruleError("the system refuses a handler of SIGSEGV")
        for index, (_, protection) in enumerate(pages.fixed):
            self._set(self._changing + index, protection)

    def allow(self, note: str, allowed: Mapping[int, int]) -> None:
        """Set the protection of all regions: as given by index, NONE for the others; FerruleError on a refusal."""
        self._note.value = _line(note)[: NOTE_BYTES - 1]
        for index in range(self._changing):
            self._set(index, allowed.get(index, NONE))

    def release(self) -> None:
        """Make the pages of all tensors writable."""
        self.allow("", dict.fromkeys(range(self._changing), WRITE))

    def _set(self, index: int, wanted: int) -> None:
        region = self._table[index]
        if region.protection != wanted and self._protect(ctypes.byref(region), wanted) != 0:
            raise FerruleError(f"the system refuses the protection {wanted} of memory")


def _file(size_bytes: int, alignment_bytes: int) -> tuple[int, Array, int]:
    """Return a new file with pages for so many bytes between two others, these pages, and where the bytes begin."""
    end = mmap.PAGESIZE * (1 + max(-(-size_bytes // mmap.PAGESIZE), 1))
    fd = os.memfd_create("ferrule", os.MFD_CLOEXEC)
    os.ftruncate(fd, end + mmap.PAGESIZE)
    return fd, _mapped(fd), end - -(-size_bytes // alignment_bytes) * alignment_bytes


def _mapped(fd: int) -> Array:
    """Return the pages between the first and the last one of a file, in a new mapping."""
    return np.frombuffer(mmap.mmap(fd, os.fstat(fd).st_size), np.uint8)[mmap.PAGESIZE : -mmap.PAGESIZE]


def _line(text: str) -> bytes:
    """Return a text for the handler, which ends it with a line break."""
    return text.replace("\n", " ").replace("\0", " ").encode(errors="replace")
