# SPDX-License-Identifier: Apache-2.0
"""Runs a graph through GpuAcc's workloads and handles, without the optimizer and the runtime."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from needs import lacking

from ferrule._typing import override
from ferrule.backends.context import CustomAllocator, RuntimePart
from ferrule.backends.device import BackendId, Device
from ferrule.backends.gpu_acc import GpuAcc
from ferrule.backends.gpu_acc.memory import GpuMemoryManager
from ferrule.backends.gpu_acc.opencl import OpenClDevice, choose_device, unavailable_reason
from ferrule.backends.gpu_acc.profiling import Recorder
from ferrule.backends.gpu_acc.session import Command, GpuEvent, Session
from ferrule.backends.target import Face, Target
from ferrule.backends.tensor_handle import Event, TensorHandle
from ferrule.backends.workload import Workload, WorkloadInfo
from ferrule.graph import Array, Graph

if TYPE_CHECKING:
    import pyopencl as cl


def require_opencl() -> None:
    """Skip the test unless there is an OpenCL device."""
    reason = unavailable_reason()
    if reason:
        newer = "if its PoCL does not support this processor, install a newer one (docs/backends.md)"
        lacking(f"an OpenCL device ({reason})", f"pip install 'ferrule[gpu]'; {newer}")


class GpuGraph:
    """A graph with every layer on GpuAcc; each tensor has its own part of the memory manager's buffer."""

    def __init__(
        self,
        graph: Graph,
        device: str = "GpuAcc",
        *,
        runtime: RuntimePart | None = None,
        allocator: CustomAllocator | None = None,
        imported: Collection[str] = (),
        session: Session | None = None,
    ) -> None:
        backend = GpuAcc()
        manager = backend.memory_manager(allocator)
        assert isinstance(manager, GpuMemoryManager)
        self.manager = manager
        self.graph = graph
        if session is not None:
            manager.use(session)
        self.factory = backend.workload_factory_in(runtime or RuntimePart(), manager, {})
        handles, importing = backend.tensor_handle_factories(manager)
        self.handles: dict[str, TensorHandle] = {
            tensor.info.name: importing.create_handle(tensor.info, managed=False)
            if tensor.info.name in imported
            else handles.create_handle(tensor.info, managed=True)
            for tensor in graph.tensors
            if not tensor.is_constant
        }
        for name, handle in self.handles.items():
            if name not in imported:
                handle.manage()
        self.workloads: list[Workload] = []
        target = Target(face=Face.HOST, device=Device(name=device, backend=BackendId("GpuAcc")))
        for layer in graph.layers:
            info = WorkloadInfo.of(graph, layer, self.handles.__getitem__, target)
            self.workloads.append(self.factory.create_workload(info))
        manager.acquire()

    def write(self, inputs: Sequence[Array]) -> None:
        """Write values into the inputs."""
        for info, data in zip(self.graph.inputs, inputs, strict=True):
            handle = self.handles[info.name]
            np.copyto(handle.map(), data, casting="no")
            handle.unmap()

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Return copies of the outputs."""
        self.write(inputs)
        for layer, workload in zip(self.graph.layers, self.workloads, strict=True):
            event = workload.execute()
            assert event is not None
            for name in layer.outputs:
                self.handles[name].ready = event
        results = []
        for info in self.graph.outputs:
            handle = self.handles[info.name]
            results.append(np.copy(handle.map()))
            handle.unmap()
        return results


class ShadowSession(Session):
    """A session whose device works on a copy of host memory, which is transferred by map and unmap only.

    Memory that is not mapped holds POISON, so that the process cannot read it by chance.
    """

    POISON = 0xA5

    def __init__(self, device: OpenClDevice | None = None, recorder: Recorder | None = None) -> None:
        super().__init__(device or choose_device(), recorder)
        self.host_buffers = 0
        self.lent: dict[int, tuple[cl.Buffer, int, Array]] = {}

    @override
    def host_buffer(self, memory: Array) -> cl.Buffer:
        import pyopencl as cl

        self.host_buffers += 1
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        return cl.Buffer(self.context, flags, hostbuf=np.copy(memory))

    @override
    def map_host(self, buffer: cl.Buffer, offset: int, memory: Array, *, writing: bool) -> tuple[Array, GpuEvent]:
        import pyopencl as cl

        if writing:
            event = cl.enqueue_copy(self.queue, memory, buffer, src_offset=offset, is_blocking=False)
        else:
            event = cl.enqueue_marker(self.queue)
        mapping = memory.view()
        self.lent[id(mapping)] = (buffer, offset, memory)
        return mapping, GpuEvent(event, self)

    @override
    def unmap_host(self, mapping: Array) -> None:
        import pyopencl as cl

        buffer, offset, memory = self.lent.pop(id(mapping))
        if memory.flags.writeable:
            cl.enqueue_copy(self.queue, buffer, memory, dst_offset=offset, is_blocking=True)
            memory[:] = self.POISON

    @override
    def return_host(self, mapping: Array) -> None:
        del self.lent[id(mapping)]


class LateSession(ShadowSession):
    """A shadow session that carries out a map command as late as its order allows, as a loaded device may."""

    def __init__(self) -> None:
        super().__init__()
        self._late: list[Callable[[], object]] = []

    def settle(self) -> None:
        """Carry out the map commands that were submitted."""
        late, self._late = self._late, []
        for each in late:
            each()

    @override
    def map_host(self, buffer: cl.Buffer, offset: int, memory: Array, *, writing: bool) -> tuple[Array, GpuEvent]:
        import pyopencl as cl

        mapping = memory.view()
        self.lent[id(mapping)] = (buffer, offset, memory)
        if writing:
            self._late.append(partial(cl.enqueue_copy, self.queue, memory, buffer, src_offset=offset))
        return mapping, _LateEvent(cl.enqueue_marker(self.queue), self)

    @override
    def unmap_host(self, mapping: Array) -> None:
        self.settle()
        super().unmap_host(mapping)

    @override
    def submit(self, command: Command, *, name: str, after: Sequence[Event | None] = ()) -> GpuEvent:
        self.settle()
        return super().submit(command, name=name, after=after)

    @override
    def finish(self) -> None:
        self.settle()
        super().finish()


class _LateEvent(GpuEvent):
    """The event of a late map command."""

    __slots__ = ()

    @override
    def wait(self) -> None:
        assert isinstance(self.session, LateSession)
        self.session.settle()
        super().wait()
