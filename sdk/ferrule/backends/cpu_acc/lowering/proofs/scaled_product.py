# SPDX-License-Identifier: Apache-2.0
"""MUL of int8 by ONNX's rule as one multiplication, proved equal for every product that can occur.

The C (`ferrule/kernels/binary.h`) computes `((product * multiplier >> 18) + constant) >> 16` and clamps it.
Neither it nor the rule ever falls as the product rises, so both are equal if they reach each stored value at the same
product, and have the same value for the least and the largest product.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ferrule._frozen import frozen
from ferrule.operators.elementwise.onnx_elementwise import FloatProduct

_SHIFT, _FRACTION_BITS = 18, 16
_TRIES = 64
"""How far the multiplier may lie from the nearest one."""


@frozen
class ScaledProduct:
    """The constants of the kernel, each an int32."""

    multiplier: int
    constant: int


@lru_cache(maxsize=64)
def scaled_product(product: FloatProduct) -> ScaledProduct | None:
    """Return constants with the exact result for every product; None if none were found."""
    nearest = round(product.factor * 2.0 ** (_SHIFT + _FRACTION_BITS))
    if nearest + _TRIES >= 2**31:
        return None
    ends = np.array([-128, 127], np.int64)
    corners = np.multiply.outer(ends + product.first_offset, ends + product.second_offset)
    products = np.arange(int(corners.min()), int(corners.max()) + 1)
    results = product.store(products)
    rises = np.flatnonzero(np.diff(results)) + 1
    if not rises.size:
        return ScaledProduct(multiplier=0, constant=int(results[0]) << _FRACTION_BITS)
    # where the result must be reached, and where it may not be exceeded; at the ends, unless it is clamped there
    reached = rises if results[0] == product.output.low else np.append(0, rises)
    kept = rises - 1 if results[-1] == product.output.high else np.append(rises - 1, products.size - 1)
    least, most = results[reached] << _FRACTION_BITS, ((results[kept] + 1) << _FRACTION_BITS) - 1
    for step in sorted(range(-_TRIES, _TRIES + 1), key=abs):
        multiplier = max(nearest + step, 0)
        lowest = int((least - (products[reached] * multiplier >> _SHIFT)).max())
        highest = int((most - (products[kept] * multiplier >> _SHIFT)).min())
        if lowest <= highest:
            return ScaledProduct(multiplier=multiplier, constant=(lowest + highest) // 2)
    return None
