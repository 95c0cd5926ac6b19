# SPDX-License-Identifier: Apache-2.0
"""Handles for tensors in OpenCL buffers, and their factory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from ferrule._typing import override
from ferrule.backends.gpu_acc.host_block import IMPORT_ALIGNMENT_BYTES, HostBlock
from ferrule.backends.gpu_acc.memory import GpuMemoryManager, new_buffer
from ferrule.backends.gpu_acc.opencl import dma_buf_refusal
from ferrule.backends.gpu_acc.session import Command, DeviceMemory, GpuEvent, Session
from ferrule.backends.shared.host_memory import address, is_aligned
from ferrule.backends.shared.host_memory.planned import Slot
from ferrule.backends.tensor_handle import (
    FactoryId,
    HandleCapability,
    MemoryRef,
    MemorySource,
    TensorHandle,
    TensorHandleFactory,
)
from ferrule.errors import FerruleError
from ferrule.graph import Array, Layer, TensorInfo

if TYPE_CHECKING:
    import pyopencl as cl

GPU_FACTORY = FactoryId("Ferrule/GpuAcc")
GPU_IMPORT_FACTORY = FactoryId("Ferrule/GpuAcc/Import")
_DMA_BUFS = MemorySource.DMA_BUF | MemorySource.DMA_BUF_PROTECTED


class GpuTensorHandle(TensorHandle):
    """A tensor in an OpenCL buffer: a part of the manager's buffer, or a separate buffer if there is no manager."""

    def __init__(self, info: TensorInfo, *, managed: bool = True, manager: GpuMemoryManager | None = None) -> None:
        super().__init__(info)
        self._planner = manager if managed else None
        self._alone = managed and manager is None
        self._memory = manager or GpuMemoryManager()
        self._slot: Slot[DeviceMemory] = Slot(info)
        self._imported: DeviceMemory | None = None
        self._mapped: Array | None = None
        self._readers = 0
        self._written_by_device = False

    @property
    def memory(self) -> DeviceMemory:
        """The place that holds the tensor now.

        Raises:
            RuntimeError: the tensor has no memory, since none is acquired or imported.
        """
        if self._imported is not None:
            return self._imported
        slot = self._slot
        if slot.memory is None:
            if not self._alone:
                raise RuntimeError(f"tensor '{self.info.name}' has no memory now: nothing is acquired or imported")
            slot.memory = new_buffer(self._memory.session, self.info.size_bytes)
        return slot.memory

    def set_written_by_device(self) -> None:
        """Mark the tensor as written by a kernel; the process may then only read it."""
        self._written_by_device = True

    @override
    def manage(self) -> None:
        if self._planner is not None:
            self._planner.begin(self._slot)

    @override
    def allocate(self) -> None:
        if self._planner is not None:
            self._planner.end(self._slot)

    @override
    def map(self) -> Array:
        if self.ready is not None:
            self.ready.wait()
        if self._mapped is None:
            self._mapped = self._memory.session.map(
                self.memory, self.info.shape, self.info.dtype.numpy, writing=not self._written_by_device
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


class GpuImportHandle(GpuTensorHandle):
    """A tensor in host memory that it imports, or in a buffer like any other; the process cannot map it.

    The device may work on a copy of imported memory: `prepare` and `publish` bracket each command that uses it, so that
    the process may access the memory except between the start and the completion of such a command.
    """

    _block: HostBlock | None = None
    _start = 0

    def prepare(self) -> None:
        """Give imported memory to the device; called before a command that uses the tensor is submitted."""
        if self._block is not None:
            self._block.give(self._start, self.info.size_bytes)

    def publish(self, event: GpuEvent) -> GpuEvent:
        """Return an event that completes when the process may access imported memory, after the command submitted."""
        if self._block is None:
            return event
        return self._block.take(self._start, self.info.size_bytes, event)

    @override
    def map(self) -> Array:
        raise RuntimeError(f"tensor '{self.info.name}' has handles of '{GPU_IMPORT_FACTORY}', which cannot be mapped")

    @override
    def can_import(self, memory: MemoryRef) -> bool:
        return self._importable(memory) is not None

    def _importable(self, memory: MemoryRef) -> Array | None:
        """Return the memory as an array if it can be imported, None otherwise."""
        array = memory.array
        fits = (
            array is not None
            and MemorySource.MALLOC in memory.source
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
        self.end_import()
        try:
            block = self._memory.blocks.join(memory, array, writing=self._written_by_device)
        except FerruleError:  # the driver refuses this memory
            return False
        if block is None:
            return False
        self._block, self._start = block, address(array) - block.start
        self._imported = block.tensor(self._start, self.info.size_bytes)
        if self._imported is None:
            self.end_import()
            return False
        return True

    @override
    def end_import(self) -> None:
        block, self._block, self._imported = self._block, None, None
        if block is not None:
            self._memory.blocks.leave(block)


class GpuTensorHandleFactory(TensorHandleFactory):
    """Makes handles for tensors in buffers of the device; the process accesses them by map and unmap."""

    id = GPU_FACTORY
    handle: ClassVar[type[GpuTensorHandle]] = GpuTensorHandle

    def __init__(self, manager: GpuMemoryManager | None = None) -> None:
        self._manager = manager

    @override
    def create_handle(self, info: TensorInfo, *, managed: bool) -> GpuTensorHandle:
        return self.handle(info, managed=managed, manager=self._manager)


class GpuImportHandleFactory(GpuTensorHandleFactory):
    """Makes handles for tensors in imported memory of the process, in place if the driver can.

    A dma-buf is imported as its mapping: Ferrule uses neither cl_khr_external_memory_dma_buf nor cl_arm_import_memory.
    """

    id = GPU_IMPORT_FACTORY
    handle = GpuImportHandle
    import_flags = MemorySource.MALLOC
    supports_map_unmap = False

    @override
    def memory_alignment(self, source: MemorySource) -> int:
        return IMPORT_ALIGNMENT_BYTES

    @override
    def import_refusal(self, source: MemorySource) -> str:
        return dma_buf_refusal() if source & _DMA_BUFS else ""

    @override
    def capabilities(self, layer: Layer | None = None, connected: Layer | None = None) -> frozenset[HandleCapability]:
        return frozenset({HandleCapability.FALLBACK_IMPORT_MEMORY_REQUIRED})


def submit(session: Session, command: Command, *, name: str, handles: Sequence[GpuTensorHandle]) -> GpuEvent:
    """Submit a command that uses tensors, after the events of those; return the event that completes it.

    The command of an imported tensor is complete when the process can access the memory again, also if the command
    cannot be submitted.
    """
    import pyopencl as cl

    imported = [handle for handle in handles if isinstance(handle, GpuImportHandle)]

    def bracketed(queue: cl.CommandQueue, waits: list[cl.Event]) -> cl.Event:
        prepared = []
        try:
            for handle in imported:
                handle.prepare()
                prepared.append(handle)
            return command(queue, waits)
        except BaseException:
            marker = GpuEvent(cl.enqueue_marker(queue), session)
            for handle in prepared:
                marker = handle.publish(marker)
            marker.wait()
            raise

    after = [handle.ready for handle in handles]
    event = session.submit(bracketed if imported else command, name=name, after=after)
    for handle in imported:
        event = handle.publish(event)
    return event
