# SPDX-License-Identifier: Apache-2.0
"""Rows of operators that reduce axes, or normalise along them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ferrule.budget import Resource, afford
from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.onnx.call import Call
from ferrule.formats.onnx.layout import Layout, identity, without
from ferrule.formats.onnx.rows import Row
from ferrule.formats.onnx.shapes import front_axes, front_axis
from ferrule.graph import Array, DataType, Descriptor, LayerType
from ferrule.operators.arg_select import ArgSelectDescriptor
from ferrule.operators.binary import BinaryDescriptor
from ferrule.operators.cumsum import CumsumDescriptor
from ferrule.operators.elementwise_unary import ElementwiseUnaryDescriptor
from ferrule.operators.log_softmax import LogSoftmaxDescriptor
from ferrule.operators.mirror import ReverseV2Descriptor
from ferrule.operators.reduce import ReduceDescriptor
from ferrule.operators.reshape import ReshapeDescriptor
from ferrule.operators.softmax import SoftmaxDescriptor

_PLAIN = BinaryDescriptor()
_FUNCTION = ElementwiseUnaryDescriptor()


def last(call: Call, axis: int) -> tuple[str, tuple[int, ...]]:
    """Return the network's tensor for the first input with an axis last, and the order of its axes."""
    source, order = call.ordered(0)
    if order and order[-1] == axis:
        return source, order
    order = (*(other for other in identity(call.rank(0)) if other != axis), axis)
    return call.tensor(0, order), order


def _along(type_: LayerType, descriptor: Descriptor) -> Row:
    """Return the row of an operator along one axis, which the layer needs last."""

    def emit(call: Call) -> None:
        source, order = last(call, front_axis(call.node.integer("axis", -1), call.rank(0)))
        call.finish(type_, descriptor, source, order=order)

    return Row(emit)


def _lp_normalization(call: Call) -> None:
    power, axis = call.node.integer("p", 2), front_axis(call.node.integer("axis", -1), call.rank(0))
    if power == 2:
        source, order = last(call, axis)
        call.finish(LayerType.L2_NORMALIZATION, source, order=order)
        return
    if power != 1:
        raise UnsupportedError(f"its attribute 'p' is {power}, expected 1 or 2")
    source, order = call.ordered(0)
    reduce = ReduceDescriptor(axes=(order.index(axis),), keep_dims=True)
    total = call.add(LayerType.SUM, reduce, call.add(LayerType.ABS, source))
    call.finish(LayerType.DIV, source, total, order=order)


def _log_sum_exp(call: Call, source: str, axes: tuple[int, ...]) -> tuple[str, str]:
    """Return the largest element along axes, and the logarithm of the sum of exp(x - largest)."""
    reduce = ReduceDescriptor(axes=axes, keep_dims=True)
    largest = call.add(LayerType.REDUCE_MAX, reduce, source)
    power = call.add(LayerType.EXP, call.add(LayerType.SUB, source, largest))
    return largest, call.add(LayerType.LOG, call.add(LayerType.SUM, reduce, power))


def _reduce_log_sum_exp(call: Call) -> None:
    axes = call.integers(1, "axes")
    source, order = call.ordered(0)
    chosen = front_axes(axes if axes is not None else call.node.integers("axes", ()), call.rank(0))
    if not chosen and call.node.integer("noop_with_empty_axes", 0) != 0:
        raise UnsupportedError("it has no axes, expected one or more")
    chosen = chosen or identity(call.rank(0))
    addends = _log_sum_exp(call, source, tuple(place for place, axis in enumerate(order) if axis in chosen))
    if call.node.integer("keepdims", 1) != 0:
        call.finish(LayerType.ADD, *addends, order=order)
        return
    kept = call.add(LayerType.ADD, *addends)
    shape = tuple(call.shape(0)[axis] for axis in order if axis not in chosen)
    call.finish(LayerType.RESHAPE, ReshapeDescriptor(shape=shape), kept, order=without(order, chosen))


def _reduction(type_: LayerType, before: LayerType | None = None, after: LayerType | None = None) -> Row:
    """Return the row of a reduction, with functions of each element before and after it."""

    def emit(call: Call) -> None:
        axes = call.integers(1, "axes")
        if axes is None:
            axes = call.node.integers("axes", ())
        source, order = call.ordered(0)
        if not axes and call.node.integer("noop_with_empty_axes", 0) != 0:
            if before is not None or after is not None:
                raise UnsupportedError("it has no axes, expected one or more")
            call.alias(0)
            return
        chosen = front_axes(axes, call.rank(0)) or identity(call.rank(0))
        keep = call.node.integer("keepdims", 1) != 0
        if before is not None:
            source = call.add(before, source)
        descriptor = ReduceDescriptor(
            axes=tuple(place for place, axis in enumerate(order) if axis in chosen), keep_dims=keep
        )
        order = order if keep else without(order, chosen)
        if after is None:
            call.finish(type_, descriptor, source, order=order)
        else:
            call.finish(after, call.add(type_, descriptor, source), order=order)

    return Row(emit, 1, 2)


def _arg_select(type_: LayerType) -> Row:
    def emit(call: Call) -> None:
        axis = front_axis(call.node.integer("axis", 0), call.rank(0))
        source, order = call.ordered(0)
        place, last = order.index(axis), call.node.integer("select_last_index", 0) != 0
        if last:
            source = call.add(LayerType.REVERSE_V2, ReverseV2Descriptor(axes=(place,)), source)
        found = call.add(type_, ArgSelectDescriptor(axis=place), source, dtype=DataType.INT32)
        if last:
            end = call.number(call.shape(0)[axis] - 1, found)
            found = call.add(LayerType.SUB, end, found)
        rest = without(order, [axis])
        layout = Layout(order=rest, split=_unordered(call.info(found).shape, rest), shape=())
        kept = list(layout.split)
        if call.node.integer("keepdims", 1) != 0:
            kept.insert(axis, 1)
        layout = Layout(order=layout.order, split=layout.split, shape=tuple(kept))
        call.finish(LayerType.CAST, found, layout=layout, dtype=DataType.INT64)

    return Row(emit)


