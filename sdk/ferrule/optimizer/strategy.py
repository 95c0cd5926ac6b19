# SPDX-License-Identifier: Apache-2.0
"""Selects the factory of each tensor's handle and each reader's access to it (Arm NN's SelectTensorHandleStrategy).

The rules differ from Arm NN's where those have known defects. A reader needs a copy if all of its factories need one
(not any). A reader without factories reads only plain memory. A writer's factory that the filter rejects is taken if
all others leave a reader unserved, or if the filter rejects them, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ferrule._frozen import frozen
from ferrule.backends.device import BackendId
from ferrule.backends.tensor_handle import FactoryId, HandleCapability, MemorySource, TensorHandleFactory
from ferrule.errors import FerruleError
from ferrule.graph import Graph, Layer, LayerType
from ferrule.optimizer.access import Access, AccessRules, End, Factories
from ferrule.optimizer.optimized import Assignment, EdgeStrategy
from ferrule.optimizer.options import OptimizerOptions


@frozen
class Handles:
    """The factories of all tensors except constants, and each reader's access to them."""

    factories: Mapping[str, FactoryId | None]
    accesses: Mapping[tuple[str, str], Access]
    """By tensor and reading layer."""


class Selector:
    """Decides tensor by tensor; ties are broken only by the order of the layers and of the preferences."""

    def __init__(
        self, graph: Graph, assignment: Mapping[str, Assignment], factories: Factories, options: OptimizerOptions
    ) -> None:
        self._graph = graph
        self._owner = {layer: given.backend for layer, given in assignment.items()}
        self._factories = factories
        self._options = options
        self._rules = AccessRules(factories, options)
        self._outputs = {info.name for info in graph.results}
        self._readers: dict[str, list[Layer]] = {}
        for layer in graph.layers:
            for name in dict.fromkeys(layer.present_inputs):
                self._readers.setdefault(name, []).append(layer)

    def run(self) -> Handles:
        """Return the decisions for all tensors; FerruleError if two backends cannot share a tensor at all."""
        factories: dict[str, FactoryId | None] = {}
        accesses: dict[tuple[str, str], Access] = {}
        for info in self._graph.sources:
            self._decide(info.name, self._input_factory(info.name), factories, accesses)
        for layer in self._graph.layers:
            for name in layer.outputs:
                self._decide(name, self._output_factory(layer, name), factories, accesses)
        return Handles(factories=factories, accesses=accesses)

    def _decide(
        self,
        tensor: str,
        factory: TensorHandleFactory | None,
        factories: dict[str, FactoryId | None],
        accesses: dict[tuple[str, str], Access],
    ) -> None:
        factories[tensor] = None if factory is None else factory.id
        for reader, access in self._accesses(tensor, factory).items():
            if access is None:
                raise self._unconnected(tensor, factories[tensor], self._graph.layer(reader))
            accesses[tensor, reader] = access
        if self._is_locked_in(tensor, factory):
            raise FerruleError(
                f"output '{tensor}' of the network has handles of '{factories[tensor]}', "
                "which can be neither mapped nor exported",
                hint=self._import_hint(),
            )

    def _unconnected(self, tensor: str, factory: FactoryId | None, reader: Layer) -> FerruleError:
        owner = self._owner[reader.name]
        targets = ", ".join(f"'{each.id}'" for each in self._factories.get(owner, ())) or "plain memory"
        refusals = self._rules.import_refusals(self._writer(tensor), owner)
        return FerruleError(
            "Could not find valid strategy required for compatibility between backends. "
            f"Tensor '{tensor}' of {self._writer(tensor)} has handles of '{factory}', "
            f"and layer '{reader.name}' on {owner} ({targets}) can neither map nor import them"
            f"{''.join(f'; {each}' for each in refusals)}",
            hint=self._import_hint(),
        )

    def _import_hint(self) -> str | None:
        return None if self._options.import_enabled else "import_enabled lets memory pass between backends"

    def _accesses(self, tensor: str, factory: TensorHandleFactory | None) -> dict[str, Access | None]:
        """Return the access of each reader, all with the same kinds of fallback memory: those that serve most."""
        source, writer = End.of(factory, self._writer(tensor)), self._graph.producer(tensor)
        allocators = self._options.allocators if self._options.import_enabled else ()
        reached = not source.maps and (tensor in self._outputs or writer is None)  # by the application
        usable = [kinds for kinds in allocators if not reached or self._rules.memory_in_reach(source, kinds)]
        found = (
            {
                reader.name: self._rules.access(source, writer, reader, self._owner[reader.name], kinds)
                for reader in self._readers.get(tensor, ())
            }
            for kinds in usable or [MemorySource.UNDEFINED]
        )
        return min(found, key=_cost)

    def _in_reach(self, tensor: str, factory: TensorHandleFactory) -> bool:
        """Whether the process can access a tensor in handles of a factory, mapped or in fallback memory."""
        source = End.of(factory, self._writer(tensor))
        return source.maps or any(self._rules.memory_in_reach(source, kinds) for kinds in self._options.allocators)

    def _is_locked_in(self, tensor: str, factory: TensorHandleFactory | None) -> bool:
        """Whether a tensor is an output of the network that can be neither mapped nor exported."""
        if factory is None or tensor not in self._outputs or self._in_reach(tensor, factory):
            return False
        return not (self._options.export_enabled and MemorySource.MALLOC in factory.import_flags)

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
        votes = votes or [factory for factory in preferred if self._in_reach(tensor, factory)]
        if preferred and not votes:
            raise FerruleError(
                f"input '{tensor}' of the network can be neither mapped nor imported by the backends that read it: "
                f"{', '.join(dict.fromkeys(self._owner[reader.name] for reader in self._readers[tensor]))}"
            )
        score = Counter(factory.id for factory in votes)

        def merit(factory: TensorHandleFactory) -> tuple[int, int]:
            unserved, _ = _cost(self._accesses(tensor, factory))
            return -unserved, score[factory.id]

        different: dict[FactoryId, TensorHandleFactory] = {}
        for factory in votes:
            different.setdefault(factory.id, factory)
        return max(different.values(), key=merit, default=None)

    def _output_factory(self, layer: Layer, tensor: str) -> TensorHandleFactory | None:
        """Return the writer's factory that serves its readers best; the writer's preferences break ties."""
        return min(self._of(layer), key=lambda factory: self._shortcomings(layer, tensor, factory), default=None)

    def _is_candidate(self, layer: Layer, tensor: str, factory: TensorHandleFactory) -> bool:
        accesses = self._accesses(tensor, factory).values()
        if any(access is not None and access.strategy is EdgeStrategy.FALLBACK_IMPORT for access in accesses):
            return True
        if not self._options.export_enabled:
            return factory.supports_map_unmap
        read = [name for name in layer.present_inputs if not self._graph.tensor(name).is_constant]
        if tensor in self._outputs and all(self._writer(name) == self._owner[layer.name] for name in read):
            return bool(factory.export_flags)
        return HandleCapability.FALLBACK_IMPORT_DISABLED not in factory.capabilities()

    def _shortcomings(self, layer: Layer, tensor: str, factory: TensorHandleFactory) -> tuple[bool, int, bool, int]:
        """Return whether the writer or the caller cannot access the tensor, the number of readers that cannot be served
        at all, whether the factory is no candidate, and the number of readers that need a copy.
        """
        hidden = layer.type is LayerType.DEBUG and not factory.supports_map_unmap
        unserved, copies = _cost(self._accesses(tensor, factory))
        rejected = not self._is_candidate(layer, tensor, factory)
        return hidden or self._is_locked_in(tensor, factory), unserved, rejected, copies

    def _of(self, layer: Layer) -> Sequence[TensorHandleFactory]:
        return self._factories.get(self._owner[layer.name], ())


def _cost(accesses: Mapping[str, Access | None]) -> tuple[int, int]:
    """Return the number of readers that cannot be served at all, and the number that need a copy."""
    strategies = [None if access is None else access.strategy for access in accesses.values()]
    return strategies.count(None), strategies.count(EdgeStrategy.COPY)
