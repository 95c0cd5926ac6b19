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
from ferrule.formats.onnx.movement import check_indices, gathered, positions
from ferrule.formats.onnx.node import elements
from ferrule.formats.onnx.rows import Row
from ferrule.graph import Array, DataType, LayerType, Shape
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
    """Gather from the elements in one row, by positions that may come from run time."""
    axis, given, shape, found = call.axis(), call.constant(1), call.shape(), call.shape(1)
    if call.rank(1) != len(shape):
        raise ModelError(f"its indices {list(found)} do not have the axes of its input {list(shape)}")
    _check_extents(found, shape, axis)
    indices = np.zeros(found, np.int64) if given is None else given
    rows = call.array(_places(indices, axis, shape).reshape(-1), "indices")
    if given is None:
        step = call.array(np.array(elements(shape[axis + 1 :]), np.int32), "step")
        rows = positions(call, np.array(shape[axis], np.int32)).reshaped((elements(found),)) * step + rows
    return gathered(call.tensor(0, None, (elements(shape),)), rows, found)


def _check_extents(indices: Shape, shape: Shape, axis: int) -> None:
    """Raise ModelError if indices for one axis of a tensor go beyond it along another."""
    if any(a > b for each, (a, b) in enumerate(zip(indices, shape, strict=True)) if each != axis):
        raise ModelError(f"its indices {list(indices)} exceed its input {list(shape)}")


def _places(indices: Array, axis: int, shape: Shape) -> Array:
    """Return the places of elements, among all of a tensor, that have these positions along one axis."""
    check_indices(indices, shape[axis])
    afford(Resource.BYTES, 8 * (indices.ndim + 2) * indices.size, "the places of its indices")
    places: list[Array] = list(np.indices(indices.shape))
    places[axis] = indices % shape[axis]
    return np.ravel_multi_index(tuple(places), shape).astype(np.int32)


def _scatter_elements(call: Call) -> Value:
    """Put elements to constant positions along one axis."""
    indices, axis = call.parameter(1, "indices"), call.axis()
    if indices is None or indices.ndim != call.rank() or indices.shape != call.shape(2):
        raise ModelError("its indices do not have the axes of its input, or not the shape of its updates")
    _check_extents(indices.shape, call.shape(), axis)
    return _scattered(call, _places(indices, axis, call.shape()), call.rank())


def _scatter_nd(call: Call) -> Value:
    """Put rows to constant places of the first axes."""
    indices, shape = call.parameter(1, "indices"), call.shape()
    if indices is None or not indices.ndim or not 1 <= indices.shape[-1] <= len(shape):
        raise ModelError(f"its indices have the shape {list(call.shape(1))}, and its input {list(shape)}")
    count = indices.shape[-1]
    if call.shape(2) != (*indices.shape[:-1], *shape[count:]):
        raise ModelError(f"its updates have the shape {list(call.shape(2))}, which does not fit its indices")
    for axis, extent in enumerate(shape[:count]):
        check_indices(indices[..., axis], extent)
    afford(Resource.BYTES, 8 * (count + 2) * indices.size, "the places of its indices")
    places = np.ravel_multi_index(tuple(np.moveaxis(indices % np.array(shape[:count]), -1, 0)), shape[:count])
    return _scattered(call, np.asarray(places), count)


def _scattered(call: Call, places: Array, count: int) -> Value:
    """Return the first input with the rows of the third one at places of its first `count` axes.

    Each row of the result is one of both, joined; of several for one place, the last is taken, as onnxruntime does.
    """
    if call.node.text("reduction", "none") != "none":
        raise UnsupportedError(f"its attribute 'reduction' is '{call.node.text('reduction')}', expected none")
    shape = call.shape()
    rows, width = elements(shape[:count]), elements(shape[count:])
    afford(Resource.BYTES, 4 * rows, "the rows of its result")
    taken = np.arange(rows, dtype=np.int32)
    taken[places.reshape(-1)] = rows + np.arange(places.size, dtype=np.int32)
    both = [call.tensor(0, None, (rows, width)), call.tensor(2, None, (places.size, width))]
    return gathered(joined(ConcatenationDescriptor(axis=0), both), call.array(taken, "rows"), shape)


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
    "ScatterElements": Row(_scatter_elements, 3),
    "ScatterND": Row(_scatter_nd, 3),
    "OneHot": Row(_one_hot, 3),
    "TopK": Row(_top_k, 2, outputs=2, first_is_optional=True),
    "Trilu": Row(_trilu, 1, 2),
}
