# SPDX-License-Identifier: Apache-2.0
"""Backends for tests: CpuRef's kernels with other memory, other threads, and contexts that keep a diary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import sleep
from typing import ClassVar

import numpy as np
from numpy.testing import assert_array_equal

from ferrule._typing import override
from ferrule.backends import Backend, BackendId, LayerSupport
from ferrule.backends.capability import ASYNC_EXECUTION, Capabilities
from ferrule.backends.context import BackendContext, CreationOptions, CustomAllocator, NetworkId
from ferrule.backends.cpu_ref import CpuRef
from ferrule.backends.device import default_device
from ferrule.backends.optimization_views import ModelOptions
from ferrule.backends.registry import BackendRegistry
from ferrule.backends.shared.host_memory import (
    FutureEvent,
    HostMemoryManager,
    HostTensorHandle,
    HostTensorHandleFactory,
    aligned_empty,
)
from ferrule.backends.tensor_handle import (
    Event,
    FactoryId,
    MemoryManager,
    MemoryRef,
    MemorySource,
    TensorHandle,
    TensorHandleFactory,
)
from ferrule.backends.workload import Workload, WorkloadFactory, WorkloadInfo
from ferrule.graph import Array, DataType, Graph, Layer, LayerType, TensorInfo
from ferrule.network import Network
from ferrule.operators.transfer import DebugDescriptor, MemCopyDescriptor, MemImportDescriptor
from ferrule.optimizer.optimized import Assignment, OptimizedNetwork
from ferrule.optimizer.options import OptimizerOptions
from ferrule.runtime import Runtime

SHAPE = (2, 8)


@dataclass
class Diary:
    """A record of events, in order."""

    lines: list[str] = field(default_factory=list)

    def __call__(self, *words: object) -> None:
        self.lines.append(" ".join(map(str, words)))


class DiaryContext:
    """A context that records its calls and returns the given answer, or raises it if it is an exception."""

    def __init__(self, name: str, diary: Diary, answers: Mapping[str, bool | Exception]) -> None:
        self.name = name
        self.diary = diary
        self.answers = answers

    def _tell(self, moment: str, network: NetworkId) -> bool:
        self.diary(self.name, moment, network)
        answer = self.answers.get(moment, True)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def before_load_network(self, network: NetworkId) -> bool:
        return self._tell("before_load", network)

    def after_load_network(self, network: NetworkId) -> bool:
        return self._tell("after_load", network)

    def before_unload_network(self, network: NetworkId) -> bool:
        return self._tell("before_unload", network)

    def after_unload_network(self, network: NetworkId) -> bool:
        return self._tell("after_unload", network)


class Mock(CpuRef):
    """CpuRef with its own handle factory, so that its tensors must be copied or imported."""

    id: ClassVar[BackendId] = BackendId("Mock")
    factory_id: ClassVar[FactoryId] = FactoryId("Mock/Factory")
    import_flags: ClassVar[MemorySource] = MemorySource.MALLOC
    export_flags: ClassVar[MemorySource] = MemorySource.MALLOC
    alignment_bytes: ClassVar[int] = 1

    @override
    def tensor_handle_factories(self, memory: MemoryManager | None) -> Sequence[TensorHandleFactory]:
        return (
            HostTensorHandleFactory(
                self.factory_id,
                memory,
                import_flags=self.import_flags,
                export_flags=self.export_flags,
                alignment_bytes=self.alignment_bytes,
            ),
        )


def mock(name: str, **attributes: object) -> type[Mock]:
    """Return a backend class with its own id, factory id and other attributes."""
    return type(name, (Mock,), {"id": BackendId(name), "factory_id": FactoryId(f"{name}/Factory"), **attributes})


def mock_with_context(name: str, diary: Diary, answers: Mapping[str, bool | Exception] | None = None) -> type[Mock]:
    """Return a backend class whose context keeps a diary."""

    def context(self: Mock, options: CreationOptions) -> BackendContext:
        del self, options
        return DiaryContext(name, diary, answers or {})

    return mock(name, context=context)


class SlowWorkload:
    """Runs another workload in a thread after a delay, and returns the event of its completion."""

    def __init__(self, workload: Workload, pool: ThreadPoolExecutor, delay_s: float, failure: Exception | None) -> None:
        self._workload = workload
        self._pool = pool
        self._delay_s = delay_s
        self._failure = failure

    def execute(self) -> Event:
        return FutureEvent(self._pool.submit(self._work))

    def _work(self) -> None:
        sleep(self._delay_s)
        if self._failure is not None:
            raise self._failure
        self._workload.execute()


class QueueHandle(HostTensorHandle):
    """A handle for workloads of one queue, which can read without waiting because the queue runs in order."""

    @override
    def map(self) -> Array:
        return self.memory()


class SlowFactory(WorkloadFactory):
    def __init__(self, delay_s: float, failure: Exception | None) -> None:
        self._inner = CpuRef().workload_factory(None, {})
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._delay_s = delay_s
        self._failure = failure

    @override
    def create_workload(self, info: WorkloadInfo) -> Workload:
        return SlowWorkload(self._inner.create_workload(info), self._pool, self._delay_s, self._failure)


class QueueHandleFactory(HostTensorHandleFactory):
    @override
    def create_handle(self, info: TensorInfo, *, managed: bool) -> HostTensorHandle:
        return QueueHandle(info, managed=managed, manager=self._manager)


class Slow(Mock):
    """Runs every workload later, in one thread, in order."""

    id: ClassVar[BackendId] = BackendId("Slow")
    factory_id: ClassVar[FactoryId] = FactoryId("Slow/Factory")
    delay_s: ClassVar[float] = 0.003
    failure: ClassVar[Exception | None] = None

    @override
    def capabilities(self) -> Capabilities:
        return {ASYNC_EXECUTION: True}

    @override
    def workload_factory(self, memory: MemoryManager | None, options: ModelOptions) -> WorkloadFactory:
        return SlowFactory(self.delay_s, self.failure)

    @override
    def tensor_handle_factories(self, memory: MemoryManager | None) -> Sequence[HostTensorHandleFactory]:
        return (QueueHandleFactory(self.factory_id, memory),)


class UnmappedHandle(HostTensorHandle):
    """A handle that only the workloads of its backend may map."""

    inside = False

    @override
    def map(self) -> Array:
        assert UnmappedHandle.inside, f"tensor '{self.info.name}' is mapped from outside its backend"
        return super().map()


class UnmappedFactory(HostTensorHandleFactory):
    supports_map_unmap = False

    @override
    def create_handle(self, info: TensorInfo, *, managed: bool) -> HostTensorHandle:
        return UnmappedHandle(info, managed=managed, manager=self._manager, alignment_bytes=self._alignment_bytes)


class _InsideWorkload:
    def __init__(self, workload: Workload) -> None:
        self._workload = workload

    def execute(self) -> Event | None:
        UnmappedHandle.inside = True
        try:
            return self._workload.execute()
        finally:
            UnmappedHandle.inside = False


class _InsideFactory(WorkloadFactory):
    @override
    def create_workload(self, info: WorkloadInfo) -> Workload:
        return _InsideWorkload(CpuRef().workload_factory(None, {}).create_workload(info))


class Unmapped(Mock):
    """A backend whose handles import memory of the process, and cannot be mapped."""

    id: ClassVar[BackendId] = BackendId("Unmapped")
    factory_id: ClassVar[FactoryId] = FactoryId("Unmapped/Factory")
    alignment_bytes: ClassVar[int] = 64

    @override
    def workload_factory(self, memory: MemoryManager | None, options: ModelOptions) -> WorkloadFactory:
        return _InsideFactory()

    @override
    def tensor_handle_factories(self, memory: MemoryManager | None) -> Sequence[HostTensorHandleFactory]:
        return (UnmappedFactory(self.factory_id, memory, alignment_bytes=self.alignment_bytes),)


class CountingAllocator(CustomAllocator):
    """Ordinary memory, with a count of allocations."""

    def __init__(self, source: MemorySource = MemorySource.MALLOC) -> None:
        self.source = source
        self.held: list[int] = []
        self.total = 0

    @override
    def allocate(self, size_bytes: int, alignment_bytes: int) -> MemoryRef:
        block = MemoryRef.of_array(aligned_empty((size_bytes,), DataType.UINT8, alignment_bytes), self.source)
        self.held.append(id(block))
        self._keep = block
        self.total += 1
        return block

    @override
    def free(self, memory: MemoryRef) -> None:
        self.held.remove(id(memory))


def registry_of(*backends: type[Backend]) -> BackendRegistry:
    """Return a registry of exactly these backends."""
    registry = BackendRegistry()
    for backend in backends:
        registry.register(backend.id, backend, origin="test")
    return registry


def chain(length: int = 4) -> Network:
    """Return a chain of different layers, each with one input and one output."""
    network = Network("chain")
    name = network.add_input(TensorInfo("x", SHAPE, DataType.FLOAT32))
    for index in range(length):
        name = network.add_leaky_relu_layer(name, 0.5 + index / 8, name=f"layer{index}")
    network.set_outputs([name])
    return network


def sample(seed: int = 0, shape: tuple[int, ...] = SHAPE) -> Array:
    """Return a random input."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def check_chain(runtime: Runtime, number: NetworkId) -> None:
    """Check the results of a loaded `chain`."""
    assert_array_equal(runtime.enqueue_workload(number, [sample()])[0], chain().run([sample()])[0])


