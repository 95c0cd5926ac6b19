# SPDX-License-Identifier: Apache-2.0
"""LAYER_NORMALIZATION of int8 over the last axis, in integers: (x - mean) / sqrt(variance + epsilon) * gamma + beta.

The sums are exact. What follows is in fixed point with so many bits that a result is that of real numbers, unless these
are within a few thousandths of a step of a half. docs/operators.md states the rule.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, Descriptor, LayerType, Rounding, TensorInfo
from ferrule.graph.real_values import saturated
from ferrule.operators.arithmetic.fixed_point import high_product
from ferrule.operators.arithmetic.fixed_point_functions import inverse_sqrt
from ferrule.operators.movement.checks import check_per_tensor, check_types
from ferrule.operators.operator import Operands, Operator, of_one
from ferrule.operators.sample import LayerSample

_MOST_DEPTH = 1 << 15
_LEAST_SHIFT = 8
"""The fewest bits behind the point before a result is rounded."""
_MOST_SHIFT = 24
_UNIT_BITS = 28
"""The bits of a normalised value of the largest magnitude, 2**spread."""
FRACTION_BITS = 16
"""Of the variance, times the square of the length of a row."""
_FROM, _TO = 1 << 27, 1 << 29
"""The range of the variance of which the root is taken."""


@frozen
class LayerNormalizationDescriptor(Descriptor):
    """One int8 input, one int8 output."""

    gains: tuple[int, ...]
    """gamma over the output's scale, for each element of a row, with 2**-(shift + 4 + spread) as unit."""
    offsets: tuple[int, ...]
    """beta over the output's scale, plus the zero point and 1/2, with 2**-shift as unit."""
    shift: int
    epsilon: int
    """epsilon over the square of the input's scale, times the square of a row's length, with 2**(epsilon_shift - 16) as
    unit."""
    epsilon_shift: int

    @property
    def added(self) -> int:
        """What is added to the variance, times the square of a row's length, with 16 bits behind the point."""
        return self.epsilon << self.epsilon_shift


def spread(depth: int) -> int:
    """Return the bits of the largest magnitude that a normalised value of rows can have, the root of their length."""
    return ((depth - 1).bit_length() + 1) // 2


def headroom(depth: int) -> int:
    """Return how far the differences from the mean can be shifted, plus the bits by which the root is shifted."""
    return 16 - spread(depth) + FRACTION_BITS // 2


def normalization_of(
    gamma: Array, beta: Array, epsilon: float, source: TensorInfo, output: TensorInfo
) -> LayerNormalizationDescriptor:
    """Return the layer for factors and summands of each element of a row, which are real numbers.

    Raises:
        UnsupportedError: the numbers are not finite, or too large or small for the scales.
    """
    depth = source.shape[-1] if source.shape else 0
    if gamma.shape != (depth,) or beta.shape != (depth,) or not 1 <= depth <= _MOST_DEPTH:
        raise UnsupportedError(
            f"gamma {list(gamma.shape)} and beta {list(beta.shape)} do not have the length of a row of "
            f"'{source.name}', {depth}, which may be at most {_MOST_DEPTH}"
        )
    with np.errstate(all="ignore"):
        factors = gamma.astype(np.float64) / output.scale
        summands = beta.astype(np.float64) / output.scale + output.zero_point
        large = np.max(2.0 ** (spread(depth) + 1) * np.abs(factors) + np.abs(summands)) + 1
    added = epsilon / source.scale / source.scale * depth * depth * (1 << FRACTION_BITS)
    if not (math.isfinite(large) and math.isfinite(added) and added >= 0):
        raise UnsupportedError(f"gamma, beta or epsilon of '{output.name}' is negative, not finite or too large")
    unit = _UNIT_BITS - spread(depth)
    shift = min(30 - math.frexp(large)[1], unit - 2 - math.frexp(float(np.max(np.abs(factors))))[1], _MOST_SHIFT)
    if shift < _LEAST_SHIFT:
        raise UnsupportedError(f"gamma or beta is too large for the scale of '{output.name}', {output.scale:g}")
    epsilon_shift = max(math.frexp(added)[1] - 31, 0)
    return LayerNormalizationDescriptor(
        gains=tuple(int(each) for each in np.rint(np.ldexp(factors, shift + 32 - unit))),
        offsets=tuple(int(each) for each in np.rint(np.ldexp(summands + 0.5, shift))),
        shift=shift,
        epsilon=min(round(math.ldexp(added, -epsilon_shift)), (1 << 31) - 1),
        epsilon_shift=epsilon_shift,
    )


