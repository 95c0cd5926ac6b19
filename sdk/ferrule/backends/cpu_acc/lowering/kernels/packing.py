# SPDX-License-Identifier: Apache-2.0
"""The order of weights in constant arrays of kernels."""

from __future__ import annotations

import numpy as np

from ferrule.graph import Array


def filled(values: Array, *multiples: int) -> Array:
    """Return values with zeros behind them, so that each axis has a multiple of a number of elements, at least one."""
    axes = zip(values.shape, multiples, strict=True)
    return np.pad(values, [(0, max(-extent % multiple, multiple - extent)) for extent, multiple in axes])


def words(values: Array) -> Array:
    """Return values of 8, 16 or 32 bits, in their order, as int32 words; the first ones are the low parts of a word."""
    ordered = np.ascontiguousarray(values)
    return ordered.astype(ordered.dtype.newbyteorder("<"), copy=False).reshape(-1).view("<i4").astype(np.int32)