def assigned(
    graph: Graph,
    backends: Mapping[str, type[Mock]],
    default: type[CpuRef] = Mock,
    options: OptimizerOptions | None = None,
) -> OptimizedNetwork:
    """Return a graph as the optimizer would, with its layers on the named backends and no layer added."""

    def factory(backend: type[CpuRef]) -> FactoryId:
        return backend().tensor_handle_factories(None)[0].id

    chosen = {layer.name: backends.get(layer.name, default) for layer in graph.layers}
    factories: dict[str, FactoryId | None] = {}
    for tensor in graph.tensors:
        if tensor.is_constant:
            continue
        producer = graph.producer(tensor.info.name)
        readers = graph.consumers(tensor.info.name)
        owner = producer or (readers[0] if readers else None)
        factories[tensor.info.name] = None if owner is None else factory(chosen[owner.name])
    return OptimizedNetwork(
        graph=graph,
        assignment={name: Assignment(backend=found.id, device=str(found.id)) for name, found in chosen.items()},
        devices=tuple(default_device(key) for key in dict.fromkeys(found.id for found in chosen.values())),
        factories=factories,
        messages=(),
        refusals={},
        options=options or OptimizerOptions(),
    )


def with_transfer(network: Graph, type_: LayerType, after: str) -> Graph:
    """Return a copy of a chain with a MEM_COPY, MEM_IMPORT or DEBUG layer after one of its layers."""
    descriptors = (MemCopyDescriptor(), MemImportDescriptor(), DebugDescriptor(layer=after, output=0))
    descriptor = dict(zip((LayerType.MEM_COPY, LayerType.MEM_IMPORT, LayerType.DEBUG), descriptors, strict=True))[type_]
    result = Graph(network.name)
    for info in network.inputs:
        result.add_input(info)
    renamed: dict[str, str] = {}
    for layer in network.layers:
        inputs = tuple(None if name is None else renamed.get(name, name) for name in layer.inputs)
        moved = Layer(layer.name, layer.type, layer.descriptor, inputs=inputs, outputs=layer.outputs)
        result.add_layer(moved, network.output_infos(layer))
        if layer.name == after:
            (name,) = layer.outputs
            info = network.info(name)
            renamed[name] = f"{name}_moved"
            transfer = Layer(f"transfer_{after}", type_, descriptor, inputs=(name,), outputs=(renamed[name],))
            result.add_layer(transfer, [TensorInfo(renamed[name], info.shape, info.dtype)])
    result.set_outputs(renamed.get(info.name, info.name) for info in network.outputs)
    return result


