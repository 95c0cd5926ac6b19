# SPDX-License-Identifier: Apache-2.0
"""Layers ahead of the layer of an operator because its inputs in the file are others than the layer's.

Indices of int64 become int32, and the condition of a SELECT gets the shape with which it broadcasts in SELECT_V2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ferrule.errors import UnsupportedError
from ferrule.formats.tflite.followers import Added
from ferrule.formats.tflite.row import Row
from ferrule.graph import Array, DataType, Descriptor, Layer, LayerType, Shape, TensorInfo
from ferrule.network import Network
from ferrule.operators.cast import CastDescriptor
from ferrule.operators.reshape import ReshapeDescriptor

SELECT = "SELECT"
"""The operator of the schema that is read as a SELECT_V2."""


def led(type_: str, row: Row, positions: Sequence[int], infos: Sequence[TensorInfo | None]) -> list[TensorInfo | None]:
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


def led_data(data: Array, info: TensorInfo) -> Array:
    """Return the data of a constant as the layer's input has it; indices beyond int32 become the nearest ones."""
    if data.dtype == info.dtype.numpy:
        return data.reshape(info.shape)
    limits = np.iinfo(info.dtype.numpy)
    return data.clip(limits.min, limits.max).astype(info.dtype.numpy).reshape(info.shape)


def leaders(
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
            network.add_constant(made, led_data(data, made))
            yield place, made, None
            continue
        type_, descriptor = _conversion(network.info(source), made)
        layer = Layer(
            name=network.unique_name(f"{name}_{type_.lower()}"),
            type=type_,
            descriptor=descriptor,
            inputs=(source,),
            outputs=(made.name,),
        )
        yield place, made, (layer, [made])


def _conversion(source: TensorInfo, wanted: TensorInfo) -> tuple[LayerType, Descriptor]:
    if source.dtype is not wanted.dtype:
        return LayerType.CAST, CastDescriptor()
    return LayerType.RESHAPE, ReshapeDescriptor(shape=wanted.shape)


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