def _check(descriptor: LayerNormalizationDescriptor, operands: Operands) -> None:
    check_types(operands, frozenset({DataType.INT8}))
    check_per_tensor(*operands.ends)
    source, depth = operands.source, len(descriptor.gains)
    if source.shape[-1:] != (depth,) or len(descriptor.offsets) != depth or not 1 <= depth <= _MOST_DEPTH:
        raise UnsupportedError(
            f"tensor '{source.name}' has shape {list(source.shape)}, but there are {depth} gains and "
            f"{len(descriptor.offsets)} offsets, expected 1 to {_MOST_DEPTH} of each, one for each element of a row"
        )
    if not 1 <= descriptor.shift <= _MOST_SHIFT or not 0 <= descriptor.epsilon < 1 << 31:
        raise UnsupportedError(f"shift {descriptor.shift} or epsilon {descriptor.epsilon} is out of range")
    largest = (65025 * depth * depth // 4) << FRACTION_BITS
    largest += descriptor.added if 0 <= descriptor.epsilon_shift <= 31 else 1 << 62
    if largest >= min(_TO << (2 * headroom(depth)), 1 << 62):
        raise UnsupportedError(f"epsilon is too large for the scale of '{source.name}', {source.scale:g}")
    pairs = zip(descriptor.gains, descriptor.offsets, strict=True)
    if any(abs(gain) >= 1 << 31 or (abs(gain) >> 3) + abs(offset) >= (1 << 31) - 2 for gain, offset in pairs):
        raise UnsupportedError("a gain or an offset does not fit into 32 bits")


def _kernel(descriptor: LayerNormalizationDescriptor, _: Operands, data: Array) -> Array:
    stored, depth = data.astype(np.int64), data.shape[-1]
    total = stored.sum(axis=-1, keepdims=True)
    variance = depth * np.square(stored).sum(axis=-1, keepdims=True) - np.square(total)
    variance, halvings = _in_range(np.maximum((variance << FRACTION_BITS) + descriptor.added, 1 << FRACTION_BITS))
    root, _shift = inverse_sqrt(variance)  # the shift is the same for all numbers in range
    centred = (depth * stored - total) << (headroom(depth) - halvings)
    normalised = high_product(centred, root << 2)
    result = high_product(normalised, np.array(descriptor.gains, np.int64)) + np.array(descriptor.offsets, np.int64)
    return saturated(result >> descriptor.shift, np.int8)


def _in_range(values: Array) -> tuple[Array, Array]:
    """Return positive numbers divided by powers of 4, so that they are in range, and the exponents."""
    found, exponents = values, np.zeros_like(values)
    while (large := found >= _TO).any():
        found, exponents = np.where(large, found >> 2, found), exponents + large
    while (small := found < _FROM).any():
        found, exponents = np.where(small, found << 2, found), exponents - small
    return found, exponents


def _sample(sample: LayerSample) -> LayerNormalizationDescriptor:
    info = sample.take((sample.dice.randint(1, 3), sample.dice.randint(1, 40)))
    sample.output = sample.quantization(sample.dtype)
    kept = (info.quantization, sample.output) if info.dtype is DataType.INT8 else (None, None)
    source, output = (  # of int8 also where the operator refuses the type
        replace(info, dtype=DataType.INT8, quantization=each or sample.quantization(DataType.INT8)) for each in kept
    )
    gamma, beta = (sample.array(info.shape[-1:], DataType.FLOAT32) for _ in range(2))
    return normalization_of(gamma, beta, sample.dice.choice([0.0, 1e-5, 0.1]), source, output)


LAYER_NORMALIZATION = Operator(
    descriptor=LayerNormalizationDescriptor,
    type=LayerType.LAYER_NORMALIZATION,
    check=_check,
    kernel=of_one(_kernel),
    sample=_sample,
    rules=frozenset({Rounding.TFLM, Rounding.ONNX}),
)
