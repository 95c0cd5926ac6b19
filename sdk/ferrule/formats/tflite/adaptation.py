# SPDX-License-Identifier: Apache-2.0
"""Layers before and behind the layer of an operator, where a file gives its tensors other types or shapes.

Indices of int64 become int32, and the condition of a SELECT gets the shape with which it broadcasts in SELECT_V2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ferrule.errors import UnsupportedError
from ferrule.formats.tflite.operators import OPERATORS
from ferrule.formats.tflite.row import Row
from ferrule.graph import Array, DataType, Descriptor, Graph, Layer, LayerType, Shape, TensorInfo
from ferrule.graph.real_values import saturated
from ferrule.network import Network
from ferrule.operators.movement.reshape import ReshapeDescriptor
from ferrule.operators.table import OPERATORS as KERNELS

Added = tuple[Layer, Sequence[TensorInfo]]
"""A layer and its outputs."""


def added(
    type_: LayerType, inputs: Sequence[str], output: TensorInfo, name: str = "", descriptor: Descriptor | None = None
) -> Added:
    """Return a layer with one output, named as that by default; the descriptor has the operator's defaults."""
    layer = Layer(
        name or output.name,
        type_,
        KERNELS[type_].descriptor() if descriptor is None else descriptor,
        inputs=tuple(inputs),
        outputs=(output.name,),
    )
    return layer, [output]


SELECT = "SELECT"
"""The operator of the schema that is read as a SELECT_V2."""


def adapted(
    type_: str, row: Row, positions: Sequence[int], infos: Sequence[TensorInfo | None]
) -> list[TensorInfo | None]:
    """Return the inputs of the layer for those of an operator of the file, which have these positions there.

    Inputs behind those of the file stay as they are.

    Raises:
        UnsupportedError: the inputs of a SELECT have shapes for which it has no meaning.
    """
    found = list(infos)
    for place, (info, position) in enumerate(zip(infos, positions, strict=False)):
        if info is not None and position in row.indices:
            found[place] = narrow(info)
    if type_ == SELECT and len(found) == 3:
        condition, first, second = found
        if condition is not None and first is not None and second is not None:
            found[0] = replace(condition, shape=_condition_shape(condition, first, second))
    return found


def narrow(info: TensorInfo) -> TensorInfo:
    """Return the description of indices as layers have them: int64 becomes int32."""
    return replace(info, dtype=DataType.INT32) if info.dtype is DataType.INT64 else info


def adapted_data(data: Array, info: TensorInfo) -> Array:
    """Return the data of a constant as the layer's input has it; indices beyond int32 become the nearest ones."""
    if data.dtype == info.dtype.numpy:
        return data.reshape(info.shape)
    return saturated(data, info.dtype.numpy).reshape(info.shape)


def layers_before(
    network: Network, name: str, sources: Sequence[str | None], wanted: Sequence[TensorInfo | None]
) -> Iterator[tuple[int, TensorInfo, Added | None]]:
    """Yield, for each input of a layer that is not the file's tensor, its place, its description and how it is made.

    That is by a layer, or None if it is a constant, which then is added. Descriptions have the names of the tensors.
    """
    for place, (source, info) in enumerate(zip(sources, wanted, strict=True)):
        if source is None or info is None or network.info(source) == replace(info, name=source):
            continue
        made = replace(info, name=network.unique_name(f"{name}_input_{place}"))
        data = network.tensor(source).data
        if data is not None:
            network.add_constant(made, adapted_data(data, made))
            yield place, made, None
            continue
        type_, descriptor = LayerType.CAST, None
        if network.info(source).dtype is made.dtype:
            type_, descriptor = LayerType.RESHAPE, ReshapeDescriptor(shape=made.shape)
        layer_name = network.unique_name(f"{name}_{type_.lower()}")
        yield place, made, added(type_, [source], made, layer_name, descriptor)


def _condition_shape(condition: TensorInfo, first: TensorInfo, second: TensorInfo) -> Shape:
    """Return the shape with which the condition of a SELECT broadcasts.

    It has the shape of the data, is a scalar, or is a vector that selects along the first axis.
    """
    if first.shape != second.shape:
        raise UnsupportedError(
            f"tensors '{first.name}' and '{second.name}' have shapes {list(first.shape)} and {list(second.shape)}, "
            "expected the same shape (SELECT_V2 broadcasts)"
        )
    if condition.shape in {first.shape, ()}:
        return condition.shape
    if condition.shape != first.shape[:1]:
        raise UnsupportedError(
            f"the condition '{condition.name}' has shape {list(condition.shape)}, expected that of '{first.name}', "
            f"{list(first.shape)}, a scalar, or one element for each index of the first axis"
        )
    return (*condition.shape, *(1 for _ in first.shape[1:]))


def with_layer_behind(
    graph: Graph, layer: Layer, outputs: Sequence[TensorInfo], fresh: Callable[[TensorInfo], TensorInfo]
) -> list[Added]:
    """Return a layer whose inputs are in the graph, and the one behind it if it needs one; `fresh` names tensors.

    This is a RESHAPE to the shape that the file has, see `Row.any_shape`, a CAST to int64, see `Row.index_output`, or a
    DEQUANTIZE of int8 rows that an EMBEDDING_LOOKUP gives as float32.
    """
    if layer.type is LayerType.EMBEDDING_LOOKUP:
        return _real_rows(graph, layer, outputs, fresh)
    if OPERATORS[layer.type].index_output and outputs[0].dtype is DataType.INT64:
        computed = fresh(narrow(outputs[0]))
        return _behind(layer, computed, LayerType.CAST, outputs[0])
    if not OPERATORS[layer.type].any_shape:
        return [(layer, outputs)]
    (output,) = outputs
    (shape,) = KERNELS[layer.type].infer(layer.descriptor, graph.input_infos(layer))
    if shape == output.shape or math.prod(shape) != output.elements:
        return [(layer, outputs)]
    computed = fresh(replace(output, shape=shape))
    return _behind(layer, computed, LayerType.RESHAPE, output, ReshapeDescriptor(shape=output.shape))


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
    return _behind(layer, looked_up, LayerType.DEQUANTIZE, output)


def _behind(
    layer: Layer, computed: TensorInfo, type_: LayerType, output: TensorInfo, descriptor: Descriptor | None = None
) -> list[Added]:
    """Return a layer that computes another tensor, and the layer that makes the output of it."""
    last = added(type_, [computed.name], output, f"{layer.name}_{type_.lower()}", descriptor)
    return [(replace(layer, outputs=(computed.name,)), [computed]), last]
