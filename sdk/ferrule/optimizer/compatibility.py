# SPDX-License-Identifier: Apache-2.0
"""Inserts copy, import and fallback import layers where data passes from one backend to another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ferrule._frozen import frozen
from ferrule.backends.device import BackendId
from ferrule.backends.tensor_handle import FactoryId
from ferrule.graph import Descriptor, Graph, GraphEditor, Layer, renamed
from ferrule.operators.table import unary_layer
from ferrule.operators.transfer import FallbackImportDescriptor, MemCopyDescriptor, MemImportDescriptor
from ferrule.optimizer.access import Access
from ferrule.optimizer.decisions import Decisions
from ferrule.optimizer.domains import connection
from ferrule.optimizer.optimized import Assignment, Crossing, EdgeStrategy
from ferrule.optimizer.strategy import Handles


@frozen
class _Passage:
    """A tensor that layers of one backend do not read directly; they share the layers inserted for that."""

    tensor: str
    source: BackendId | None
    """The backend of the layer that writes the tensor; None for an input of the network."""
    access: Access
    owner: Assignment
    """The assignment of the first reader."""
    readers: tuple[str, ...]
    label: str


def add_compatibility_layers(
    decisions: Decisions, handles: Handles
) -> tuple[dict[str, FactoryId | None], tuple[Crossing, ...]]:
    """Insert MEM_COPY, MEM_IMPORT and FALLBACK_IMPORT layers; return the factories of all tensors, and the crossings.

    Each new layer is assigned to the reader's backend and named after the first connection that it serves. A copy from
    or to fallback memory is between tensors in plain memory, which FALLBACK_IMPORT layers connect with the ends.
    """
    inserter = _Inserter(decisions=decisions, editor=GraphEditor(decisions.graph), factories=dict(handles.factories))
    for passage in _passages(decisions.graph, decisions.assignment, handles):
        inserter.insert(passage)
    return inserter.finish()


@dataclass(kw_only=True)
class _Inserter:
    decisions: Decisions
    editor: GraphEditor
    factories: dict[str, FactoryId | None]
    crossings: list[Crossing] = field(default_factory=list)
    views: dict[str, str] = field(default_factory=dict)
    """By tensor in fallback memory: the same bytes as a tensor in plain memory."""
    added: dict[str, Layer] = field(default_factory=dict)
    """By the layer's output, which has the layer's name."""

    def insert(self, passage: _Passage) -> None:
        """Insert the layers of one passage, and let its readers read the last one's output."""
        source, access = passage.tensor, passage.access
        if access.strategy is EdgeStrategy.COPY and access.memory:
            source = self.views.get(source) or self._view(passage)
        factory = None if access.target_memory else access.factory
        layer = name = self._add(passage, source, factory, _layer_of(passage, self.factories[source]))
        if access.target_memory:
            found = FallbackImportDescriptor(
                source_backend=passage.owner.backend,
                source_factory="",
                target_factory=access.factory or "",
                memory=access.target_memory.value,
                alignment_bytes=access.alignment_bytes,
            )
            name = self._add(passage, name, access.factory, found)
        self.editor.redirect({passage.tensor: name}, passage.readers)
        self.crossings.append(self._crossing(passage, layer))

    def finish(self) -> tuple[dict[str, FactoryId | None], tuple[Crossing, ...]]:
        """Place each new layer before the first layer that reads its output; return factories and crossings."""
        for layer in self.editor.layers() if self.added else ():
            for tensor in layer.present_inputs:
                self._place(tensor, layer.name)
        if self.crossings:
            self.decisions.replace_graph(self.editor.finish())
        self.crossings.sort(key=lambda crossing: self.decisions.graph.position(crossing.layer))
        return self.factories, tuple(self.crossings)

    def _place(self, tensor: str, before: str) -> None:
        layer = self.added.pop(tensor, None)
        if layer is not None:
            self.editor.add_layer(layer, before=before)
            self._place(layer.present_inputs[0], layer.name)

    def _view(self, passage: _Passage) -> str:
        found = _fallback_import(passage, self.factories[passage.tensor], None)
        name = self.views[passage.tensor] = self._add(passage, passage.tensor, None, found)
        return name

    def _add(self, passage: _Passage, source: str, factory: FactoryId | None, descriptor: Descriptor) -> str:
        name = self.editor.fresh(passage.label)
        self.added[name] = unary_layer(name, descriptor, source, name)
        self.editor.set_tensor(renamed(self.editor.tensor(passage.tensor), name))
        self.factories[name] = factory
        self.decisions.assignment[name] = passage.owner
        return name

    def _crossing(self, passage: _Passage, layer: str) -> Crossing:
        access = passage.access
        return Crossing(
            layer=layer,
            tensor=passage.tensor,
            strategy=access.strategy,
            reason=access.reason,
            size_bytes=self.decisions.graph.info(passage.tensor).size_bytes,
            alignment_bytes=access.alignment_bytes,
            memory=access.memory | access.target_memory,
            source_backend=passage.source,
            source_factory=self.factories[passage.tensor],
            target_backend=passage.owner.backend,
            target_factory=access.factory,
        )


def _passages(graph: Graph, assignment: Mapping[str, Assignment], handles: Handles) -> Iterator[_Passage]:
    groups: dict[tuple[str, str, Access], list[str]] = {}
    for (tensor, reader), access in handles.accesses.items():
        if access.strategy is not EdgeStrategy.DIRECT:
            groups.setdefault((tensor, assignment[reader].backend, access), []).append(reader)
    for (tensor, _, access), readers in groups.items():
        first = graph.layer(readers[0])
        producer = graph.producer(tensor)
        yield _Passage(
            tensor=tensor,
            source=None if producer is None else assignment[producer.name].backend,
            access=access,
            owner=assignment[first.name],
            readers=tuple(readers),
            label=connection(graph, tensor, first),
        )


def _layer_of(passage: _Passage, source: FactoryId | None) -> Descriptor:
    match passage.access.strategy:
        case EdgeStrategy.EXPORT:
            return MemImportDescriptor()
        case EdgeStrategy.FALLBACK_IMPORT:
            return _fallback_import(passage, source, passage.access.factory)
        case _:
            return MemCopyDescriptor()


def _fallback_import(passage: _Passage, source: FactoryId | None, target: FactoryId | None) -> Descriptor:
    access = passage.access
    return FallbackImportDescriptor(
        source_backend=passage.source or "",
        source_factory=source or "",
        target_factory=target or "",
        memory=access.memory.value,
        alignment_bytes=access.alignment_bytes,
    )
