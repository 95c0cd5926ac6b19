# SPDX-License-Identifier: Apache-2.0
"""Rows of operators that reduce axes, or normalise along them."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import numpy as np

from ferrule.budget import Resource, afford
from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.onnx.call import Call, Value
from ferrule.formats.onnx.layout import Layout, identity, without
from ferrule.formats.onnx.rows import Row
from ferrule.formats.onnx.shapes import front_axes, front_axis, reduced
from ferrule.graph import Array, DataType, LayerType
from ferrule.operators.movement.mirror import ReverseV2Descriptor
from ferrule.operators.movement.reshape import ReshapeDescriptor
from ferrule.operators.reductions.arg_select import ArgSelectDescriptor
from ferrule.operators.reductions.cumsum import CumsumDescriptor
from ferrule.operators.reductions.reduce import ReduceDescriptor


def last(call: Call, axis: int) -> tuple[str, tuple[int, ...]]:
    """Return the network's tensor for the first input with an axis last, and the order of its axes."""
    source, order = call.ordered(0)
    if order and order[-1] == axis:
        return source, order
    order = (*(other for other in identity(call.rank(0)) if other != axis), axis)
    return call.tensor(0, order), order


def _along(type_: LayerType) -> Row:
    """Return the row of an operator along one axis, which the layer needs last."""

    def emit(call: Call) -> None:
        source, order = last(call, call.axis(-1))
        call.finish(type_, source, order=order)

    return Row(emit, layer=type_)


def _lp_normalization(call: Call) -> None:
    power, axis = call.node.integer("p", 2), call.axis(-1)
    if power == 2:
        _along(LayerType.L2_NORMALIZATION).emit(call)
        return
    if power != 1:
        raise UnsupportedError(f"its attribute 'p' is {power}, expected 1 or 2")
    source, order = call.ordered(0)
    x, reduce = Value(call, source), ReduceDescriptor(axes=(order.index(axis),), keep_dims=True)
    call.finish_with(x / abs(x).then(LayerType.SUM, reduce), order=order)


def _places(order: Sequence[int], axes: Container[int]) -> tuple[int, ...]:
    """Return the axes of the network's tensor that are some axes of the model's."""
    return tuple(place for place, axis in enumerate(order) if axis in axes)


def _reduce_log_sum_exp(call: Call) -> None:
    """Add the largest element along the axes, and the logarithm of the sum of exp(x - largest)."""
    chosen = reduced(call.node, call.integers(1, "axes"), call.rank(0))
    source, order = call.ordered(0)
    if chosen is None:
        raise UnsupportedError("it has no axes, expected one or more")
    x, reduce = Value(call, source), ReduceDescriptor(axes=_places(order, chosen), keep_dims=True)
    largest = x.then(LayerType.REDUCE_MAX, reduce)
    total = (x - largest).then(LayerType.EXP).then(LayerType.SUM, reduce).then(LayerType.LOG)
    result = largest + total
    if not call.node.flag("keepdims", default=True):
        shape = tuple(call.shape(0)[axis] for axis in order if axis not in chosen)
        result, order = result.then(LayerType.RESHAPE, ReshapeDescriptor(shape=shape)), without(order, chosen)
    call.finish_with(result, order=order)


def _reduction(
    type_: LayerType, before: LayerType | None = None, after: LayerType | None = None, layer: LayerType | None = None
) -> Row:
    """Return the row of a reduction, with functions of each element before and after it."""

    def emit(call: Call) -> None:
        chosen = reduced(call.node, call.integers(1, "axes"), call.rank(0))
        source, order = call.ordered(0)
        if chosen is None:
            if before is not None or after is not None:
                raise UnsupportedError("it has no axes, expected one or more")
            call.alias(0)
            return
        keep = call.node.flag("keepdims", default=True)
        x = Value(call, source)
        if before is not None:
            x = x.then(before)
        x = x.then(type_, ReduceDescriptor(axes=_places(order, chosen), keep_dims=keep))
        if after is not None:
            x = x.then(after)
        call.finish_with(x, order=order if keep else without(order, chosen))

    return Row(emit, 1, 2, layer=layer)


def _arg_select(type_: LayerType) -> Row:
    def emit(call: Call) -> None:
        axis = call.axis()
        source, order = call.ordered(0)
        x, place, last = Value(call, source), order.index(axis), call.node.flag("select_last_index")
        if last:
            x = x.then(LayerType.REVERSE_V2, ReverseV2Descriptor(axes=(place,)))
        found = x.then(type_, ArgSelectDescriptor(axis=place), dtype=DataType.INT32)
        if last:
            found = call.shape(0)[axis] - 1 - found
        rest = without(order, [axis])
        split = (*call.shape(0)[:axis], *call.shape(0)[axis + 1 :])
        kept = (1,) if call.node.flag("keepdims", default=True) else ()
        layout = Layout(order=rest, split=split, shape=(*split[:axis], *kept, *split[axis:]))
        call.finish_with(found.then(LayerType.CAST, dtype=DataType.INT64), layout=layout)

    return Row(emit)


def _cumsum(call: Call) -> None:
    axis = front_axis(call.single(1, "axis", 0), call.rank(0))
    source, order = call.ordered(0)
    descriptor = CumsumDescriptor(
        axis=order.index(axis),
        exclusive=call.node.flag("exclusive"),
        reverse=call.node.flag("reverse"),
    )
    call.finish(LayerType.CUMSUM, descriptor, source, order=order)


