# SPDX-License-Identifier: Apache-2.0
"""Rows of operators that compute each element by itself; the order of the axes stays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.onnx.call import Call
from ferrule.formats.onnx.layout import Layout
from ferrule.formats.onnx.node import elements
from ferrule.formats.onnx.rows import MANY, Row
from ferrule.graph import Array, DataType, Descriptor, LayerType, Rounding, Shape
from ferrule.operators.binary import BinaryDescriptor, ExtremumDescriptor
from ferrule.operators.comparison import ComparisonDescriptor, LogicalDescriptor
from ferrule.operators.division import FlooredDescriptor
from ferrule.operators.elementwise_unary import ElementwiseUnaryDescriptor
from ferrule.operators.select import SelectV2Descriptor


def broadcast(call: Call, positions: Sequence[int]) -> tuple[list[str], Layout]:
    """Return the network's tensors for inputs that broadcast, and the layout of a result with their common shape.

    The order of axes is that of the largest input that is computed at run time.
    """
    shapes = [call.shape(position) for position in positions]
    try:
        shape = tuple(np.broadcast_shapes(*shapes))
    except ValueError:
        raise ModelError(f"its inputs have the shapes {', '.join(map(str, map(list, shapes)))}") from None
    frame = _frame(call, positions, shape)
    return [_in_frame(call, position, frame) for position in positions], frame


def _frame(call: Call, positions: Sequence[int], shape: Shape) -> Layout:
    computed = [position for position in positions if call.constant(position) is None]
    layouts = [call.place(position)[1] for position in computed]
    if not layouts:
        return Layout.plain(shape)
    largest = max(
        layouts, key=lambda layout: (len(layout.shape) == len(shape), elements(layout.shape), layout.is_moved)
    )
    rank = len(shape)
    if len(largest.shape) != rank:
        return Layout.plain(shape)
    if largest.is_pending:
        constants = [call.constant(position) for position in positions if position not in computed]
        simple = all(data is not None and (data.size == 1 or data.shape == shape) for data in constants)
        if largest.shape == shape and simple and all(layout == largest for layout in layouts):
            return largest
        largest = largest.settled()
        if largest.is_pending:
            return Layout.plain(shape)
    return Layout(order=largest.order, split=shape, shape=shape)


def _in_frame(call: Call, position: int, frame: Layout) -> str:
    data = call.constant(position)
    if data is not None:
        return call.variant(position, _constant_in(data, frame), ("frame", frame), axis=0)
    if frame.is_pending:
        return call.place(position)[0]
    shape = call.shape(position)
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


def binary(
    type_: LayerType, descriptor: Descriptor, dtype: DataType | None = None, *, inputs: range = range(2, 3)
) -> Row:
    """Return the row of an operator with two inputs that broadcast, or with several, from left to right."""

    def emit(call: Call) -> None:
        tensors, layout = broadcast(call, range(len(call.node.inputs)))
        if len(tensors) == 1:
            call.alias(0)
            return
        if type_ is LayerType.ADD and _is_repeated_first(call):
            tensors.reverse()
        result = tensors[0]
        for tensor in tensors[1:-1]:
            result = call.add(type_, descriptor, result, tensor)
        call.finish(type_, descriptor, result, tensors[-1], layout=layout, dtype=dtype)

    return Row(emit=emit, inputs=inputs)


def _is_repeated_first(call: Call) -> bool:
    """Whether an addition of integers begins with its second input, as onnxruntime's does if the first is repeated.

    That is so if the first has one element where the second has several, along the last axis with more than one.
    """
    stored = call.stored()
    if stored is None or stored.rounding is Rounding.TFLM:
        return False
    pairs = zip(reversed(call.shape(0)), reversed(call.shape(1)), strict=False)
    first, second = next(((a, b) for a, b in pairs if (a, b) != (1, 1)), (1, 1))
    return (first == 1 and second > 1) or (not call.shape(0) and call.shape(1) != ())


def _mean(call: Call) -> None:
    tensors, layout = broadcast(call, range(len(call.node.inputs)))
    result = tensors[0]
    for tensor in tensors[1:]:
        result = call.add(LayerType.ADD, BinaryDescriptor(), result, tensor)
    call.finish(LayerType.MUL, BinaryDescriptor(), result, call.number(1 / len(tensors), result), layout=layout)


def _mod(call: Call) -> None:
    if call.node.integer("fmod", 0) != 0:
        raise UnsupportedError(
            "its attribute 'fmod' is 1, expected 0: the result has the sign of the divisor",
            hint="export the model with torch.remainder in place of torch.fmod",
        )
    tensors, layout = broadcast(call, (0, 1))
    call.finish(LayerType.FLOOR_MOD, FlooredDescriptor(), *tensors, layout=layout)


def _pow(call: Call) -> None:
    exponent = call.scalar(1, "exponent")
    source, layout = call.place(0)
    if exponent == 1:
        call.alias(0)
        return
    if exponent == 3:
        square = call.add(LayerType.SQUARE, ElementwiseUnaryDescriptor(), source)
        call.finish(LayerType.MUL, BinaryDescriptor(), square, source, layout=layout)
        return
    if exponent == -1:
        call.finish(LayerType.DIV, BinaryDescriptor(), call.number(1, source), source, layout=layout)
        return
    type_ = {2.0: LayerType.SQUARE, 0.5: LayerType.SQRT, -0.5: LayerType.RSQRT}.get(exponent or 0)
    if type_ is None:
        raise UnsupportedError(
            f"its exponent is {exponent}, expected 2, 3, 1, 0.5, -0.5 or -1", hint="write the power as products"
        )
    call.finish(type_, ElementwiseUnaryDescriptor(), source, layout=layout)


def _where(call: Call) -> None:
    tensors, layout = broadcast(call, (0, 1, 2))
    call.finish(LayerType.SELECT_V2, SelectV2Descriptor(), *tensors, layout=layout, dtype=call.info(tensors[1]).dtype)


def _batch_normalization(call: Call) -> None:
    """Add MUL and ADD with a factor and an addend per channel."""
    node = call.node
    call.refuse_outputs(1)
    if node.integer("training_mode", 0):
        raise UnsupportedError("its attribute 'training_mode' is 1, expected 0", hint="export the model with eval()")
    roles = ("scale", "offset", "mean", "variance")
    arrays = [call.parameter(index, role) for index, role in enumerate(roles, 1)]
    shape = call.shape(0)
    channels = shape[1] if len(shape) > 1 else 1
    with np.errstate(all="ignore"):
        values = [each.astype(np.float64) for each in arrays if each is not None and each.shape == (channels,)]
    if len(values) != 4:
        raise ModelError(f"its parameters do not have one number for each of {channels} channels")
    scale, offset, mean, variance = values
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + np.float32(node.number("epsilon", 1e-5)))
        addend = offset - mean * factor
    source, order = call.ordered(0)
    product = call.add(LayerType.MUL, BinaryDescriptor(), source, _per_axis(call, factor, order, 1, "factor"))
    call.finish(LayerType.ADD, BinaryDescriptor(), product, _per_axis(call, addend, order, 1, "addend"), order=order)


def _per_axis(call: Call, values: Array, order: Sequence[int], axis: int, role: str) -> str:
    """Add a constant with one number for each index of an axis of the model's tensor."""
    behind = len(order) - 1 - tuple(order).index(axis) if len(order) > axis else 0
    return call.array(values.astype(call.dtype(0).numpy).reshape(-1, *(1,) * behind), role)


