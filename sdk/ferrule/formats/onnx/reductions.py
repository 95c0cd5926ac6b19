# SPDX-License-Identifier: Apache-2.0
"""Rows of operators that reduce axes, or normalise along them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ferrule.budget import Resource, afford
from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.limits import front_axis
from ferrule.formats.onnx.call import Call, Value
from ferrule.formats.onnx.layout import Layout, identity, without
from ferrule.formats.onnx.node import elements
from ferrule.formats.onnx.rows import Row
from ferrule.formats.onnx.shapes import front_axes, reduced
from ferrule.graph import Array, DataType, LayerType
from ferrule.operators.movement.mirror import ReverseV2Descriptor
from ferrule.operators.movement.reshape import ReshapeDescriptor
from ferrule.operators.reductions.arg_select import ArgSelectDescriptor
from ferrule.operators.reductions.cumsum import CumsumDescriptor
from ferrule.operators.reductions.layer_normalization import normalization_of
from ferrule.operators.reductions.reduce import ReduceDescriptor

_ONE_AXIS = 13
"""The opset from which on Softmax and LogSoftmax are along one axis; earlier, that and all behind it are one."""


def _along(type_: LayerType) -> Row:
    """Return the row of an operator along one axis, which the layer needs last."""

    def emit(call: Call) -> Value:
        joins = call.node.version < _ONE_AXIS and call.node.op != "LpNormalization"
        axis = call.axis(1 if joins else -1)
        if joins and call.shape()[axis + 1 :].count(1) != call.rank() - axis - 1:
            return _over_rows(call, axis, type_)
        return _with_last(call, axis).then(type_)

    return Row(emit, layer=type_)


def _over_rows(call: Call, axis: int, type_: LayerType) -> Value:
    """Return the layer over all axes from one on, as one."""
    shape = call.shape()
    rows = elements(shape[:axis]), elements(shape[axis:])
    return call.tensor(0).reshaped(rows).then(type_).ordered(Layout(order=(0, 1), split=rows, shape=shape))


def _lp_normalization(call: Call) -> Value | None:
    power, axis = call.node.integer("p", 2), call.axis(-1)
    if power == 2:
        return _along(LayerType.L2_NORMALIZATION).emit(call)
    if power != 1:
        raise UnsupportedError(f"its attribute 'p' is {power}, expected 1 or 2")
    x = call.ordered()
    return x / abs(x).then(LayerType.SUM, x.over({axis}))


def _squares(x: Value, reduce: ReduceDescriptor) -> Value:
    return x.then(LayerType.SQUARE).then(LayerType.SUM, reduce)


def _log_sum_exp(x: Value, reduce: ReduceDescriptor) -> Value:
    """Return the largest element along axes, plus the logarithm of the sum of exp(x - largest)."""
    kept = replace(reduce, keep_dims=True)
    largest = x.then(LayerType.REDUCE_MAX, kept)
    result = largest + (x - largest).then(LayerType.EXP).then(LayerType.SUM, kept).then(LayerType.LOG)
    if reduce.keep_dims:
        return result
    shape = tuple(extent for axis, extent in enumerate(x.shape) if axis not in reduce.axes)
    return result.then(ReshapeDescriptor(shape=shape))


def _reduction(compute: LayerType | Callable[[Value, ReduceDescriptor], Value], layer: LayerType | None = None) -> Row:
    """Return the row of a reduction, or of an expression with one."""

    def emit(call: Call) -> Value:
        chosen = reduced(call.node, call.integers(1, "axes"), call.rank())
        x = call.ordered()
        if chosen is None:
            if not isinstance(compute, LayerType):
                raise UnsupportedError("it has no axes, expected one or more")
            return call.value()
        keep = call.node.flag("keepdims", default=True)
        reduce = x.over(chosen, keep=keep)
        result = x.then(compute, reduce) if isinstance(compute, LayerType) else compute(x, reduce)
        return result.ordered(x.order if keep else without(x.order, chosen))

    return Row(emit, 1, 2, layer=layer)


def _arg_select(type_: LayerType) -> Row:
    def emit(call: Call) -> Value:
        axis, x, last = call.axis(), call.ordered(), call.node.flag("select_last_index")
        order, place = x.order, x.order.index(axis)
        if last:
            x = x.then(ReverseV2Descriptor(axes=(place,)))
        found = x.then(type_, ArgSelectDescriptor(axis=place))
        if last:
            found = call.shape()[axis] - 1 - found
        split = (*call.shape()[:axis], *call.shape()[axis + 1 :])
        kept = (1,) if call.node.flag("keepdims", default=True) else ()
        layout = Layout(order=without(order, [axis]), split=split, shape=(*split[:axis], *kept, *split[axis:]))
        return found.then(LayerType.CAST, dtype=DataType.INT64).ordered(layout)

    return Row(emit)


def _cumsum(call: Call) -> Value:
    axis = front_axis(call.single("axis"), call.rank())
    x = call.ordered()
    exclusive, reverse = call.node.flag("exclusive"), call.node.flag("reverse")
    return x.then(CumsumDescriptor(axis=x.order.index(axis), exclusive=exclusive, reverse=reverse))


def _standardised(x: Value, reduce: ReduceDescriptor, epsilon: float) -> tuple[Value, Value, Value]:
    """Return (x - mean) / sqrt(variance + epsilon) along axes, that factor and the mean."""
    mean = x.then(LayerType.MEAN, reduce)
    squares = x.then(LayerType.SQUARED_DIFFERENCE, mean)
    centred = x - mean
    factor = _factor(squares, reduce, epsilon)
    return centred * factor, factor, mean


def _factor(squares: Value, reduce: ReduceDescriptor, epsilon: float) -> Value:
    return (squares.then(LayerType.MEAN, reduce) + epsilon).then(LayerType.RSQRT)


def _affine(result: Value, factors: Sequence[Array | None]) -> Value:
    """Return the product with a factor and the sum with an offset, which broadcast to the model's tensor."""
    for type_, data in zip((LayerType.MUL, LayerType.ADD), factors, strict=False):
        if data is not None:
            full = data.reshape((1,) * (len(result.order) - data.ndim) + data.shape).transpose(result.order)
            result = result.then(type_, result.call.array(full, type_.lower()))
    return result


