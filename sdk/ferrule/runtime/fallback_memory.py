# SPDX-License-Identifier: Apache-2.0
"""The memory between the backends of one loaded network: allocated and imported at load, kept until unload."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.backends.context import CustomAllocator
from ferrule.backends.shared.host_memory import TensorImportError, take_block
from ferrule.backends.shared.host_memory.planned import QUICK
from ferrule.backends.tensor_handle import MemoryRef, MemorySource, TensorHandle, TensorHandleFactory
from ferrule.errors import place, some_of
from ferrule.graph import Array, TensorInfo
from ferrule.memory import Lifetime, Region, Request, plan
from ferrule.runtime.errors import Faults, NetworkLoadError

APPLICATION = "the application"
_NAMED = 3
"""Messages name at most this many tensors."""


@frozen
class FallbackEnd:
    """One handle of a tensor in fallback memory."""

    handle: TensorHandle
    factory: TensorHandleFactory
    backend: str
    """The backend that uses the handle, in messages."""

    @override
    def __str__(self) -> str:
        return f"'{self.factory.id}' of {self.backend}"


@frozen
class FallbackBlock:
    """One block of a network's fallback memory."""

    allocator: str
    """The allocator's name, which says so if it is a stand-in for dma-bufs."""
    size_bytes: int
    tensor_bytes: int
    """The sum of the sizes of the tensors in it; tensors that are never live together share bytes."""
    unaligned_bytes: int
    """The size that the block would have without any alignment."""


class FallbackTensor:
    """A tensor that its writer and all its readers access in the same imported memory."""

    def __init__(self, info: TensorInfo, kinds: MemorySource, ends: Sequence[FallbackEnd]) -> None:
        self.info = info
        self.kinds = kinds
        """The kinds that one allocator's memory must be at the same time."""
        self._ends = tuple(ends)
        self._own: tuple[CustomAllocator, MemoryRef] | None = None
        self._current: MemoryRef | None = None
        self._used = 0
        """The number of ends that have imported the current memory."""

    @property
    def description(self) -> str:
        """The tensor with its backends and factories, for messages."""
        return f"tensor '{self.info.name}' between {' and '.join(map(str, self._ends))}"

    def alignment_bytes(self, source: MemorySource) -> int:
        """Return the alignment of memory of these kinds that suits all ends, and the tensor's elements."""
        kinds = [(end, kind) for end in self._ends for kind in source & end.factory.import_flags]
        wanted = (end.factory.memory_alignment(kind) for end, kind in kinds)
        return max((self.info.dtype.size_bytes, *wanted))

    def give(self, allocator: CustomAllocator, memory: MemoryRef) -> None:
        """Let the tensor lie in a part of an allocator's block from now on; all ends import it.

        Raises:
            TensorImportError: an end refuses the memory.
        """
        self._own = allocator, memory
        self._place(memory)

    def fits(self, array: Array) -> bool:
        """Let all ends import the caller's memory for one run; return False if one of them cannot."""
        memory = MemoryRef.of_array(array)
        return all(end.handle.can_import(memory) for end in self._ends) and self._import(memory) is None

    def settle(self) -> None:
        """Let all ends import the tensor's own memory unless they do."""
        _, memory = self._memory()
        if self._current is not memory:
            self._place(memory)

    def write(self, values: Array) -> None:
        """Copy values into the tensor's own memory."""
        allocator, memory = self._memory()
        allocator.populate_data(memory, np.ascontiguousarray(values))

    def read(self, buffer: Array) -> None:
        """Copy the tensor's values into a buffer."""
        allocator, memory = self._memory()
        if self._current is not memory and self._current is not None and self._current.array is not None:
            np.copyto(buffer, self._current.array)
            return
        if buffer.flags.c_contiguous:
            allocator.retrieve_data(memory, buffer)
            return
        values = np.empty(self.info.shape, self.info.dtype.numpy)
        allocator.retrieve_data(memory, values)
        np.copyto(buffer, values)

    def leave_callers_memory(self) -> None:
        """End the imports of the caller's memory; nothing happens if the tensor lies in its own."""
        if self._own is None or self._current is not self._own[1]:
            self._end()

    def release(self) -> None:
        """End all imports; afterwards, the memory may be freed."""
        self._own = None
        self._end()

    def _memory(self) -> tuple[CustomAllocator, MemoryRef]:
        assert self._own is not None, f"tensor '{self.info.name}' has no memory"
        return self._own

    def _place(self, memory: MemoryRef) -> None:
        refusing = self._import(memory)
        if refusing is not None:
            allocator = f" from {self._own[0].name}" if self._own is not None and memory is self._own[1] else ""
            raise TensorImportError(
                f"{refusing} does not import {memory.size_bytes} B of {_listed(memory.source)} memory{allocator} for "
                f"{self.description}{_refusal(refusing, memory)}",
                hint="optimise the network without import_enabled, or with fallback_transfers "
                f'{{"{refusing.backend}": "copy"}}',
            )

    def _import(self, memory: MemoryRef) -> FallbackEnd | None:
        """Let all ends import a memory; if one refuses it, end the imports and return that end."""
        self._end()
        self._current = memory
        own = self._own
        for end in self._ends:
            view = memory if own is None or memory is not own[1] else own[0].view(memory, end.backend)
            if not end.handle.import_memory(view):
                self._end()
                return end
            self._used += 1
        return None

    def _end(self) -> None:
        used, self._used, self._current = self._used, 0, None
        faults = Faults()
        for end in reversed(self._ends[:used]):
            faults.during(end.handle.end_import)
        faults.throw()


