# SPDX-License-Identifier: Apache-2.0
"""MUL of int8 by ONNX's rule as one multiplication, proved equal for every product that can occur.

The C (`ferrule/kernels/binary.h`) computes `((product * multiplier + constant) >> shift) + zero_point` and clamps it.
Neither it nor the rule ever falls as the product rises, so both are equal if they reach each stored value at the same
product.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ferrule._frozen import frozen
from ferrule.operators.arithmetic.fixed_point import Int64Array
from ferrule.operators.elementwise.onnx_elementwise import FloatProduct

_BITS = 30
"""The number of bits of the multiplier."""
_MOST_SHIFT = 46
"""With it, products of 17 bits times the multiplier stay below half a step."""
_TRIES = 64
"""How far the multiplier may lie from the nearest one."""


@frozen
class ScaledProduct:
    """The constants of the kernel; all but `constant` are int32."""

    multiplier: int
    constant: int
    """An int64."""
    shift: int
    zero_point: int


@lru_cache(maxsize=64)
def scaled_product(product: FloatProduct) -> ScaledProduct | None:
    """Return constants with the exact result for every product; None if none were found."""
    zero_point = product.output.zero_point + product.output.stored_offset
    fraction, exponent = np.frexp(product.factor)
    shift = _BITS - int(exponent)
    if product.factor == 0 or not 0 < shift <= _MOST_SHIFT:
        return None
    products, least = _steps(product)
    if not products.size:
        low = int(product.store(np.zeros(1, np.int64))[0])
        return ScaledProduct(multiplier=0, constant=0, shift=0, zero_point=low)
    wanted = (least - zero_point) << shift
    nearest = round(float(fraction) * 2.0**_BITS)
    for step in sorted(range(-_TRIES, _TRIES + 1), key=abs):
        multiplier = nearest + step
        lowest = int((wanted - products * multiplier).max())
        highest = int((wanted - 1 - (products - 1) * multiplier).min())
        if lowest <= highest:
            constant = (lowest + highest) // 2
            return ScaledProduct(multiplier=multiplier, constant=constant, shift=shift, zero_point=zero_point)
    return None


def _steps(product: FloatProduct) -> tuple[Int64Array, Int64Array]:
    """Return the products at which the result becomes larger, and the results there."""
    ends = np.array([-128, 127], np.int64)
    corners = np.multiply.outer(ends + product.first_offset, ends + product.second_offset)
    products = np.arange(int(corners.min()), int(corners.max()) + 1)
    results = product.store(products)
    rises = np.flatnonzero(np.diff(results)) + 1
    return products[rises], results[rises]
