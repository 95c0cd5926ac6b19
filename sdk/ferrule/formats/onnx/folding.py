# SPDX-License-Identifier: Apache-2.0
"""Computes the outputs of nodes whose inputs are constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from ferrule._frozen import positional
from ferrule.budget import Resource, Tally, afford, hold
from ferrule.errors import FerruleError, ModelError, UnsupportedError
from ferrule.formats.limits import front_axis
from ferrule.formats.onnx import shapes
from ferrule.formats.onnx.layout import identity
from ferrule.formats.onnx.node import Node, elements
from ferrule.formats.onnx.parse import NUMPY_TYPES
from ferrule.graph import Array, Shape

_WORKING_BYTES = 8
"""Of each element of a constant while it is computed."""


@positional
class _Inputs:
    """A node and the data of its inputs, None for an absent one."""

    node: Node
    arrays: Sequence[Any]
    check: Callable[[Shape], None]
    """Checks that a shape is one, and that its elements may be computed."""

    def __getitem__(self, position: int) -> Any:  # noqa: ANN401 of any type
        return self.arrays[position]

    def axis(self, default: int | None = 0) -> int:
        """Return the axis of the first input that the node names, counted from the front."""
        return front_axis(self.node.integer("axis", default), self[0].ndim)

    def integers(self, position: int, role: str = "") -> tuple[int, ...] | None:
        """Return the elements of an optional input."""
        del role
        array = self[position] if position < len(self.arrays) else None
        if array is None:
            return None
        if array.dtype.kind not in "iu":
            raise ModelError(f"a list of integers is {array.dtype}")
        return tuple(map(int, array.reshape(-1)))

    def broadcast(self) -> Sequence[Any]:
        """Return all inputs after a check of their common shape."""
        arrays = list(self.arrays)
        if len(arrays) == 2:
            arrays[1] = arrays[1].reshape(shapes.suffixed(self.node, arrays[0].ndim, arrays[1].shape))
        self.check(np.broadcast_shapes(*(each.shape for each in arrays)))
        return arrays


Fold = Callable[[_Inputs], Any]
"""The data of a node's output, or a list of that of several; None if it is not computed."""


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
                made = fold(_Inputs(node, inputs, self.spend))
                results = [np.asarray(each) for each in (made if isinstance(made, list) else [made])]
        except FerruleError:
            raise
        # numpy checks the shapes and types that a file combines, so what it says of them is said of the file
        except (ValueError, TypeError, IndexError, AttributeError, OverflowError, ZeroDivisionError) as error:
            raise ModelError(f"its constant inputs do not fit: {error}") from error
        if made is None or len(results) < len(node.outputs):
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
    return lambda given: np.asarray(function(given[0])).astype(given[0].dtype, copy=False)


def _many(function: Callable[[Any, Any], Any]) -> Fold:
    """Return the fold of a function of two arrays, applied to all inputs from left to right."""
    return lambda given: reduce(function, given.broadcast())


def _reshape(given: _Inputs) -> Any:  # noqa: ANN401
    return given[0].reshape(shapes.RESHAPES[given.node.key](given.node, given[0].shape, given.integers))


def _refuse_zeros(divisor: Any) -> None:  # noqa: ANN401 of any type
    if divisor.dtype.kind != "f" and not np.all(divisor):
        raise ModelError("it divides integers by 0")


def _divide(left: Any, right: Any) -> Any:  # noqa: ANN401
    if left.dtype.kind == "f":
        return left / right
    _refuse_zeros(right)
    return ((left - np.fmod(left, right)) // right).astype(left.dtype)


def _mod(given: _Inputs) -> Any:  # noqa: ANN401
    left, right = given.broadcast()[:2]
    _refuse_zeros(right)
    return np.fmod(left, right) if given.node.integer("fmod", 0) else np.mod(left, right)


def _clip(given: _Inputs) -> Any:  # noqa: ANN401
    result = given[0]
    for limit, function in zip(given.arrays[1:], (np.maximum, np.minimum), strict=False):
        if limit is not None:
            result = function(result, limit.reshape(()))
    return result


def _pow(given: _Inputs) -> Any:  # noqa: ANN401
    base, exponent = given.broadcast()[:2]
    if base.dtype.kind != "f" and np.any(exponent < 0):
        return None
    return np.power(base, exponent).astype(base.dtype)


def _cast(given: _Inputs) -> Any:  # noqa: ANN401
    wanted = NUMPY_TYPES.get(given.node.integer("to"))
    return None if wanted is None else given[0].astype(wanted)


def _concat(given: _Inputs) -> Any:  # noqa: ANN401
    return np.concatenate(given.arrays, given.axis(None))


def _gather(given: _Inputs) -> Any:  # noqa: ANN401
    data, indices = given.arrays
    axis = given.axis()
    given.check((*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]))
    if indices.dtype.kind not in "iu":
        raise ModelError(f"its indices are {indices.dtype}, expected integers")
    return np.take(data, indices, axis)


