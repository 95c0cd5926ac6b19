# SPDX-License-Identifier: Apache-2.0
"""The GpuAcc backend: int8 layers on an OpenCL device, on the host only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ferrule._typing import override
from ferrule.backends.backend import Backend, BackendId, LayerSupport
from ferrule.backends.capability import ASYNC_EXECUTION, Capabilities
from ferrule.backends.context import BackendContext, BackendProfilingContext, CreationOptions, CustomAllocator
from ferrule.backends.gpu_acc.context import GpuContext, loading_device, loading_recorder, new_recorder
from ferrule.backends.gpu_acc.handle import GpuTensorHandleFactory
from ferrule.backends.gpu_acc.memory import GpuMemoryManager
from ferrule.backends.gpu_acc.opencl import DEVICE_OPTION, choose_device
from ferrule.backends.gpu_acc.session import Session
from ferrule.backends.gpu_acc.support import GpuAccSupport
from ferrule.backends.gpu_acc.workloads.factory import GpuAccWorkloadFactory
from ferrule.backends.optimization_views import ModelOptions
from ferrule.backends.tensor_handle import MemoryManager
from ferrule.backends.workload import WorkloadFactory


class GpuAcc(Backend):
    """OpenCL kernels, equal to the reference in every bit; workloads return before they have run.

    Option `device`, of the backend or of a model: number of an OpenCL device, or a part of its name.
    """

    id: ClassVar[BackendId] = BackendId("GpuAcc")

    @override
    def layer_support(self) -> LayerSupport:
        return GpuAccSupport()

    @override
    def capabilities(self) -> Capabilities:
        return {ASYNC_EXECUTION: True}

    @override
    def context(self, options: CreationOptions) -> BackendContext:
        return GpuContext(self.id, options)

    @override
    def profiling_context(self, options: CreationOptions) -> BackendProfilingContext:
        return new_recorder(options)

    @override
    def workload_factory(self, memory: MemoryManager | None, options: ModelOptions) -> WorkloadFactory:
        wanted = options.get(DEVICE_OPTION)
        device = loading_device() if wanted is None else None
        session = Session(device or choose_device(wanted), loading_recorder())
        return GpuAccWorkloadFactory(memory.use(session) if isinstance(memory, GpuMemoryManager) else session)

    @override
    def memory_manager(self, allocator: CustomAllocator | None = None) -> MemoryManager:
        del allocator
        return GpuMemoryManager()

    @override
    def tensor_handle_factories(self, memory: MemoryManager | None) -> Sequence[GpuTensorHandleFactory]:
        return (GpuTensorHandleFactory(memory if isinstance(memory, GpuMemoryManager) else None),)
