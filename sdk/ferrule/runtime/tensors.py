# SPDX-License-Identifier: Apache-2.0
"""The handles of a network's tensors, and the notification of memory managers about their lifetimes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from ferrule._frozen import frozen
from ferrule.backends.tensor_handle import MemoryManager, MemorySource, TensorHandle, TensorHandleFactory
from ferrule.graph import Layer, LayerType
from ferrule.memory import Lifetime
from ferrule.operators.table import having
from ferrule.operators.transfer import FallbackImportDescriptor
from ferrule.optimizer.optimized import OptimizedNetwork
from ferrule.runtime.errors import NetworkLoadError
from ferrule.runtime.fallback_memory import APPLICATION, FallbackEnd, FallbackTensor
from ferrule.runtime.lives import Unit, Waits
from ferrule.runtime.members import Members

FRAMEWORK_LAYERS = having(transfers=True)
"""Layers that the optimizer inserted; their workloads have finished when `execute` returns."""

_IMPORTS = frozenset({LayerType.MEM_IMPORT, LayerType.FALLBACK_IMPORT})
"""Layers whose output is in the memory of their input."""


@frozen
class PlacedTensor:
    """A tensor's handle with its factory and its memory manager."""

    handle: TensorHandle
    factory: TensorHandleFactory
    manager: MemoryManager | None
    managed: bool
    """Whether the handle has memory without an import."""
    alignment_bytes: int = 1
    """Required alignment of imported memory, for the handle's own factory and for all later importers."""
    fallback: FallbackTensor | None = None
    """The memory that it shares with other backends' handles; None if it shares none."""
    lent: bool = False
    """Whether the handle may import the caller's memory of an input or output."""