def _with_last(call: Call, axis: int) -> Value:
    """Return the first input with an axis of the model's tensor as the last one."""
    x = call.ordered()
    if x.order[-1:] == (axis,):
        return x
    return call.tensor(0, (*(other for other in identity(call.rank()) if other != axis), axis))


def _layer_normalization(call: Call) -> None:
    rank = call.rank()
    axis, epsilon = call.axis(-1), call.node.number("epsilon", 1e-5)
    if not call.dtype().is_float:
        call.finish(_integer_normalization(call, epsilon))
        return
    x = call.ordered()
    reduce = x.over(range(axis, rank))
    others: Sequence[Value] = ()
    if call.node.op == "RMSNormalization":  # the mean counts as 0
        result = x * _factor(x.then(LayerType.SQUARE), reduce, epsilon)
    else:
        result, *others = _standardised(x, reduce, epsilon)
    factors = [call.parameter(1, "scale"), call.parameter(2, "bias")]
    if any(data is not None and data.ndim > rank for data in factors):
        raise ModelError("its scale or bias has more axes than its input")
    call.finish(_affine(result, factors))
    for index, name in enumerate(call.node.outputs[1:], 1):
        if name:
            call.declare(others[2 - index], index)


def _integer_normalization(call: Call, epsilon: float) -> Value:
    """Return the layer of int8 over the last axis."""
    x, stored, gamma = _with_last(call, call.rank() - 1), call.stored(), call.parameter(1, "scale")
    if gamma is None or stored is None:
        raise ModelError("it has no scale, or its output no quantisation")
    beta = call.parameter(2, "bias")
    output = stored.described(call.node.output, x.shape)
    return x.then(normalization_of(gamma, np.zeros_like(gamma) if beta is None else beta, epsilon, x.info, output))


