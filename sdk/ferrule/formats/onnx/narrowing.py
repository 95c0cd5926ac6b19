# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of int64 tensors, which networks have for int32 only, where all results are proved to fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product

import numpy as np

from ferrule.errors import UnsupportedError
from ferrule.formats.onnx.call import Value
from ferrule.graph import DataType, LayerType
from ferrule.operators.reductions.arg_select import ArgSelectDescriptor

Range = tuple[int, int]
"""The lowest and the highest value that a tensor can have."""

_INT32: Range = (-(2**31), 2**31 - 1)
_MOVING = frozenset(
    {
        LayerType.BROADCAST_TO,
        LayerType.CAST,
        LayerType.GATHER,
        LayerType.GATHER_ND,
        LayerType.RESHAPE,
        LayerType.SLICE,
        LayerType.SPLIT,
        LayerType.SPLIT_V,
        LayerType.STRIDED_SLICE,
        LayerType.TILE,
        LayerType.TRANSPOSE,
    }
)
"""Layers whose results are elements of an input, or of its type's range."""
_DEEPEST = 64
"""The most layers that are followed from one tensor."""
ARITHMETIC: Mapping[LayerType, Callable[[int, int], int]] = {
    LayerType.ADD: lambda left, right: left + right,
    LayerType.MAXIMUM: max,
    LayerType.MINIMUM: min,
    LayerType.MUL: lambda left, right: left * right,
    LayerType.SUB: lambda left, right: left - right,
}
"""The layers of int32 that compute for int64. Their extreme results are those of extreme operands."""


def computed(type_: LayerType, left: Value, right: Value) -> Value:
    """Return a layer of two int64 tensors, which computes with int32.

    Raises:
        UnsupportedError: an operand or a result may exceed 32 bits.
    """
    ranges = _range(left), _range(right)
    results = [ARITHMETIC[type_](*each) for each in product(*ranges)]
    found = min(results), max(results)
    for low, high in (*ranges, found):
        if (low < _INT32[0] or high > _INT32[1]) and found != (0, 0):
            raise UnsupportedError(
                f"its data are int64, and numbers from {low} to {high} are possible, expected those of 32 bits",
                hint="compute with int32 or float32 in the model, or outside of it",
            )
    wide = _narrowed(left).then(type_, _narrowed(right)).cast(DataType.INT64)
    left.call.emission.ranges[wide.tensor] = found
    return wide


def _narrowed(value: Value) -> Value:
    """Return a tensor as int32; one that exceeds it loses its upper bits, which a product with 0 does not need."""
    tensor = value.call.emission.network.tensor(value.tensor)
    if tensor.data is None:
        return value.cast(DataType.INT32)
    wrapped = tensor.data.astype(np.int64).astype(np.uint32).view(np.int32)
    return value.call.array(wrapped, "int32").ordered(value.axes)


def _range(value: Value) -> Range:
    """Return the range of a tensor, as far as the layers that made it show it."""
    network, known = value.call.emission.network, value.call.emission.ranges
    name, limits = value.tensor, _INT64
    for _ in range(_DEEPEST):
        if name in known:
            return _within(known[name], limits)
        tensor = network.tensor(name)
        if tensor.data is not None:
            return _within((int(tensor.data.min()), int(tensor.data.max())), limits)
        limits = _within(_of_type(tensor.info.dtype), limits)
        layer = network.producer(name)
        if layer is None:
            return limits
        if isinstance(layer.descriptor, ArgSelectDescriptor):
            extent = network.info(str(layer.inputs[0])).shape[layer.descriptor.axis]
            return _within((0, extent - 1), limits)
        if layer.type not in _MOVING or network.info(str(layer.inputs[0])).dtype.is_float:
            return limits
        name = str(layer.inputs[0])
    return limits


_INT64: Range = (-(2**63), 2**63 - 1)


def _of_type(dtype: DataType) -> Range:
    if dtype is DataType.BOOL:
        return 0, 1
    if dtype.is_float:
        return _INT64
    limits = np.iinfo(dtype.numpy)
    return int(limits.min), int(limits.max)


def _within(found: Range, limits: Range) -> Range:
    """Return the range of numbers as a type with other limits holds them, which is all of that if some exceed it."""
    return found if limits[0] <= found[0] and found[1] <= limits[1] else limits
