# SPDX-License-Identifier: Apache-2.0
"""Handles for tensors in OpenCL buffers, and their factory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferrule._typing import override
from ferrule.backends.gpu_acc.memory import GpuMemoryManager, host_buffer, new_buffer
from ferrule.backends.gpu_acc.session import GpuEvent
from ferrule.backends.shared.host_memory import is_aligned
from ferrule.backends.shared.host_memory.planned import Slot
from ferrule.backends.tensor_handle import FactoryId, MemoryRef, MemorySource, TensorHandle, TensorHandleFactory
from ferrule.errors import FerruleError
from ferrule.graph import Array, TensorInfo

if TYPE_CHECKING:
    import pyopencl as cl

GPU_FACTORY = FactoryId("Ferrule/GpuAcc")
IMPORT_ALIGNMENT_BYTES = 64
"""A cache line: the alignment that drivers require to use host memory in place; others keep a copy, see `publish`."""


class GpuTensorHandle(TensorHandle):
    """A tensor in an OpenCL buffer.

    The buffer is a part of the manager's buffer, a separate buffer if there is no manager, or imported host memory.
    """

    def __init__(self, info: TensorInfo, *, managed: bool = True, manager: GpuMemoryManager | None = None) -> None:
        super().__init__(info)
        self._managed = managed
        self._manager = manager
        self._memory = manager or GpuMemoryManager()
        self._slot: Slot[cl.Buffer] = Slot(info)
        self._imported: cl.Buffer | None = None
        self._mapped: Array | None = None
        self._readers = 0
        self._written_by_device = False

    @property
    def buffer(self) -> cl.Buffer:
        """The buffer that holds the tensor now.

        Raises:
            RuntimeError: the tensor has no memory, since none is acquired or imported.
        """
        if self._imported is not None:
            return self._imported
        slot = self._slot
        if slot.memory is None:
            if self._manager is not None or not self._managed:
                raise RuntimeError(f"tensor '{self.info.name}' has no memory now: nothing is acquired or imported")
            slot.memory = new_buffer(self._memory.session, self.info.size_bytes)
        return slot.memory

    def set_written_by_device(self) -> None:
        """Mark the tensor as written by a kernel; the process may then only read it."""
        self._written_by_device = True

    def publish(self, event: GpuEvent) -> GpuEvent:
        """Return an event that completes when the result of a command is visible to all readers of the tensor.

        Imported memory belongs to the process, and the device may work on a copy of it, which must be copied back.
        """
        if self._imported is None:
            return event
        return self._memory.session.publish(self._imported, self.info.size_bytes)

    @override
    def manage(self) -> None:
        if self._managed and self._manager is not None:
            self._manager.begin(self._slot)

    @override
    def allocate(self) -> None:
        if self._managed and self._manager is not None:
            self._manager.end(self._slot)

    @override
    def map(self) -> Array:
        if self.ready is not None:
            self.ready.wait()
        if self._mapped is None:
            self._mapped = self._memory.session.map(
                self.buffer, self.info.shape, self.info.dtype.numpy, writing=not self._written_by_device
            )
        self._readers += 1
        view = self._mapped.reshape(self.info.shape)
        if self._written_by_device:
            view.flags.writeable = False
        return view

    @override
    def unmap(self) -> None:
        if self._mapped is None:
            return
        self._readers -= 1
        if not self._readers:
            mapped, self._mapped = self._mapped, None
            self._memory.session.unmap(mapped)

    @override
    def can_import(self, memory: MemoryRef) -> bool:
        return self._importable(memory) is not None

    def _importable(self, memory: MemoryRef) -> Array | None:
        """Return the memory as an array if it can be imported, None otherwise."""
        array = memory.array
        fits = (
            array is not None
            and MemorySource.MALLOC in memory.source
            and self._mapped is None
            and array.dtype == self.info.dtype.numpy
            and array.shape == self.info.shape
            and array.flags.c_contiguous
            and (array.flags.writeable or not self._written_by_device)
            and is_aligned(array, IMPORT_ALIGNMENT_BYTES)
        )
        return array if fits else None

    @override
    def import_memory(self, memory: MemoryRef) -> bool:
        array = self._importable(memory)
        if array is None:
            return False
        try:
            self._imported = host_buffer(self._memory.session, array)
        except FerruleError:  # the driver refuses this memory
            return False
        return True

    @override
    def end_import(self) -> None:
        self._imported = None


class GpuTensorHandleFactory(TensorHandleFactory):
    """Makes handles for tensors in buffers; while a handle is mapped, its contents are plain memory of the process."""

    id = GPU_FACTORY
    import_flags = MemorySource.MALLOC
    export_flags = MemorySource.MALLOC

    def __init__(self, manager: GpuMemoryManager | None = None) -> None:
        self._manager = manager

    @override
    def create_handle(self, info: TensorInfo, *, managed: bool) -> GpuTensorHandle:
        return GpuTensorHandle(info, managed=managed, manager=self._manager)

    @override
    def memory_alignment(self, source: MemorySource) -> int:
        return IMPORT_ALIGNMENT_BYTES