HandleMaker = Callable[[TensorInfo, bool], TensorHandle]


class FussyFactory(TensorHandleFactory):
    """Declares that its handles import memory, but they refuse every import."""

    def __init__(self, factory_id: FactoryId, manager: HostMemoryManager | None) -> None:
        self.id = factory_id
        self.import_flags = MemorySource.MALLOC
        self.export_flags = MemorySource.MALLOC
        self._manager = manager

    @override
    def create_handle(self, info: TensorInfo, *, managed: bool) -> TensorHandle:
        return HostTensorHandle(info, managed=managed, manager=self._manager, import_flags=MemorySource.DMA_BUF)


class Fussy(Mock):
    """A backend whose handles refuse every import although its factory declares them."""

    id: ClassVar[BackendId] = BackendId("Fussy")
    factory_id: ClassVar[FactoryId] = FactoryId("Fussy/Factory")

    @override
    def tensor_handle_factories(self, memory: MemoryManager | None) -> Sequence[TensorHandleFactory]:
        manager = memory if isinstance(memory, HostMemoryManager) else None
        return (FussyFactory(self.factory_id, manager),)


class Accepting(Mock):
    """A backend that accepts every allocator."""

    id: ClassVar[BackendId] = BackendId("Accepting")
    factory_id: ClassVar[FactoryId] = FactoryId("Accepting/Factory")

    @override
    def use_custom_memory_allocator(self, allocator: CustomAllocator) -> str:
        return ""

    @override
    def layer_support(self) -> LayerSupport:
        return CpuRef().layer_support()
