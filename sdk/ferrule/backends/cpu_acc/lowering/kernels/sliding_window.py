# SPDX-License-Identifier: Apache-2.0
"""The ways in which a window of 3x3 slides over an image, line by line, and its weights by line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ferrule.graph import Array
from ferrule.operators.window import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One axis of the image, for a window of three pixels."""

    input_extent: int
    output_extent: int
    input_stride: int
    """Distance between neighbouring indices in the input, in elements."""
    output_stride: int
    window_stride: int
    pad: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sliding:
    """The axis along which a 3x3 window slides (steps), and the axis across it (lines)."""

    lines: Axis
    steps: Axis
    transposed: bool
    """Whether the steps go from row to row, not from column to column."""

    @property
    def words(self) -> int:
        """The number of pixel pairs that the kernel reads of a line."""
        outputs = self.steps.output_extent
        return outputs + 1 if self.steps.window_stride == 2 else -(-outputs // 2) + 1


def slidings(window: Window, image: tuple[int, ...], output: tuple[int, ...]) -> list[Sliding]:
    """Return the ways in which a kernel of 3x3 can slide, along rows first; none for other windows."""
    if (window.height, window.width, window.dilation_h, window.dilation_w) != (3, 3, 1, 1):
        return []
    channels = image[3]
    rows = Axis(
        input_extent=image[1],
        output_extent=output[1],
        input_stride=image[2] * channels,
        output_stride=output[2] * channels,
        window_stride=window.stride_h,
        pad=window.padding.top,
    )
    columns = Axis(
        input_extent=image[2],
        output_extent=output[2],
        input_stride=channels,
        output_stride=channels,
        window_stride=window.stride_w,
        pad=window.padding.left,
    )
    if max(rows.pad, columns.pad) > 2:
        return []
    return [
        Sliding(lines=rows, steps=columns, transposed=False),
        Sliding(lines=columns, steps=rows, transposed=True),
    ]


def choose_sliding(window: Window, image: tuple[int, ...], output: tuple[int, ...]) -> Sliding | None:
    """Return the best way for a kernel of 3x3 to slide in steps of 1 or 2, along the longer axis; None if none can."""
    fitting = [way for way in slidings(window, image, output) if way.steps.window_stride in {1, 2}]
    return max(fitting, key=lambda way: way.steps.output_extent, default=None)


def line_words(matrix: Array, *, transposed: bool) -> Array:
    """Return one word per channel and line of the window, which holds the weights as bytes w0, w1, w1, w2."""
    taps = (matrix if len(matrix) else np.zeros((1, 9), np.int8)).reshape(-1, 3, 3)
    if transposed:
        taps = taps.transpose(0, 2, 1)
    ordered = np.ascontiguousarray(taps[:, :, [0, 1, 1, 2]], np.int8)
    return ordered.view("<i4").reshape(-1).astype(np.int32)
