# SPDX-License-Identifier: Apache-2.0
"""Removes layers that change nothing, that no layer reads, or that repeat another layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ferrule.graph import Graph, GraphEditor, Layer, LayerType
from ferrule.operators.join import ConcatenationDescriptor, SplitDescriptor
from ferrule.operators.pad import PadDescriptor, PadV2Descriptor
from ferrule.operators.transpose import TransposeDescriptor
from ferrule.optimizer.simplify.acceptance import changes_nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveIdentities:
    """Remove layers whose output has the elements of the input in the same order, shape and quantisation."""

    name: str = "remove identities"

    def run(self, graph: Graph) -> Graph:
        """Return the graph without these layers."""
        editor = GraphEditor(graph)
        for layer in editor.layers():
            test = _IDENTITIES.get(layer.type)
            source = layer.inputs[0] if layer.inputs else None
            if test is None or source is None or len(layer.outputs) != 1:
                continue
            same = replace(editor.info(source), name="") == replace(editor.info(layer.outputs[0]), name="")
            if same and test(layer) and (layer.type is not LayerType.QUANTIZE or changes_nothing(editor, layer)):
                editor.bypass(layer, source)
        return editor.finish()


def _always(_: Layer) -> bool:
    return True


def _pads_nothing(layer: Layer) -> bool:
    descriptor = layer.descriptor
    return isinstance(descriptor, PadDescriptor | PadV2Descriptor) and not any((*descriptor.before, *descriptor.after))


def _in_order(layer: Layer) -> bool:
    descriptor = layer.descriptor
    return isinstance(descriptor, TransposeDescriptor) and descriptor.permutation == tuple(
        range(len(descriptor.permutation))
    )


def _one_part(layer: Layer) -> bool:
    descriptor = layer.descriptor
    if isinstance(descriptor, SplitDescriptor):
        return descriptor.splits == 1
    return isinstance(descriptor, ConcatenationDescriptor) and len(layer.inputs) == 1


_IDENTITIES: Mapping[LayerType, Callable[[Layer], bool]] = {
    LayerType.RESHAPE: _always,
    LayerType.SQUEEZE: _always,
    LayerType.EXPAND_DIMS: _always,
    LayerType.SLICE: _always,  # with the same shape, it begins at 0 and takes everything
    LayerType.QUANTIZE: _always,  # same type, scale and zero point
    LayerType.PAD: _pads_nothing,
    LayerType.PADV2: _pads_nothing,
    LayerType.TRANSPOSE: _in_order,
    LayerType.SPLIT: _one_part,
    LayerType.CONCATENATION: _one_part,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveDeadLayers:
    """Remove layers with no output that is read or is an output of the graph."""

    name: str = "remove dead layers"

    def run(self, graph: Graph) -> Graph:
        """Return the graph without these layers."""
        needed = {info.name for info in graph.results}
        alive = set()
        for layer in reversed(graph.layers):
            if needed & set(layer.outputs):
                alive.add(layer.name)
                needed |= set(layer.present_inputs)
        editor = GraphEditor(graph)
        for layer in graph.layers:
            if layer.name not in alive:
                editor.remove_layer(layer.name)
        return editor.finish()


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeTwins:
    """Merge layers that compute the same from the same tensors: the first replaces the others."""

    name: str = "merge twins"

    def run(self, graph: Graph) -> Graph:
        """Return the graph without the twins that have one output which is not an output of the graph."""
        editor = GraphEditor(graph)
        seen: dict[object, Layer] = {}
        same: dict[str, str] = {}
        for layer in graph.layers:
            if len(layer.outputs) != 1 or layer.type is LayerType.DEBUG:
                continue
            output = layer.outputs[0]
            inputs = tuple(None if name is None else same.get(name, name) for name in layer.inputs)
            key = (layer.type, layer.descriptor, layer.rounding, inputs, replace(graph.info(output), name=""))
            first = seen.setdefault(key, layer)
            if first is not layer and not editor.is_output(output):
                same[output] = first.outputs[0]
                editor.remove_layer(layer.name)
        editor.rename(same)
        return editor.finish()
