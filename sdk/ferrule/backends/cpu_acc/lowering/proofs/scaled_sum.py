# SPDX-License-Identifier: Apache-2.0
"""ADD and SUB of int8 by two multiplications, where a check of all 65536 pairs shows that the results are exact.

The C (`ferrule/kernels/binary.h`) computes (constant + (first * 256 * a >> 16) + (second * 256 * b >> 16)) >> 20 and
saturates it to int8.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from ferrule.graph import Array
from ferrule.operators.elementwise import STORED, Additive, int8_results

_FRACTION_BITS = 20
"""The value of FRACTION_BITS in the C kernel."""
_STEPS = (0, 1, -1, 4, -4, 16, -16, 64, -64)
"""Changes of a multiplier to try."""


@dataclass(frozen=True, slots=True, kw_only=True)
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
    least = np.where(wanted == -128, -(1 << 40), wanted << _FRACTION_BITS)
    most = np.where(wanted == 127, 1 << 40, ((wanted + 1) << _FRACTION_BITS) - 1)
    sign = -1 if parts.second[127] < parts.second[0] else 1
    for step, other in sorted(itertools.product(_STEPS, _STEPS), key=lambda pair: abs(pair[0]) + abs(pair[1])):
        candidate = _constants(round(first) + step, sign * (round(second) + other), least, most)
        if candidate is not None:
            return candidate
    return None


def _constants(first: int, second: int, least: Array, most: Array) -> ScaledSum | None:
    sums = (first * STORED >> 8)[:, np.newaxis] + (second * STORED >> 8)
    low, high = int((least - sums).max()), int((most - sums).min())
    if low > high:
        return None
    constant = (low + high) // 2
    fits = int(sums.min()) + constant >= -(2**31) and int(sums.max()) + constant < 2**31
    return ScaledSum(first=first, second=second, constant=constant) if fits and abs(constant) < 2**31 else None
