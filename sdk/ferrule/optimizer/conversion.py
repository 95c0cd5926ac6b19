# SPDX-License-Identifier: Apache-2.0
"""Conversions between float16 and float32."""

from __future__ import annotations

from dataclasses import replace

from ferrule.graph import DataType, Graph, GraphEditor, LayerType, Tensor, constant
from ferrule.graph.real_values import overflowing_floats
from ferrule.operators.elementwise.convert import ConvertFp16ToFp32Descriptor, ConvertFp32ToFp16Descriptor

WIDENING = ConvertFp16ToFp32Descriptor()
NARROWING = ConvertFp32ToFp16Descriptor()


def converted(tensor: Tensor, name: str, dtype: DataType) -> Tensor:
    """Return a float tensor converted to another float type and renamed; the data of a constant is converted too."""
    info = replace(tensor.info, name=name, dtype=dtype)
    if tensor.data is None:
        return Tensor(info)
    with overflowing_floats():
        return constant(info, tensor.data.astype(dtype.numpy, order="C"))


def remove_inverse_conversions(graph: Graph) -> Graph:
    """Return the graph without the conversion pairs from float16 to float32 and back, which change no bit.

    The opposite pair, from float32 to float16 and back, rounds, so it stays.
    """
    same: dict[str, str] = {}
    for layer in graph.layers:
        if layer.type is not LayerType.CONVERT_FP32_TO_FP16:
            continue
        producer = graph.producer(layer.present_inputs[0])
        if producer is not None and producer.type is LayerType.CONVERT_FP16_TO_FP32:
            source = producer.present_inputs[0]
            same[layer.outputs[0]] = same.get(source, source)
    if not same:
        return graph
    editor = GraphEditor(graph)
    editor.redirect(same)
    for layer in graph.layers:
        if layer.outputs[0] in same and not editor.is_output(layer.outputs[0]):
            editor.remove_layer(layer.name)
    for layer in editor.layers():
        read = any(editor.is_output(name) or editor.consumers(name) for name in layer.outputs)
        if layer.type is LayerType.CONVERT_FP16_TO_FP32 and not read:
            editor.remove_layer(layer.name)
    return editor.finish()
