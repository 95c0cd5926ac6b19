# SPDX-License-Identifier: Apache-2.0
"""Joins neighbouring reshapes and transposes, and turns transposes that move no byte into reshapes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ferrule.graph import Graph, Layer, LayerType
from ferrule.operators.reshape import ReshapeDescriptor
from ferrule.operators.transpose import TransposeDescriptor
from ferrule.optimizer.simplify.draft import Draft

VIEWS = frozenset({LayerType.RESHAPE, LayerType.SQUEEZE, LayerType.EXPAND_DIMS})
"""Layers that give the same bytes another shape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinReshapes:
    """A reshape of a reshape is one reshape, of the first one's input."""

    name: str = "join reshapes"

    def run(self, graph: Graph) -> Graph:
        """Return the graph in which no view reads another view; views that nothing reads then are left behind."""
        draft = Draft(graph)
        for layer in draft.layers():
            before = _writer(draft, layer) if layer.type in VIEWS else None
            if before is not None and before.type in VIEWS:
                shape = draft.info(layer.outputs[0]).shape
                draft.replace_layer(
                    replace(
                        layer,
                        type=LayerType.RESHAPE,
                        descriptor=ReshapeDescriptor(shape=shape),
                        inputs=before.inputs[:1],
                    )
                )
        return draft.graph()


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinTransposes:
    """A transpose of a transpose is one transpose, of the first one's input."""

    name: str = "join transposes"

    def run(self, graph: Graph) -> Graph:
        """Return the graph in which no transpose reads another."""
        draft = Draft(graph)
        for layer in draft.layers():
            before = _writer(draft, layer) if layer.type is LayerType.TRANSPOSE else None
            if before is None or before.type is not LayerType.TRANSPOSE:
                continue
            first, second = _permutation(before), _permutation(layer)
            joined = TransposeDescriptor(permutation=tuple(first[axis] for axis in second))
            draft.replace_layer(replace(layer, descriptor=joined, inputs=before.inputs))
        return draft.graph()


@dataclass(frozen=True, slots=True, kw_only=True)
class TransposesAsReshapes:
    """A transpose that only moves axes of extent 1 leaves the bytes as they are."""

    name: str = "transposes as reshapes"

    def run(self, graph: Graph) -> Graph:
        """Return the graph with reshapes in their place."""
        draft = Draft(graph)
        for layer in draft.layers():
            if layer.type is not LayerType.TRANSPOSE or layer.inputs[0] is None:
                continue
            shape = draft.info(layer.inputs[0]).shape
            moved = [axis for axis in _permutation(layer) if shape[axis] != 1]
            if moved == sorted(moved) and list(_permutation(layer)) != sorted(_permutation(layer)):
                descriptor = ReshapeDescriptor(shape=draft.info(layer.outputs[0]).shape)
                draft.replace_layer(replace(layer, type=LayerType.RESHAPE, descriptor=descriptor))
        return draft.graph()


def _permutation(layer: Layer) -> tuple[int, ...]:
    assert isinstance(layer.descriptor, TransposeDescriptor)
    return layer.descriptor.permutation


def _writer(draft: Draft, layer: Layer) -> Layer | None:
    source = layer.inputs[0]
    return None if source is None else draft.writer(source)
