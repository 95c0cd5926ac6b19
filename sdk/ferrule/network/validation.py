# SPDX-License-Identifier: Apache-2.0
"""Checks that the kernels can compute a layer."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ferrule.errors import FerruleError, ModelError, UnsupportedError, place, together
from ferrule.graph import Graph, Layer, LayerType, Tensor
from ferrule.network.execution import operands_of, operator_of

_WEIGHTED = frozenset(
    {LayerType.CONV_2D, LayerType.DEPTHWISE_CONV_2D, LayerType.FULLY_CONNECTED, LayerType.TRANSPOSE_CONV}
)


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
    """Check the shapes, types, quantisation, parameters and weights of a layer; raises like `check_shapes`."""
    check_shapes(graph, layer)
    operator_of(layer.type).accept(layer.descriptor, operands_of(graph, layer))
    if layer.type in _WEIGHTED and layer.inputs[1] is not None:
        _check_finite(graph.tensor(layer.inputs[1]))


def _check_finite(weights: Tensor) -> None:
    """Refuse infinities and NaN in constant weights: whether these reach padded pixels is up to each kernel."""
    if weights.data is None or not weights.info.dtype.is_float:
        return
    wrong = np.flatnonzero(~np.isfinite(weights.data))
    if wrong.size:
        raise UnsupportedError(
            f"weights '{weights.info.name}' have {wrong.size} infinities or NaN, the first at element {wrong[0]}; "
            "expected finite numbers"
        )


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
