# SPDX-License-Identifier: Apache-2.0
"""Handles for tensors in memory of the process, their factory, and an event for `ready`."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from ferrule._typing import override
from ferrule.backends.guarded import bare
from ferrule.backends.shared.host_memory.aligned import ALIGNMENT_BYTES, aligned_empty, is_aligned
from ferrule.backends.shared.host_memory.manager import HostMemoryManager
from ferrule.backends.shared.host_memory.planned import Slot
from ferrule.backends.tensor_handle import (
    FactoryId,
    HandleCapability,
    MemoryAccess,
    MemoryManager,
    MemoryRef,
    MemorySource,
    TensorHandle,
    TensorHandleFactory,
)
from ferrule.graph import Array, Layer, TensorInfo

HOST_FACTORY = FactoryId("Ferrule/Host")
"""The id of CpuRef's factory; a backend whose workloads read and write plain arrays may list it as a preference."""


class HostTensorHandle(TensorHandle):
    """A tensor that is an array in memory of the process.

    Its memory belongs to the manager, or to the handle if there is no manager; a handle that is not `managed` has only
    imported memory. Imported memory takes precedence until `end_import`.
    """

    def __init__(
        self,
        info: TensorInfo,
        *,
        managed: bool = True,
        manager: HostMemoryManager | None = None,
        import_flags: MemorySource = MemorySource.MALLOC,
        alignment_bytes: int = 1,
    ) -> None:
        super().__init__(info)
        self._manager = manager if managed else None
        self._managed = managed
        self._slot: Slot[Array] = Slot(info)
        self._imported: Array | None = None
        self._access: MemoryAccess | None = None
        self._maps = 0
        self._import_flags = import_flags
        self._alignment_bytes = alignment_bytes
        self._dtype = info.dtype.numpy
        if managed and manager is None:
            self._slot.memory = aligned_empty(info.shape, info.dtype, max(alignment_bytes, ALIGNMENT_BYTES))

    @override
    def manage(self) -> None:
        if self._manager is not None:
            self._manager.begin(self._slot)

    @override
    def allocate(self) -> None:
        if self._manager is not None:
            self._manager.end(self._slot)

    @override
    def map(self) -> Array:
        if self.ready is not None:
            self.ready.wait()
        if self._access is not None:
            if not self._maps:
                self._access.begin()
            self._maps += 1
        return self.memory()

    @property
    def fixed_memory(self) -> Array | None:
        """The memory that the tensor has for the rest of the network's life; None if an import may replace it."""
        return self._slot.memory if self._managed and self._imported is None else None

    def memory(self) -> Array:
        """Return the elements without waiting for `ready`, for a backend that orders its workloads by other means."""
        array = self._imported
        if array is None:
            array = self._slot.memory
            if array is None:
                raise RuntimeError(f"tensor '{self.info.name}' has no memory now: nothing is acquired or imported")
        return array

    @override
    def unmap(self) -> None:
        if self._access is not None and self._maps:
            self._maps -= 1
            if not self._maps:
                self._access.end()

    @override
    def can_import(self, memory: MemoryRef) -> bool:
        array = memory.array
        if array is None or not memory.source & self._import_flags:
            return False
        flags = array.flags
        return (
            array.dtype == self._dtype
            and array.shape == self.info.shape
            and flags.c_contiguous
            and flags.aligned
            and (self._alignment_bytes <= self._dtype.itemsize or is_aligned(array, self._alignment_bytes))
        )

    @override
    def import_memory(self, memory: MemoryRef) -> bool:
        if not self.can_import(memory):
            return False
        self._leave()
        self._imported = memory.array
        self._access = memory.access
        return True

    @override
    def end_import(self) -> None:
        self._leave()
        self._imported = None

    def _leave(self) -> None:
        """End the access to imported memory."""
        access, self._access = self._access, None
        if access is not None and self._maps:
            self._maps = 0
            access.end()


def fixed_memory(handle: TensorHandle) -> Array | None:
    """Return the memory of a handle, or of that behind its guard, that may be used without `map`; None if it may not.

    Whoever uses it has to wait for the handle's `ready` by other means.
    """
    own = bare(handle)
    return own.fixed_memory if type(own) is HostTensorHandle else None


class HostTensorHandleFactory(TensorHandleFactory):
    """Makes handles in memory of the process; `alignment_bytes` is the required alignment of imported memory.

    Memory that the handles allocate is aligned to at least 64 bytes, and of the manager if that is a HostMemoryManager.
    Several backends may use the same factory id if
    all of them can work with these handles.
    """

    def __init__(
        self,
        factory_id: FactoryId = HOST_FACTORY,
        manager: MemoryManager | None = None,
        *,
        alignment_bytes: int = 1,
        import_flags: MemorySource = MemorySource.MALLOC,
        export_flags: MemorySource = MemorySource.MALLOC,
        capabilities: frozenset[HandleCapability] = frozenset(),
    ) -> None:
        self.id = factory_id
        self._alignment_bytes = alignment_bytes
        self.import_flags = import_flags
        self.export_flags = export_flags
        self._manager = manager if isinstance(manager, HostMemoryManager) else None
        self._capabilities = capabilities

    @override
    def create_handle(self, info: TensorInfo, *, managed: bool) -> HostTensorHandle:
        return HostTensorHandle(
            info,
            managed=managed,
            manager=self._manager,
            import_flags=self.import_flags,
            alignment_bytes=self._alignment_bytes,
        )

    @override
    def memory_alignment(self, source: MemorySource) -> int:
        return self._alignment_bytes

    @override
    def capabilities(self, layer: Layer | None = None, connected: Layer | None = None) -> frozenset[HandleCapability]:
        return self._capabilities


@dataclass(slots=True, eq=False)
class FutureEvent:
    """An event (`ferrule.backends.tensor_handle.Event`) that completes together with a future."""

    _future: Future[Any]

    def wait(self) -> None:
        """Wait for the future; raises the exception with which it failed."""
        self._future.result()

    def done(self) -> bool:
        """Return whether the future is complete, without waiting."""
        return self._future.done()
