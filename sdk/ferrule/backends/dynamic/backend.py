# SPDX-License-Identifier: Apache-2.0
"""A backend that is a shared object."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

from ferrule._typing import override
from ferrule.backends.backend import Backend, LayerSupport, Support
from ferrule.backends.capability import Capabilities
from ferrule.backends.context import BackendContext, BackendProfilingContext, CreationOptions, CustomAllocator
from ferrule.backends.device import BackendId
from ferrule.backends.dynamic.answers import OptimizedPart, ask_optimizer
from ferrule.backends.dynamic.context import DynamicContext, DynamicProfiling
from ferrule.backends.dynamic.handles import AllocatorRecord, DynamicHandleFactory, DynamicMemory
from ferrule.backends.dynamic.library import Library
from ferrule.backends.dynamic.records import layer_struct, read_option, target_struct
from ferrule.backends.dynamic.workload import DynamicWorkloadFactory
from ferrule.backends.optimization_views import ModelOptions, OptimizationViews
from ferrule.backends.shared.host_memory import HostTensorHandleFactory
from ferrule.backends.target import Target
from ferrule.backends.tensor_handle import MemoryManager, MemorySource, TensorHandleFactory
from ferrule.backends.workload import WorkloadFactory
from ferrule.errors import UnsupportedError
from ferrule.graph import Graph, Layer, SubgraphView


class DynamicBackend(Backend):
    """Wraps the tables of a shared object; each shared object has a subclass with its id, see `backend_factory`.

    It runs on the host only. Tensors live in host memory unless the backend has its own handle factories.
    """

    def __init__(self, library: Library) -> None:
        self._tables = library.table()

    @property
    def has_own_handles(self) -> bool:
        """Whether tensors live in the backend's own memory."""
        return bool(self._tables.factories)

    @override
    def layer_support(self) -> LayerSupport:
        return self

    def supports(self, graph: Graph, layer: Layer, target: Target) -> Support:
        """Return whether the backend supports the layer of that graph."""
        try:
            struct = layer_struct(graph, layer)
        except UnsupportedError as error:
            return Support(str(error))
        table = self._tables.layer_support
        if table.supports_on:
            _, reason = table.supports_on(self._tables.address, target_struct(target), struct)
        else:
            _, reason = table.supports(self._tables.address, struct)
        return Support(reason)

    @override
    def capabilities(self) -> Capabilities:
        table = self._tables.capabilities
        if table is None:
            return {}
        count = ctypes.c_uint32()
        options = table.list(self._tables.address, count)
        return dict(read_option(option) for option in options[: count.value]) if options else {}

    @override
    def model_options(self) -> None:
        """Accept any options: the C interface has no table that declares options."""

    @override
    def optimize_subgraph(self, view: SubgraphView, target: Target) -> OptimizationViews:
        return self.optimized(view, target).views(view)

    def optimized(self, view: SubgraphView, target: Target) -> OptimizedPart:
        """Return the shared object's answer to a subgraph."""
        if self._tables.optimizer is None or not view.names:
            return OptimizedPart()
        return ask_optimizer(self._tables, view, target)

    @override
    def use_custom_memory_allocator(self, allocator: CustomAllocator) -> str:
        table = self._tables.memory
        if table is None:
            if self._tables.factories or allocator.source is not MemorySource.MALLOC:
                return f"{self.id} has no custom allocators of {allocator.source}"
            return ""  # tensors live in host memory, whose manager accepts any allocator of plain memory
        if not table.accept:
            return f"{self.id} has no custom allocators"
        _, reason = table.accept(self._tables.address, AllocatorRecord(allocator).struct)
        return str(reason)

    @override
    def profiling_context(self, options: CreationOptions) -> BackendProfilingContext | None:
        return None if self._tables.profiling is None else DynamicProfiling(self._tables, options)

    @override
    def has_host_face(self) -> bool:
        return self._tables.workloads is not None

    @override
    def workload_factory(self, memory: MemoryManager | None, options: ModelOptions) -> WorkloadFactory | None:
        return DynamicWorkloadFactory(self._tables, _own(memory), options) if self.has_host_face() else None

    @override
    def memory_manager(self, allocator: CustomAllocator | None = None) -> MemoryManager | None:
        return DynamicMemory(self._tables, allocator)

    @override
    def tensor_handle_factories(self, memory: MemoryManager | None) -> Sequence[TensorHandleFactory]:
        own = _own(memory)
        if not self._tables.factories:
            return (HostTensorHandleFactory(manager=None if own is None else own.host),)
        return tuple(DynamicHandleFactory(self._tables, table, own) for table in self._tables.factories)

    @override
    def context(self, options: CreationOptions) -> BackendContext | None:
        return None if self._tables.contexts is None else DynamicContext(self._tables, options)


def backend_factory(library: Library) -> Callable[[], DynamicBackend]:
    """Return a factory that creates a new object of the library's backend at each call."""
    kind: type[DynamicBackend] = type("LibraryBackend", (DynamicBackend,), {"id": BackendId(library.id)})
    return lambda: kind(library)


def _own(memory: MemoryManager | None) -> DynamicMemory | None:
    return memory if isinstance(memory, DynamicMemory) else None