_BOOL = DataType.BOOL
_ANY = range(1, MANY)

ROWS: Mapping[str, Row] = {
    "Add": binary(LayerType.ADD, BinaryDescriptor()),
    "And": binary(LayerType.LOGICAL_AND, LogicalDescriptor()),
    "BatchNormalization": Row(emit=_batch_normalization, inputs=range(5, 6), outputs=range(1, 6)),
    "Div": binary(LayerType.DIV, BinaryDescriptor()),
    "Equal": binary(LayerType.EQUAL, ComparisonDescriptor(), _BOOL),
    "Greater": binary(LayerType.GREATER, ComparisonDescriptor(), _BOOL),
    "GreaterOrEqual": binary(LayerType.GREATER_EQUAL, ComparisonDescriptor(), _BOOL),
    "Less": binary(LayerType.LESS, ComparisonDescriptor(), _BOOL),
    "LessOrEqual": binary(LayerType.LESS_EQUAL, ComparisonDescriptor(), _BOOL),
    "Max": binary(LayerType.MAXIMUM, ExtremumDescriptor(), inputs=_ANY),
    "Mean": Row(emit=_mean, inputs=_ANY),
    "Min": binary(LayerType.MINIMUM, ExtremumDescriptor(), inputs=_ANY),
    "Mod": Row(emit=_mod, inputs=range(2, 3)),
    "Mul": binary(LayerType.MUL, BinaryDescriptor()),
    "Or": binary(LayerType.LOGICAL_OR, LogicalDescriptor()),
    "Pow": Row(emit=_pow, inputs=range(2, 3)),
    "Sub": binary(LayerType.SUB, BinaryDescriptor()),
    "Sum": binary(LayerType.ADD, BinaryDescriptor(), inputs=_ANY),
    "Where": Row(emit=_where, inputs=range(3, 4)),
    "Xor": binary(LayerType.NOT_EQUAL, ComparisonDescriptor(), _BOOL),
}
