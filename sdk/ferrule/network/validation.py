# SPDX-License-Identifier: Apache-2.0
"""Checking that every layer is one that its kernel computes."""

from __future__ import annotations

from ferrule.errors import ModelError, place
from ferrule.graph import Graph, Layer
from ferrule.network.execution import operands_of, operator_of


def check_shapes(graph: Graph, layer: Layer) -> None:
    """Compare the shapes of a layer's outputs with those that follow from its inputs.

    Raises:
        ModelError: they differ, or the descriptor is not this operator's.
        UnsupportedError: the operator is unknown, or its inputs do not fit.
    """
    operator = operator_of(layer.type)
    if type(layer.descriptor) is not operator.descriptor:
        raise ModelError(
            f"its descriptor is a {type(layer.descriptor).__name__}, expected {operator.descriptor.__name__}"
        )
    shapes = operator.infer(layer.descriptor, graph.input_infos(layer))
    outputs = graph.output_infos(layer)
    if len(shapes) != len(outputs):
        raise ModelError(f"it has {len(outputs)} outputs, expected {len(shapes)}")
    for info, shape in zip(outputs, shapes, strict=True):
        if info.shape != shape:
            raise ModelError(f"output '{info.name}' has shape {list(info.shape)}, expected {list(shape)}")


def check_layer(graph: Graph, layer: Layer) -> None:
    """Check shapes, types, quantisation and parameters of a layer; the error names it."""
    with place(f"layer '{layer.name}' {layer.type}"):
        check_shapes(graph, layer)
        operator_of(layer.type).check(layer.descriptor, operands_of(graph, layer))
