# SPDX-License-Identifier: Apache-2.0
"""The device's memory on the host: its manager, its tensor handles and their factory.

`ferrule.backends.shared.host_memory` has all of these classes, with a planner; this module shows how to write them.
"""

from __future__ import annotations

import numpy as np

from ferrule import override
from ferrule.backends import (
    FactoryId,
    MemoryManager,
    MemoryRef,
    MemorySource,
    TensorHandle,
    TensorHandleFactory,
)
from ferrule.graph import Array, TensorInfo

FACTORY = FactoryId("MyCustom/Memory")


class CustomMemoryManager(MemoryManager):
    """Hands out blocks; a returned block is used again for the next tensor that fits."""

    def __init__(self) -> None:
        self._sizes: list[int] = []
        self._free: set[int] = set()
        self._blocks: list[Array] | None = None

    def take(self, size_bytes: int) -> int:
        """Return the number of a block of at least that size."""
        fitting = [index for index in self._free if self._sizes[index] >= size_bytes]
        if fitting:
            chosen = min(fitting, key=self._sizes.__getitem__)
            self._free.remove(chosen)
            return chosen
        self._sizes.append(size_bytes)
        return len(self._sizes) - 1

    def give_back(self, block: int) -> None:
        """Make a block available for other tensors."""
        self._free.add(block)

    def block(self, index: int) -> Array:
        """Return a block's bytes; RuntimeError before `acquire` and after `release`."""
        if self._blocks is None:
            raise RuntimeError("the device's memory is not acquired")
        return self._blocks[index]

    @property
    def size_bytes(self) -> int:
        """Size of all blocks together."""
        return sum(self._sizes)

    @override
    def acquire(self) -> None:
        if self._blocks is None:
            self._blocks = [np.empty(size, np.uint8) for size in self._sizes]

    @override
    def release(self) -> None:
        self._blocks = None


class CustomTensorHandle(TensorHandle):
    """A tensor in a block of the manager, or in memory that it imported."""

    def __init__(self, info: TensorInfo, manager: CustomMemoryManager | None) -> None:
        super().__init__(info)
        self._manager = manager
        self._block: int | None = None
        self._imported: Array | None = None

    @override
    def manage(self) -> None:
        if self._manager is not None and self._block is None:
            self._block = self._manager.take(self.info.size_bytes)

    @override
    def allocate(self) -> None:
        if self._manager is not None and self._block is not None:
            self._manager.give_back(self._block)

    @override
    def map(self) -> Array:
        if self.ready is not None:
            self.ready.wait()
        if self._imported is not None:
            return self._imported
        if self._manager is None or self._block is None:
            raise RuntimeError(f"tensor '{self.info.name}' has no memory")
        memory = self._manager.block(self._block)[: self.info.size_bytes]
        return memory.view(self.info.dtype.numpy).reshape(self.info.shape)

    @override
    def unmap(self) -> None:
        pass

    @override
    def can_import(self, memory: MemoryRef) -> bool:
        array = memory.array
        return (
            array is not None
            and MemorySource.MALLOC in memory.source
            and (array.dtype, array.shape) == (self.info.dtype.numpy, self.info.shape)
            and array.flags.c_contiguous
        )

    @override
    def import_memory(self, memory: MemoryRef) -> bool:
        if not self.can_import(memory):
            return False
        self._imported = memory.array
        return True

    @override
    def end_import(self) -> None:
        self._imported = None


class CustomTensorHandleFactory(TensorHandleFactory):
    """Creates handles; without a manager, they can have imported memory only."""

    id = FACTORY
    import_flags = MemorySource.MALLOC
    export_flags = MemorySource.MALLOC

    def __init__(self, manager: CustomMemoryManager | None = None) -> None:
        self._manager = manager

    @override
    def create_handle(self, info: TensorInfo, *, managed: bool) -> CustomTensorHandle:
        return CustomTensorHandle(info, self._manager if managed else None)
