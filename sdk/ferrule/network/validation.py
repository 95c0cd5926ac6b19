# SPDX-License-Identifier: Apache-2.0
"""Checks that the kernels can compute a layer."""

from __future__ import annotations

from collections.abc import Iterable

from ferrule.errors import FerruleError, ModelError, place, together
from ferrule.graph import Graph, Layer
from ferrule.operators.interpreter import operator_of


def check_shapes(graph: Graph, layer: Layer) -> None:
    """Compare the shapes of a layer's outputs with the shapes inferred from its inputs.

    Raises:
        ModelError: the shapes differ, or the descriptor is not of the operator's type.
        UnsupportedError: the operator is unknown, or it does not support the inputs.
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


def check_kernel(graph: Graph, layer: Layer) -> None:
    """Check the shapes, types, quantisation, parameters and constants of a layer; raises like `check_shapes`."""
    check_shapes(graph, layer)
    operator_of(layer.type).accept_layer(graph, layer)


def check_layer(graph: Graph, layer: Layer) -> None:
    """Check a layer as `check_kernel` does; the error names the layer."""
    with place(f"layer '{layer.name}' {layer.type}", str(layer.type)):
        check_kernel(graph, layer)


def check_layers(graph: Graph, layers: Iterable[Layer]) -> None:
    """Check the given layers of a graph; the error names every layer that cannot be computed, and the reason.

    Raises:
        ModelError, UnsupportedError: as for `check_kernel`.
    """
    problems = []
    for layer in layers:
        try:
            check_layer(graph, layer)
        except FerruleError as error:
            problems.append(error)
    if problems:
        raise together(problems, "layers")
