# SPDX-License-Identifier: Apache-2.0
"""Sums of products that wrap in TensorFlow Lite Micro, where the NPU saturates.

Such inputs are far from random ones, so that no trial can be relied on to find them; bounds of the sums do.
"""

from __future__ import annotations

import numpy as np

from ferrule.graph import Array, DataType, Graph, Layer
from ferrule.operators.fixed_point import reduced_multiplier
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS
from ferrule.operators.weighted import centred, factors, is_wide

_END = 1 << 31


def may_wrap(graph: Graph, layer: Layer) -> bool:
    """Return whether a layer with constant weights has sums that may exceed 32 bits where the reference wraps them."""
    axis = OPERATORS[layer.type].channel_axis
    arrays = [None if name is None else graph.tensor(name).data for name in layer.inputs]
    operands = Operands.of(graph, layer)
    if axis is None or arrays[1] is None or operands.output.dtype not in {DataType.INT8, DataType.INT16}:
        return False
    sums = _largest_sums(operands, arrays, axis)
    for largest, factor in zip(sums, factors(operands, axis), strict=True):
        if is_wide(operands):  # the rescaled sum is cut to 32 bits
            scaled = largest * int(reduced_multiplier(factor.multiplier)) * 2.0 ** (factor.shift - 15)
        else:  # so is the sum, and the sum shifted to the left
            scaled = largest * 2.0 ** max(factor.shift, 0)
        if scaled >= _END:
            return True
    return False


def _largest_sums(operands: Operands, arrays: list[Array | None], axis: int) -> list[int]:
    """Return a bound of the magnitude of each channel's sum, with the bias."""
    data, info = operands.input(0), operands.input(1)
    assert arrays[1] is not None
    weights = np.abs(centred(arrays[1], info).astype(np.int64))
    sums = weights.sum(axis=tuple(each for each in range(weights.ndim) if each != axis))
    limits = np.iinfo(data.dtype.numpy)
    zero_point = data.zero_point
    largest = sums * max(int(limits.max) - zero_point, zero_point - int(limits.min))
    bias = arrays[2] if len(arrays) > 2 else None
    if bias is not None:
        largest = largest + np.abs(bias.astype(np.int64))
    return [int(each) for each in largest]
