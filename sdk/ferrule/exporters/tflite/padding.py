# SPDX-License-Identifier: Apache-2.0
"""Recovering TensorFlow's padding schemes from explicit padding."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from ferrule.graph import Array, TensorInfo
from ferrule.operators.window import NO_PADDING, Padding, same_padding


class PaddingScheme(IntEnum):
    """The schema's enum Padding."""

    SAME = 0
    VALID = 1


def padding_scheme(
    image: TensorInfo, padding: Padding, window: tuple[int, int], stride: tuple[int, int], dilation: tuple[int, int]
) -> PaddingScheme | None:
    """Return the scheme that gives this padding for an NHWC image; None if neither does."""
    if padding == NO_PADDING:
        return PaddingScheme.VALID
    top, bottom = same_padding(image.shape[1], window[0], stride[0], dilation[0])
    left, right = same_padding(image.shape[2], window[1], stride[1], dilation[1])
    if padding == Padding(top=top, bottom=bottom, left=left, right=right):
        return PaddingScheme.SAME
    return None


def explicit_pad(padding: Padding) -> Array:
    """Return the paddings of a PAD on an NHWC image: a row of (before, after) per axis."""
    return np.array([[0, 0], [padding.top, padding.bottom], [padding.left, padding.right], [0, 0]], np.int32)
