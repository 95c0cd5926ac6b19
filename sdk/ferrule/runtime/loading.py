# SPDX-License-Identifier: Apache-2.0
"""Turns an optimised network into one that is ready to run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from ferrule.backends.context import CreationOptions
from ferrule.backends.device import BackendId
from ferrule.backends.registry import BackendRegistry
from ferrule.backends.shared.allocators import default_allocators
from ferrule.backends.shared.host_memory import HostTensorHandle, MemCopyWorkload, MemImportWorkload
from ferrule.backends.tensor_handle import MemoryRef, MemorySource, TensorHandle
from ferrule.backends.workload import Workload, WorkloadFactory, WorkloadInfo
from ferrule.errors import place
from ferrule.graph import Graph, Layer, LayerType, Tensor
from ferrule.operators.transfer import DebugDescriptor
from ferrule.optimizer.optimized import Assignment, OptimizedNetwork
from ferrule.runtime.admission import Admitted
from ferrule.runtime.binding import InputPort, OutputPort, staging_of
from ferrule.runtime.debug import DebugSwitch, DebugWorkload
from ferrule.runtime.errors import NetworkLoadError
from ferrule.runtime.fallback_memory import FallbackMemory
from ferrule.runtime.kept_state import KeptState
from ferrule.runtime.loaded_network import Parts
from ferrule.runtime.members import Members
from ferrule.runtime.step import Step
from ferrule.runtime.tensors import FRAMEWORK_LAYERS, TensorTable


def load_parts(
    optimized: OptimizedNetwork,
    registry: BackendRegistry,
    admitted: Mapping[BackendId, Admitted],
    creation: CreationOptions,
) -> Parts:
    """Return the parts of the network: handles, workloads and memory managers; its fallback memory is allocated.

    Raises:
        NetworkLoadError: a backend of the network is not usable here, or it or a connection lacks something.
        FerruleError: a backend refuses one of its layers, or memory between backends.
    """
    graph = optimized.graph
    for layer in graph.layers:
        if layer.name not in optimized.assignment:
            raise NetworkLoadError(f"layer '{layer.name}' has no backend in the optimised network")
    members = Members(registry, admitted, options=optimized.options.model_options)
    members.join(optimized.assignment[layer.name].backend for layer in graph.layers)
    tensors = TensorTable(optimized, members)
    loader = _Loader(optimized, members, tensors)
    steps = loader.steps()
    joined = loader.joined(steps)
    tensors.walk()
    sources, results = _input_ports(graph, tensors), _output_ports(graph, tensors)
    count = len(graph.outputs)
    fallback = FallbackMemory(
        tensors.fallbacks,
        tensors.lives(),
        (*creation.fallback_allocators, *default_allocators()) if tensors.fallbacks else (),
        protected=creation.protected_mode,
    )
    fallback.allocate()  # the last step that can fail
    return Parts(
        graph=graph,
        tensors=tensors,
        steps=steps,
        joined=joined,
        inputs=sources[: len(graph.inputs)],
        outputs=results[:count],
        sources=sources,
        results=results,
        state=KeptState(graph, results[count:]) if graph.states else None,
        fallback=fallback,
        links=tuple(loader.links.values()),
        managers=tuple(members.managers),
        profiling=members.profiling,
        debug=loader.debug,
    )


class _Loader:
    """Creates the workloads of all layers, in order."""

    def __init__(self, optimized: OptimizedNetwork, members: Members, tensors: TensorTable) -> None:
        self._graph = optimized.graph
        self._assignment = optimized.assignment
        self._targets = {device.name: optimized.options.target(device) for device in optimized.devices}
        self._members = members
        self._tensors = tensors
        self._crossings = {crossing.layer: crossing for crossing in optimized.crossings}
        self._workloads: dict[str, Workload] = {}
        """By layer: the workloads that backends have made for their own layers."""
        self._native_calls: dict[str, Callable[[], Callable[[], object] | None]] = {}
        self.links: dict[str, MemImportWorkload] = {}
        self.debug = DebugSwitch()

    def steps(self) -> tuple[Step, ...]:
        """Return the steps; the end of each import is a step after the last reader."""
        last = self._tensors.last_uses()
        ends: dict[int, list[Step]] = {}
        steps: list[Step] = []
        for index, layer in enumerate(self._graph.layers):
            steps.append(self._step(layer))
            if layer.type is LayerType.MEM_IMPORT:
                end = replace(
                    steps[-1],
                    execute=self.links[layer.name].end,
                    waits=self._tensors.unfinished_readers(layer.outputs[0]),
                    outputs=(),
                    name=f"end of {layer.name}",
                    crossing=None,
                )
                ends.setdefault(last[layer.outputs[0]], []).append(end)
            steps += reversed(ends.get(index, []))
        return tuple(steps)  # imports that outputs need end after the outputs are read

    def joined(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        """Return the steps with neighbours joined where their backend joins their workloads."""
        found: list[Step] = []
        run: list[Step] = []
        for step in steps:
            if run and (step.waits or not self._may_join(run[0], step)):
                found += self._join(run)
                run = []
            run.append(step)
        return (*found, *self._join(run))

    def _may_join(self, one: Step, other: Step) -> bool:
        own = all(step.name in self._workloads and not step.in_order for step in (one, other))
        return own and (one.backend, one.device) == (other.backend, other.device)

    def _join(self, run: list[Step]) -> list[Step]:
        """Return one step for neighbours that may be joined, or the neighbours."""
        if len(run) < 2:
            return run
        factory = self._members.member(BackendId(run[0].backend)).workloads
        workload = None if factory is None else factory.join([self._workloads[step.name] for step in run])
        if factory is None or workload is None:
            return run
        first, last = run[0], run[-1]
        outputs = tuple(handle for step in run for handle in step.outputs)
        joined = replace(first, outputs=outputs, name=f"{first.name}' to '{last.name}")
        return [replace(joined, execute=workload.execute, native_call=partial(factory.native_call, workload))]

    def _step(self, layer: Layer) -> Step:
        assignment = self._assignment[layer.name]
        with place(f"layer '{layer.name}' ({layer.type}) on backend '{assignment.backend}'"):
            workload = self._workload(layer)
        in_order = layer.type not in FRAMEWORK_LAYERS and self._members.member(assignment.backend).asynchronous
        waiting = layer.type is LayerType.FALLBACK_IMPORT
        return Step(
            execute=workload.execute,
            waits=() if waiting else self._tensors.foreign_inputs(layer),
            outputs=tuple(self._tensors[name].handle for name in layer.outputs),
            name=layer.name,
            type=layer.type,
            backend=assignment.backend,
            device=assignment.device,
            in_order=in_order,
            waiting=waiting,
            native_call=self._native_calls.get(layer.name),
            crossing=self._crossings.get(layer.name),
        )

    def _workload(self, layer: Layer) -> Workload:
        match layer.type:
            case LayerType.MEM_COPY:
                return MemCopyWorkload(self._source(layer), self._tensors.mapped(layer.outputs[0]))
            case LayerType.MEM_IMPORT:
                self.links[layer.name] = link = self._link(layer)
                return link
            case LayerType.FALLBACK_IMPORT:
                return self._fallback(layer)
            case LayerType.DEBUG:
                return self._debug(layer)
            case _:
                factory, info = self._factory(layer, self._assignment[layer.name])
                self._workloads[layer.name] = workload = factory.create_workload(info)
                self._native_calls[layer.name] = partial(factory.native_call, workload)
                return workload

    def _fallback(self, layer: Layer) -> Workload:
        """Return the workload by which the writer's backend waits until the tensor is written."""
        producer = self._graph.producer(_only_input(layer))
        if producer is None or producer.type in FRAMEWORK_LAYERS:
            return Nothing()
        factory, info = self._factory(layer, self._assignment[producer.name])
        return factory.create_fallback_import(info)

    def _factory(self, layer: Layer, assignment: Assignment) -> tuple[WorkloadFactory, WorkloadInfo]:
        factory = self._members.member(assignment.backend).workloads
        if factory is None:
            raise NetworkLoadError("the backend runs nothing on the host, it makes no workloads")
        target = self._targets[assignment.device]
        return factory, WorkloadInfo.of(self._graph, layer, lambda name: self._tensors[name].handle, target)

    def _link(self, layer: Layer) -> MemImportWorkload:
        name = _only_input(layer)
        producer = self._graph.producer(name)
        source, target = self._tensors[name], self._tensors[layer.outputs[0]]
        common = source.factory.export_flags & target.factory.import_flags
        return MemImportWorkload(
            self._tensors.mapped(name),
            target.handle,
            next((kind for kind in MemorySource if kind in common), MemorySource.MALLOC),  # plain memory comes first
            source_backend=self._assignment[producer.name].backend if producer is not None else "the application",
            target_backend=self._assignment[layer.name].backend,
        )

    def _debug(self, layer: Layer) -> DebugWorkload:
        descriptor = layer.descriptor
        return DebugWorkload(
            source=self._source(layer),
            target=self._tensors.mapped(layer.outputs[0]),
            layer=descriptor.layer if isinstance(descriptor, DebugDescriptor) else layer.name,
            info=self._graph.info(layer.outputs[0]),
            switch=self.debug,
        )

    def _source(self, layer: Layer) -> TensorHandle:
        tensor = self._graph.tensor(_only_input(layer))
        return _constant_handle(tensor) if tensor.data is not None else self._tensors.mapped(tensor.info.name)


