# SPDX-License-Identifier: Apache-2.0
"""Runs a graph through GpuAcc's workloads and handles, without the optimizer and the runtime."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from needs import lacking

from ferrule.backends.context import CustomAllocator, RuntimePart
from ferrule.backends.device import BackendId, Device
from ferrule.backends.gpu_acc import GpuAcc
from ferrule.backends.gpu_acc.memory import GpuMemoryManager
from ferrule.backends.gpu_acc.opencl import unavailable_reason
from ferrule.backends.target import Face, Target
from ferrule.backends.tensor_handle import TensorHandle
from ferrule.backends.workload import Workload, WorkloadInfo
from ferrule.graph import Array, Graph


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
    ) -> None:
        backend = GpuAcc()
        manager = backend.memory_manager(allocator)
        assert isinstance(manager, GpuMemoryManager)
        self.manager = manager
        self.graph = graph
        self.factory = backend.workload_factory_in(runtime or RuntimePart(), manager, {})
        (handles,) = backend.tensor_handle_factories(manager)
        self.handles: dict[str, TensorHandle] = {
            tensor.info.name: handles.create_handle(tensor.info, managed=True)
            for tensor in graph.tensors
            if not tensor.is_constant
        }
        for handle in self.handles.values():
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
