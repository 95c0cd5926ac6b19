# SPDX-License-Identifier: Apache-2.0
"""Rows of operators that compute each element by itself; the order of the axes stays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ferrule.errors import ModelError
from ferrule.formats.onnx.call import Call
from ferrule.formats.onnx.layout import Layout
from ferrule.formats.onnx.node import elements
from ferrule.formats.onnx.rows import Row
from ferrule.graph import Array, Descriptor, LayerType, Shape
from ferrule.operators.binary import BinaryDescriptor
from ferrule.operators.rectify import ReluDescriptor


def unary(type_: LayerType, descriptor: Descriptor) -> Row:
    """Return the row of an operator with one input."""

    def emit(call: Call) -> None:
        source, layout = call.place(0)
        call.finish(type_, descriptor, source, layout=layout)

    return Row(emit=emit)


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


def binary(type_: LayerType, descriptor: Descriptor) -> Row:
    """Return the row of an operator with two inputs that broadcast."""

    def emit(call: Call) -> None:
        tensors, layout = broadcast(call, (0, 1))
        call.finish(type_, descriptor, *tensors, layout=layout)

    return Row(emit=emit, inputs=range(2, 3))


ROWS: Mapping[str, Row] = {
    "Add": binary(LayerType.ADD, BinaryDescriptor()),
    "Mul": binary(LayerType.MUL, BinaryDescriptor()),
    "Relu": unary(LayerType.RELU, ReluDescriptor()),
    "Sub": binary(LayerType.SUB, BinaryDescriptor()),
}
