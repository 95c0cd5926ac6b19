# SPDX-License-Identifier: Apache-2.0
"""Sliding windows over the height and width of NHWC images: convolutions and pools share them."""

from __future__ import annotations

from dataclasses import dataclass

from ferrule.errors import UnsupportedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Padding:
    """Explicit zero padding, in pixels; for integers the padded pixels hold the zero point."""

    top: int = 0
    bottom: int = 0
    left: int = 0
    right: int = 0


NO_PADDING = Padding()


def same_padding(extent: int, kernel: int, stride: int, dilation: int = 1) -> tuple[int, int]:
    """Return the padding before and after one axis for TensorFlow's SAME: the odd pixel goes after."""
    effective = (kernel - 1) * dilation + 1
    out = -(-extent // stride)
    total = max((out - 1) * stride + effective - extent, 0)
    return total // 2, total - total // 2


def output_extent(extent: int, kernel: int, stride: int, dilation: int, before: int, after: int) -> int:
    """Return how many windows fit along one axis.

    Raises:
        UnsupportedError: none fits.
    """
    effective = (kernel - 1) * dilation + 1
    count = (extent + before + after - effective) // stride + 1
    if count < 1:
        raise UnsupportedError(f"a window of {effective} does not fit into {extent} + {before} + {after} padded pixels")
    return count
