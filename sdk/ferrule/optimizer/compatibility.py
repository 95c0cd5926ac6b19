# SPDX-License-Identifier: Apache-2.0
"""Inserts copy and import layers where data passes from one backend to another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ferrule.backends.tensor_handle import FactoryId
from ferrule.graph import Descriptor, Graph, GraphEditor, Layer, LayerType, renamed
from ferrule.operators.transfer import MemCopyDescriptor, MemImportDescriptor
from ferrule.optimizer.decisions import Decisions
from ferrule.optimizer.optimized import Assignment, EdgeStrategy
from ferrule.optimizer.options import OptimizerOptions
from ferrule.optimizer.strategy import FactoryTable, Handles, can_import

_TYPES: Mapping[EdgeStrategy, tuple[LayerType, Descriptor]] = {
    EdgeStrategy.COPY: (LayerType.MEM_COPY, MemCopyDescriptor()),
    EdgeStrategy.EXPORT: (LayerType.MEM_IMPORT, MemImportDescriptor()),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Crossing:
    """A tensor that layers of one backend read through a copy or an import; they share the layer that performs it."""

    tensor: str
    strategy: EdgeStrategy
    owner: Assignment
    """The assignment of the first reader."""
    readers: tuple[str, ...]
    label: str


def add_compatibility_layers(
    decisions: Decisions, handles: Handles, table: FactoryTable, options: OptimizerOptions
) -> Handles:
    """Insert MEM_COPY and MEM_IMPORT layers, owned by the reader's backend; return the handles with theirs added.

    Each new layer is named after the first connection it serves: "[ writer (output) -> reader (input) ]". In the
    handles returned, every connection is direct.
    """
    graph = decisions.graph
    editor = GraphEditor(graph)
    factories = dict(handles.factories)
    edges = dict(handles.edges)
    added: dict[str, Layer] = {}
    for crossing in _crossings(graph, decisions.assignment, handles):
        name = editor.fresh(crossing.label)
        type_, descriptor = _TYPES[crossing.strategy]
        added[name] = Layer(name=name, type=type_, descriptor=descriptor, inputs=(crossing.tensor,), outputs=(name,))
        editor.set_tensor(renamed(editor.tensor(crossing.tensor), name))
        editor.redirect({crossing.tensor: name}, crossing.readers)
        factories[name] = _factory(crossing, factories[crossing.tensor], table, options)
        edges[crossing.tensor, name] = EdgeStrategy.DIRECT
        for reader in crossing.readers:
            del edges[crossing.tensor, reader]
            edges[name, reader] = EdgeStrategy.DIRECT
        decisions.assignment[name] = crossing.owner
    if added:
        for layer in editor.layers():
            for source in layer.present_inputs:
                if source in added:
                    editor.add_layer(added.pop(source), before=layer.name)
        decisions.replace_graph(editor.finish())
    return Handles(factories=factories, edges=edges)


def _crossings(graph: Graph, assignment: Mapping[str, Assignment], handles: Handles) -> Iterator[_Crossing]:
    groups: dict[tuple[str, str, EdgeStrategy], list[str]] = {}
    for (tensor, reader), strategy in handles.edges.items():
        if strategy is not EdgeStrategy.DIRECT:
            groups.setdefault((tensor, assignment[reader].backend, strategy), []).append(reader)
    for (tensor, _, strategy), readers in groups.items():
        first = graph.layer(readers[0])
        producer = graph.producer(tensor)
        source = f"{tensor} (0)" if producer is None else f"{producer.name} ({producer.outputs.index(tensor)})"
        yield _Crossing(
            tensor=tensor,
            strategy=strategy,
            owner=assignment[first.name],
            readers=tuple(readers),
            label=f"[ {source} -> {first.name} ({first.inputs.index(tensor)}) ]",
        )


def _factory(
    crossing: _Crossing, source: FactoryId | None, table: FactoryTable, options: OptimizerOptions
) -> FactoryId | None:
    """Return the reader's first factory that can do the copy or the import; None for plain memory."""
    writer = None if source is None else table.get(source)
    for factory in table.preferred(crossing.owner.backend):
        if crossing.strategy is EdgeStrategy.COPY and factory.supports_map_unmap:
            return factory.id
        if crossing.strategy is EdgeStrategy.EXPORT and writer is not None and can_import(writer, factory, options):
            return factory.id
    return None
