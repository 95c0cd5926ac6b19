# SPDX-License-Identifier: Apache-2.0
"""Wraps a float16 layer in conversions for a backend that supports its operator in float32 only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ferrule._frozen import frozen
from ferrule.backends.device import Device
from ferrule.graph import DataType, Graph, GraphEditor, Layer, assemble
from ferrule.network.execution import operands_of
from ferrule.operators.table import unary_layer
from ferrule.optimizer.candidate import Bench, Candidate
from ferrule.optimizer.conversion import NARROWING, WIDENING, converted
from ferrule.optimizer.decisions import Decisions


@frozen
class Wrapping:
    """A layer in float32 between conversions, and the devices of the conversions."""

    part: Graph
    """A graph of only the layer and its conversions."""
    devices: Mapping[str, Device]
    """By name of conversion layer."""


def wrap(graph: Graph, layer: Layer, editor: GraphEditor, bench: Bench, candidate: Candidate) -> Wrapping | None:
    """Return a float16 layer wrapped so that a backend can run it in float32; None if that is not possible.

    Each conversion goes to the same backend or, if that does not support it, to the first preferred one that does.
    """
    operands = operands_of(graph, layer)
    if all(info is None or info.dtype is not DataType.FLOAT16 for info in (*operands.inputs, *operands.outputs)):
        return None
    part = _between_conversions(graph, layer, editor)
    if candidate.refusal(part, part.layer(layer.name), bench.device(layer.name, candidate)):
        return None
    devices = {}
    for conversion in part.layers:
        if conversion.name == layer.name:
            continue
        takers = (candidate, *bench.preferred)
        taker = next((c for c in takers if not c.refusal(part, conversion, bench.device(layer.name, c))), None)
        if taker is None:
            return None
        devices[conversion.name] = bench.device(layer.name, taker)
    return Wrapping(part=part, devices=devices)


def apply_wrappings(decisions: Decisions, editor: GraphEditor, wrappings: Mapping[str, Wrapping]) -> None:
    """Replace layers by their wrapped forms and assign the conversions to their devices."""
    known = {tensor.info.name for tensor in decisions.graph.tensors}
    for layer, wrapping in wrappings.items():
        for tensor in wrapping.part.tensors:
            if tensor.info.name not in known:
                editor.set_tensor(tensor)
        editor.replace_layers([layer], wrapping.part.layers)
    decisions.replace_graph(editor.finish())
    for wrapping in wrappings.values():
        for name, device in wrapping.devices.items():
            decisions.give(name, device)


def _between_conversions(graph: Graph, layer: Layer, editor: GraphEditor) -> Graph:
    tensors = {name: graph.tensor(name) for name in (*layer.present_inputs, *layer.outputs)}
    twins: dict[str, str] = {}
    before, after = [], []
    for index, name in enumerate(layer.inputs):
        if name is None or name in twins or tensors[name].info.dtype is not DataType.FLOAT16:
            continue
        twin = twins[name] = editor.fresh(f"convert_fp16_to_fp32-{index}-{layer.name}")
        tensors[twin] = converted(tensors[name], twin, DataType.FLOAT32)
        if not tensors[name].is_constant:
            before.append(unary_layer(twin, WIDENING, name, twin))
    for index, name in enumerate(layer.outputs):
        if tensors[name].info.dtype is DataType.FLOAT16:
            twin = twins[name] = editor.fresh(f"convert_fp32_to_fp16-{index}-{layer.name}")
            tensors[twin] = converted(tensors[name], twin, DataType.FLOAT32)
            after.append(unary_layer(twin, NARROWING, twin, name))
    inner = replace(
        layer,
        inputs=tuple(None if name is None else twins.get(name, name) for name in layer.inputs),
        outputs=tuple(twins.get(name, name) for name in layer.outputs),
    )
    sources = [name for name in dict.fromkeys(layer.present_inputs) if not tensors[name].is_constant]
    return assemble(layer.name, inputs=sources, outputs=layer.outputs, layers=[*before, inner, *after], tensors=tensors)