def _standardised(call: Call, source: str, axes: tuple[int, ...], epsilon: float) -> tuple[Value, Value, Value]:
    """Return (x - mean) / sqrt(variance + epsilon) along axes, that factor and the mean."""
    x, reduce = Value(call, source), ReduceDescriptor(axes=axes, keep_dims=True)
    mean = x.then(LayerType.MEAN, reduce)
    squares = x.then(LayerType.SQUARED_DIFFERENCE, mean)
    centred = x - mean
    factor = _factor(squares, reduce, epsilon)
    return centred * factor, factor, mean


def _factor(squares: Value, reduce: ReduceDescriptor, epsilon: float) -> Value:
    return (squares.then(LayerType.MEAN, reduce) + epsilon).then(LayerType.RSQRT)


def _finish_affine(call: Call, result: Value, order: tuple[int, ...], factors: Sequence[Array | None]) -> None:
    """Add the product with a factor and the sum with an offset, which broadcast to the model's tensor."""
    for type_, data in zip((LayerType.MUL, LayerType.ADD), factors, strict=False):
        if data is not None:
            full = data.reshape((1,) * (len(order) - data.ndim) + data.shape).transpose(order)
            result = result.then(type_, call.array(full, type_.lower()))
    call.finish_with(result, order=order)


def _layer_normalization(call: Call) -> None:
    rank = call.rank(0)
    axis, epsilon = call.axis(-1), call.node.number("epsilon", 1e-5)
    source, order = call.ordered(0)
    axes = _places(order, range(axis, rank))
    others: Sequence[Value] = ()
    if call.node.op == "RMSNormalization":  # the mean counts as 0
        x = Value(call, source)
        result = x * _factor(x.then(LayerType.SQUARE), ReduceDescriptor(axes=axes, keep_dims=True), epsilon)
    else:
        result, *others = _standardised(call, source, axes, epsilon)
    factors = [call.parameter(1, "scale"), call.parameter(2, "bias")]
    if any(data is not None and data.ndim > rank for data in factors):
        raise ModelError("its scale or bias has more axes than its input")
    _finish_affine(call, result, order, factors)
    for index, name in enumerate(call.node.outputs[1:], 1):
        if name:
            call.declare(others[2 - index].tensor, order=order, index=index)


def _per_channel(call: Call) -> list[Array]:
    """Return the scale and the bias, one number for each channel, as images."""
    channels, rank = call.shape(0)[1], call.rank(0)
    found = []
    for position, role in ((1, "scale"), (2, "bias")):
        data = call.parameter(position, role)
        if data is None or data.ndim != 1 or data.size < 1 or channels % data.size:
            raise ModelError(f"its {role} does not have one number for each of {channels} channels")
        afford(Resource.BYTES, data.itemsize * channels, f"its {role} for {channels:,} channels")
        found.append(np.repeat(data, channels // data.size).reshape(-1, *(1,) * (rank - 2)))
    return found


def _instance_normalization(call: Call) -> None:
    if call.rank(0) < 3:
        raise ModelError(f"its input has {call.rank(0)} axes, expected 3 or more")
    source, order = call.ordered(0)
    axes = _places(order, range(2, len(order)))
    result = _standardised(call, source, axes, call.node.number("epsilon", 1e-5))[0]
    _finish_affine(call, result, order, _per_channel(call))


def _group_normalization(call: Call) -> None:
    rank, shape, groups = call.rank(0), call.shape(0), call.node.integer("num_groups")
    if rank < 3 or groups < 1 or shape[1] % groups:
        raise ModelError(f"its input {list(shape)} does not have a multiple of {groups} channels")
    source, order = call.ordered(0)
    place = order.index(1)
    stored = call.info(source).shape
    divided = (*stored[:place], groups, stored[place] // groups, *stored[place + 1 :])
    axes = sorted((place + 1, *(each + (each > place) for each in _places(order, range(2, rank)))))
    epsilon = call.node.number("epsilon", 1e-5)
    result = _standardised(call, call.reshaped(source, divided), tuple(axes), epsilon)[0]
    _finish_affine(call, Value(call, call.reshaped(result.tensor, stored)), order, _per_channel(call))


def _mean_variance_normalization(call: Call) -> None:
    axes = front_axes(call.node.integers("axes", (0, 2, 3)), call.rank(0))
    source, order = call.ordered(0)
    call.declare(_standardised(call, source, _places(order, axes), 1e-9)[0].tensor, order=order)


ROWS: Mapping[str, Row] = {
    "ArgMax": _arg_select(LayerType.ARG_MAX),
    "ArgMin": _arg_select(LayerType.ARG_MIN),
    "CumSum": Row(_cumsum, 2),
    "GroupNormalization": Row(_group_normalization, 3),
    "InstanceNormalization": Row(_instance_normalization, 3),
    "LayerNormalization": Row(_layer_normalization, 2, 3, outputs=3),
    "LogSoftmax": _along(LayerType.LOG_SOFTMAX),
    "LpNormalization": Row(_lp_normalization),
    "MeanVarianceNormalization": Row(_mean_variance_normalization),
    "RMSNormalization": Row(_layer_normalization, 2),
    "ReduceL1": _reduction(LayerType.SUM, before=LayerType.ABS),
    "ReduceL2": _reduction(LayerType.SUM, before=LayerType.SQUARE, after=LayerType.SQRT),
    "ReduceLogSum": _reduction(LayerType.SUM, after=LayerType.LOG),
    "ReduceLogSumExp": Row(_reduce_log_sum_exp, 1, 2),
    "ReduceMax": _reduction(LayerType.REDUCE_MAX),
    "ReduceMean": _reduction(LayerType.MEAN, layer=LayerType.MEAN),
    "ReduceMin": _reduction(LayerType.REDUCE_MIN),
    "ReduceSum": _reduction(LayerType.SUM),
    "ReduceSumSquare": _reduction(LayerType.SUM, before=LayerType.SQUARE),
    "Softmax": _along(LayerType.SOFTMAX),
}
