# SPDX-License-Identifier: Apache-2.0
"""The rows under the windows of a convolution, which `ferrule_block_gather` and its like widen."""

from __future__ import annotations

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


@frozen
class Rows:
    """How the rows under windows are widened."""

    height: int
    row_bytes: int
    distance: int
    """Bytes between two rows."""
    line_bytes: int = 0
    """Of a row that is copied with its padding; 0 to read from the image."""
    pixel_bytes: int
    """Of a pixel's channels."""
    grouped: bool = False
    """Whether these are not all channels of the image."""
    inside: int
    """Windows of a row that lie inside the image."""
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
        return self.height * self.line_bytes + 4 if self.line_bytes else 0

    def ordered(self, channels: Channels) -> Channels:
        """Return the channels with their products in the order of the patches, with zeros for those that fill words."""
        if not self.line_bytes:
            return channels
        order = _row_order(self.height, self.row_bytes)
        if self.padded:
            index = np.arange(self.height * self.row_bytes).reshape(self.height, -1)
            order = np.pad(index, ((0, 0), (0, -self.row_bytes % 4)), constant_values=-1).reshape(-1)
        return replace(channels, matrix=np.pad(channels.matrix, ((0, 0), (0, 1)))[:, order])

    def instructions(self, words: int, count: int) -> int:
        """Return an estimate for widening rows of `count` windows of so many words, per row of windows."""
        pairs = -(-count // 2)
        each = 8 * words + 8 * self.height + 15
        if self.rest:
            each = 8 * words + (8 * self.rest + 5) * self.height + 35
        if (self.height, self.row_bytes) == _RGB:
            each = 75
        if not self.line_bytes:
            inside = max(min(self.inside, count), 0) // 2
            return inside * each + (count - 2 * inside) * (11 * words + 25 * self.height + 100) + 100
        copied = self.line_bytes * 9 // 16 + 30
        if self.grouped:
            copied = (
                self.line_bytes // 4 * 4
                if self.pixel_bytes == 4
                else self.line_bytes // self.pixel_bytes * (12 + self.pixel_bytes)
            )
        return pairs * each + self.height * copied + 150

    def fields(self) -> Mapping[str, Member]:
        """Return the members of the kernel's table."""
        return {
            "line_bytes": self.line_bytes,
            "convolve": Identifier(f"ferrule_conv2d_block_{'lines' if self.line_bytes else 'image'}"),
            "copy": Identifier(f"ferrule_conv2d_block_copy{'_group' * self.grouped}") if self.line_bytes else None,
            "rows": {
                "count": self.height,
                "words": self.words,
                "rest": self.rest,
                "step_bytes": self.distance - self.words * 4,
                "gather": Identifier("ferrule_block_gather"),
            },
        }


NO_ROWS = Rows(height=1, row_bytes=0, distance=0, pixel_bytes=0, inside=0)
"""Of a window of one pixel with listed channels."""


def row_forms(
    window: Window, image: TensorInfo, channels: int, width: int, *, lines: bool = True, direct: bool = True
) -> list[Rows]:
    """Return the ways in which the rows under `width` windows can be widened: from lines, or direct from the image."""
    inside = (image.shape[2] - window.width + window.padding.left) // window.stride_w
    rows = Rows(
        height=window.height,
        row_bytes=window.width * channels,
        distance=window.dilation_h * image.shape[2] * image.shape[3],
        pixel_bytes=channels,
        grouped=channels != image.shape[3],
        inside=inside + 1 - max(-(-window.padding.left // window.stride_w), 0),
    )
    found = [rows] if direct and channels % 4 == 0 else []
    if lines and window.dilation_w == 1:
        line_bytes = ((width - 1) * window.stride_w + window.width) * channels
        copied = replace(rows, distance=line_bytes, line_bytes=line_bytes)
        found += [copied, replace(copied, padded=True)] if channels % 4 else [copied]
    return found


def _row_order(rows: int, row_bytes: int) -> Array:
    """Return the products in the order of `ferrule_block_gather`; -1 for none."""
    whole = row_bytes // 4 * 4
    index = np.arange(rows * row_bytes).reshape(rows, row_bytes)
    rest = index[:, whole:].reshape(-1)
    padded = np.pad(rest, (0, -rest.size % 4), constant_values=-1).reshape(-1, 4)[:, [0, 2, 1, 3]]
    return np.concatenate([index[:, :whole].reshape(-1), padded.reshape(-1)])
