# SPDX-License-Identifier: Apache-2.0
"""Layers added behind an operator's layer, where the file gives its output another type or shape."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from ferrule.errors import UnsupportedError
from ferrule.formats.tflite.operators import OPERATORS
from ferrule.graph import DataType, Descriptor, Graph, Layer, LayerType, TensorInfo
from ferrule.operators.cast import CastDescriptor
from ferrule.operators.quantize import DequantizeDescriptor
from ferrule.operators.reshape import ReshapeDescriptor
from ferrule.operators.table import OPERATORS as KERNELS

Added = tuple[Layer, Sequence[TensorInfo]]
"""A layer and its outputs."""


def with_follower(
    graph: Graph, layer: Layer, outputs: Sequence[TensorInfo], fresh: Callable[[TensorInfo], TensorInfo]
) -> list[Added]:
    """Return a layer whose inputs are in the graph, and the one behind it if it needs one; `fresh` names tensors.

    This is a RESHAPE to the shape that the file has, see `Row.any_shape`, a CAST to int64, see `Row.index_output`, or a
    DEQUANTIZE of int8 rows that an EMBEDDING_LOOKUP gives as float32.
    """
    if layer.type is LayerType.EMBEDDING_LOOKUP:
        return _real_rows(graph, layer, outputs, fresh)
    if OPERATORS[layer.type].index_output and outputs[0].dtype is DataType.INT64:
        narrow = fresh(replace(outputs[0], dtype=DataType.INT32))
        return _followed(layer, narrow, LayerType.CAST, CastDescriptor(), outputs[0])
    if not OPERATORS[layer.type].any_shape:
        return [(layer, outputs)]
    (output,) = outputs
    inputs = [None if name is None else graph.info(name) for name in layer.inputs]
    (shape,) = KERNELS[layer.type].infer(layer.descriptor, inputs)
    if shape == output.shape or math.prod(shape) != output.elements:
        return [(layer, outputs)]
    computed = fresh(replace(output, shape=shape))
    return _followed(layer, computed, LayerType.RESHAPE, ReshapeDescriptor(shape=output.shape), output)


def _real_rows(
    graph: Graph, layer: Layer, outputs: Sequence[TensorInfo], fresh: Callable[[TensorInfo], TensorInfo]
) -> list[Added]:
    (output,) = outputs
    rows = graph.info(layer.present_inputs[-1])
    if rows.dtype is not DataType.INT8 or output.dtype is not DataType.FLOAT32:
        return [(layer, outputs)]
    scale = rows.quantization
    if scale is None or scale.per_channel or scale.zero_point != 0:
        raise UnsupportedError(
            f"the rows '{rows.name}' become float32 and have {scale or 'no quantisation'}, expected one scale and "
            "zero point 0"
        )
    looked_up = fresh(replace(output, dtype=rows.dtype, quantization=scale))
    return _followed(layer, looked_up, LayerType.DEQUANTIZE, DequantizeDescriptor(), output)


def _followed(
    layer: Layer, computed: TensorInfo, type_: LayerType, descriptor: Descriptor, output: TensorInfo
) -> list[Added]:
    """Return a layer that computes another tensor, and the layer that makes the output of it."""
    last = Layer(
        name=f"{layer.name}_{type_.lower()}",
        type=type_,
        descriptor=descriptor,
        inputs=(computed.name,),
        outputs=layer.outputs,
    )
    return [(replace(layer, outputs=(computed.name,)), [computed]), (last, [output])]
