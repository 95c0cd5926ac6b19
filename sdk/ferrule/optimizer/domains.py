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
from ferrule.operators.table import unary_layer
from ferrule.operators.transfer import MemCopyDescriptor
from ferrule.optimizer.candidate import Candidate
from ferrule.optimizer.decisions import Decisions
from ferrule.optimizer.optimized import Assignment
from ferrule.optimizer.options import OptimizerOptions

_CORE = "cpu"


def add_memory_copies(decisions: Decisions, candidates: Iterable[Candidate], options: OptimizerOptions) -> None:
    """Insert a MEM_COPY layer for each tensor and memory that needs one.

    A copy is named after the first connection it serves: "[ writer (output) -> reader (input) ]".
    """
    shared = [each for each in options.memories if each.kind is MemoryKind.RAM and each.reached_by(_CORE)]
    apart: set[Assignment] = set()
    reach: dict[Assignment, frozenset[str]] = {}
    for candidate in candidates:
        target = candidate.backend.firmware_target()
        if not isinstance(target, DeviceTarget):
            continue
        for device in candidate.devices:
            if target.driver(device).memory_bytes:
                apart.add(Assignment.of(device))
            else:
                names = frozenset(each.name for each in shared if each.reached_by(device.name, device.regions))
                reach |= {Assignment.of(device): names} if names else {}
    _add_core_copies(decisions, reach)
    _add_device_copies(decisions, apart)


def connection(graph: Graph, tensor: str, reader: Layer) -> str:
    """Return the name of what is inserted between the writer of a tensor and a reader."""
    return f"[ {_source(graph, tensor)} -> {reader.name} ({reader.inputs.index(tensor)}) ]"


def _source(graph: Graph, tensor: str) -> str:
    writer = graph.producer(tensor)
    return f"{tensor} (0)" if writer is None else f"{writer.name} ({writer.outputs.index(tensor)})"


def _add_core_copies(decisions: Decisions, reach: Mapping[Assignment, frozenset[str]]) -> None:
    """Insert a copy, made by the core, for each tensor whose writer and readers reach no memory in common.

    `reach` has, by device that reads and writes the board's memories itself, those that it shares with the core. A
    device that shares none is left out, as each is if no board is chosen: the code generator refuses it. Readers share
    a copy as long as there is a memory that all of them reach.
    """
    copies, graph, assignment = _Copies(decisions), decisions.graph, decisions.assignment
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
            copies.serve(tensor, tensor, assignment[layers[0].name], layers)
    copies.finish()


def _add_device_copies(decisions: Decisions, apart: set[Assignment]) -> None:
    """Insert a copy for each tensor and memory of a device that needs one, assigned to that device.

    `apart` are the devices with memory of their own. An output of the graph keeps its name in the core's memory.
    """
    graph, assignment, copies = decisions.graph, decisions.assignment, _Copies(decisions)
    outputs: dict[str, int] = {}
    for index, info in enumerate(graph.results):
        outputs.setdefault(info.name, index)

    def memory(layer: Layer) -> Assignment | None:
        """Return the device whose memory a layer uses; None for the core's memory."""
        return assignment[layer.name] if assignment[layer.name] in apart else None

    def home(tensor: str) -> Assignment | None:
        """Return the device whose memory holds a tensor; None for the core's memory."""
        writer = graph.producer(tensor)
        own = None if writer is None else memory(writer)
        if writer is not None and own is not None and writer.type is LayerType.MEM_COPY:
            return None if home(writer.present_inputs[0]) == own else own
        return own

    for tensor in dict.fromkeys((*(name for layer in graph.layers for name in layer.present_inputs), *outputs)):
        place = home(tensor)
        served: dict[Assignment | None, list[Layer]] = {}
        for reader in () if graph.tensor(tensor).is_constant else graph.consumers(tensor):
            if memory(reader) != place and not (reader.type is LayerType.MEM_COPY and place is None):
                served.setdefault(memory(reader), []).append(reader)
        source = tensor
        if place is not None and (served or tensor in outputs):
            first = next(iter(served.get(None) or next(iter(served.values()), [])), None)
            source = copies.out(tensor, place, first, outputs.get(tensor))
        for target, layers in served.items():
            if target is None:
                copies.editor.redirect({tensor: source}, [layer.name for layer in layers])
            else:
                copies.serve(tensor, source, target, layers)
    copies.finish()


class _Copies:
    """Inserts copies into a graph."""

    def __init__(self, decisions: Decisions) -> None:
        self._decisions = decisions
        self.editor = GraphEditor(decisions.graph)
        self._last: dict[str, str] = {}
        """By layer: the last of the copies inserted after it."""

    def serve(self, tensor: str, source: str, device: Assignment, readers: list[Layer]) -> None:
        """Let readers of a tensor read a copy of `source` that a device makes."""
        label = connection(self._decisions.graph, tensor, readers[0])
        copied = self._copy(source, device, label, before=readers[0].name)
        self.editor.redirect({tensor: copied}, [reader.name for reader in readers])

    def out(self, tensor: str, home: Assignment, reader: Layer | None, index: int | None) -> str:
        """Copy a tensor from a device's memory to the core's memory, and return its name there.

        The copy is for a reader, or else for output `index` of the graph.
        """
        graph, assignment = self._decisions.graph, self._decisions.assignment
        writer = graph.producer(tensor)
        assert writer is not None  # a tensor without a writer is in the core's memory
        if reader is None:
            label = f"[ {_source(graph, tensor)} -> output {index} ]"
        else:
            label = connection(graph, tensor, reader)
        if index is None:
            return self._copy(tensor, home, label, behind=writer.name)
        inside = self.editor.fresh(f"{tensor} in {home.device}")
        self.editor.set_tensor(renamed(self.editor.tensor(tensor), inside))
        at_home = [layer.name for layer in self.editor.consumers(tensor) if assignment[layer.name] == home]
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
        layer = unary_layer(name, MemCopyDescriptor(), source, output or name)
        if behind is None:
            self.editor.add_layer(layer, before=before)
        else:
            self.editor.add_layer(layer, behind=self._last.get(behind, behind))
            self._last[behind] = name
        self._decisions.assignment[name] = device
        return name

    def finish(self) -> None:
        """Continue with the graph that has the copies."""
        self._decisions.replace_graph(self.editor.finish())
