# SPDX-License-Identifier: Apache-2.0
"""Selects the factory of each tensor's handle and each reader's access to it (Arm NN's SelectTensorHandleStrategy).

The rules differ from Arm NN's where those have known defects. A reader needs a copy if all of its factories need one
(not any). A reader without factories reads only plain memory. If the filter rejects all preferred factories of a
writer, the writer keeps the one that serves its readers best, instead of none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ferrule.backends.device import BackendId
from ferrule.backends.tensor_handle import (
    FactoryId,
    HandleCapability,
    MemorySource,
    TensorHandleFactory,
    TensorHandleFactoryRegistry,
)
from ferrule.errors import FerruleError
from ferrule.graph import Graph, Layer
from ferrule.optimizer.optimized import Assignment, EdgeStrategy
from ferrule.optimizer.options import OptimizerOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Handles:
    """The factories and edge strategies of all tensors except constants."""

    factories: Mapping[str, FactoryId | None]
    edges: Mapping[tuple[str, str], EdgeStrategy]


class FactoryTable:
    """The factories of the backends that have layers in the network, and each backend's preferences among them."""

    def __init__(
        self, registry: TensorHandleFactoryRegistry, preferences: Mapping[BackendId, Sequence[FactoryId]]
    ) -> None:
        self._factories = {
            key: factory for ids in preferences.values() for key in ids if (factory := registry.get(key)) is not None
        }
        self._preferred = {
            backend: tuple(self._factories[key] for key in ids if key in self._factories)
            for backend, ids in preferences.items()
        }

    def get(self, factory: FactoryId) -> TensorHandleFactory | None:
        """Return a factory by its id; None if it is not among the preferences of any backend of the network."""
        return self._factories.get(factory)

    def preferred(self, backend: BackendId) -> tuple[TensorHandleFactory, ...]:
        """Return the registered factories whose handles a backend's workloads can use, in order of preference."""
        return self._preferred.get(backend, ())


def can_import(source: TensorHandleFactory, target: TensorHandleFactory, options: OptimizerOptions) -> bool:
    """Return whether a handle of the target factory can import the memory of the source factory's handles."""
    obstacles = {HandleCapability.PADDING_REQUIRED, HandleCapability.FALLBACK_IMPORT_DISABLED}
    return (
        options.import_enabled
        and source.supports_map_unmap
        and bool(source.export_flags & target.import_flags)
        and not obstacles & (source.capabilities() | target.capabilities())
    )


