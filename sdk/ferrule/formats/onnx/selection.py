# SPDX-License-Identifier: Apache-2.0
"""Rows of operators that select elements by constants: masks, and an index for each element."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ferrule.budget import Resource, afford
from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.onnx.call import Call
from ferrule.formats.onnx.layout import Layout
from ferrule.formats.onnx.node import elements
from ferrule.formats.onnx.rows import Row
from ferrule.formats.onnx.shapes import front_axis
from ferrule.graph import Array, DataType, LayerType
from ferrule.operators.movement.gather import GatherDescriptor
from ferrule.operators.movement.reshape import ReshapeDescriptor

_INDEX_BYTES = 32
"""Of each element of a mask while it is made: two indices and their difference, of 64 bits."""


def _trilu(call: Call) -> None:
    """Select the elements of one side of a diagonal with a constant mask."""
    if call.rank(0) < 2:
        raise ModelError(f"its input has {call.rank(0)} axes, expected 2 or more")
    diagonal, upper = call.single(1, "diagonal", 0), call.node.flag("upper", default=True)
    afford(Resource.BYTES, _INDEX_BYTES * elements(call.shape(0)[-2:]), "the mask")
    rows, columns = np.indices(call.shape(0)[-2:])
    mask = columns - rows >= diagonal if upper else columns - rows <= diagonal
    source, order = call.ordered(0)
    full = mask.reshape((1,) * (call.rank(0) - 2) + mask.shape).transpose(order)
    chosen = call.array(full, "mask")
    dtype = call.info(source).dtype
    call.finish(LayerType.SELECT_V2, chosen, source, call.number(0, source), order=order, dtype=dtype)


def _gather_elements(call: Call) -> None:
    """Gather from the elements in one row, by constant positions."""
    indices, shape = call.parameter(1, "indices"), call.shape(0)
    axis = call.axis()
    if indices is None or indices.dtype.kind not in "iu" or indices.ndim != len(shape):
        raise ModelError("its indices are no integers with the axes of its input")
    if any(a > b for each, (a, b) in enumerate(zip(indices.shape, shape, strict=True)) if each != axis):
        raise ModelError(f"its indices {list(indices.shape)} exceed its input {list(shape)}")
    if np.any(indices < -shape[axis]) or np.any(indices >= shape[axis]):
        raise ModelError(f"its indices are not within {-shape[axis]} to {shape[axis] - 1}")
    afford(Resource.BYTES, 8 * (indices.ndim + 2) * indices.size, "the places of its indices")
    places: list[Array] = list(np.indices(indices.shape))
    places[axis] = indices % shape[axis]
    rows = np.ravel_multi_index(tuple(places), shape).reshape(-1).astype(np.int32)
    source = call.tensor(0, None, (elements(shape),))
    taken = call.add(LayerType.GATHER, GatherDescriptor(axis=0), source, call.array(rows, "indices"))
    call.finish(LayerType.RESHAPE, ReshapeDescriptor(shape=indices.shape), taken)


def _one_hot(call: Call) -> None:
    """Compare indices with each number below the depth, and select one of two constants."""
    depth, values = call.single(1, "depth", 0), call.parameter(2, "values")
    if values is None or values.shape != (2,) or depth < 1:
        raise ModelError("it has no depth of 1 or more, or not two values")
    if depth > 1 << 16:
        raise UnsupportedError(f"its depth is {depth}, expected at most {1 << 16}")
    rank = call.rank(0)
    axis = front_axis(call.node.integer("axis", -1), rank + 1)
    shape = (*call.shape(0)[:axis], 1, *call.shape(0)[axis:])
    indices = call.tensor(0, None, shape)
    if call.info(indices).dtype is not DataType.INT32:
        indices = call.add(LayerType.CAST, indices, dtype=DataType.INT32)
    numbers = np.arange(depth, dtype=np.int32).reshape(depth, *(1,) * (rank - axis))
    found = [
        call.add(LayerType.EQUAL, indices, call.array(each, "numbers"), dtype=DataType.BOOL)
        for each in (numbers, numbers - depth)
    ]
    either = call.add(LayerType.LOGICAL_OR, *found)
    constants = [call.array(values[each].reshape(()), "value") for each in (1, 0)]
    dtype = call.info(constants[0]).dtype
    full = (*shape[:axis], depth, *shape[axis + 1 :])
    call.finish(LayerType.SELECT_V2, either, *constants, layout=Layout.plain(full), dtype=dtype)


ROWS: Mapping[str, Row] = {
    "GatherElements": Row(_gather_elements, 2),
    "OneHot": Row(_one_hot, 3),
    "Trilu": Row(_trilu, 1, 2),
}