def _per_channel(call: Call) -> list[Array]:
    """Return the scale and the bias, one number for each channel, as images."""
    channels, rank = call.shape()[1], call.rank()
    found = []
    for position, role in ((1, "scale"), (2, "bias")):
        data = call.parameter(position, role)
        if data is None or data.ndim != 1 or data.size < 1 or channels % data.size:
            raise ModelError(f"its {role} does not have one number for each of {channels} channels")
        afford(Resource.BYTES, data.itemsize * channels, f"its {role} for {channels:,} channels")
        found.append(np.repeat(data, channels // data.size).reshape(-1, *(1,) * (rank - 2)))
    return found


def _instance_normalization(call: Call) -> Value:
    rank = call.rank()
    if rank < 3:
        raise ModelError(f"its input has {rank} axes, expected 3 or more")
    x = call.ordered()
    result, *_ = _standardised(x, x.over(range(2, rank)), call.node.number("epsilon", 1e-5))
    return _affine(result, _per_channel(call))


def _group_normalization(call: Call) -> Value:
    rank, shape, groups = call.rank(), call.shape(), call.node.integer("num_groups")
    if rank < 3 or groups < 1 or shape[1] % groups:
        raise ModelError(f"its input {list(shape)} does not have a multiple of {groups} channels")
    x = call.ordered()
    order, place, stored = x.order, x.order.index(1), x.shape
    divided = (*stored[:place], groups, stored[place] // groups, *stored[place + 1 :])
    axes = sorted((place + 1, *(each + (each > place) for each in x.places(range(2, rank)))))
    reduce = ReduceDescriptor(axes=tuple(axes), keep_dims=True)
    result, *_ = _standardised(x.reshaped(divided), reduce, call.node.number("epsilon", 1e-5))
    return _affine(result.reshaped(stored, order), _per_channel(call))


def _mean_variance_normalization(call: Call) -> None:
    axes = front_axes(call.node.integers("axes", (0, 2, 3)), call.rank())
    x = call.ordered()
    call.declare(_standardised(x, x.over(axes), 1e-9)[0])


ROWS: Mapping[str, Row] = {
    "ArgMax": _arg_select(LayerType.ARG_MAX),
    "ArgMin": _arg_select(LayerType.ARG_MIN),
    "CumSum": Row(_cumsum, 2),
    "GroupNormalization": Row(_group_normalization, 3),
    "InstanceNormalization": Row(_instance_normalization, 3),
    "LayerNormalization": Row(_layer_normalization, 2, 3, outputs=3, layer=LayerType.LAYER_NORMALIZATION),
    "LogSoftmax": _along(LayerType.LOG_SOFTMAX),
    "LpNormalization": Row(_lp_normalization),
    "MeanVarianceNormalization": Row(_mean_variance_normalization),
    "RMSNormalization": Row(_layer_normalization, 2),
    "ReduceL1": _reduction(lambda x, reduce: abs(x).then(LayerType.SUM, reduce)),
    "ReduceL2": _reduction(lambda x, reduce: _squares(x, reduce).then(LayerType.SQRT)),
    "ReduceLogSum": _reduction(lambda x, reduce: x.then(LayerType.SUM, reduce).then(LayerType.LOG)),
    "ReduceLogSumExp": _reduction(_log_sum_exp),
    "ReduceMax": _reduction(LayerType.REDUCE_MAX),
    "ReduceMean": _reduction(LayerType.MEAN, layer=LayerType.MEAN),
    "ReduceMin": _reduction(LayerType.REDUCE_MIN),
    "ReduceSum": _reduction(LayerType.SUM),
    "ReduceSumSquare": _reduction(_squares),
    "Softmax": _along(LayerType.SOFTMAX),
}
