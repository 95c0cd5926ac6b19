# SPDX-License-Identifier: Apache-2.0
"""Layers that Vela 5.2 compiles, and whose results are not those of TensorFlow Lite Micro.

Found by comparing streams of random layers with the reference (tests/support/vela_campaign.py). Some are defects of the
compiler, others another rounding; the NPU's backend refuses them, since firmware is to have the bits of the reference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ferrule.graph import Array, DataType, Graph, Layer, LayerType
from ferrule.graph.real_values import overflowing_floats
from ferrule.operators.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    reduced_multiplier,
)
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS, having
from ferrule.operators.weighted.products import centred, factors, is_wide

Check = Callable[[Any, Operands], bool]

BY_ONE = "rounds some results otherwise than TensorFlow Lite Micro, by 1"
_ARITHMETIC = frozenset({LayerType.ADD, LayerType.SUB, LayerType.MUL})
_END = 1 << 31
_TIE = 1e-4
"""Steps of the output around a tie."""
_AROUND = 8
"""Sums around a tie, one of which is the first to be rounded up."""


def known_reason(graph: Graph, layer: Layer) -> str:
    """Return what the NPU or Vela computes otherwise for a layer of a graph; "" if nothing is known."""
    reason = known_difference(layer, Operands.of(graph, layer))
    return reason or ("the NPU saturates sums that may wrap in TensorFlow Lite Micro" if may_wrap(graph, layer) else "")


def known_difference(layer: Layer, operands: Operands) -> str:
    """Return what is computed otherwise whatever the constants are; "" if nothing is known."""
    check, what = TABLE.get(layer.type, (None, ""))
    if check is not None and check(layer.descriptor, operands):
        return f"Vela 5.2 {what}"
    if layer.type is LayerType.BATCH_MATMUL and _sums_nearly_tied(layer.descriptor, operands):
        return f"Vela 5.2 {BY_ONE}"
    if _is_unsigned(layer, operands):
        return "Vela 5.2 clamps some uint8 results to the range of int8, and files have such weights in uint8"
    if layer.type in _ARITHMETIC and operands.source.dtype is DataType.INT32:
        return "the NPU saturates int32 results, which wrap in TensorFlow Lite Micro"
    return ""


def _is_unsigned(layer: Layer, operands: Operands) -> bool:
    """Return whether a layer has uint8 tensors, or weights with a zero point, which files store as uint8."""
    present = [info for info in (*operands.inputs, *operands.outputs) if info is not None]
    if any(info.dtype is DataType.UINT8 for info in present):
        return True
    weights = operands.inputs[1] if layer.type in having(weighted=True) else None
    return weights is not None and weights.quantization is not None and any(weights.quantization.zero_points)


def _int16(_: Any, operands: Operands) -> bool:  # noqa: ANN401
    return operands.source.dtype is DataType.INT16


def _mirrors_channels_or_batches(descriptor: Any, operands: Operands) -> bool:  # noqa: ANN401
    pads = [before + after for before, after in zip(descriptor.before, descriptor.after, strict=True)]
    return bool(pads[-1]) or (len(operands.source.shape) > 3 and any(pads[:-3]))


def _nearly_tied(_: Any, operands: Operands) -> bool:  # noqa: ANN401
    """Return whether a result of an int8 ELU is nearly a tie, which float32 and float64 may round apart."""
    source, output = operands.ends
    if source.dtype is not DataType.INT8:
        return False
    real = source.scale * (np.arange(-128, 128) - source.zero_point)
    stored = np.where(real < 0, np.expm1(np.minimum(real, 0)), real) / output.scale + output.zero_point
    inside = stored[(stored > -129) & (stored < 128)]
    return bool(np.any(np.abs(inside - np.floor(inside) - 0.5) < _TIE))


def _sums_nearly_tied(descriptor: Any, operands: Operands) -> bool:  # noqa: ANN401
    """Return whether a sum of products is rounded apart by a factor from scales multiplied in float32, as Vela does."""
    left, right, output = *operands.pair, operands.output
    if left.dtype not in {DataType.INT8, DataType.INT16}:
        return False
    with overflowing_floats():
        product = float(np.float32(left.scale) * np.float32(right.scale))
    exact = left.scale * right.scale / output.scale
    if not math.isfinite(product / output.scale):
        return True
    factors = [quantize_multiplier(real) for real in (exact, product / output.scale)]
    if factors[0] == factors[1]:
        return False
    if left.dtype is DataType.INT16:
        first, second = ((int(reduced_multiplier(multiplier)), shift) for multiplier, shift in factors)
        return first != second
    most = left.shape[-2 if descriptor.adj_x else -1]
    for info in (left, right):
        most *= max(info.zero_point + 128, 127 - info.zero_point)
    ties = np.floor((np.arange(-129, 128) - output.zero_point + 0.5) / exact).astype(np.int64)
    sums = ties[np.abs(ties) <= most, None] + np.arange(-_AROUND, _AROUND + 1)
    one, other = (multiply_by_quantized_multiplier(sums, *factor) for factor in factors)
    return bool(np.any(one != other))


_SELECTS = (lambda descriptor, _: not descriptor.keep_dims, "reduces other elements where keep_dims is false")
TABLE: Mapping[LayerType, tuple[Check, str]] = {
    LayerType.BATCH_MATMUL: (
        lambda _, operands: len(operands.output.shape) > 4,
        "multiplies other matrices where there are five axes",
    ),
    LayerType.ELU: (_nearly_tied, BY_ONE),
    LayerType.LEAKY_RELU: (lambda each, operands: each.alpha < 0 or _int16(each, operands), BY_ONE),
    LayerType.MIRROR_PAD: (_mirrors_channels_or_batches, "does not mirror channels and batches"),
    LayerType.MUL: (_int16, BY_ONE),
    LayerType.PRELU: (_int16, "computes int16 results otherwise than TensorFlow Lite Micro"),
    LayerType.REDUCE_MAX: _SELECTS,
    LayerType.REDUCE_MIN: _SELECTS,
    LayerType.RSQRT: (_int16, "interpolates int16 results in a table"),
    LayerType.SOFTMAX: (_int16, BY_ONE),
    LayerType.SUM: (lambda *_: True, "rounds sums otherwise than TensorFlow Lite Micro, and mistakes several axes"),
    LayerType.UNIDIRECTIONAL_SEQUENCE_LSTM: (
        lambda descriptor, _: bool(descriptor.cell_clip),
        "clips the cell otherwise than TensorFlow Lite Micro",
    ),
}
"""For each type of layer, a condition and what is otherwise."""


def may_wrap(graph: Graph, layer: Layer) -> bool:
    """Return whether a layer with constant weights has sums that may exceed 32 bits where the reference wraps them.

    Such inputs are far from random ones, so that no trial can be relied on to find them; bounds of the sums do.
    """
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
    data, info = operands.pair
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
