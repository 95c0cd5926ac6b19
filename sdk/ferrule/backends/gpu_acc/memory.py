# SPDX-License-Identifier: Apache-2.0
"""The memory of one loaded network: its session, and one OpenCL buffer whose layout the planner computes."""

from __future__ import annotations

from dataclasses import replace

from ferrule._typing import override
from ferrule.backends.context import CustomAllocator
from ferrule.backends.gpu_acc.host_block import HostBlocks
from ferrule.backends.gpu_acc.opencl import choose_device
from ferrule.backends.gpu_acc.session import DeviceMemory, Session
from ferrule.backends.shared.host_memory.planned import PlannedMemoryManager, mapped
from ferrule.backends.tensor_handle import MemoryRef
from ferrule.errors import FerruleError
from ferrule.graph import TensorInfo


class GpuMemoryManager(PlannedMemoryManager[DeviceMemory]):
    """Places slots in one buffer; slots whose lifetimes do not overlap share bytes, since commands run in order.

    The buffer uses the custom allocator's memory if there is one; a device with its own memory may keep a copy.
    """

    def __init__(self, allocator: CustomAllocator | None = None) -> None:
        super().__init__(allocator)
        self._session: Session | None = None
        self._blocks: HostBlocks | None = None

    @property
    def blocks(self) -> HostBlocks:
        """The imported memory of the session in use."""
        if self._blocks is None:
            self._blocks = HostBlocks(self.session)
        return self._blocks

    @property
    def session(self) -> Session:
        """The network's session; a session on the default device is created if `use` was not called before."""
        if self._session is None:
            self._session = Session(choose_device())
        return self._session

    def use(self, session: Session) -> Session:
        """Use `session` unless a session is already in use; return the session in use."""
        if self._session is None:
            self._session = session
        return self._session

    @override
    def acquire(self) -> None:
        if self._lives:  # without tensors no device is needed
            super().acquire()

    @override
    def _new_block(self, size_bytes: int) -> DeviceMemory:
        return new_buffer(self.session, size_bytes)

    @override
    def _block_in(self, memory: MemoryRef) -> DeviceMemory:
        return DeviceMemory(buffer=self.session.host_buffer(mapped(memory)))

    @override
    def _part(self, block: DeviceMemory, offset: int, info: TensorInfo) -> DeviceMemory:
        return replace(block, offset=offset)

    @override
    def _settle(self) -> None:
        self.session.finish()


def new_buffer(session: Session, size_bytes: int) -> DeviceMemory:
    """Return the place of a new buffer on the session's device; FerruleError if the device has too little memory."""
    import pyopencl as cl

    try:
        return DeviceMemory(buffer=cl.Buffer(session.context, cl.mem_flags.READ_WRITE, max(size_bytes, 1)))
    except cl.Error as error:
        raise FerruleError(f"{session.device.title} cannot provide a buffer of {size_bytes} B: {error}") from error
