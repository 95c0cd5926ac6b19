# SPDX-License-Identifier: Apache-2.0
"""The GpuAcc backend: runs layers on an OpenCL device of the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ferrule._typing import override
from ferrule.backends.backend import Backend, LayerSupport
from ferrule.backends.capability import ASYNC_EXECUTION, Capabilities
from ferrule.backends.context import (
    BackendContext,
    BackendProfilingContext,
    CreationOptions,
    CustomAllocator,
    RuntimePart,
)
from ferrule.backends.device import BackendId
from ferrule.backends.gpu_acc.handle import GpuImportHandleFactory, GpuTensorHandleFactory
from ferrule.backends.gpu_acc.memory import GpuMemoryManager
from ferrule.backends.gpu_acc.opencl import DEVICE_OPTION, choose_device, chosen
from ferrule.backends.gpu_acc.profiling import Recorder
from ferrule.backends.gpu_acc.session import Session
from ferrule.backends.gpu_acc.support import GpuAccSupport
from ferrule.backends.gpu_acc.workloads.factory import GpuAccWorkloadFactory
from ferrule.backends.optimization_views import ModelOptions
from ferrule.backends.option import BackendOption
from ferrule.backends.shared.host_memory.backend import refuse_other_memory
from ferrule.backends.tensor_handle import MemoryManager, TensorHandleFactory
from ferrule.backends.workload import WorkloadFactory


class GpuContext(BackendContext):
    """Chooses the device when a runtime is created; the networks that the runtime loads use this device."""

    def __init__(self, backend_id: str, options: CreationOptions) -> None:
        self.device = choose_device(chosen(options.backend_options.get(backend_id, {})))


DEVICE = BackendOption(
    name=DEVICE_OPTION,
    default="",
    meaning="number of an OpenCL device, or a part of its name or its platform's; empty for the runtime's choice",
)


class GpuAcc(Backend):
    """Runs layers as OpenCL kernels, integers exactly; workloads return before their kernels have run.

    The option `device`, set for the backend or a model, is the number of an OpenCL device, or a part of the device's or
    its platform's name.
    """

    id: ClassVar[BackendId] = BackendId("GpuAcc")

    @override
    def layer_support(self) -> LayerSupport:
        return GpuAccSupport()

    @override
    def capabilities(self) -> Capabilities:
        return {ASYNC_EXECUTION: True}

    @override
    def model_options(self) -> Sequence[BackendOption]:
        return (DEVICE,)

    @override
    def use_custom_memory_allocator(self, allocator: CustomAllocator) -> str:
        return refuse_other_memory(self.id, allocator)

    @override
    def context(self, options: CreationOptions) -> BackendContext:
        return GpuContext(self.id, options)

    @override
    def profiling_context(self, options: CreationOptions) -> BackendProfilingContext:
        del options
        return Recorder()

    @override
    def workload_factory(self, memory: MemoryManager | None, options: ModelOptions) -> WorkloadFactory:
        return self.workload_factory_in(RuntimePart(), memory, options)

    @override
    def workload_factory_in(
        self, runtime: RuntimePart, memory: MemoryManager | None, options: ModelOptions
    ) -> WorkloadFactory:
        wanted, context = chosen(options), runtime.context
        device = context.device if wanted is None and isinstance(context, GpuContext) else choose_device(wanted)
        session = Session(device, runtime.profiling if isinstance(runtime.profiling, Recorder) else None)
        return GpuAccWorkloadFactory(memory.use(session) if isinstance(memory, GpuMemoryManager) else session)

    @override
    def memory_manager(self, allocator: CustomAllocator | None = None) -> MemoryManager:
        return GpuMemoryManager(allocator)

    @override
    def tensor_handle_factories(self, memory: MemoryManager | None) -> Sequence[TensorHandleFactory]:
        manager = memory if isinstance(memory, GpuMemoryManager) else None
        return (GpuTensorHandleFactory(manager), GpuImportHandleFactory(manager))