class Selector:
    """Decides tensor by tensor; ties are broken only by the order of the layers and of the preferences."""

    def __init__(
        self, graph: Graph, assignment: Mapping[str, Assignment], table: FactoryTable, options: OptimizerOptions
    ) -> None:
        self._graph = graph
        self._owner = {layer: given.backend for layer, given in assignment.items()}
        self._table = table
        self._options = options
        self._outputs = {info.name for info in graph.outputs}
        self._readers: dict[str, list[Layer]] = {}
        for layer in graph.layers:
            for name in dict.fromkeys(layer.present_inputs):
                self._readers.setdefault(name, []).append(layer)

    def run(self) -> Handles:
        """Return the decisions for all tensors; FerruleError if two backends cannot share a tensor at all."""
        factories: dict[str, FactoryId | None] = {}
        edges: dict[tuple[str, str], EdgeStrategy] = {}
        for info in self._graph.inputs:
            self._decide(info.name, self._input_factory(info.name), factories, edges)
        for layer in self._graph.layers:
            for name in layer.outputs:
                self._decide(name, self._output_factory(layer, name), factories, edges)
        return Handles(factories=factories, edges=edges)

    def _decide(
        self,
        tensor: str,
        factory: TensorHandleFactory | None,
        factories: dict[str, FactoryId | None],
        edges: dict[tuple[str, str], EdgeStrategy],
    ) -> None:
        factories[tensor] = None if factory is None else factory.id
        writer = self._writer(tensor)
        for reader in self._readers.get(tensor, ()):
            strategy = self._edge(factory, writer, self._owner[reader.name])
            if strategy is None:
                raise FerruleError(
                    "Could not find valid strategy required for compatibility between backends. "
                    f"Tensor '{tensor}' of {writer} has handles of '{factories[tensor]}', "
                    f"and layer '{reader.name}' on {self._owner[reader.name]} can neither map nor import them"
                )
            edges[tensor, reader.name] = strategy
        if self._is_locked_in(tensor, factory):
            raise FerruleError(
                f"output '{tensor}' of the network has handles of '{factories[tensor]}', "
                "which can be neither mapped nor exported"
            )

    def _is_locked_in(self, tensor: str, factory: TensorHandleFactory | None) -> bool:
        """Whether a tensor is an output of the network that can be neither mapped nor exported."""
        if factory is None or tensor not in self._outputs:
            return False
        return not factory.supports_map_unmap and not (
            self._options.export_enabled and MemorySource.MALLOC in factory.import_flags
        )

    def _writer(self, tensor: str) -> BackendId | None:
        """Return the backend that writes a tensor; for an input of the network, the backend of its first reader."""
        producer = self._graph.producer(tensor)
        if producer is not None:
            return self._owner[producer.name]
        readers = self._readers.get(tensor)
        return self._owner[readers[0].name] if readers else None

    def _input_factory(self, tensor: str) -> TensorHandleFactory | None:
        """Return the factory that leaves the fewest readers unserved, then has the most votes, then comes first."""
        preferred = [factory for reader in self._readers.get(tensor, ()) for factory in self._of(reader)]
        votes = []
        if self._options.import_enabled:
            votes = [factory for factory in preferred if MemorySource.MALLOC in factory.import_flags]
        votes = votes or [factory for factory in preferred if factory.supports_map_unmap]
        if preferred and not votes:
            raise FerruleError(
                f"input '{tensor}' of the network can be neither mapped nor imported by the backends that read it: "
                f"{', '.join(dict.fromkeys(self._owner[reader.name] for reader in self._readers[tensor]))}"
            )
        score: dict[FactoryId, int] = {}
        for factory in votes:
            score[factory.id] = score.get(factory.id, -1) + 1
        writer = self._writer(tensor)
        owners = Counter(self._owner[reader.name] for reader in self._readers.get(tensor, ()))

        def merit(factory: TensorHandleFactory) -> tuple[int, int]:
            unserved = sum(count for owner, count in owners.items() if self._edge(factory, writer, owner) is None)
            return -unserved, score[factory.id]

        different: dict[FactoryId, TensorHandleFactory] = {}
        for factory in votes:
            different.setdefault(factory.id, factory)
        return max(different.values(), key=merit, default=None)

    def _output_factory(self, layer: Layer, tensor: str) -> TensorHandleFactory | None:
        """Return the writer's factory that needs the fewest copies; the writer's preferences break ties."""
        preferred = self._of(layer)
        candidates = [factory for factory in preferred if self._is_candidate(layer, tensor, factory)] or preferred
        return min(candidates, key=lambda factory: self._cost(layer, tensor, factory), default=None)

    def _is_candidate(self, layer: Layer, tensor: str, factory: TensorHandleFactory) -> bool:
        if not self._options.export_enabled:
            return factory.supports_map_unmap
        if tensor in self._outputs and not self._is_fallback(layer):
            return bool(factory.export_flags)
        return HandleCapability.FALLBACK_IMPORT_DISABLED not in factory.capabilities()

    def _is_fallback(self, layer: Layer) -> bool:
        """Whether a layer reads what another backend wrote."""
        own = self._owner[layer.name]
        return any(
            self._writer(name) != own for name in layer.present_inputs if not self._graph.tensor(name).is_constant
        )

    def _cost(self, layer: Layer, tensor: str, factory: TensorHandleFactory) -> tuple[int, int]:
        """Return the number of readers that cannot be served at all, and the number that need a copy."""
        writer = self._owner[layer.name]
        edges = [self._edge(factory, writer, self._owner[reader.name]) for reader in self._readers.get(tensor, ())]
        return edges.count(None) + self._is_locked_in(tensor, factory), edges.count(EdgeStrategy.COPY)

    def _edge(
        self, factory: TensorHandleFactory | None, writer: BackendId | None, reader: BackendId
    ) -> EdgeStrategy | None:
        preferred = self._table.preferred(reader)
        if factory is None or not preferred:
            if factory is None and not preferred and writer == reader:
                return EdgeStrategy.DIRECT
            return EdgeStrategy.COPY if _can_copy(factory, preferred) else None
        if any(factory.id == other.id for other in preferred):
            return EdgeStrategy.DIRECT
        if any(can_import(factory, other, self._options) for other in preferred):
            return EdgeStrategy.EXPORT
        return EdgeStrategy.COPY if _can_copy(factory, preferred) else None

    def _of(self, layer: Layer) -> Sequence[TensorHandleFactory]:
        return self._table.preferred(self._owner[layer.name])


def _can_copy(source: TensorHandleFactory | None, targets: Sequence[TensorHandleFactory]) -> bool:
    """Return whether the process can access the bytes on both sides, as it always can in plain memory."""
    readable = source is None or source.supports_map_unmap
    return readable and (not targets or any(target.supports_map_unmap for target in targets))
