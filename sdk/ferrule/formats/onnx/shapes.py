# SPDX-License-Identifier: Apache-2.0
"""The shapes that operators make, as computed from parameters; ModelError where the parameters do not fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.limits import MAX_RANK, front_axis
from ferrule.formats.onnx.node import Node, elements
from ferrule.graph import Shape

Parameter = Callable[[int, str], tuple[int, ...] | None]
"""(position, role) -> the integers of a constant input; None if it is absent."""


def front_axes(values: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return axes counted from the front, in the given order."""
    axes = tuple(front_axis(value, rank) for value in values)
    if len(set(axes)) != len(axes):
        raise ModelError(f"its axes {list(values)} repeat an axis")
    return axes


def reshaped(wanted: Sequence[int], old: Shape, *, allow_zero: bool) -> Shape:
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


def flattened(shape: Shape, axis: int) -> Shape:
    """Return the shape that Flatten makes."""
    rank = len(shape)
    if not -rank <= axis <= rank:
        raise ModelError(f"its attribute 'axis' is {axis}, expected {-rank} to {rank}")
    axis = axis + rank if axis < 0 else axis
    return elements(shape[:axis]), elements(shape[axis:])


def squeezed(shape: Shape, axes: Sequence[int] | None) -> Shape:
    """Return the shape that Squeeze makes."""
    chosen = front_axes(axes, len(shape)) if axes else [axis for axis, extent in enumerate(shape) if extent == 1]
    if any(shape[axis] != 1 for axis in chosen):
        raise ModelError(f"its axes {list(chosen)} of {list(shape)} are not all of extent 1")
    return tuple(extent for axis, extent in enumerate(shape) if axis not in chosen)


def unsqueezed(shape: Shape, axes: Sequence[int]) -> Shape:
    """Return the shape that Unsqueeze makes."""
    chosen = front_axes(axes, len(shape) + len(axes))
    extents = iter(shape)
    return tuple(1 if axis in chosen else next(extents) for axis in range(len(shape) + len(axes)))


def sliced(shape: Shape, given: Parameter) -> tuple[range, ...]:
    """Return the indices that Slice takes of each axis."""
    starts, ends = given(1, "starts"), given(2, "ends")
    if starts is None or ends is None:
        raise ModelError("it has no starts or no ends")
    axes, steps = given(3, "axes"), given(4, "steps")
    axes = tuple(range(len(starts))) if axes is None else axes
    steps = (1,) * len(starts) if steps is None else steps
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise ModelError("its starts, ends, axes and steps differ in length, or a step is 0")
    result = [range(extent) for extent in shape]
    for start, end, axis, step in zip(starts, ends, front_axes(axes, len(shape)), steps, strict=True):
        last = None if step < 0 and end < -shape[axis] else end  # a step back to the front has no end in Python
        result[axis] = range(*slice(start, last, step).indices(shape[axis]))
    return tuple(result)


def split_sizes(extent: int, sizes: Sequence[int] | None, parts: int) -> tuple[int, ...]:
    """Return the sizes of the parts of Split; without sizes, all but the last are equal."""
    if sizes is None:
        each = -(-extent // parts)
        sizes = (*(each,) * (parts - 1), extent - each * (parts - 1))
    if len(sizes) != parts or sum(sizes) != extent or min(sizes) < 0:
        raise ModelError(f"its sizes {list(sizes)} do not fit an extent of {extent} and {parts} outputs")
    return tuple(sizes)


def expanded(shape: Shape, wanted: Sequence[int]) -> Shape:
    """Return the shape to which Expand broadcasts."""
    if len(wanted) > MAX_RANK:  # numpy's function fails in several ways beyond 32 axes
        raise UnsupportedError(f"its shape {list(wanted)} has {len(wanted)} axes, expected at most {MAX_RANK}")
    try:
        return np.broadcast_shapes(shape, tuple(wanted))
    except ValueError:
        raise ModelError(f"its shape {list(wanted)} does not broadcast with {list(shape)}") from None


def static(values: Sequence[int]) -> Shape:
    """Return extents as a shape; UnsupportedError if one is 0, which networks do not have."""
    if min(values, default=1) < 1:
        raise UnsupportedError(f"its output has shape {list(values)}, expected extents of 1 or more")
    return tuple(values)


_NUMPY = 7
"""The opset from which on operators of two inputs broadcast as numpy does."""


def suffixed(node: Node, rank: int, shape: Shape) -> Shape:
    """Return the shape of the second input of a node, with which it broadcasts with a first one of `rank` axes.

    Before opset 7, the attribute `axis` names the axis of the first input with which the second one's axes begin, and
    a PRelu has one slope for each channel.
    """
    if node.version >= _NUMPY or not shape:
        return shape
    axis = node.integer("axis", 1 if node.op == "PRelu" and len(shape) == 1 < rank else rank - len(shape))
    behind = rank - len(shape) - (axis + rank if axis < 0 else axis)
    if not 0 <= behind <= rank - len(shape):
        raise ModelError(f"its attribute 'axis' is {axis}, and its inputs have {rank} and {len(shape)} axes")
    return (*shape, *(1,) * behind)


def reduced(node: Node, axes: Sequence[int] | None, rank: int) -> tuple[int, ...] | None:
    """Return the axes that a reduction is over, given its second input; None if it is over none, and does nothing."""
    chosen = front_axes(node.integers("axes", ()) if axes is None else axes, rank)
    if not chosen and node.flag("noop_with_empty_axes"):
        return None
    return chosen or tuple(range(rank))


def _reshape(node: Node, shape: Shape, given: Parameter) -> Shape:
    return reshaped(given(1, "shape") or (), shape, allow_zero=node.flag("allowzero"))


RESHAPES: Mapping[str, Callable[[Node, Shape, Parameter], Shape]] = {
    "Flatten": lambda node, shape, _: flattened(shape, node.integer("axis", 1)),
    "Reshape": _reshape,
    "Squeeze": lambda _, shape, given: squeezed(shape, given(1, "axes")),
    "Unsqueeze": lambda _, shape, given: unsqueezed(shape, given(1, "axes") or ()),
}
"""The shapes of operators that change nothing else, by `Node.key`: (node, shape of the input, parameter) -> shape."""
