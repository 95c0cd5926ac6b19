# SPDX-License-Identifier: Apache-2.0
"""Rows of operators that move elements."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ferrule.errors import ModelError
from ferrule.formats.onnx.call import Call
from ferrule.formats.onnx.layout import identity
from ferrule.formats.onnx.node import elements
from ferrule.formats.onnx.rows import Row
from ferrule.graph import LayerType, Shape
from ferrule.operators.softmax import SoftmaxDescriptor


def reshape_shape(wanted: tuple[int, ...], old: Shape, *, allow_zero: bool) -> Shape:
    """Return the shape that Reshape makes: 0 keeps an extent, and -1 is what remains."""
    shape = list(wanted)
    for axis, extent in enumerate(shape):
        if extent == 0 and not allow_zero:
            if axis >= len(old):
                raise ModelError(f"its shape {list(wanted)} keeps axis {axis} of {list(old)}, which does not exist")
            shape[axis] = old[axis]
    count = elements(old)
    if shape.count(-1) == 1:
        known = -math.prod(shape)
        shape[shape.index(-1)] = count // known if known > 0 and count % known == 0 else -2
    if min(shape, default=0) < 0 or math.prod(shape) != count:
        raise ModelError(f"its shape {list(wanted)} does not fit {list(old)}")
    return tuple(shape)


def flatten_shape(shape: Shape, axis: int) -> Shape:
    """Return the shape that Flatten makes."""
    return elements(shape[:axis]), elements(shape[axis:])


def reshape_to(call: Call, shape: Shape) -> None:
    """Declare that the node's output is its first input with another shape."""
    if call.constant(0) is not None:
        call.declare(call.tensor(0, None, shape))
        return
    name = call.node.inputs[0]
    tensor, layout = call.emission.place(name)
    new = layout.reshaped(shape)
    if new.is_pending:
        call.declare(tensor, layout=new)
        return
    call.declare(call.emission.reshaped(tensor, new.stored, call.wanted(0, None, new)), layout=new)


def _reshape(call: Call) -> None:
    wanted = call.integers(1, "shape")
    reshape_to(call, reshape_shape(wanted or (), call.shape(0), allow_zero=call.node.integer("allowzero", 0) != 0))


def _flatten(call: Call) -> None:
    rank, axis = call.rank(0), call.node.integer("axis", 1)
    if not -rank <= axis <= rank:
        raise ModelError(f"its attribute 'axis' is {axis}, expected {-rank} to {rank}")
    reshape_to(call, flatten_shape(call.shape(0), axis + rank if axis < 0 else axis))


def last(call: Call, axis: int) -> tuple[str, tuple[int, ...]]:
    """Return the network's tensor for the first input with an axis last, and the order of its axes."""
    source, order = call.ordered(0)
    if order[-1] == axis:
        return source, order
    rank = call.rank(0)
    order = (*(other for other in identity(rank) if other != axis), axis)
    return call.tensor(0, order), order


def _softmax(call: Call) -> None:
    source, order = last(call, call.axis(call.node.integer("axis", -1), call.rank(0)))
    call.finish(LayerType.SOFTMAX, SoftmaxDescriptor(), source, order=order)


ROWS: Mapping[str, Row] = {
    "Flatten": Row(emit=_flatten),
    "Reshape": Row(emit=_reshape, inputs=range(2, 3)),
    "Softmax": Row(emit=_softmax),
}
