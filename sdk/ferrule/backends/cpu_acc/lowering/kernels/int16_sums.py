# SPDX-License-Identifier: Apache-2.0
"""What sums of int16 data times int8 weights can be, and how many products they have."""

from __future__ import annotations

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernels.convolution import Convolution
from ferrule.graph import Array

_LARGEST_DATA = 1 << 15


def largest_sums(bias: Array, matrix: Array) -> Array:
    """Return the largest magnitude of a sum of bias and products for each channel, whatever the int16 data is."""
    reach: Array = np.abs(matrix.astype(np.int64)).sum(axis=1) * _LARGEST_DATA + np.abs(bias)
    return reach


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
