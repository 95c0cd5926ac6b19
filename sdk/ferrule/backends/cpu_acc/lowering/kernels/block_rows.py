# SPDX-License-Identifier: Apache-2.0
"""The rows under the windows of a convolution, which `ferrule_block_gather` and its like widen."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.cpu_acc.lowering.kernel_call import Member
from ferrule.backends.cpu_acc.lowering.kernels.int8_channels import Channels
from ferrule.dom import Identifier
from ferrule.graph import Array, TensorInfo
from ferrule.operators.arithmetic.window import Window

_RGB = (3, 9)
"""Three rows of nine bytes, as a window of 3x3 pixels with three channels has, for which there is faster code."""

_ALONE = 230
"""Instructions of a call for one pair of pixels, whose windows are not rows of the image."""
_PIXEL = {1: 3.5, 2: 3.5, 3: 5.5, 4: 3.5}
"""Instructions that copy the channels of a pixel, where it is unrolled."""


@frozen
class Rows:
    """How the bytes under windows are widened: rows of neighbours at equal distances, or lines of such rows."""

    window: Window
    channels: int
    """Bytes of a pixel that are read."""
    count: int
    """Rows of a line."""
    lines: int = 1
    """More than one only in the image."""
    row_bytes: int
    distance: int
    """Bytes between two rows of a line."""
    line_distance: int = 0
    """Bytes between two lines of rows."""
    line_w: int = 0
    """Pixels of a row of the image that is copied with its padding; 0 to read from the image."""
    beside: bool = False
    """Whether pixels above each other are neighbours where they are copied to."""
    grouped: bool = False
    """Whether the channels are not all of a pixel."""
    inside: int = 0
    """Windows of a row that lie inside the image."""
    inside_rows: int = 0
    """Rows of windows that lie inside the image."""
    padded: bool = False
    """Whether rows are filled up to whole words."""

    @property
    def words(self) -> int:
        """The whole words of a row."""
        return -(-self.row_bytes // 4) if self.padded else self.row_bytes // 4

    @property
    def rest(self) -> int:
        """The bytes of a row after its whole words."""
        return 0 if self.padded else self.row_bytes % 4

    @property
    def scratch_bytes(self) -> int:
        """The bytes of the rows that are copied."""
        return self.window.height * self.line_w * self.channels + 4 if self.line_w else 0

    def ordered(self, channels: Channels) -> Channels:
        """Return the channels with their products in the order of the patches, with zeros for those that fill words."""
        if not self.line_w:
            return channels
        shape = self.window.height, self.window.width, self.channels
        index: Array = np.arange(math.prod(shape)).reshape(shape)
        index = (index.swapaxes(0, 1) if self.beside else index).reshape(-1, self.row_bytes)
        order = (
            _row_order(index) if self.rest else np.pad(index, ((0, 0), (0, -self.row_bytes % 4)), constant_values=-1)
        )
        return replace(channels, matrix=np.pad(channels.matrix, ((0, 0), (0, 1)))[:, order.reshape(-1)])

    def instructions(self, words: int, height: int, width: int) -> int:
        """Return an estimate for widening `height` rows of `width` windows of so many words."""
        pairs, rows = -(-width // 2), self.count * self.lines
        each = 8 * words + (8 if self.words > 1 else 3) * rows + 15
        if self.rest:
            each = 8 * words + (8 * self.rest + 5) * rows + 35
        elif rows == 1:
            each = 8 * words + 5
        if (self.count, self.row_bytes) == _RGB:
            each = 75
        if self.lines > 1:
            each += 7 * self.lines + 20
        if not self.line_w:
            inside = max(min(self.inside, width), 0) // 2
            whole = max(min(self.inside_rows, height), 0)
            alone = (width - 2 * inside) * (11 * words + 25 * rows + 100)
            return height * (inside * each + alone + 100) + (height - whole) * inside * _ALONE
        return height * (pairs * each + self._copying + 150)

    @property
    def _copying(self) -> int:
        """The instructions that copy the rows under one row of windows."""
        if not self.grouped and not self.beside:
            return self.window.height * (self.line_w * self.channels * 15 // 16 + 40)
        pixel = _PIXEL.get(self.channels, 16 + 3 * (self.channels // 4) + 5 * (self.channels % 4))
        return self.window.height * int(self.line_w * pixel + 60)

    def fields(self) -> Mapping[str, Member]:
        """Return the members of the kernel's table."""
        copy = f"ferrule_conv2d_block_copy{'_pixels' * (self.grouped or self.beside)}"
        line_c = self.channels * (self.window.height if self.beside else 1)
        return {
            "line_w": self.line_w,
            "line_c": line_c,
            "line_bytes": self.channels if self.beside else self.line_w * line_c,
            "convolve": Identifier(f"ferrule_conv2d_block_{'lines' if self.line_w else 'image'}"),
            "copy": Identifier(copy) if self.line_w else None,
            "rows": {
                "count": self.count,
                "words": self.words,
                "rest": self.rest if self.lines == 1 else -1,
                "step_bytes": self.distance - self.words * 4,
                "gather": Identifier(f"ferrule_block_gather{'_lines' * (self.lines > 1)}"),
                "lines": self.lines,
                "line_step_bytes": self.line_distance - self.count * self.distance if self.lines > 1 else 0,
            },
        }


