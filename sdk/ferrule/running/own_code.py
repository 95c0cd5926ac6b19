# SPDX-License-Identifier: Apache-2.0
"""A firmware's layers on this machine: floats by its own C, the other types by the numpy kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ferrule.backends import Target
from ferrule.backends.backend import Backend
from ferrule.backends.capability import firmware_float_options
from ferrule.backends.guarded import guarded
from ferrule.backends.optimization_views import LayeredPayload, PreCompiledDescriptor
from ferrule.backends.shared.host_memory import HostTensorHandle
from ferrule.backends.workload import Workload, WorkloadFactory, WorkloadInfo
from ferrule.errors import FerruleError
from ferrule.graph import Array, Graph, Layer, LayerType
from ferrule.network.bounds import outside
from ferrule.operators import interpreter
from ferrule.operators.arithmetic import running_error
from ferrule.operators.arithmetic.running_error import Bounded
from ferrule.operators.operator import OWN_CODE
from ferrule.operators.table import BEYOND_TFLITE
from ferrule.optimizer import BackendSource, OptimizedNetwork


class NoOwnCodeError(FerruleError):
    """The bits of a firmware's floats cannot be computed on this machine; the message says why."""


@dataclass(slots=True)
class Judged:
    """The comparison of what the C computed with the numpy reference, layer by layer, from the inputs that the C had.

    A layer is one of the network as it was given. Where the optimizer keeps none of its inputs, the bounds are those of
    the layers since the last tensor that it keeps.
    """

    layers: set[str] = field(default_factory=set)
    """The layers of floats whose outputs were compared."""
    elements: int = 0
    """Elements of all inferences that were compared with their bounds."""
    outside: int = 0
    unknown: int = 0
    """Elements without a bound, such as sums that may overflow; they are not among `elements`."""
    first: str = ""
    """The first layer with an element outside its bound."""

    def compare(self, network: Graph, sources: Mapping[str, Array], found: Mapping[str, Array]) -> None:
        """Compare the tensors of one inference with the layers of the network as it was given."""

        def run(graph: Graph, layer: Layer, inputs: Sequence[Bounded | None]) -> list[Bounded]:
            made = running_error.run_layer(graph, layer, inputs, OWN_CODE)
            return [
                self._known(layer, is_float(graph, layer), wanted, found.get(name))
                for name, wanted in zip(layer.outputs, made, strict=True)
            ]

        with np.errstate(all="ignore"):
            interpreter.walk(network, {name: Bounded(array) for name, array in sources.items()}, Bounded, run)

    def _known(self, layer: Layer, floats: bool, wanted: Bounded, found: Array | None) -> Bounded:
        """Return the C's values of a tensor, once they are compared; the reference's if it has no such tensor."""
        if found is None:
            return wanted
        known = np.isfinite(np.zeros(found.shape) if wanted.error is None else wanted.error)
        wrong = int((outside(found, wanted) & known).sum())
        if floats:
            self.layers.add(layer.name)
            self.elements += int(known.sum())
            self.unknown += int(found.size - known.sum())
        self.outside += wrong
        self.first = self.first or (layer.name if wrong else "")
        return Bounded(found)


def has_floats(graph: Graph) -> bool:
    """Return whether a tensor of a graph, or of a graph that a layer calls, is of a float type."""
    return any(tensor.info.dtype.is_float for tensor in graph.tensors) or any(
        has_floats(inner) for layer in graph.layers for inner in _inner(layer)
    )


