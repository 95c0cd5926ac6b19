# SPDX-License-Identifier: Apache-2.0
"""Rows of operators that select elements: by masks, by an index for each element, and the largest ones."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ferrule.budget import Resource, afford
from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.limits import front_axis
from ferrule.formats.onnx.call import Call, Value, joined
from ferrule.formats.onnx.movement import check_indices, gathered
from ferrule.formats.onnx.node import elements
from ferrule.formats.onnx.rows import Row
from ferrule.graph import Array, DataType, LayerType
from ferrule.operators.movement.join import ConcatenationDescriptor
from ferrule.operators.reductions.arg_select import ArgSelectDescriptor
from ferrule.operators.reductions.reduce import ReduceDescriptor

_INDEX_BYTES = 32
"""Of each element of a mask while it is made: two indices and their difference, of 64 bits."""


def _trilu(call: Call) -> Value:
    """Select the elements of one side of a diagonal with a constant mask."""
    if call.rank() < 2:
        raise ModelError(f"its input has {call.rank()} axes, expected 2 or more")
    diagonal, upper = call.single("diagonal"), call.node.flag("upper", default=True)
    afford(Resource.BYTES, _INDEX_BYTES * elements(call.shape()[-2:]), "the mask")
    rows, columns = np.indices(call.shape()[-2:])
    mask = columns - rows >= diagonal if upper else columns - rows <= diagonal
    x = call.ordered()
    full = mask.reshape((1,) * (call.rank() - 2) + mask.shape).transpose(x.order)
    return call.array(full, "mask").select(x, x.number(0)).ordered(x.order)


def _gather_elements(call: Call) -> Value:
    """Gather from the elements in one row, by constant positions."""
    indices, shape = call.parameter(1, "indices"), call.shape()
    axis = call.axis()
    if indices is None or indices.dtype.kind not in "iu" or indices.ndim != len(shape):
        raise ModelError("its indices are no integers with the axes of its input")
    if any(a > b for each, (a, b) in enumerate(zip(indices.shape, shape, strict=True)) if each != axis):
        raise ModelError(f"its indices {list(indices.shape)} exceed its input {list(shape)}")
    check_indices(indices, shape[axis])
    afford(Resource.BYTES, 8 * (indices.ndim + 2) * indices.size, "the places of its indices")
    places: list[Array] = list(np.indices(indices.shape))
    places[axis] = indices % shape[axis]
    rows = np.ravel_multi_index(tuple(places), shape).reshape(-1).astype(np.int32)
    return gathered(call.tensor(0, None, (elements(shape),)), call.array(rows, "indices"), indices.shape)


def _one_hot(call: Call) -> Value:
    """Compare indices with each number below the depth, and select one of two constants."""
    depth, values = call.single("depth"), call.parameter(2, "values")
    if values is None or values.shape != (2,) or depth < 1:
        raise ModelError("it has no depth of 1 or more, or not two values")
    if depth > 1 << 16:
        raise UnsupportedError(f"its depth is {depth}, expected at most {1 << 16}")
    rank = call.rank()
    axis = front_axis(call.node.integer("axis", -1), rank + 1)
    shape = (*call.shape()[:axis], 1, *call.shape()[axis:])
    indices = call.tensor(0, None, shape).cast(DataType.INT32)
    numbers = np.arange(depth, dtype=np.int32).reshape(depth, *(1,) * (rank - axis))
    front, back = (indices.then(LayerType.EQUAL, call.array(each, "numbers")) for each in (numbers, numbers - depth))
    either = front.then(LayerType.LOGICAL_OR, back)
    on, off = (call.array(values[each].reshape(()), "value") for each in (1, 0))
    return either.select(on, off)


_MOST = 32
"""The most elements that TopK may choose, each of which is a few layers."""


def _top_k(call: Call) -> None:
    """Take the largest or smallest element along an axis, put a number beyond all others in its place, and so on."""
    counts, axis, is_largest = call.integers(1, "k"), call.axis(-1), call.node.flag("largest", default=True)
    extent = call.shape()[axis]
    if counts is None or len(counts) != 1 or not 1 <= counts[0] <= extent:
        raise ModelError(f"its k is {counts}, expected one number from 1 to {extent}")
    if counts[0] > _MOST:
        raise UnsupportedError(
            f"its k is {counts[0]}, expected at most {_MOST}: each element is a few layers",
            hint="export the scores, and select the best of them outside of the model",
        )
    x = call.ordered()
    if x.dtype is not DataType.FLOAT32:
        raise UnsupportedError(f"its data is {x.dtype}, expected float32", hint="export the scores in float32")
    place, order = x.order.index(axis), x.order
    reduction = ReduceDescriptor(axes=(place,), keep_dims=True)
    choose, find = (
        (LayerType.REDUCE_MAX, LayerType.ARG_MAX) if is_largest else (LayerType.REDUCE_MIN, LayerType.ARG_MIN)
    )
    numbers = call.array(np.arange(extent, dtype=np.int32).reshape(-1, *(1,) * (len(order) - 1 - place)), "numbers")
    kept = tuple(1 if each == place else size for each, size in enumerate(x.shape))
    values, indices = [], []
    for index in range(counts[0]):
        values.append(x.then(choose, reduction))
        found = x.then(find, ArgSelectDescriptor(axis=place)).reshaped(kept)
        indices.append(found)
        if index < counts[0] - 1:
            taken = found.then(LayerType.EQUAL, numbers)
            x = taken.select(x.number(-math.inf if is_largest else math.inf), x)
    many = ConcatenationDescriptor(axis=place)
    results = [
        each[0] if len(each) == 1 else joined(many, each)
        for each in (values, [each.cast(DataType.INT64) for each in indices])
    ]
    call.declare_all(each.ordered(order) for each in results[: len(call.node.outputs)])


ROWS: Mapping[str, Row] = {
    "GatherElements": Row(_gather_elements, 2),
    "OneHot": Row(_one_hot, 3),
    "TopK": Row(_top_k, 2, outputs=2, first_is_optional=True),
    "Trilu": Row(_trilu, 1, 2),
}
