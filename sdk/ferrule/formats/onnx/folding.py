# SPDX-License-Identifier: Apache-2.0
"""Computes the outputs of nodes whose inputs are constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from ferrule.budget import Resource, Tally, afford, hold
from ferrule.errors import FerruleError, ModelError, UnsupportedError
from ferrule.formats.onnx import shapes
from ferrule.formats.onnx.node import Node, elements
from ferrule.graph import Array, Shape

Fold = Callable[[Node, Sequence[Any], Callable[[Shape], None]], Sequence[Any]]
"""(node, the data of its inputs, check of a shape) -> the data of its outputs, or nothing if it is not computed."""

_WORKING_BYTES = 8
"""Of each element of a constant while it is computed."""
_CASTS: Mapping[int, str] = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
}


class Folding:
    """Computes the constants of one file, as far as the present budget goes."""

    def __init__(self) -> None:
        self._tally = Tally()

    def outputs(self, node: Node, inputs: Sequence[Array | None]) -> list[Array] | None:
        """Return the outputs of a node whose present inputs are constants; None if its operator is not computed.

        Raises:
            ModelError: the inputs do not fit.
            BudgetError: the nodes of this file compute too much.
        """
        fold = FOLDS.get(node.key)
        if fold is None:
            return None
        for each in inputs:
            if each is not None:
                self.spend(each.shape)
        try:
            with np.errstate(all="ignore"):
                results = [np.asarray(each) for each in fold(node, inputs, self.spend)]
        except FerruleError:
            raise
        except (ValueError, TypeError, IndexError, AttributeError, OverflowError, ZeroDivisionError) as error:
            raise ModelError(f"its constant inputs do not fit: {error}") from error
        if len(results) < len(node.outputs):
            return None
        for name, result in zip(node.outputs, results, strict=False):
            hold(result.nbytes, f"the constant '{name}'")
        return results[: len(node.outputs)]

    def spend(self, shape: Shape) -> None:
        """Count the elements of a tensor; BudgetError if they are too many, ModelError if it is none."""
        if min(shape, default=0) < 0:
            raise ModelError(f"it computes a constant of the shape {list(shape)}")
        afford(Resource.BYTES, _WORKING_BYTES * elements(shape), f"a constant of the shape {list(shape)}")
        self._tally.spend(Resource.ELEMENTS, elements(shape), "computing the constants up to here")


def _unary(function: Callable[[Any], Any]) -> Fold:
    return lambda node, inputs, check: [np.asarray(function(inputs[0])).astype(inputs[0].dtype, copy=False)]


def _many(function: Callable[[Any, Any], Any]) -> Fold:
    """Return the fold of a function of two arrays, applied to all inputs from left to right."""

    def fold(node: Node, inputs: Sequence[Any], check: Callable[[Shape], None]) -> Sequence[Any]:
        check(np.broadcast_shapes(*(each.shape for each in inputs)))
        return [reduce(function, inputs)]

    return fold


def _divide(left: Any, right: Any) -> Any:  # noqa: ANN401
    if left.dtype.kind == "f":
        return left / right
    if not np.all(right):
        raise ModelError("it divides integers by 0")
    quotient = np.abs(left) // np.abs(right)
    return (np.sign(left) * np.sign(right) * quotient).astype(left.dtype)


def _mod(node: Node, inputs: Sequence[Any], check: Callable[[Shape], None]) -> Sequence[Any]:
    check(np.broadcast_shapes(inputs[0].shape, inputs[1].shape))
    if inputs[0].dtype.kind != "f" and not np.all(inputs[1]):
        raise ModelError("it divides integers by 0")
    return [np.fmod(*inputs) if node.integer("fmod", 0) else np.mod(*inputs)]


def _clip(node: Node, inputs: Sequence[Any], check: Callable[[Shape], None]) -> Sequence[Any]:
    del node, check
    result = inputs[0]
    for limit, function in zip(inputs[1:], (np.maximum, np.minimum), strict=False):
        if limit is not None:
            result = function(result, limit.reshape(()))
    return [result]


def _pow(node: Node, inputs: Sequence[Any], check: Callable[[Shape], None]) -> Sequence[Any]:
    check(np.broadcast_shapes(inputs[0].shape, inputs[1].shape))
    if inputs[0].dtype.kind != "f" and np.any(inputs[1] < 0):
        return []
    return [np.power(inputs[0], inputs[1]).astype(inputs[0].dtype)]


def _where(node: Node, inputs: Sequence[Any], check: Callable[[Shape], None]) -> Sequence[Any]:
    check(np.broadcast_shapes(*(each.shape for each in inputs)))
    return [np.where(*inputs)]


def _cast(node: Node, inputs: Sequence[Any], check: Callable[[Shape], None]) -> Sequence[Any]:
    wanted = _CASTS.get(node.integer("to"))
    return [] if wanted is None else [inputs[0].astype(wanted)]


def _concat(node: Node, inputs: Sequence[Any], check: Callable[[Shape], None]) -> Sequence[Any]:
    return [np.concatenate(inputs, shapes.front_axis(node.integer("axis"), inputs[0].ndim))]


def _gather(node: Node, inputs: Sequence[Any], check: Callable[[Shape], None]) -> Sequence[Any]:
    data, indices = inputs
    axis = shapes.front_axis(node.integer("axis", 0), data.ndim)
    check((*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]))
    if indices.dtype.kind not in "iu":
        raise ModelError(f"its indices are {indices.dtype}, expected integers")
    return [np.take(data, indices, axis)]


def _slice(node: Node, inputs: Sequence[Any], check: Callable[[Shape], None]) -> Sequence[Any]:
    lists = [None if each is None else tuple(map(int, each.reshape(-1))) for each in inputs[1:]]
    starts, ends, axes, steps = (*lists, None, None)[:4]
    if starts is None or ends is None:
        raise ModelError("it has no starts or no ends")
    result = inputs[0]
    for axis, indices in enumerate(shapes.sliced(result.shape, starts, ends, axes, steps)):
        result = np.take(result, np.array(indices, np.int64), axis)
    return [result]


def _integers(array: Any) -> tuple[int, ...]:  # noqa: ANN401
    if array.dtype.kind not in "iu":
        raise ModelError(f"a list of integers is {array.dtype}")
    return tuple(map(int, array.reshape(-1)))


def _squeeze(node: Node, inputs: Sequence[Any], check: Callable[[Shape], None]) -> Sequence[Any]:
    axes = _integers(inputs[1]) if len(inputs) > 1 and inputs[1] is not None else None
    return [inputs[0].reshape(shapes.squeezed(inputs[0].shape, axes))]


def _unsqueeze(node: Node, inputs: Sequence[Any], check: Callable[[Shape], None]) -> Sequence[Any]:
    return [inputs[0].reshape(shapes.unsqueezed(inputs[0].shape, _integers(inputs[1])))]


def _reshape(node: Node, inputs: Sequence[Any], check: Callable[[Shape], None]) -> Sequence[Any]:
    allow_zero = node.integer("allowzero", 0) != 0
    return [inputs[0].reshape(shapes.reshaped(_integers(inputs[1]), inputs[0].shape, allow_zero=allow_zero))]


def _flatten(node: Node, inputs: Sequence[Any], check: Callable[[Shape], None]) -> Sequence[Any]:
    return [inputs[0].reshape(shapes.flattened(inputs[0].shape, node.integer("axis", 1)))]


def _transpose(node: Node, inputs: Sequence[Any], check: Callable[[Shape], None]) -> Sequence[Any]:
    return [np.transpose(inputs[0], node.integers("perm", tuple(range(inputs[0].ndim))[::-1]))]


def _range(node: Node, inputs: Sequence[Any], check: Callable[[Shape], None]) -> Sequence[Any]:
    start, limit, delta = (each.reshape(-1)[0] for each in inputs)
    if delta == 0:
        raise ModelError("its step is 0")
    count = max(int(np.ceil((limit - start) / delta)), 0)
    check((count,))
    return [(start + np.arange(count) * delta).astype(inputs[0].dtype)]


def _constant_of_shape(node: Node, inputs: Sequence[Any], check: Callable[[Shape], None]) -> Sequence[Any]:
    value: Any = node.attributes.get("value", np.zeros(1, np.float32))
    shape = _integers(inputs[0])
    check(shape)
    return [np.full(shape, value.reshape(-1)[0], value.dtype)]


def _expand(node: Node, inputs: Sequence[Any], check: Callable[[Shape], None]) -> Sequence[Any]:
    shape = shapes.expanded(inputs[0].shape, _integers(inputs[1]))
    check(shape)
    return [np.broadcast_to(inputs[0], shape)]


def _tile(node: Node, inputs: Sequence[Any], check: Callable[[Shape], None]) -> Sequence[Any]:
    repeats = _integers(inputs[1])
    check(tuple(extent * count for extent, count in zip(inputs[0].shape, repeats, strict=True)))
    return [np.tile(inputs[0], repeats)]


def _split(node: Node, inputs: Sequence[Any], check: Callable[[Shape], None]) -> Sequence[Any]:
    axis = shapes.front_axis(node.integer("axis", 0), inputs[0].ndim)
    sizes = _integers(inputs[1]) if len(inputs) > 1 and inputs[1] is not None else None
    ends = np.cumsum(shapes.split_sizes(inputs[0].shape[axis], sizes, len(node.outputs)))
    return list(np.split(inputs[0], ends[:-1], axis))


def _reduce(function: Callable[..., Any]) -> Fold:
    def fold(node: Node, inputs: Sequence[Any], check: Callable[[Shape], None]) -> Sequence[Any]:
        axes: Any = node.integers("axes", ())
        if len(inputs) > 1 and inputs[1] is not None:
            axes = _integers(inputs[1])
        if not axes and node.integer("noop_with_empty_axes", 0):
            return [inputs[0]]
        chosen = shapes.front_axes(axes, inputs[0].ndim) or None
        keep = node.integer("keepdims", 1) != 0
        return [np.asarray(function(inputs[0], axis=chosen, keepdims=keep)).astype(inputs[0].dtype)]

    return fold


FOLDS: Mapping[str, Fold] = {
    "Abs": _unary(np.abs),
    "Add": _many(np.add),
    "And": _many(np.logical_and),
    "Cast": _cast,
    "Ceil": _unary(np.ceil),
    "Clip": _clip,
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "Div": _many(_divide),
    "Equal": _many(np.equal),
    "Exp": _unary(np.exp),
    "Expand": _expand,
    "Flatten": _flatten,
    "Floor": _unary(np.floor),
    "Gather": _gather,
    "Greater": _many(np.greater),
    "GreaterOrEqual": _many(np.greater_equal),
    "Identity": lambda node, inputs, check: [inputs[0]],
    "Less": _many(np.less),
    "LessOrEqual": _many(np.less_equal),
    "Log": _unary(np.log),
    "Max": _many(np.maximum),
    "Min": _many(np.minimum),
    "Mod": _mod,
    "Mul": _many(np.multiply),
    "Neg": _unary(np.negative),
    "NonZero": lambda node, inputs, check: [np.array(np.nonzero(inputs[0]), np.int64)],
    "Not": _unary(np.logical_not),
    "Or": _many(np.logical_or),
    "Pow": _pow,
    "Range": _range,
    "Reciprocal": _unary(np.reciprocal),
    "ReduceMax": _reduce(np.max),
    "ReduceMean": _reduce(np.mean),
    "ReduceMin": _reduce(np.min),
    "ReduceProd": _reduce(np.prod),
    "ReduceSum": _reduce(np.sum),
    "Reshape": _reshape,
    "Round": _unary(np.rint),
    "Shape": lambda node, inputs, check: [shape_of(node, inputs[0].shape)],
    "Sign": _unary(np.sign),
    "Size": lambda node, inputs, check: [np.array(inputs[0].size, np.int64)],
    "Slice": _slice,
    "Split": _split,
    "Sqrt": _unary(np.sqrt),
    "Squeeze": _squeeze,
    "Sub": _many(np.subtract),
    "Tile": _tile,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    "Where": _where,
    "Xor": _many(np.logical_xor),
}
"""The operators that are computed, by `Node.key`."""


def shape_of(node: Node, shape: Shape) -> Array:
    """Return the output of Shape."""
    start, end = node.integer("start", 0), node.integer("end", len(shape))
    return np.array(shape[slice(start, end)], np.int64)


def constant_of(node: Node) -> Array:
    """Return the value of a Constant node."""
    for name, value in node.attributes.items():
        if name in {"value", "value_float", "value_floats", "value_int", "value_ints"} and not isinstance(value, str):
            return np.asarray(value, {"value_f": np.float32, "value_i": np.int64}.get(name[:7]))
    raise UnsupportedError("its value is no tensor of numbers", hint="export the model without texts")
