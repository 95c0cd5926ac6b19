# SPDX-License-Identifier: Apache-2.0
"""Rows of operators that compute each element by itself; the order of the axes stays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

import numpy as np

from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.onnx import shapes
from ferrule.formats.onnx.call import Call, Value
from ferrule.formats.onnx.layout import Layout
from ferrule.formats.onnx.node import elements
from ferrule.formats.onnx.rows import MANY, Row
from ferrule.graph import Array, LayerType, Rounding, Shape


def _broadcast(call: Call) -> list[Value]:
    """Return the inputs, which broadcast, in the layout of a result with their common shape.

    The order of axes is that of the largest input that is computed at run time.
    """
    positions = range(len(call.node.inputs))
    given = [_shape(call, position) for position in positions]
    try:
        shape = tuple(np.broadcast_shapes(*given))
    except ValueError:
        raise ModelError(f"its inputs have the shapes {', '.join(map(str, map(list, given)))}") from None
    frame = _frame(call, positions, shape)
    return [_in_frame(call, position, frame).ordered(frame) for position in positions]


def _shape(call: Call, position: int) -> Shape:
    """Return the shape with which an input broadcasts."""
    shape = call.shape(position)
    return shapes.suffixed(call.node, call.rank(), shape) if position == 1 else shape


def _frame(call: Call, positions: Sequence[int], shape: Shape) -> Layout:
    computed = [position for position in positions if call.constant(position) is None]
    layouts = [call.value(position).layout for position in computed]
    largest = max(
        layouts or [Layout.of(shape)],
        key=lambda layout: (len(layout.shape) == len(shape), elements(layout.shape), layout.is_moved),
    )
    if len(largest.shape) != len(shape):
        return Layout.of(shape)
    if largest.is_pending:
        constants = [call.constant(position) for position in positions if position not in computed]
        simple = all(data is not None and (data.size == 1 or data.shape == shape) for data in constants)
        if largest.shape == shape and simple and all(layout == largest for layout in layouts):
            return largest
        largest = largest.settled()
        if largest.is_pending:
            return Layout.of(shape)
    return Layout.ordered(largest.order, shape)


def _in_frame(call: Call, position: int, frame: Layout) -> Value:
    data = call.constant(position)
    if data is not None:
        shape = _shape(call, position)
        return call.variant(position, _constant_in(data.reshape(shape), frame), ("frame", frame, shape), axis=0)
    if frame.is_pending:
        return call.value(position)
    shape = _shape(call, position)
    full = (1,) * (len(frame.order) - len(shape)) + shape
    return call.tensor(position, frame.order, full)


def _constant_in(data: Array, frame: Layout) -> Array:
    """Return a constant with the axes of a frame; leading axes of 1 are left out."""
    if data.size == 1:
        return data.reshape(())
    if frame.is_pending:
        return data.reshape(frame.split).transpose(frame.order)
    result = data.reshape((1,) * (len(frame.order) - data.ndim) + data.shape).transpose(frame.order)
    while result.shape and result.shape[0] == 1:
        result = result[0]
    return result


def binary(type_: LayerType, *, most: int = 2) -> Row:
    """Return the row of an operator with two inputs that broadcast, or with several, from left to right."""

    def emit(call: Call) -> Value:
        first, *others = _broadcast(call)
        if not others:
            return call.value()
        if type_ is LayerType.ADD and _is_repeated_first(call):
            first, *others = *reversed(others), first
        return reduce(lambda left, right: left.then(type_, right), others, first)

    return Row(emit, 2, layer=type_) if most == 2 else Row(emit, 1, most)


def _is_repeated_first(call: Call) -> bool:
    """Whether an addition of integers begins with its second input, as onnxruntime's does if the first is repeated.

    That is so if the first has one element where the second has several, along the last axis with more than one.
    """
    stored = call.stored()
    if stored is None or stored.rounding is Rounding.TFLM:
        return False
    pairs = zip(reversed(call.shape()), reversed(call.shape(1)), strict=False)
    first, second = next(((a, b) for a, b in pairs if (a, b) != (1, 1)), (1, 1))
    return (first == 1 and second > 1) or (not call.shape() and call.shape(1) != ())


def _mean(call: Call) -> Value:
    first, *others = _broadcast(call)
    return sum(others, first) * (1 / (1 + len(others)))


def _mod(call: Call) -> Value | None:
    if call.node.flag("fmod"):
        raise UnsupportedError(
            "its attribute 'fmod' is 1, expected 0: the result has the sign of the divisor",
            hint="export the model with torch.remainder in place of torch.fmod",
        )
    return binary(LayerType.FLOOR_MOD).emit(call)


_POWERS: Mapping[float | None, Callable[[Value], Value]] = {
    2: lambda x: x.then(LayerType.SQUARE),
    3: lambda x: x.then(LayerType.SQUARE) * x,
    1: lambda x: x,
    0.5: lambda x: x.then(LayerType.SQRT),
    -0.5: lambda x: x.then(LayerType.RSQRT),
    -1: lambda x: 1 / x,
}


def _pow(call: Call) -> Value:
    exponent = call.scalar(1, "exponent")
    power = _POWERS.get(exponent)
    if power is None:
        raise UnsupportedError(
            f"its exponent is {exponent}, expected {', '.join(map(str, [*_POWERS][:-1]))} or {[*_POWERS][-1]}",
            hint="write the power as products",
        )
    return power(call.value())


def _where(call: Call) -> Value:
    condition, chosen, other = _broadcast(call)
    return condition.select(chosen, other)


_SPATIAL = 9
"""The opset from which on the numbers of a batch normalisation are always those of channels."""


def _batch_normalization(call: Call) -> Value:
    """Add MUL and ADD with a factor and an addend per channel."""
    node = call.node
    call.refuse_outputs()
    if node.integer("training_mode", 0):
        raise UnsupportedError("its attribute 'training_mode' is 1, expected 0", hint="export the model with eval()")
    if not node.flag("spatial", default=True) and node.version < _SPATIAL:
        raise UnsupportedError(
            "its attribute 'spatial' is 0, expected 1: one mean and variance for each channel",
            hint="export the model with opset 9 or newer",
        )
    arrays = [call.parameter(index, role) for index, role in enumerate(("scale", "offset", "mean", "variance"), 1)]
    channels = call.shape()[1] if call.rank() > 1 else 1
    with np.errstate(all="ignore"):
        values = [each.astype(np.float64) for each in arrays if each is not None and each.shape == (channels,)]
    if len(values) != 4:
        raise ModelError(f"its parameters do not have one number for each of {channels} channels")
    scale, offset, mean, variance = values
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + np.float32(node.number("epsilon", 1e-5)))
        addend = offset - mean * factor
    x = call.ordered()
    behind = len(x.order) - 1 - x.order.index(1) if len(x.order) > 1 else 0

    def per_channel(numbers: Array, role: str) -> Value:
        return call.array(numbers.astype(call.dtype().numpy).reshape(-1, *(1,) * behind), role)

    return x * per_channel(factor, "factor") + per_channel(addend, "addend")


_LAYERS: Mapping[str, LayerType] = {
    "Add": LayerType.ADD,
    "And": LayerType.LOGICAL_AND,
    "BitwiseXor": LayerType.BITWISE_XOR,
    "Div": LayerType.DIV,
    "Mul": LayerType.MUL,
    "Or": LayerType.LOGICAL_OR,
    "Sub": LayerType.SUB,
    "Equal": LayerType.EQUAL,
    "Greater": LayerType.GREATER,
    "GreaterOrEqual": LayerType.GREATER_EQUAL,
    "Less": LayerType.LESS,
    "LessOrEqual": LayerType.LESS_EQUAL,
    "Xor": LayerType.NOT_EQUAL,
}
"""The operators of two inputs that become one layer without parameters."""

ROWS: Mapping[str, Row] = {
    **{op: binary(type_) for op, type_ in _LAYERS.items()},
    "BatchNormalization": Row(_batch_normalization, 5, outputs=5),
    "Max": binary(LayerType.MAXIMUM, most=MANY),
    "Mean": Row(_mean, 1, MANY),
    "Min": binary(LayerType.MINIMUM, most=MANY),
    "Mod": Row(_mod, 2),
    "Pow": Row(_pow, 2),
    "Sum": binary(LayerType.ADD, most=MANY),
    "Where": Row(_where, 3),
}
