# SPDX-License-Identifier: Apache-2.0
"""The memory of one backend in one loaded network: one block whose layout the planner computes."""

from __future__ import annotations

import sys
from abc import abstractmethod
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from ferrule._typing import override
from ferrule.backends.context import CustomAllocator
from ferrule.backends.shared.host_memory.aligned import ALIGNMENT_BYTES, is_aligned
from ferrule.backends.tensor_handle import MemoryManager, MemoryRef
from ferrule.errors import FerruleError
from ferrule.graph import Array, TensorInfo
from ferrule.memory import Lifetime, Region, Request, plan
from ferrule.memory.search import Effort

QUICK = Effort(placements=15_000, nodes=15_000)
"""A small search effort: on a host, a short loading time matters more than the last kilobyte."""

Block = TypeVar("Block")
"""The type of a block and of its parts: a numpy array, or a buffer of a device."""


@dataclass(slots=True, eq=False)
class Slot(Generic[Block]):
    """The place of a tensor's bytes; `memory` is None while there is no memory."""

    info: TensorInfo
    memory: Block | None = None


@dataclass(slots=True)
class _Life(Generic[Block]):
    """A slot and the numbers of the calls between which it is needed; `last` is None until `end` is called."""

    slot: Slot[Block]
    first: int
    last: int | None = None


class PlannedMemoryManager(MemoryManager, Generic[Block]):
    """Places slots in one block; slots whose lifetimes do not overlap share bytes.

    The order of the `begin` and `end` calls is the order in which tensors become live and dead in each run; a slot
    without an `end` stays live. The block is in the custom allocator's memory if there is one.
    """

    def __init__(self, allocator: CustomAllocator | None = None) -> None:
        self._allocator = allocator
        self._custom: MemoryRef | None = None
        self._lives: dict[int, _Life[Block]] = {}
        self._calls = 0
        self._offsets: dict[int, int] | None = None
        self._size_bytes = 0
        self._block: Block | None = None

    @abstractmethod
    def _new_block(self, size_bytes: int) -> Block:
        """Return a new block of the backend's own memory."""

    @abstractmethod
    def _block_in(self, memory: MemoryRef) -> Block:
        """Return a block in memory of the custom allocator; FerruleError if the backend cannot use the memory."""

    @abstractmethod
    def _part(self, block: Block, offset: int, info: TensorInfo) -> Block:
        """Return the part of a block that holds a tensor."""

    def _settle(self) -> None:
        """Wait until nothing uses the custom allocator's memory; called before the memory is freed."""

    @property
    def size_bytes(self) -> int:
        """Size of the block in bytes; 0 before the memory is acquired for the first time."""
        return self._size_bytes

    @property
    def acquired(self) -> bool:
        """Whether the memory is held."""
        return self._block is not None

    def begin(self, slot: Slot[Block]) -> None:
        """Mark a slot as live from now on; a second call does nothing."""
        if self._block is not None:
            raise RuntimeError(f"tensor '{slot.info.name}' is managed after the memory was acquired")
        if id(slot) not in self._lives:
            self._lives[id(slot)] = _Life(slot=slot, first=self._calls)
            self._calls += 1
            self._offsets = None

    def end(self, slot: Slot[Block]) -> None:
        """Mark a slot as dead from now on; RuntimeError if `begin` was not called for it."""
        life = self._lives.get(id(slot))
        if life is None:
            raise RuntimeError(f"tensor '{slot.info.name}' is allocated before it is managed")
        life.last = self._calls
        self._calls += 1
        self._offsets = None

    @override
    def acquire(self) -> None:
        if self._block is not None:
            return
        offsets = self._offsets = self._lay_out() if self._offsets is None else self._offsets
        self._block = block = self._get()
        for key, life in self._lives.items():
            life.slot.memory = self._part(block, offsets[key], life.slot.info)

    @override
    def release(self) -> None:
        for life in self._lives.values():
            life.slot.memory = None
        self._block = None
        custom, self._custom = self._custom, None
        if custom is not None and self._allocator is not None:
            try:
                self._settle()
            finally:
                self._return(custom)

    def _lay_out(self) -> dict[int, int]:
        requests = [
            Request(
                name=str(key),
                size_bytes=life.slot.info.size_bytes,
                lifetime=Lifetime(first=life.first, last=self._calls if life.last is None else life.last),
                regions=("block",),
            )
            for key, life in self._lives.items()
        ]
        region = Region(name="block", size_bytes=sys.maxsize, alignment=ALIGNMENT_BYTES)
        found = plan(requests, [region], effort=QUICK)
        self._size_bytes = found.peak_bytes
        return {key: found.placements[str(key)].offset for key in self._lives}

    def _get(self) -> Block:
        if self._allocator is None or not self._size_bytes:
            return self._new_block(self._size_bytes)
        custom = take_block(self._allocator, self._size_bytes, ALIGNMENT_BYTES)
        try:
            if custom.access is not None:
                custom.access.begin()  # no device but this backend's uses the memory while it is held
        except BaseException:
            self._allocator.free(custom)
            raise
        try:
            block = self._block_in(custom)
        except BaseException:
            self._return(custom)
            raise
        self._custom = custom
        return block

    def _return(self, custom: MemoryRef) -> None:
        """End the access to a block of the allocator, and free it in any case."""
        assert self._allocator is not None
        try:
            if custom.access is not None:
                custom.access.end()
        finally:
            self._allocator.free(custom)


def take_block(allocator: CustomAllocator, size_bytes: int, alignment_bytes: int) -> MemoryRef:
    """Return memory from a custom allocator; FerruleError if it has none left or returns unsuitable memory."""
    try:
        block = allocator.allocate(size_bytes, alignment_bytes)
    except MemoryError as error:
        raise FerruleError(f"{_called(allocator)} cannot provide {size_bytes} B: {error}") from error
    wrong = _misfit(block, size_bytes, alignment_bytes)
    if wrong:
        if isinstance(block, MemoryRef):
            allocator.free(block)
        raise FerruleError(
            f"{_called(allocator)} returned {wrong}, expected {size_bytes} B aligned to {alignment_bytes} B"
        )
    return block


def _called(allocator: CustomAllocator) -> str:
    """Return an allocator in messages: by its name, unless that is the default one."""
    return "the custom allocator" if allocator.name == CustomAllocator.name else f"allocator '{allocator.name}'"


def mapped(memory: MemoryRef) -> Array:
    """Return the bytes of an allocator's memory; FerruleError if the process cannot access them."""
    if memory.array is None:
        raise FerruleError(f"the custom allocator returned {memory.size_bytes} B that cannot be mapped")
    return memory.array


def _misfit(block: object, size_bytes: int, alignment_bytes: int) -> str:
    """Return a description of the fault in an allocator's block; "" if there is none."""
    if not isinstance(block, MemoryRef):
        return type(block).__name__
    if block.size_bytes != size_bytes:
        return f"{block.size_bytes} B"
    array = block.array
    if array is None:
        return "misaligned memory" if block.offset % alignment_bytes else ""
    if array.dtype != np.uint8 or array.shape != (size_bytes,) or not array.flags.c_contiguous:
        return f"{array.dtype}{list(array.shape)}"
    if not array.flags.writeable:
        return "read-only memory"
    return "" if is_aligned(array, alignment_bytes) else "misaligned memory"
