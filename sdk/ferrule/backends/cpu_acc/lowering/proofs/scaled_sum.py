# SPDX-License-Identifier: Apache-2.0
"""ADD and SUB of int8 by two multiplications or two tables, exact as a check of all 65536 pairs shows.

With multiplications, the C (`ferrule/kernels/binary.h`) computes
(constant + (first * 256 * a >> 16) + (second * 256 * b >> 16)) >> 20 and saturates it to int8.
"""

from __future__ import annotations

import itertools

import numpy as np

from ferrule._frozen import frozen
from ferrule.graph import Array
from ferrule.operators.elementwise.stored_binary import STORED, Additive, int8_results

_FRACTION_BITS = 20
"""The value of FRACTION_BITS in the C kernel."""
_STEPS = (0, 1, -1, 4, -4, 16, -16, 64, -64)
"""Changes of a multiplier to try."""
TIE_BREAKERS = (0.0, 2.0**-22, 2.0**-20, 2.0**-18, -(2.0**-20))
"""Relative changes of factors or tables to try; a small change rounds halves away from zero, as the reference does."""
_NUDGES = (0, -1, 1)


@frozen
class ScaledSum:
    """The constants of the kernel, each an int32."""

    first: int
    second: int
    constant: int


def scaled_sum(total: Additive) -> ScaledSum | None:
    """Return constants with the exact result for every pair of int8 inputs; None if none were found."""
    parts = total.parts()
    if (parts.low, parts.high) != (-128, 127):
        return None
    wanted = int8_results(total).reshape(256, 256).astype(np.int64)
    factor = parts.unit * 2.0**_FRACTION_BITS
    first, second = (np.ptp(part) * factor / 255 * 256 for part in (parts.first, parts.second))
    if max(first, second) >= 2**31 - 1024:
        return None
    sign = -1 if parts.second[127] < parts.second[0] else 1
    steps = sorted(itertools.product(_STEPS, _STEPS), key=lambda pair: abs(pair[0]) + abs(pair[1]))
    tries = [(breaker, 0, 0) for breaker in TIE_BREAKERS] + [(0.0, *pair) for pair in steps[1:]]
    for breaker, step, other in tries:
        a, b = round(first * (1 + breaker)) + step, sign * (round(second * (1 + breaker)) + other)
        constant = fitting_constant(a * STORED >> 8, b * STORED >> 8, wanted, (-128, 127), _FRACTION_BITS)
        if constant is not None:
            return ScaledSum(first=a, second=b, constant=constant)
    return None


def fitting_constant(first: Array, second: Array, wanted: Array, limits: tuple[int, int], shift: int) -> int | None:
    """Return the constant with which (first + second + constant) >> shift, clamped to the limits, is `wanted`.

    `first` and `second` have what each stored value adds. None if there is no such constant with sums of 32 bits.
    """
    sums = first[:, np.newaxis] + second
    least = np.where(wanted == limits[0], -(1 << 40), wanted << shift)
    most = np.where(wanted == limits[1], 1 << 40, ((wanted + 1) << shift) - 1)
    smallest, largest = min(int(sums.min()), 0), max(int(sums.max()), 0)
    low = max(int((least - sums).max()), -(2**31) - smallest)
    high = min(int((most - sums).min()), 2**31 - 1 - largest)
    return (low + high) // 2 if low <= high else None


def sum_tables(total: Additive) -> tuple[Array, Array] | None:
    """Return two int32 tables with the exact result for every pair of int8 inputs; None if none were found.

    They are indexed by a stored value read as uint8; the result is (first + second) >> 20, saturated to int8.
    """
    parts = total.parts()
    if (parts.low, parts.high) != (-128, 127):
        return None
    wanted = int8_results(total).reshape(256, 256)
    unit = 2.0**_FRACTION_BITS
    factor, constant = parts.unit * unit, (parts.constant + 0.5) * unit
    for tie_breaker in TIE_BREAKERS:
        first = np.rint(parts.first * factor * (1 + tie_breaker)).astype(np.int64)
        for nudge in _NUDGES:
            second = np.rint(parts.second * factor * (1 + tie_breaker) + constant + nudge).astype(np.int64)
            sums = first[:, np.newaxis] + second
            # The entries of the tables must fit into 32 bits, too.
            if max(np.abs(table).max() for table in (sums, first, second)) >= 2**31:
                return None
            if np.array_equal(np.clip(sums >> _FRACTION_BITS, -128, 127), wanted):
                return first.astype(np.int32), second.astype(np.int32)
    return None
