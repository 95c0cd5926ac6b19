# SPDX-License-Identifier: Apache-2.0
"""ADD, SUB and MUL of int8 by ONNX's rule in exact integers, where all scales are small numbers over powers of two.

Such layers have many ties, which no sum that is rounded up can turn to even. The C (`ferrule/kernels/binary.h`)
computes whole numbers of 2**-shift steps and rounds these once, halves to even. Whether the result is the rule's is
checked for all pairs of inputs.
"""

from __future__ import annotations

import numpy as np

from ferrule._frozen import frozen
from ferrule.graph import Array
from ferrule.operators.elementwise.onnx_elementwise import FloatDifference, FloatProduct, FusedSum, RealProduct
from ferrule.operators.elementwise.stored_binary import STORED, Combination, int8_results

_MOST_SHIFT = 30
_LIMIT = 2**31


@frozen
class DyadicConstants:
    """The constants of the kernel, each an int32."""

    first: int
    second: int
    multiplier: int
    constant: int
    shift: int
    zero_point: int
    low: int
    high: int


def dyadic_constants(combination: Combination) -> DyadicConstants | None:
    """Return constants with the exact result for every pair of int8 inputs; None if there are none."""
    slopes: tuple[float, ...]
    match combination:
        case FusedSum(output=output):
            slopes = (combination.first_factor, combination.second_factor)
            zero_point, low, high = output.stored_offset, output.low, output.high
            constant = combination.constant - output.stored_offset * sum(slopes)
        case FloatDifference(scale=scale, low=low, high=high, zero_point=zero_point):
            slopes = (combination.first_scale / scale, -combination.second_scale / scale)
            constant = -slopes[0] * combination.first_zero_point - slopes[1] * combination.second_zero_point
        case FloatProduct(output=output):
            slopes = (combination.factor,)
            zero_point, low, high = output.stored_offset, output.low, output.high
            constant = output.zero_point
        case RealProduct(fused=fused):
            found = dyadic_constants(fused)
            return found if found is not None and _is_exact(found, combination) else None
        case _:
            return None
    shift = _shift_of((*slopes, constant))
    if shift is None:
        return None
    whole = [round(slope * 2.0**shift) for slope in slopes]
    first, second, multiplier = (*whole, 0) if len(whole) == 2 else (*_offsets(combination), whole[0])
    found = DyadicConstants(
        first=first,
        second=second,
        multiplier=multiplier,
        constant=round(constant * 2.0**shift),
        shift=shift,
        zero_point=zero_point,
        low=low,
        high=high,
    )
    return found if _is_exact(found, combination) else None


def _offsets(combination: Combination) -> tuple[int, int]:
    assert isinstance(combination, FloatProduct)
    return combination.first_offset, combination.second_offset


def _shift_of(numbers: tuple[float, ...]) -> int | None:
    """Return the least shift, from 1 on, that makes whole numbers of all; None if there is none."""
    for shift in range(1, _MOST_SHIFT + 1):
        if all((number * 2.0**shift).is_integer() for number in map(float, numbers)):
            return shift
    return None


def _is_exact(found: DyadicConstants, combination: Combination) -> bool:
    rows = STORED[:, np.newaxis]
    if isinstance(combination, FloatProduct | RealProduct):
        values: Array = (rows + found.first) * (STORED + found.second) * found.multiplier
    else:
        values = rows * found.first + STORED * found.second
    reach = np.abs(values).max() + abs(found.constant) + (2 << found.shift)
    if reach >= _LIMIT or max(abs(found.first), abs(found.second)) * 128 >= _LIMIT:
        return False
    steps = np.rint((values + found.constant) / 2.0**found.shift).astype(np.int64) + found.zero_point
    return np.array_equal(np.clip(steps, found.low, found.high).reshape(-1), int8_results(combination))