class TensorTable:
    """The handles of all non-constant tensors, by name."""

    def __init__(self, optimized: OptimizedNetwork, members: Members) -> None:
        self._graph = optimized.graph
        self._assignment = optimized.assignment
        self._members = members
        self._placed: dict[str, PlacedTensor] = {}
        self.fallbacks: dict[str, FallbackTensor] = {}
        """The tensors in fallback memory."""
        options = optimized.options
        inputs = {info.name for info in self._graph.sources}
        outputs = {info.name for info in self._graph.results} - inputs
        alignments = self._alignments(optimized)
        kinds = self._fallback_kinds()
        uses = Counter(info.name for info in (*self._graph.sources, *self._graph.results))
        for tensor in self._graph.tensors:
            name = tensor.info.name
            if tensor.is_constant:
                continue
            if name not in optimized.factories:
                raise NetworkLoadError(f"tensor '{name}' has no tensor handle factory in the optimised network")
            owned = members.factory(optimized.factories[name])
            producer = self._graph.producer(name)
            importable = MemorySource.MALLOC in owned.factory.import_flags
            lent = importable and (
                (name in inputs and options.import_enabled) or (name in outputs and options.export_enabled)
            )
            hidden = options.import_enabled and not owned.factory.supports_map_unmap and uses[name] > (1 if lent else 0)
            if hidden:
                own = next(iter(owned.factory.import_flags), MemorySource.UNDEFINED)
                kinds[name] = kinds.get(name, own) | MemorySource.MALLOC
            imported = producer is not None and producer.type in _IMPORTS
            foreign = imported or lent or name in kinds
            self._placed[name] = PlacedTensor(
                handle=owned.factory.create_handle(tensor.info, managed=not foreign),
                factory=owned.factory,
                manager=owned.manager,
                managed=not foreign,
                alignment_bytes=alignments[name],
                lent=lent,
            )
        self._share(kinds)

    def _fallback_kinds(self) -> dict[str, MemorySource]:
        """Return, by tensor that FALLBACK_IMPORT layers read, the kinds of memory that they need."""
        kinds: dict[str, MemorySource] = {}
        for layer in self._graph.layers:
            descriptor = layer.descriptor
            if isinstance(descriptor, FallbackImportDescriptor):
                source = layer.present_inputs[0]
                producer = self._graph.producer(source)
                if producer is not None and producer.type in _IMPORTS:
                    raise NetworkLoadError(
                        f"layer '{layer.name}' imports tensor '{source}', which layer '{producer.name}' imported"
                    )
                kinds[source] = kinds.get(source, MemorySource.UNDEFINED) | MemorySource(descriptor.memory)
        return kinds

    def _share(self, kinds: Mapping[str, MemorySource]) -> None:
        """Make the fallback tensors, each with all its handles; imports by MEM_IMPORT are repeated in each run."""
        for root, needed in kinds.items():
            names = [root, *(x.outputs[0] for x in self._graph.consumers(root) if x.type is LayerType.FALLBACK_IMPORT)]
            ends = [
                FallbackEnd(
                    handle=self._placed[name].handle, factory=self._placed[name].factory, backend=self.user(name)
                )
                for name in names
            ]
            tensor = FallbackTensor(self._graph.info(root), needed, ends)
            for name in names:
                self._placed[name] = replace(self._placed[name], fallback=tensor)
            self.fallbacks[root] = tensor

    def user(self, name: str) -> str:
        """Return the backend that uses a tensor's handle: the writer's, or for inputs, the first reader's."""
        producer = self._graph.producer(name)
        readers = self._graph.consumers(name)
        layer = producer or (readers[0] if readers else None)
        return APPLICATION if layer is None else self._assignment[layer.name].backend

    def lives(self) -> dict[str, Lifetime]:
        """Return the lifetimes of the tensors in fallback memory."""
        waits = Waits(self._graph, self._asynchronous_unit)
        groups: dict[str, list[str]] = {root: [] for root in self.fallbacks}
        for name, root in self.roots().items():
            if root in groups:
                groups[root].append(name)
        return {root: waits.life(names) for root, names in groups.items()}

    def _alignments(self, optimized: OptimizedNetwork) -> dict[str, int]:
        """Return, by tensor, the required alignment of memory imported from outside, along chains of imports."""
        by_factory = {
            factory: self._members.factory(factory).factory.memory_alignment(MemorySource.MALLOC)
            for factory in set(optimized.factories.values())
        }
        found = {name: by_factory[factory] for name, factory in optimized.factories.items()}
        for layer in reversed(self._graph.layers):
            source = layer.inputs[0] if layer.type is LayerType.MEM_IMPORT else None
            if source in found:
                found[source] = max(found[source], found.get(layer.outputs[0], 1))
        return found

    def __getitem__(self, name: str) -> PlacedTensor:
        return self._placed[name]

    def mapped(self, name: str) -> TensorHandle:
        """Return the handle of a tensor that the runtime maps; NetworkLoadError if its factory does not support that.

        The optimizer connects only what the runtime can access; a network from elsewhere may not.
        """
        placed = self._placed[name]
        if not placed.factory.supports_map_unmap:
            raise NetworkLoadError(f"tensor '{name}' has handles of '{placed.factory.id}', which cannot be mapped")
        return placed.handle

    def last_uses(self) -> dict[str, int]:
        """Return, by tensor, the index of the last layer that needs its bytes; for outputs, the number of layers.

        An imported tensor uses the memory of its source, which is therefore needed for as long.
        """
        layers = self._graph.layers
        last = dict.fromkeys(self._placed, -1)
        for index, layer in enumerate(layers):
            last |= dict.fromkeys((name for name in (*layer.present_inputs, *layer.outputs) if name in last), index)
        last |= dict.fromkeys((info.name for info in self._graph.results if info.name in last), len(layers))
        for layer in reversed(layers):
            source = layer.inputs[0] if layer.type is LayerType.MEM_IMPORT else None
            if source is not None and source in last:
                last[source] = max(last[source], last[layer.outputs[0]])
        return last

    def walk(self) -> None:
        """Notify the memory managers of the beginning and end of each tensor's lifetime."""
        layers = self._graph.layers
        last = self.last_uses() | dict.fromkeys(self._kept(), len(layers))
        ends: list[list[TensorHandle]] = [[] for _ in range(len(layers) + 1)]
        for name, placed in self._placed.items():
            if placed.managed:
                ends[last[name]].append(placed.handle)
        self._manage(info.name for info in self._graph.sources)
        for index, layer in enumerate(layers):
            self._manage(layer.outputs)
            for handle in ends[index]:
                handle.allocate()
        for handle in ends[-1]:  # of outputs, of kept tensors, and of unread inputs
            handle.allocate()

    def _manage(self, names: Iterable[str]) -> None:
        for name in names:
            if self._placed[name].managed:
                self._placed[name].handle.manage()

    def _kept(self) -> set[str]:
        """Return the tensors whose bytes must not be reused in a run, since work on them may still be going on.

        An asynchronous backend keeps the order of its own work, so its tensors may share bytes with each other, but not
        with tensors that another unit writes to memory of the same manager.
        """
        roots = self.roots()
        writers: dict[int, set[Unit | None]] = {}
        touched: dict[str, set[Unit | None]] = {}
        for layer in self._graph.layers:
            unit = self._asynchronous_unit(layer)
            for name in (*layer.present_inputs, *layer.outputs):
                if unit is not None and name in roots:
                    touched.setdefault(roots[name], set()).add(unit)
            for name in layer.outputs:
                if self._placed[name].managed:
                    writers.setdefault(id(self._placed[name].manager), set()).add(unit)
        return {
            name
            for name, units in touched.items()
            if len(units | writers.get(id(self._placed[name].manager), set())) > 1
        }

    def roots(self) -> dict[str, str]:
        """Return, by tensor, the tensor whose memory it uses: itself, or the one that it is imported from."""
        roots = {name: name for name in self._placed}
        for layer in self._graph.layers:
            source = layer.inputs[0] if layer.type in _IMPORTS else None
            if source is not None and source in roots:
                roots[layer.outputs[0]] = roots[source]
        return roots

    def _asynchronous_unit(self, layer: Layer) -> Unit | None:
        """Return the unit that runs a layer if the layer may still be running when the next begins; otherwise None."""
        if layer.type in FRAMEWORK_LAYERS:
            return None
        own = self._assignment[layer.name]
        return (own.backend, own.device) if self._members.member(own.backend).asynchronous else None

    def foreign_inputs(self, layer: Layer) -> tuple[TensorHandle, ...]:
        """Return the handles of inputs that another unit may still be writing when the layer begins."""
        own = self._asynchronous_unit(layer)
        found = []
        for name in dict.fromkeys(layer.present_inputs):
            producer = self._graph.producer(name)
            writer = None if producer is None else self._asynchronous_unit(producer)
            if writer is not None and writer != own:
                found.append(self._placed[name].handle)
        return tuple(found)

    def unfinished_readers(self, tensor: str) -> tuple[TensorHandle, ...]:
        """Return handles that become ready when the asynchronous readers of a tensor have finished."""
        return tuple(
            self._placed[name].handle
            for reader in self._graph.consumers(tensor)
            if self._asynchronous_unit(reader) is not None
            for name in reader.outputs
        )