class OwnCode:
    """The layers of a divided network, ready to run; for use by one thread."""

    def __init__(self, optimized: OptimizedNetwork, registry: BackendSource, *, network: Graph | None = None) -> None:
        """Prepare the layers; `network` is the one that was divided, with whose layers the results are compared.

        Raises:
            NoOwnCodeError: a backend has no host face with the float bits of its firmware.
        """
        self._network, self._graph = network, optimized.graph
        self._optimized, self._registry = optimized, registry
        self._devices = {each.name: each for each in optimized.devices}
        self._factories: dict[str, WorkloadFactory] = {}
        self._workloads: dict[str, _Loaded] = {}
        for layer in self._graph.layers:
            self._prepare(self._graph, layer, optimized.assignment[layer.name].device)
        self._tensors: dict[str, Array] = {}
        self.judged = Judged()
        """What was compared in all runs until now."""

    def run(self, inputs: Sequence[Array] | Mapping[str, Array], state: dict[str, Array]) -> list[Array]:
        """Return the outputs, and update the values in `state`."""
        given = list(inputs.values() if isinstance(inputs, Mapping) else inputs)
        sources = self._sources(self._graph, given, state)
        self._tensors = {}
        results = interpreter.walk(self._graph, sources, lambda data: data, self._run)
        if self._network is not None:
            self.judged.compare(self._network, self._sources(self._network, given, state), self._tensors)
        count = len(self._graph.outputs)
        state |= zip((each.name for each in self._graph.states), results[count:], strict=True)
        return results[:count]

    @staticmethod
    def _sources(graph: Graph, inputs: Sequence[Array], state: Mapping[str, Array]) -> dict[str, Array]:
        sources = dict(zip((info.name for info in graph.inputs), inputs, strict=True))
        return sources | {each.source: state[each.name] for each in graph.states}

    def _prepare(self, graph: Graph, layer: Layer, device: str) -> None:
        inside = _layered(layer)
        if inside is not None:
            for each in inside.layers:
                self._prepare(inside, each, device)
            return
        if not is_float(graph, layer) or layer.type in BEYOND_TFLITE:
            return
        target = self._optimized.options.target(self._devices[device])
        backend = guarded(self._registry.create(target.device.backend))
        self._workloads[layer.name] = _Loaded(graph, layer, target, self._factory(backend))

    def _factory(self, backend: Backend) -> WorkloadFactory:
        known = self._factories.get(backend.id)
        if known is not None:
            return known
        options = firmware_float_options(backend.capabilities())
        made = None if options is None else backend.workload_factory(None, options)
        if made is None:
            raise NoOwnCodeError(f"backend {backend.id} states no host face with the float bits of its firmware")
        self._factories[backend.id] = made
        return made

    def _run(self, graph: Graph, layer: Layer, arrays: Sequence[Array | None]) -> list[Array]:
        inside = _layered(layer)
        if inside is not None:
            given = {name: array for name, array in zip(layer.inputs, arrays, strict=True) if array is not None}
            sources = {info.name: given[str(info.name)] for info in inside.inputs}
            results = interpreter.walk(inside, sources, lambda data: data, self._run)
            by_name = dict(zip((info.name for info in inside.results), results, strict=True))
            others = {info.name: np.zeros(info.shape, info.dtype.numpy) for info in graph.output_infos(layer)}
            return [(others | by_name)[name] for name in layer.outputs]  # the others are memory for lines
        loaded = self._workloads.get(layer.name)
        run = interpreter.run_layer(graph, layer, arrays) if loaded is None else loaded.run(arrays)
        self._tensors |= zip(layer.outputs, run, strict=True)
        return run


class _Loaded:
    """A layer's workload, with a handle for each tensor that is not constant."""

    def __init__(self, graph: Graph, layer: Layer, target: Target, factory: WorkloadFactory) -> None:
        names = [name for name in (*layer.present_inputs, *layer.outputs) if not graph.tensor(name).is_constant]
        self._handles = {name: HostTensorHandle(graph.info(name)) for name in names}
        self._layer = layer
        self._workload: Workload = factory.create_workload(
            WorkloadInfo.of(graph, layer, self._handles.__getitem__, target)
        )

    def run(self, arrays: Sequence[Array | None]) -> list[Array]:
        """Return the outputs."""
        for name, array in zip(self._layer.inputs, arrays, strict=True):
            handle = None if name is None else self._handles.get(name)
            if handle is not None and array is not None:
                np.copyto(handle.memory(), array, casting="no")
        event = self._workload.execute()
        if event is not None:
            event.wait()
        return [self._handles[name].memory().copy() for name in self._layer.outputs]


def _layered(layer: Layer) -> Graph | None:
    """Return the graph whose layers a pre-compiled layer computes one by one; None for any other layer."""
    if layer.type is not LayerType.PRE_COMPILED or not isinstance(layer.descriptor, PreCompiledDescriptor):
        return None
    payload = layer.descriptor.payload
    return payload.layers if isinstance(payload, LayeredPayload) else None


def _inner(layer: Layer) -> Iterator[Graph]:
    yield from layer.descriptor.graphs.values()
    layered = _layered(layer)
    if layered is not None:
        yield layered


def is_float(graph: Graph, layer: Layer) -> bool:
    """Return whether a layer, or a layer of a graph that it calls, has a tensor of a float type."""
    infos = (*graph.input_infos(layer), *graph.output_infos(layer))
    return any(info is not None and info.dtype.is_float for info in infos) or any(map(has_floats, _inner(layer)))
