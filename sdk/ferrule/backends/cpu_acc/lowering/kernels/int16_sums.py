# SPDX-License-Identifier: Apache-2.0
"""What sums of int16 data times int8 weights can be, how they are scaled, and how many products they have."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernels.convolution import Convolution
from ferrule.graph import Array
from ferrule.operators.arithmetic.fixed_point import Factor, factor_arrays, reduced_multiplier

WIDE_SHIFT = 15
"""A sum times the reduced multiplier is shifted to the right by this minus the factor's shift."""
_LARGEST_DATA = 1 << 15


def largest_sums(bias: Array, matrix: Array) -> Array:
    """Return the largest magnitude of a sum of bias and products for each channel, whatever the int16 data is."""
    reach: Array = np.abs(matrix.astype(np.int64)).sum(axis=1) * _LARGEST_DATA + np.abs(bias)
    return reach


def once_multipliers(factors: Sequence[Factor], word_shift: int) -> Array:
    """Return the multipliers of factors for sums that are rounded once, which include the shifts.

    The core's product of a sum and a multiplier is shifted to the right by `word_shift`.
    """
    multipliers, shifts = factor_arrays(factors)
    found: Array = reduced_multiplier(multipliers) << (word_shift - WIDE_SHIFT + shifts)
    return found


def taps_inside(layer: Convolution) -> tuple[int, int]:
    """Return how many taps of all windows are inside the image along each axis: for one column, and for one row."""
    window, image, output = layer.window, layer.image.shape, layer.output.shape

    def inside(kernel: int, stride: int, dilation: int, pad: int, extent: int, count: int) -> int:
        places = np.arange(count)[:, None] * stride - pad + np.arange(kernel) * dilation
        return int(np.count_nonzero((places >= 0) & (places < extent)))

    return (
        inside(window.height, window.stride_h, window.dilation_h, window.padding.top, image[1], output[1]),
        inside(window.width, window.stride_w, window.dilation_w, window.padding.left, image[2], output[2]),
    )