class Nothing:
    """The workload of a layer with nothing to do."""

    def execute(self) -> None:
        """Do nothing."""


def _only_input(layer: Layer) -> str:
    if len(layer.inputs) != 1 or layer.inputs[0] is None or len(layer.outputs) != 1:
        raise NetworkLoadError(
            f"it has inputs {list(layer.inputs)} and outputs {list(layer.outputs)}, expected one each"
        )
    return layer.inputs[0]


def _constant_handle(tensor: Tensor) -> TensorHandle:
    """Return a handle for a constant's own bytes."""
    handle = HostTensorHandle(tensor.info, managed=False)
    if tensor.data is None or not handle.import_memory(MemoryRef.of_array(tensor.data)):
        raise NetworkLoadError(f"tensor '{tensor.info.name}' is not a constant that fits its own description")
    return handle


def _input_ports(graph: Graph, tensors: TensorTable) -> tuple[InputPort, ...]:
    """Return the ports of the inputs, then those of the states' old values."""
    ports = []
    for info in graph.sources:
        placed = tensors[info.name]
        staging = None if placed.managed else staging_of(info, placed, lent=True)
        ports.append(InputPort(info, tensors.mapped(info.name) if staging is None else placed.handle, staging))
    return tuple(ports)


def _output_ports(graph: Graph, tensors: TensorTable) -> tuple[OutputPort, ...]:
    """Return the ports of the outputs, then those of the states' new values.

    If a tensor has several ports, the first is written directly and the others are copied.
    """
    imports = {LayerType.MEM_IMPORT, LayerType.FALLBACK_IMPORT}
    computed = {name for layer in graph.layers if layer.type not in imports for name in layer.outputs}
    ports = []
    for info in graph.results:
        tensor = graph.tensor(info.name)
        if tensor.is_constant:
            ports.append(OutputPort(info, _constant_handle(tensor), None))
            continue
        placed = tensors[info.name]
        staging = None
        if placed.fallback is not None or (not placed.managed and info.name in computed):
            staging = staging_of(info, placed, lent=info.name in computed)
        if staging is None:
            tensors.mapped(info.name)
        computed.discard(info.name)
        ports.append(OutputPort(info, placed.handle, staging))
    return tuple(ports)
