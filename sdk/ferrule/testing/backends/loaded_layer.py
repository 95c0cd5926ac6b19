# SPDX-License-Identifier: Apache-2.0
"""One layer on a backend's workloads and handles, without the optimizer and the runtime."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, zip_longest

import numpy as np

from ferrule.backends.backend import Backend
from ferrule.backends.optimization_views import ModelOptions
from ferrule.backends.shared.host_memory import HOST_FACTORY, HostMemoryManager, HostTensorHandleFactory
from ferrule.backends.shared.host_memory.canaries import Fenced, canaries
from ferrule.backends.target import default_target
from ferrule.backends.tensor_handle import MemoryManager, MemoryRef, MemorySource, TensorHandle, TensorHandleFactory
from ferrule.backends.workload import WorkloadInfo
from ferrule.errors import FerruleError
from ferrule.graph import Array, Graph, TensorInfo


class LoadedLayer:
    """A graph of one layer, loaded the way the runtime does: manager, factories, handles, workload, memory.

    If `fenced`, canaries surround the memory of each tensor: the handles import memory between canaries if their
    factory imports memory of the process; otherwise, each tensor lives between two tensors of canaries.
    """

    def __init__(self, backend: Backend, graph: Graph, options: ModelOptions, *, fenced: bool = False) -> None:
        self.graph = graph
        self._weights = {
            tensor.info.name: (tensor.data, tensor.data.tobytes())
            for tensor in graph.tensors
            if tensor.data is not None
        }
        self._fences: dict[str, Fenced] = {}
        self._guards: list[TensorHandle] = []
        (layer,) = graph.layers
        self.managers, factory = handle_factory(backend)
        workloads = backend.workload_factory(self.managers[0] if self.managers else None, options)
        if workloads is None:
            raise FerruleError(f"backend '{backend.id}' makes no workloads: it has no host face")
        names = [name for name in (*layer.present_inputs, *layer.outputs) if not graph.tensor(name).is_constant]
        importing = fenced and MemorySource.MALLOC in factory.import_flags
        self.handles: dict[str, TensorHandle] = {
            name: factory.create_handle(graph.info(name), managed=not importing) for name in dict.fromkeys(names)
        }
        if importing:
            alignment = factory.memory_alignment(MemorySource.MALLOC)
            self._fences = {name: Fenced(graph.info(name), alignment) for name in self.handles}
        elif fenced:
            infos = [graph.info(name) for name in (*self.handles, next(reversed(self.handles)))]
            self._guards = [factory.create_handle(info, managed=True) for info in infos]
        target = default_target(backend.id, options=options)
        self.workload = workloads.create_workload(WorkloadInfo.of(graph, layer, self.handles.__getitem__, target))
        if not importing:
            managed = list(chain(*zip_longest(self._guards, self.handles.values())))
            for handle in filter(None, managed):
                handle.manage()
            for handle in filter(None, managed):
                handle.allocate()

    def acquire(self) -> None:
        """Acquire the memory, or let the handles import it."""
        for manager in self.managers:
            manager.acquire()
        for handle in self._guards:
            write(handle, _canaries_for(handle.info))
        for name, fence in self._fences.items():
            taken = self.handles[name].import_memory(MemoryRef.of_array(fence.array))
            assert taken, f"the handle of '{name}' refuses aligned memory, though its factory imports MALLOC"

    def release(self) -> None:
        """Release the memory."""
        for name in self._fences:
            self.handles[name].end_import()
        for manager in self.managers:
            manager.release()

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Run the layer on `inputs` and return copies of the outputs.

        AssertionError if the workload wrote its inputs, its weights or canaries.
        """
        for info, array in zip(self.graph.inputs, inputs, strict=True):
            write(self.handles[info.name], array)
        outputs = [self.handles[info.name] for info in self.graph.outputs]
        event = self.workload.execute()
        for handle in outputs:
            handle.ready = event
        results = [read(handle) for handle in outputs]
        for handle in outputs:
            handle.ready = None
        name = self.graph.name
        for info, array in zip(self.graph.inputs, inputs, strict=True):
            assert read(self.handles[info.name]).tobytes() == array.tobytes(), (
                f"{name}: input '{info.name}' was written"
            )
        for constant, (data, wanted) in self._weights.items():
            assert data.tobytes() == wanted, f"{name}: constant '{constant}' was written"
        damage = next(filter(None, (fence.damage() for fence in self._fences.values())), "")
        assert not damage, f"{name}: {damage}"
        for handle in self._guards:
            intact = read(handle).tobytes() == _canaries_for(handle.info).tobytes()
            assert intact, f"{name}: bytes beside '{handle.info.name}' were written"
        return results


def _canaries_for(info: TensorInfo) -> Array:
    """Return canaries as a tensor: of the same size as its neighbour, so that planners put both side by side."""
    return canaries(info.size_bytes).view(info.dtype.numpy).reshape(info.shape)


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
