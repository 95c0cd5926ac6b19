# SPDX-License-Identifier: Apache-2.0
"""One layer on a backend's workloads and handles, without the optimizer and the runtime."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ferrule.backends.backend import Backend
from ferrule.backends.optimization_views import ModelOptions
from ferrule.backends.shared.host_memory import HOST_FACTORY, HostMemoryManager, HostTensorHandleFactory
from ferrule.backends.target import default_target
from ferrule.backends.tensor_handle import MemoryManager, TensorHandle, TensorHandleFactory
from ferrule.backends.workload import WorkloadInfo
from ferrule.errors import FerruleError
from ferrule.graph import Array, Graph


class LoadedLayer:
    """A graph of one layer, loaded the way the runtime does: manager, factories, handles, workload, memory."""

    def __init__(self, backend: Backend, graph: Graph, options: ModelOptions) -> None:
        self.graph = graph
        (layer,) = graph.layers
        self.managers, factory = handle_factory(backend)
        workloads = backend.workload_factory(self.managers[0] if self.managers else None, options)
        if workloads is None:
            raise FerruleError(f"backend '{backend.id}' makes no workloads: it has no host face")
        names = [name for name in (*layer.present_inputs, *layer.outputs) if not graph.tensor(name).is_constant]
        self.handles: dict[str, TensorHandle] = {
            name: factory.create_handle(graph.info(name), managed=True) for name in dict.fromkeys(names)
        }
        target = default_target(backend.id, options=options)
        self.workload = workloads.create_workload(WorkloadInfo.of(graph, layer, self.handles.__getitem__, target))
        for handle in self.handles.values():
            handle.manage()
        for handle in self.handles.values():
            handle.allocate()

    def acquire(self) -> None:
        """Acquire the memory."""
        for manager in self.managers:
            manager.acquire()

    def release(self) -> None:
        """Release the memory."""
        for manager in self.managers:
            manager.release()

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Run the layer on `inputs` and return copies of the outputs."""
        for info, array in zip(self.graph.inputs, inputs, strict=True):
            write(self.handles[info.name], array)
        outputs = [self.handles[info.name] for info in self.graph.outputs]
        event = self.workload.execute()
        for handle in outputs:
            handle.ready = event
        results = [read(handle) for handle in outputs]
        for handle in outputs:
            handle.ready = None
        return results


def handle_factory(backend: Backend) -> tuple[list[MemoryManager], TensorHandleFactory]:
    """Return a backend's memory managers and its preferred handle factory, or one for plain memory."""
    manager = backend.memory_manager(None)
    factories = {factory.id: factory for factory in backend.tensor_handle_factories(manager)}
    wanted = [factories[found] for found in backend.handle_factory_preferences() if found in factories]
    chosen = next(iter([*wanted, *factories.values()]), None)
    if chosen is not None:
        return ([] if manager is None else [manager]), chosen
    plain = HostMemoryManager()
    return ([plain] if manager is None else [manager, plain]), HostTensorHandleFactory(HOST_FACTORY, plain)


def write(handle: TensorHandle, array: Array) -> None:
    """Write values into a tensor."""
    np.copyto(handle.map(), array, casting="no")
    handle.unmap()


def read(handle: TensorHandle) -> Array:
    """Return a copy of a tensor's values."""
    values = np.copy(handle.map())
    handle.unmap()
    return values
