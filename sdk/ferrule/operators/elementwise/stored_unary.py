# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of ABS, RSQRT and ELU on quantised values, as in TensorFlow Lite Micro."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ferrule.errors import UnsupportedError
from ferrule.graph.real_values import round_half_away
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic import fixed_point_functions as functions
from ferrule.operators.arithmetic.fixed_point import (
    MAX_SHIFT,
    Int64Array,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
)
from ferrule.operators.elementwise.stored_binary import Result, result_of
from ferrule.operators.operator import Operands

StoredFunction = Callable[[Operands], Callable[[Int64Array], Int64Array]]
"""Operands -> the function of stored values; UnsupportedError if the scales are too far apart."""
ROOT_BITS = 20
"""Fractional bits of RSQRT's intermediate result."""


def absolute_rescaling(operands: Operands) -> Result:
    """Return the rescaling of ABS."""
    return _rescaling(operands, operands.source.scale / operands.output.scale, -31)


def root_rescaling(operands: Operands) -> Result:
    """Return the rescaling of RSQRT."""
    real = 1 / (math.sqrt(operands.source.scale) * operands.output.scale)
    return _rescaling(operands, real, ROOT_BITS - 31)


def _rescaling(operands: Operands, real: float, least_shift: int) -> Result:
    """Return the conversion by a factor; UnsupportedError if its shift is not `least_shift` to 30."""
    source, output = operands.ends
    multiplier, shift = quantize_multiplier(real)
    if not least_shift <= shift <= MAX_SHIFT:
        raise UnsupportedError(
            f"tensors '{source.name}' and '{output.name}' have scales {source.scale:g} and {output.scale:g}, which "
            f"make a factor of {real:g}, expected 2^{least_shift} to 2^{MAX_SHIFT}"
        )
    return result_of(output, Activation.NONE, multiplier, shift)


def absolute(operands: Operands) -> Callable[[Int64Array], Int64Array]:
    """Return ABS on stored values."""
    rescaling = absolute_rescaling(operands)
    return lambda stored: rescaling.apply(np.abs(stored - operands.source.zero_point))


def inverse_root(operands: Operands) -> Callable[[Int64Array], Int64Array]:
    """Return RSQRT on stored values; values of 0 or less give the highest result."""
    rescaling = root_rescaling(operands)
    result = replace(rescaling, shift=rescaling.shift - ROOT_BITS)

    def apply(stored: Int64Array) -> Int64Array:
        value = stored - operands.source.zero_point
        root, shift = functions.inverse_sqrt(np.maximum(value, 0))
        fine = multiply_by_quantized_multiplier(np.int64(1), root, shift + ROOT_BITS)
        return np.where(value <= 0, result.high, result.apply(fine))

    return apply


def elu(operands: Operands) -> Callable[[Int64Array], Int64Array]:
    """Return ELU on stored int8 values, computed step by step in float32."""
    source, output = operands.ends
    if not math.isfinite(255 * source.scale / output.scale) or 255 * source.scale / output.scale >= 2.0**30:
        raise UnsupportedError(
            f"tensors '{source.name}' and '{output.name}' have scales {source.scale:g} and {output.scale:g}, expected "
            "a quotient below 2^22"
        )

    def apply(stored: Int64Array) -> Int64Array:
        real = np.float32(source.scale) * (stored - source.zero_point).astype(np.float32)
        curve = np.exp(np.minimum(real, 0).astype(np.float64)).astype(np.float32) - np.float32(1)
        steps = round_half_away(np.where(real < 0, curve, real) * (np.float32(1) / np.float32(output.scale)))
        return np.clip((steps + np.float32(output.zero_point)).astype(np.int64), -128, 127)

    return apply
