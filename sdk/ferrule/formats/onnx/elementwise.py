# SPDX-License-Identifier: Apache-2.0
"""Rows of operators that compute each element by itself; the order of the axes stays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from operator import mul

import numpy as np

from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.onnx import narrowing, shapes
from ferrule.formats.onnx.call import Call, Value
from ferrule.formats.onnx.layout import Layout
from ferrule.formats.onnx.node import elements
from ferrule.formats.onnx.rows import MANY, Row
from ferrule.formats.onnx.windows import MAX_EXTENT
from ferrule.graph import Array, DataType, LayerType, Rounding, Shape
from ferrule.operators.arithmetic.window import NO_PADDING
from ferrule.operators.movement.pad import PadDescriptor
from ferrule.operators.spatial.pool2d import Pool2dDescriptor


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
        return reduce(partial(_of_two, type_), others, first)

    return Row(emit, 2, layer=type_) if most == 2 else Row(emit, 1, most)


def _of_two(type_: LayerType, left: Value, right: Value) -> Value:
    if left.dtype is DataType.INT64 and type_ in narrowing.ARITHMETIC:
        return narrowing.computed(type_, left, right)
    return left.then(type_, right)


def added(call: Call) -> Value:
    """Return the sum of two inputs that broadcast."""
    first, second = _broadcast(call)
    return first + second


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
    if not call.node.flag("fmod"):
        return binary(LayerType.FLOOR_MOD).emit(call)
    first, second = _broadcast(call)  # the remainder has the sign of the first one
    rest = abs(first).then(LayerType.FLOOR_MOD, abs(second))
    return first.then(LayerType.LESS, 0).select(rest.then(LayerType.NEG), rest)


_POWERS: Mapping[float | None, Callable[[Value], Value]] = {
    1: lambda x: x,
    0.5: lambda x: x.then(LayerType.SQRT),
    -0.5: lambda x: x.then(LayerType.RSQRT),
    -1: lambda x: 1 / x,
}
_LARGEST_POWER = 64
"""The largest exponent that becomes products."""


def _pow(call: Call) -> Value:
    exponent = call.scalar(1, "exponent")
    if exponent is None or not math.isfinite(exponent) or exponent == 0:
        raise UnsupportedError(f"its exponent is {exponent}, expected a finite number other than 0")
    if not call.dtype().is_float and exponent not in {1, 2, 3}:
        raise UnsupportedError(f"its exponent is {exponent} and its data are integers, expected 1, 2 or 3")
    return power(call.value(), exponent)


def power(x: Value, exponent: float) -> Value:
    """Return a power with an exponent other than 0.

    Whole exponents are products, those with a fraction of 0.25, 0.5 or 0.75 have square roots, too, and others are
    exp(exponent * log(x)).
    """
    if exponent in _POWERS:
        return _POWERS[exponent](x)
    size = abs(exponent)
    if size > _LARGEST_POWER or size % 0.25:
        return (x.then(LayerType.LOG) * exponent).then(LayerType.EXP)
    factors = _whole_powers(x, int(size))
    fraction = size % 1
    if fraction:
        root = x.then(LayerType.SQRT)
        factors += [root] if fraction != 0.25 else []
        factors += [root.then(LayerType.SQRT)] if fraction != 0.5 else []
    result = reduce(mul, factors)
    return 1 / result if exponent < 0 else result


def _whole_powers(x: Value, exponent: int) -> list[Value]:
    """Return factors whose product is a power: x, its square, the square of that and so on, of which some are taken."""
    factors = []
    while exponent:
        if exponent & 1:
            factors.append(x)
        exponent >>= 1
        if exponent:
            x = x.then(LayerType.SQUARE)
    return factors


def _local_response_normalization(call: Call) -> Value:
    """Add x / (bias + alpha * average of the squares of neighbouring channels) ^ beta, with zeros beyond the ends."""
    node, rank = call.node, call.rank()
    size, beta = node.integer("size"), node.number("beta", 0.75)
    if rank != 4:
        raise UnsupportedError(f"its input has shape {list(call.shape())}, expected 4 axes as onnxruntime does")
    if size % 2 == 0 or not 1 <= size <= MAX_EXTENT or beta == 0:
        raise UnsupportedError(
            f"its size is {size} and its beta {beta}, expected an odd size up to {MAX_EXTENT} and a beta other than 0"
        )
    x = call.tensor(0, (0, *range(2, rank), 1))
    *pixels, channels = x.shape
    rows = x.then(LayerType.SQUARE).reshaped((1, math.prod(pixels), channels, 1))
    padded = rows.then(PadDescriptor(before=(0, 0, size // 2, 0), after=(0, 0, size // 2, 0)))
    pool = Pool2dDescriptor(pool_h=1, pool_w=size, stride_h=1, stride_w=1, padding=NO_PADDING)
    means = padded.then(LayerType.AVERAGE_POOL_2D, pool).reshaped(x.shape, x.order)
    return x * power(means * node.number("alpha", 1e-4) + node.number("bias", 1.0), -beta)


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
    if any(call.constant(index) is None for index in range(1, 5)):
        return _computed_normalization(call)
    arrays = [call.constant(index) for index in range(1, 5)]
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


def _computed_normalization(call: Call) -> Value:
    """Add the layers of a batch normalisation with parameters from run time, in onnxruntime's order."""
    x = call.ordered()
    channels = call.shape()[1] if call.rank() > 1 else 1
    if any(call.shape(index) != (channels,) for index in range(1, 5)):
        raise ModelError(f"its parameters do not have one number for each of {channels} channels")
    behind = len(x.order) - 1 - x.order.index(1) if len(x.order) > 1 else 0
    scale, offset, mean, variance = (call.tensor(index, None, (channels, *(1,) * behind)) for index in range(1, 5))
    factor = scale / (variance + call.node.number("epsilon", 1e-5)).then(LayerType.SQRT)
    return x * factor + (offset - mean * factor)


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
    "LRN": Row(_local_response_normalization),
    "Max": binary(LayerType.MAXIMUM, most=MANY),
    "Mean": Row(_mean, 1, MANY),
    "Min": binary(LayerType.MINIMUM, most=MANY),
    "Mod": Row(_mod, 2),
    "Pow": Row(_pow, 2),
    "Sum": binary(LayerType.ADD, most=MANY),
    "Where": Row(_where, 3),
}