NO_ROWS = Rows(window=Window(height=1, width=1, stride_h=1, stride_w=1), count=1, row_bytes=0, distance=0, channels=0)
"""Of a window of one pixel with listed channels."""


def row_forms(
    window: Window,
    image: TensorInfo,
    channels: int,
    output: tuple[int, ...],
    *,
    lines: bool = True,
    direct: bool = True,
) -> list[Rows]:
    """Return the ways in which the rows under the windows of an output of some height and width can be widened.

    They are read from the image, or copied to lines: row by row, or all of a column of pixels side by side.
    """
    _, height, width, pixel_c = image.shape
    padding, spread = window.padding, window.width > 1 and window.dilation_w > 1
    rows = Rows(
        window=window,
        channels=channels,
        count=window.height,
        row_bytes=window.width * channels,
        distance=window.dilation_h * width * pixel_c,
        grouped=channels != pixel_c,
        inside=_inside(width, window.width, window.dilation_w, window.stride_w, padding.left),
        inside_rows=_inside(height, window.height, window.dilation_h, window.stride_h, padding.top),
    )
    line_w = (output[1] - 1) * window.stride_w + (window.width - 1) * window.dilation_w + 1
    found: list[Rows] = []
    if direct and channels % 4 == 0:
        apart = spread or (rows.grouped and window.width > 1)
        found.append(_of_taps(rows, pixel_c) if apart else rows)
    if lines and not spread:
        copied = replace(rows, distance=line_w * channels, line_w=line_w)
        found += [copied, replace(copied, padded=True)] if channels % 4 else [copied]
    if lines and (spread or (window.height > 1 and (rows.grouped or channels % 4))):
        column = window.height * channels
        taps = window.width if spread else 1
        beside = replace(
            rows,
            count=taps,
            row_bytes=window.width // taps * column,
            distance=window.dilation_w * column,
            line_w=line_w,
            beside=window.height > 1,
        )
        found += [replace(beside, padded=True), beside] if spread and column % 4 else [replace(beside, padded=True)]
    return found


def _of_taps(rows: Rows, pixel_c: int) -> Rows:
    """Return the taps of each row of a window as rows, in an image of so many channels."""
    return replace(
        rows,
        count=rows.window.width,
        lines=rows.window.height,
        row_bytes=rows.channels,
        distance=rows.window.dilation_w * pixel_c,
        line_distance=rows.distance,
    )


def _inside(extent: int, taps: int, dilation: int, stride: int, before: int) -> int:
    """Return how many windows of an axis lie inside the image if there is enough output."""
    most = extent - (taps - 1) * dilation - 1 + before
    return most // stride + 1 - max(-(-before // stride), 0)


def _row_order(index: Array) -> Array:
    """Return the products of rows [rows, bytes] in the order of `ferrule_block_gather`; -1 for none."""
    whole = index.shape[1] // 4 * 4
    rest = index[:, whole:].reshape(-1)
    padded = np.pad(rest, (0, -rest.size % 4), constant_values=-1).reshape(-1, 4)[:, [0, 2, 1, 3]]
    return np.concatenate([index[:, :whole].reshape(-1), padded.reshape(-1)])