def _unordered(stored: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    return tuple(stored[tuple(order).index(axis)] for axis in range(len(order)))


def _cumsum(call: Call) -> None:
    axis = front_axis(call.single(1, "axis", 0), call.rank(0))
    source, order = call.ordered(0)
    descriptor = CumsumDescriptor(
        axis=order.index(axis),
        exclusive=call.node.integer("exclusive", 0) != 0,
        reverse=call.node.integer("reverse", 0) != 0,
    )
    call.finish(LayerType.CUMSUM, descriptor, source, order=order)


def _standardised(call: Call, source: str, axes: tuple[int, ...], epsilon: float, *, centre: bool = True) -> list[str]:
    """Return (x - mean) / sqrt(variance + epsilon) along axes, that factor and the mean.

    Without `centre`, the mean counts as 0, and is not returned.
    """
    reduce = ReduceDescriptor(axes=axes, keep_dims=True)
    means: list[str] = []
    if centre:
        mean = call.add(LayerType.MEAN, reduce, source)
        squares = call.add(LayerType.SQUARED_DIFFERENCE, source, mean)
        source = call.add(LayerType.SUB, source, mean)
        means.append(mean)
    else:
        squares = call.add(LayerType.SQUARE, source)
    variance = call.add(LayerType.MEAN, reduce, squares)
    variance = call.add(LayerType.ADD, variance, call.number(epsilon, variance))
    factor = call.add(LayerType.RSQRT, variance)
    return [call.add(LayerType.MUL, source, factor), factor, *means]


def _finish_affine(call: Call, source: str, order: tuple[int, ...], factors: Sequence[Array | None]) -> None:
    """Add the product with a factor and the sum with an offset, which broadcast to the model's tensor."""
    steps = [
        (type_, data) for type_, data in zip((LayerType.MUL, LayerType.ADD), factors, strict=False) if data is not None
    ]
    for index, (type_, data) in enumerate(steps):
        full = data.reshape((1,) * (len(order) - data.ndim) + data.shape).transpose(order)
        constant = call.array(full, type_.lower())
        if index + 1 < len(steps):
            source = call.add(type_, source, constant)
        else:
            call.finish(type_, source, constant, order=order)


def _layer_normalization(call: Call) -> None:
    rank = call.rank(0)
    axis = front_axis(call.node.integer("axis", -1), rank)
    source, order = call.ordered(0)
    axes = tuple(place for place, each in enumerate(order) if each >= axis)
    centre = call.node.op != "RMSNormalization"
    result, *others = _standardised(call, source, axes, call.node.number("epsilon", 1e-5), centre=centre)
    factors = [call.parameter(1, "scale"), call.parameter(2, "bias")]
    if any(data is not None and data.ndim > rank for data in factors):
        raise ModelError("its scale or bias has more axes than its input")
    _finish_affine(call, result, order, factors)
    for index, name in enumerate(call.node.outputs[1:], 1):
        if name:
            call.declare(others[2 - index], order=order, index=index)


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
    axes = tuple(place for place, axis in enumerate(order) if axis >= 2)
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
    axes = tuple(index + (index > place) for index, axis in enumerate(order) if axis >= 2)
    result = _standardised(
        call, call.reshaped(source, divided), tuple(sorted((*axes, place + 1))), call.node.number("epsilon", 1e-5)
    )
    _finish_affine(call, call.reshaped(result[0], stored), order, _per_channel(call))


def _mean_variance_normalization(call: Call) -> None:
    axes = front_axes(call.node.integers("axes", (0, 2, 3)), call.rank(0))
    source, order = call.ordered(0)
    chosen = tuple(place for place, axis in enumerate(order) if axis in axes)
    call.declare(_standardised(call, source, chosen, 1e-9)[0], order=order)


ROWS: Mapping[str, Row] = {
    "ArgMax": _arg_select(LayerType.ARG_MAX),
    "ArgMin": _arg_select(LayerType.ARG_MIN),
    "CumSum": Row(_cumsum, 2),
    "GroupNormalization": Row(_group_normalization, 3),
    "InstanceNormalization": Row(_instance_normalization, 3),
    "LayerNormalization": Row(_layer_normalization, 2, 3, outputs=3),
    "LogSoftmax": _along(LayerType.LOG_SOFTMAX, LogSoftmaxDescriptor()),
    "LpNormalization": Row(_lp_normalization),
    "MeanVarianceNormalization": Row(_mean_variance_normalization),
    "RMSNormalization": Row(_layer_normalization, 2),
    "ReduceL1": _reduction(LayerType.SUM, before=LayerType.ABS),
    "ReduceL2": _reduction(LayerType.SUM, before=LayerType.SQUARE, after=LayerType.SQRT),
    "ReduceLogSum": _reduction(LayerType.SUM, after=LayerType.LOG),
    "ReduceLogSumExp": Row(_reduce_log_sum_exp, 1, 2),
    "ReduceMax": _reduction(LayerType.REDUCE_MAX),
    "ReduceMean": _reduction(LayerType.MEAN),
    "ReduceMin": _reduction(LayerType.REDUCE_MIN),
    "ReduceSum": _reduction(LayerType.SUM),
    "ReduceSumSquare": _reduction(LayerType.SUM, before=LayerType.SQUARE),
    "Softmax": _along(LayerType.SOFTMAX, SoftmaxDescriptor()),
}
