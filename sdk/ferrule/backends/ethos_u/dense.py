# SPDX-License-Identifier: Apache-2.0
"""Fully connected layers as convolutions, which Vela 5.2 scales as TensorFlow Lite Micro scales both.

For FULLY_CONNECTED, Vela multiplies the scales of data and weights in float32, as TensorFlow Lite does in uint8; the
factor then differs in its last bits, and some results by 1. For CONV_2D it multiplies them in float64.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.graph import Graph, GraphEditor, Layer, LayerType, Tensor
from ferrule.operators.movement.reshape import ReshapeDescriptor
from ferrule.operators.weighted.conv2d import Conv2dDescriptor
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor


def with_convolutions(graph: Graph) -> Graph:
    """Return the graph with each fully connected layer as a convolution of one pixel, between two RESHAPE.

    A graph without such a layer is returned as it is. Layers whose weights are computed stay as they are.
    """
    found = [
        layer
        for layer in graph.layers
        if layer.type is LayerType.FULLY_CONNECTED and graph.tensor(layer.present_inputs[1]).is_constant
    ]
    if not found:
        return graph
    editor = GraphEditor(graph)
    kernels: dict[str, str] = {}
    for layer in found:
        name = layer.present_inputs[1]
        if name not in kernels:
            kernels[name] = _kernel(editor, name)
        editor.replace_layers([layer.name], _steps(editor, layer, kernels[name]))
    return editor.finish()


def _kernel(editor: GraphEditor, name: str) -> str:
    """Add weights as those of a convolution, and return their name."""
    weights = editor.tensor(name)
    assert weights.data is not None
    outputs, inputs = weights.info.shape
    info = replace(weights.info, name=editor.fresh(f"{name}_ohwi"), shape=(outputs, 1, 1, inputs))
    editor.set_tensor(Tensor(info, weights.data.reshape(info.shape)))
    return info.name


def _steps(editor: GraphEditor, layer: Layer, kernel: str) -> list[Layer]:
    """Return the layers in place of a fully connected one; the last one keeps its name and its output."""
    descriptor = layer.descriptor
    assert isinstance(descriptor, FullyConnectedDescriptor)
    source, output = layer.present_inputs[0], layer.outputs[0]
    outputs, _, _, depth = editor.info(kernel).shape
    data, result = editor.info(source), editor.info(output)
    columns = data.elements // depth
    image = replace(data, name=editor.fresh(f"{layer.name}_image"), shape=(1, 1, columns, depth))
    pixels = replace(result, name=editor.fresh(f"{layer.name}_pixels"), shape=(1, 1, columns, outputs))
    for info in (image, pixels):
        editor.set_tensor(Tensor(info))
    reshape = replace(layer, type=LayerType.RESHAPE, descriptor=ReshapeDescriptor(shape=image.shape), inputs=(source,))
    return [
        replace(reshape, name=editor.fresh(image.name), outputs=(image.name,)),
        replace(
            layer,
            name=editor.fresh(pixels.name),
            type=LayerType.CONV_2D,
            descriptor=Conv2dDescriptor(activation=descriptor.activation),
            inputs=(image.name, kernel, *layer.inputs[2:]),
            outputs=(pixels.name,),
        ),
        replace(reshape, descriptor=ReshapeDescriptor(shape=result.shape), inputs=(pixels.name,)),
    ]
