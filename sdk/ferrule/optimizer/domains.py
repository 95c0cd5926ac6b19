# SPDX-License-Identifier: Apache-2.0
"""Memories of devices in a firmware: which tensors have to be copied there and back, and the layers that do it.

A device with a memory of its own works there alone; everything else works on the core's. Two devices reach each other
through the core's memory. A tensor is copied to each memory at most once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from ferrule.backends.firmware import DeviceTarget
from ferrule.graph import Graph, Layer, LayerType, Tensor
from ferrule.operators.transfer import MemCopyDescriptor
from ferrule.optimizer.candidate import Candidate
from ferrule.optimizer.draft import Draft
from ferrule.optimizer.names import Names
from ferrule.optimizer.optimized import Assignment, EdgeStrategy
from ferrule.optimizer.rewriting import rebuilt, tensors_of, with_inputs

Edges = dict[tuple[str, str], EdgeStrategy]


def devices_with_memory(candidates: Iterable[Candidate]) -> frozenset[Assignment]:
    """Return the devices that have a memory of their own."""
    found = set()
    for candidate in candidates:
        target = candidate.backend.firmware_target()
        if isinstance(target, DeviceTarget):
            for device in candidate.devices:
                if target.driver(device).memory_bytes > 0:
                    found.add(Assignment(backend=candidate.id, device=device.name))
    return frozenset(found)


def select_edges(graph: Graph, assignment: Mapping[str, Assignment], apart: frozenset[Assignment]) -> Edges:
    """Return for each tensor that is no constant, and each layer that reads it, whether it must be copied."""
    edges: Edges = {}
    for layer in graph.layers:
        reader = _memory(assignment[layer.name], apart)
        for name in layer.present_inputs:
            if not graph.tensor(name).is_constant:
                home = _home(graph, name, assignment, apart)
                direct = home == reader or (layer.type is LayerType.MEM_COPY and home is None)
                edges[name, layer.name] = EdgeStrategy.DIRECT if direct else EdgeStrategy.COPY
    return edges


def add_copies(draft: Draft, edges: Edges, apart: frozenset[Assignment]) -> Edges:
    """Put in a MEM_COPY layer for each tensor and memory that needs one, and return the edges with theirs: all direct.

    A copy is assigned to the device whose memory it reads or writes, and called after the first connection that it
    serves, "[ writer (output) -> reader (input) ]". An output of the graph keeps its name in the core's memory.
    """
    copies = _Copies(draft, apart)
    graph = draft.graph
    outputs = [info.name for info in graph.outputs]
    for name in dict.fromkeys((*(tensor for tensor, _ in edges), *outputs)):
        readers = [reader for (tensor, reader), how in edges.items() if tensor == name and how is EdgeStrategy.COPY]
        home = None if graph.tensor(name).is_constant else _home(graph, name, draft.assignment, apart)
        copies.add(name, home, readers, index=outputs.index(name) if name in outputs else None)
    copies.finish()
    return select_edges(draft.graph, draft.assignment, apart)


@dataclass(slots=True)
class _Copies:
    """The copies that are being put in."""

    draft: Draft
    apart: frozenset[Assignment]
    names: Names = field(init=False)
    tensors: dict[str, Tensor] = field(init=False)
    layers: dict[str, Layer] = field(init=False)
    before: dict[str, list[Layer]] = field(default_factory=dict)
    """Copies by the layer that they stand before."""
    behind: dict[str, list[Layer]] = field(default_factory=dict)
    """Copies by the layer that they stand behind."""

    def __post_init__(self) -> None:
        self.names = Names(self.draft.graph)
        self.tensors = tensors_of(self.draft.graph)
        self.layers = {layer.name: layer for layer in self.draft.graph.layers}

    def add(self, tensor: str, home: Assignment | None, readers: list[str], index: int | None) -> None:
        """Copy a tensor to the memories of readers that don't reach it, and to the core's if it is output `index`."""
        served: dict[Assignment | None, list[str]] = {}
        for reader in readers:
            served.setdefault(_memory(self.draft.assignment[reader], self.apart), []).append(reader)
        source = tensor
        if home is not None and (served or index is not None):
            source = self._copy_out(tensor, home, served, index)
        for memory, layers in served.items():
            copied = source
            if memory is not None:
                copied = self._copy(source, memory, self._label(tensor, layers[0]))
                self.before.setdefault(layers[0], []).append(self.layers[copied])
            for name in layers:
                self.layers[name] = replace(self.layers[name], inputs=with_inputs(self.layers[name], {tensor: copied}))

    def finish(self) -> None:
        """Rebuild the graph."""
        if self.before or self.behind:
            self.draft.replace_graph(rebuilt(self.draft.graph, self._placed(), self.tensors))

    def _copy_out(
        self, tensor: str, home: Assignment, served: Mapping[Assignment | None, list[str]], index: int | None
    ) -> str:
        """Copy a tensor from a device's memory to the core's, and return its name there."""
        writer = self.draft.graph.producer(tensor)
        assert writer is not None  # what nothing writes lies in the core's memory
        first = next(iter((served.get(None) or next(iter(served.values()), [])) or [""]))
        label = self._label(tensor, first) if first else f"[ {self._source(tensor)} -> output {index} ]"
        if index is None:
            copied = self._copy(tensor, home, label)
            self.behind.setdefault(writer.name, []).append(self.layers[copied])
            return copied
        inside = self.names.take(f"{tensor} in {home.device}")
        self.tensors[inside] = _renamed(self.tensors[tensor], inside)
        at_home = [name for name in self.layers if self.draft.assignment[name] == home]
        for layer in map(self.layers.__getitem__, at_home):
            outputs = tuple(inside if out == tensor else out for out in layer.outputs)
            self.layers[layer.name] = replace(layer, inputs=with_inputs(layer, {tensor: inside}), outputs=outputs)
        copied = self._copy(inside, home, label, output=tensor)
        self.behind.setdefault(writer.name, []).append(self.layers[copied])
        return tensor

    def _copy(self, source: str, device: Assignment, label: str, output: str | None = None) -> str:
        """Add a copy layer and return its name, which is that of its output unless one is given."""
        name = self.names.take(label)
        target = output or name
        if output is None:
            self.tensors[target] = _renamed(self.tensors[source], target)
        self.layers[name] = Layer(
            name=name, type=LayerType.MEM_COPY, descriptor=MemCopyDescriptor(), inputs=(source,), outputs=(target,)
        )
        self.draft.assignment[name] = device
        return name

    def _source(self, tensor: str) -> str:
        writer = self.draft.graph.producer(tensor)
        return f"{tensor} (0)" if writer is None else f"{writer.name} ({writer.outputs.index(tensor)})"

    def _label(self, tensor: str, reader: str) -> str:
        position = self.draft.graph.layer(reader).inputs.index(tensor)
        return f"[ {self._source(tensor)} -> {reader} ({position}) ]"

    def _placed(self) -> Iterator[Layer]:
        for layer in self.draft.graph.layers:
            for copy in self.before.get(layer.name, ()):
                yield self.layers[copy.name]
            yield self.layers[layer.name]
            for copy in self.behind.get(layer.name, ()):
                yield self.layers[copy.name]


def _renamed(tensor: Tensor, name: str) -> Tensor:
    return replace(tensor, info=replace(tensor.info, name=name))


def _memory(given: Assignment, apart: frozenset[Assignment]) -> Assignment | None:
    """Return the device in whose memory a layer works; None for the core's."""
    return given if given in apart else None


def _home(
    graph: Graph, tensor: str, assignment: Mapping[str, Assignment], apart: frozenset[Assignment]
) -> Assignment | None:
    """Return the device in whose memory a tensor lies; None for the core's."""
    writer = graph.producer(tensor)
    if writer is None:
        return None
    memory = _memory(assignment[writer.name], apart)
    if writer.type is LayerType.MEM_COPY and memory is not None:
        return None if _home(graph, writer.present_inputs[0], assignment, apart) == memory else memory
    return memory
