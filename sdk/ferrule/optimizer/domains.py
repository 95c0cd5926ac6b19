# SPDX-License-Identifier: Apache-2.0
"""Device memories in firmware: finds the tensors that must be copied to or from them and inserts the copy layers.

A device with its own memory reads and writes only that memory; everything else uses the core's memories. Data passes
between two such devices through the core's memory. A tensor is copied to each memory at most once. The code generator
places a tensor in a memory of the core that all of its users reach; only if there is none, the core copies it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ferrule.backends.firmware import DeviceTarget
from ferrule.backends.target import MemoryKind
from ferrule.graph import Graph, GraphEditor, Layer, LayerType, renamed
from ferrule.operators.transfer import MemCopyDescriptor
from ferrule.optimizer.candidate import Candidate
from ferrule.optimizer.decisions import Decisions
from ferrule.optimizer.optimized import Assignment, EdgeStrategy
from ferrule.optimizer.options import OptimizerOptions

_CORE = "cpu"
Edges = dict[tuple[str, str], EdgeStrategy]


def devices_with_memory(candidates: Iterable[Candidate]) -> frozenset[Assignment]:
    """Return the devices that have their own memory."""
    found = set()
    for candidate in candidates:
        target = candidate.backend.firmware_target()
        if isinstance(target, DeviceTarget):
            for device in candidate.devices:
                if target.driver(device).memory_bytes > 0:
                    found.add(Assignment(backend=candidate.id, device=device.name))
    return frozenset(found)


def reachable_memories(candidates: Iterable[Candidate], options: OptimizerOptions) -> dict[Assignment, frozenset[str]]:
    """Return, by device that reads and writes the board's memories itself, those that it shares with the core.

    A device that shares none is left out, as each is if no board is chosen: the code generator refuses it.
    """
    found = {}
    shared = [each for each in options.memories if each.kind is MemoryKind.RAM and each.reached_by(_CORE)]
    for candidate in candidates:
        target = candidate.backend.firmware_target()
        if isinstance(target, DeviceTarget):
            for device in candidate.devices:
                if not target.driver(device).memory_bytes:
                    names = frozenset(each.name for each in shared if each.reached_by(device.name, device.regions))
                    if names:
                        found[Assignment(backend=candidate.id, device=device.name)] = names
    return found


def add_core_copies(decisions: Decisions, reach: Mapping[Assignment, frozenset[str]]) -> None:
    """Insert a MEM_COPY layer, made by the core, for each tensor whose writer and readers reach no memory in common.

    Readers share a copy as long as there is a memory that all of them reach.
    """
    graph, assignment = decisions.graph, decisions.assignment
    editor = GraphEditor(graph)
    count = 0
    for tensor in [tensor.info.name for tensor in graph.tensors if not tensor.is_constant]:
        writer = graph.producer(tensor)
        own = None if writer is None else reach.get(assignment[writer.name])
        groups: list[tuple[frozenset[str] | None, list[Layer]]] = [(own, [])]
        for reader in graph.consumers(tensor):
            wanted = None if reader.type is LayerType.MEM_COPY else reach.get(assignment[reader.name])
            if wanted is None:
                continue  # the core reaches each of them
            for index, (memories, layers) in enumerate(groups):
                common = wanted if memories is None else memories & wanted
                if common:
                    groups[index] = (common, [*layers, reader])
                    break
            else:
                groups.append((wanted, [reader]))
        for _, layers in groups[1:]:
            source = f"{tensor} (0)" if writer is None else f"{writer.name} ({writer.outputs.index(tensor)})"
            name = editor.fresh(f"[ {source} -> {layers[0].name} ({layers[0].inputs.index(tensor)}) ]")
            editor.set_tensor(renamed(editor.tensor(tensor), name))
            copy = Layer(
                name=name, type=LayerType.MEM_COPY, descriptor=MemCopyDescriptor(), inputs=(tensor,), outputs=(name,)
            )
            editor.add_layer(copy, before=layers[0].name)
            editor.redirect({tensor: name}, [layer.name for layer in layers])
            assignment[name] = assignment[layers[0].name]
            count += 1
    if count:
        decisions.replace_graph(editor.finish())


def select_edges(graph: Graph, assignment: Mapping[str, Assignment], apart: frozenset[Assignment]) -> Edges:
    """Return, for each non-constant tensor and each layer that reads it, whether the reader needs a copy."""
    edges: Edges = {}
    for layer in graph.layers:
        reader = _memory(assignment[layer.name], apart)
        for name in layer.present_inputs:
            if not graph.tensor(name).is_constant:
                home = _home(graph, name, assignment, apart)
                direct = home == reader or (layer.type is LayerType.MEM_COPY and home is None)
                edges[name, layer.name] = EdgeStrategy.DIRECT if direct else EdgeStrategy.COPY
    return edges


def add_copies(decisions: Decisions, edges: Edges, apart: frozenset[Assignment]) -> Edges:
    """Insert a MEM_COPY layer for each tensor and memory that needs one; return the edges, all of them direct.

    A copy is assigned to the device whose memory it reads or writes. It is named after the first connection it serves:
    "[ writer (output) -> reader (input) ]". An output of the graph keeps its name in the core's memory.
    """
    copies = _Copies(decisions, apart)
    graph = decisions.graph
    outputs: dict[str, int] = {}
    for index, info in enumerate(graph.results):
        outputs.setdefault(info.name, index)
    copied: dict[str, list[str]] = {}
    for (tensor, reader), how in edges.items():
        copied.setdefault(tensor, []).extend([reader] if how is EdgeStrategy.COPY else [])
    for name in dict.fromkeys((*copied, *outputs)):
        home = None if graph.tensor(name).is_constant else _home(graph, name, decisions.assignment, apart)
        copies.add(name, home, copied.get(name, []), index=outputs.get(name))
    if copies.count:
        decisions.replace_graph(copies.editor.finish())
    return select_edges(decisions.graph, decisions.assignment, apart)


class _Copies:
    """Inserts copies into a graph."""

    def __init__(self, decisions: Decisions, apart: frozenset[Assignment]) -> None:
        self._graph = decisions.graph
        self._assignment = decisions.assignment
        self._apart = apart
        self.editor = GraphEditor(decisions.graph)
        self.count = 0
        self._last: dict[str, str] = {}
        """By layer: the last of the copies inserted after it."""

    def add(self, tensor: str, home: Assignment | None, readers: list[str], index: int | None) -> None:
        """Copy a tensor to the given readers' memories and, if it is graph output `index`, to the core's memory."""
        served: dict[Assignment | None, list[str]] = {}
        for reader in readers:
            served.setdefault(_memory(self._assignment[reader], self._apart), []).append(reader)
        source = tensor
        if home is not None and (served or index is not None):
            source = self._copy_out(tensor, home, served, index)
        for memory, layers in served.items():
            copied = source
            if memory is not None:
                copied = self._copy(source, memory, self._label(tensor, layers[0]), before=layers[0])
            self.editor.redirect({tensor: copied}, layers)

    def _copy_out(
        self, tensor: str, home: Assignment, served: Mapping[Assignment | None, list[str]], index: int | None
    ) -> str:
        """Copy a tensor from a device's memory to the core's memory, and return its name there."""
        writer = self._graph.producer(tensor)
        assert writer is not None  # a tensor without a writer is in the core's memory
        first = next(iter((served.get(None) or next(iter(served.values()), [])) or [""]))
        label = self._label(tensor, first) if first else f"[ {self._source(tensor)} -> output {index} ]"
        if index is None:
            return self._copy(tensor, home, label, behind=writer.name)
        inside = self.editor.fresh(f"{tensor} in {home.device}")
        self.editor.set_tensor(renamed(self.editor.tensor(tensor), inside))
        at_home = [layer.name for layer in self.editor.consumers(tensor) if self._assignment[layer.name] == home]
        self.editor.redirect({tensor: inside}, at_home)
        current = self.editor.layer(writer.name)
        outputs = tuple(inside if name == tensor else name for name in current.outputs)
        self.editor.replace_layer(replace(current, outputs=outputs))
        self._copy(inside, home, label, output=tensor, behind=writer.name)
        return tensor

    def _copy(
        self,
        source: str,
        device: Assignment,
        label: str,
        *,
        output: str | None = None,
        before: str | None = None,
        behind: str | None = None,
    ) -> str:
        """Add a copy layer and return its name; its output has the same name unless `output` is given."""
        name = self.editor.fresh(label)
        if output is None:
            self.editor.set_tensor(renamed(self.editor.tensor(source), name))
        layer = Layer(
            name=name,
            type=LayerType.MEM_COPY,
            descriptor=MemCopyDescriptor(),
            inputs=(source,),
            outputs=(output or name,),
        )
        if behind is None:
            self.editor.add_layer(layer, before=before)
        else:
            self.editor.add_layer(layer, behind=self._last.get(behind, behind))
            self._last[behind] = name
        self._assignment[name] = device
        self.count += 1
        return name

    def _source(self, tensor: str) -> str:
        writer = self._graph.producer(tensor)
        return f"{tensor} (0)" if writer is None else f"{writer.name} ({writer.outputs.index(tensor)})"

    def _label(self, tensor: str, reader: str) -> str:
        position = self._graph.layer(reader).inputs.index(tensor)
        return f"[ {self._source(tensor)} -> {reader} ({position}) ]"


def _memory(given: Assignment, apart: frozenset[Assignment]) -> Assignment | None:
    """Return the device whose memory a layer uses; None for the core's memory."""
    return given if given in apart else None


def _home(
    graph: Graph, tensor: str, assignment: Mapping[str, Assignment], apart: frozenset[Assignment]
) -> Assignment | None:
    """Return the device whose memory holds a tensor; None for the core's memory."""
    writer = graph.producer(tensor)
    if writer is None:
        return None
    memory = _memory(assignment[writer.name], apart)
    if writer.type is LayerType.MEM_COPY and memory is not None:
        return None if _home(graph, writer.present_inputs[0], assignment, apart) == memory else memory
    return memory
