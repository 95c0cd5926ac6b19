# SPDX-License-Identifier: Apache-2.0
"""Sliding windows over the height and width of NHWC images, for convolutions and pools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, Shape, TensorInfo


@frozen
class Padding:
    """Explicit zero padding, in pixels; for integers the padded pixels hold the zero point."""

    top: int = 0
    bottom: int = 0
    left: int = 0
    right: int = 0


NO_PADDING = Padding()


def same_padding(extent: int, kernel: int, stride: int, dilation: int = 1) -> tuple[int, int]:
    """Return TensorFlow's SAME padding before and after one axis; an odd pixel goes after."""
    effective = (kernel - 1) * dilation + 1
    out = -(-extent // stride)
    total = max((out - 1) * stride + effective - extent, 0)
    return total // 2, total - total // 2


def same_of(
    extents: Sequence[int], window: tuple[int, int], strides: tuple[int, int], dilations: tuple[int, int] = (1, 1)
) -> Padding:
    """Return the explicit padding for the scheme SAME and the height and width of an image."""
    axes = zip(extents, window, strides, dilations, strict=True)
    (top, bottom), (left, right) = (same_padding(*axis) for axis in axes)
    return Padding(top=top, bottom=bottom, left=left, right=right)


def output_extent(extent: int, kernel: int, stride: int, dilation: int, before: int, after: int) -> int:
    """Return the number of windows that fit along one axis.

    Raises:
        UnsupportedError: no window fits.
    """
    effective = (kernel - 1) * dilation + 1
    count = (extent + before + after - effective) // stride + 1
    if count < 1:
        raise UnsupportedError(f"a window of {effective} does not fit into {extent} + {before} + {after} padded pixels")
    return count


@frozen
class Window:
    """A window that slides over an image."""

    height: int
    width: int
    stride_h: int
    stride_w: int
    dilation_h: int = 1
    dilation_w: int = 1
    padding: Padding = NO_PADDING

    @classmethod
    def of(cls, descriptor: Any, weights: TensorInfo) -> Window:  # noqa: ANN401 of a convolution
        """Return the window of weights [..., height, width, ...] with the strides of a descriptor.

        It has no dilation along an axis with a single pixel, where that has no effect.
        """
        _, height, width, _ = weights.shape
        return cls(
            height=height,
            width=width,
            stride_h=descriptor.stride_h,
            stride_w=descriptor.stride_w,
            dilation_h=descriptor.dilation_h if height > 1 else min(descriptor.dilation_h, 1),
            dilation_w=descriptor.dilation_w if width > 1 else min(descriptor.dilation_w, 1),
            padding=descriptor.padding,
        )

    @property
    def is_pointwise(self) -> bool:
        """Whether each pixel of the output is computed from the pixel of the image at its place."""
        one_pixel = (self.height, self.width, self.stride_h, self.stride_w) == (1, 1, 1, 1)
        return one_pixel and self.padding == NO_PADDING

    def output_size(self, info: TensorInfo) -> tuple[int, int]:
        """Return the height and the width of the output for an image.

        Raises:
            UnsupportedError: the image is not NHWC, a parameter is out of range, or no window fits.
        """
        if len(info.shape) != 4:
            raise UnsupportedError(f"tensor '{info.name}' has shape {list(info.shape)}, expected NHWC")
        for name in ("height", "width", "stride_h", "stride_w", "dilation_h", "dilation_w"):
            if getattr(self, name) < 1:
                raise UnsupportedError(f"{name} of the window is {getattr(self, name)}, expected 1 or more")
        pad = self.padding
        if min(pad.top, pad.bottom, pad.left, pad.right) < 0:
            raise UnsupportedError(f"the padding is {pad}, expected no negative number")
        _, height, width, _ = info.shape
        return (
            output_extent(height, self.height, self.stride_h, self.dilation_h, pad.top, pad.bottom),
            output_extent(width, self.width, self.stride_w, self.dilation_w, pad.left, pad.right),
        )


def padded(image: Array, padding: Padding, value: float, dtype: np.dtype[np.generic]) -> Array:
    """Return an NHWC image as a C-contiguous array of `dtype`, with a border of `value`."""
    if padding == NO_PADDING:
        return np.ascontiguousarray(image, dtype)
    batch, height, width, channels = image.shape
    shape: Shape = (
        batch,
        height + padding.top + padding.bottom,
        width + padding.left + padding.right,
        channels,
    )
    result = np.full(shape, value, dtype)
    result[:, padding.top : padding.top + height, padding.left : padding.left + width] = image
    return result


def sliding_windows(source: Array, window: Window, height: int, width: int) -> Array:
    """Return a view of a C-contiguous padded image as [batch, height, width, window height, window width, channels]."""
    by_batch, by_row, by_column, by_channel = source.strides
    # as_strided does the same but takes several times as long.
    return np.ndarray(
        (source.shape[0], height, width, window.height, window.width, source.shape[3]),
        source.dtype,
        source,
        strides=(
            by_batch,
            by_row * window.stride_h,
            by_column * window.stride_w,
            by_row * window.dilation_h,
            by_column * window.dilation_w,
            by_channel,
        ),
    )