class FallbackMemory:
    """The fallback memory of one loaded network: one block from each allocator that it needs."""

    def __init__(
        self,
        tensors: Mapping[str, FallbackTensor],
        lives: Mapping[str, Lifetime],
        allocators: Sequence[CustomAllocator],
        *,
        protected: bool,
    ) -> None:
        """Plan the memory; `allocators` are in order of preference.

        Raises:
            NetworkLoadError: no allocator has memory for a tensor, or none that is protected, though that is needed.
        """
        self._tensors = tensors
        self._lives = lives
        self._plans: list[tuple[CustomAllocator, dict[str, int], int, int]] = []
        self._held: list[tuple[CustomAllocator, MemoryRef]] = []
        self.blocks: tuple[FallbackBlock, ...] = ()
        self.allocators: dict[str, str] = {}
        """By tensor: the name of the allocator of its memory."""
        by_allocator: dict[int, list[str]] = {}
        for name, tensor in tensors.items():
            index = _choose(tensor, allocators, protected=protected)
            by_allocator.setdefault(index, []).append(name)
        for index, names in by_allocator.items():
            self._lay_out(allocators[index], names)

    def allocate(self) -> None:
        """Allocate all blocks, and let all handles import their parts; if that fails, nothing remains allocated.

        Raises:
            TensorImportError: a handle refuses the memory.
            FerruleError: an allocator has none left.
        """
        try:
            for allocator, offsets, size, alignment in self._plans:
                named = some_of([self._tensors[name].description for name in offsets], _NAMED)
                with place(f"fallback memory of {named}"):
                    block = take_block(allocator, size, alignment)
                self._held.append((allocator, block))
                for name, offset in offsets.items():
                    tensor = self._tensors[name]
                    tensor.give(allocator, block.part(offset, tensor.info))
        except BaseException:
            with suppress(Exception):  # the original exception takes precedence
                self.release()
            raise

    def release(self) -> None:
        """End all imports and free all blocks, even if one of them fails; a second call does nothing."""
        faults = Faults()
        for tensor in self._tensors.values():
            faults.during(tensor.release)
        held, self._held = self._held, []
        for allocator, block in reversed(held):
            faults.during(allocator.free, block)
        faults.throw()

    def _lay_out(self, allocator: CustomAllocator, names: Sequence[str]) -> None:
        alignments = {name: self._tensors[name].alignment_bytes(allocator.source) for name in names}
        offsets, size = self._plan(alignments)
        block = FallbackBlock(
            allocator=allocator.name,
            size_bytes=size,
            tensor_bytes=sum(self._tensors[name].info.size_bytes for name in names),
            unaligned_bytes=self._plan(dict.fromkeys(names, 1))[1],
        )
        self.blocks += (block,)
        self.allocators |= dict.fromkeys(names, allocator.name)
        self._plans.append((allocator, offsets, size, max(alignments.values())))

    def _plan(self, alignments: Mapping[str, int]) -> tuple[dict[str, int], int]:
        """Return the offset of each tensor, and the size of the block."""
        requests = [
            Request(
                name=name,
                size_bytes=max(self._tensors[name].info.size_bytes, 1),
                lifetime=self._lives[name],
                regions=("block",),
                alignment=alignment,
            )
            for name, alignment in alignments.items()
        ]
        found = plan(requests, [Region(name="block", size_bytes=sys.maxsize, alignment=1)], effort=QUICK)
        return {name: found.placements[name].offset for name in alignments}, found.peak_bytes


def _choose(tensor: FallbackTensor, allocators: Sequence[CustomAllocator], *, protected: bool) -> int:
    """Return the index of the first allocator with memory for a tensor; NetworkLoadError if there is none."""
    needed = tensor.kinds | (MemorySource.DMA_BUF_PROTECTED if protected else MemorySource.UNDEFINED)
    for index, allocator in enumerate(allocators):
        if needed in allocator.source:
            return index
    known = "; ".join(f"{allocator.name}: {_listed(allocator.source)}" for allocator in allocators)
    mode = "in protected mode, " if protected else ""
    raise NetworkLoadError(
        f"{mode}no allocator has {_listed(needed)} memory for {tensor.description} (allocators: {known})",
        hint="give the runtime one by the creation option fallback_allocators, or optimise without import_enabled",
    )


def _refusal(end: FallbackEnd, memory: MemoryRef) -> str:
    """Return the end of the message that an end does not import memory: the reason, if it is known."""
    if memory.array is not None:
        return ""
    reasons = [end.factory.import_refusal(kind) for kind in memory.source]
    return "; ".join(dict.fromkeys((": the memory is not mapped", *filter(None, reasons))))


def _listed(kinds: MemorySource) -> str:
    return " and ".join(str(kind.name) for kind in kinds) or "no"