def _slice(given: _Inputs) -> Any:  # noqa: ANN401
    return given[0][np.ix_(*shapes.sliced(given[0].shape, given.integers))]


def _range(given: _Inputs) -> Any:  # noqa: ANN401
    start, limit, delta = (each.reshape(-1)[0] for each in given.arrays)
    if delta == 0:
        raise ModelError("its step is 0")
    count = max(int(np.ceil((limit - start) / delta)), 0)
    given.check((count,))
    return (start + np.arange(count) * delta).astype(given[0].dtype)


def _constant_of_shape(given: _Inputs) -> Any:  # noqa: ANN401
    value: Any = given.node.attributes.get("value", np.zeros(1, np.float32))
    shape = given.integers(0) or ()
    given.check(shape)
    return np.full(shape, value.reshape(-1)[0], value.dtype)


def _expand(given: _Inputs) -> Any:  # noqa: ANN401
    shape = shapes.expanded(given[0].shape, given.integers(1) or ())
    given.check(shape)
    return np.broadcast_to(given[0], shape)


def _tile(given: _Inputs) -> Any:  # noqa: ANN401
    repeats = given.integers(1) or ()
    given.check(tuple(extent * count for extent, count in zip(given[0].shape, repeats, strict=True)))
    return np.tile(given[0], repeats)


def _split(given: _Inputs) -> Any:  # noqa: ANN401
    axis = given.axis()
    sizes = shapes.split_sizes(given[0].shape[axis], given.integers(1), len(given.node.outputs))
    return list(np.split(given[0], np.cumsum(sizes)[:-1], axis))


def _reduce(function: Callable[..., Any]) -> Fold:
    def fold(given: _Inputs) -> Any:  # noqa: ANN401
        data, axes = given[0], shapes.reduced(given.node, given.integers(1), given[0].ndim)
        if axes is None:
            return data
        keep = given.node.flag("keepdims", default=True)
        return np.asarray(function(data, axis=axes, keepdims=keep)).astype(data.dtype)

    return fold


_FUNCTIONS: Mapping[str, Callable[[Any], Any]] = {
    "Abs": np.abs,
    "Ceil": np.ceil,
    "Exp": np.exp,
    "Floor": np.floor,
    "Log": np.log,
    "Neg": np.negative,
    "Not": np.logical_not,
    "Reciprocal": np.reciprocal,
    "Round": np.rint,
    "Sign": np.sign,
    "Sqrt": np.sqrt,
}
_OF_MANY: Mapping[str, Callable[[Any, Any], Any]] = {
    "Add": np.add,
    "And": np.logical_and,
    "Div": _divide,
    "Equal": np.equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Max": np.maximum,
    "Min": np.minimum,
    "Mul": np.multiply,
    "Or": np.logical_or,
    "Sub": np.subtract,
    "Xor": np.logical_xor,
}
FOLDS: Mapping[str, Fold] = {
    **{op: _unary(function) for op, function in _FUNCTIONS.items()},
    **{op: _many(function) for op, function in _OF_MANY.items()},
    **dict.fromkeys(shapes.RESHAPES, _reshape),
    "Cast": _cast,
    "Clip": _clip,
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "Expand": _expand,
    "Gather": _gather,
    "Identity": lambda given: given[0],
    "Mod": _mod,
    "NonZero": lambda given: np.array(np.nonzero(given[0]), np.int64),
    "Pow": _pow,
    "Range": _range,
    "ReduceMax": _reduce(np.max),
    "ReduceMean": _reduce(np.mean),
    "ReduceMin": _reduce(np.min),
    "ReduceProd": _reduce(np.prod),
    "ReduceSum": _reduce(np.sum),
    "Shape": lambda given: shape_of(given.node, given[0].shape),
    "Size": lambda given: np.array(given[0].size, np.int64),
    "Slice": _slice,
    "Split": _split,
    "Tile": _tile,
    "Transpose": lambda given: np.transpose(given[0], given.node.integers("perm", identity(given[0].ndim)[::-1])),
    "Where": lambda given: np.where(*given.broadcast()),
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
