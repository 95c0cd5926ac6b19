# SPDX-License-Identifier: Apache-2.0
"""The layout of a kernel's input in scratch memory: `struct ferrule_host_image`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import numpy as np

from ferrule._frozen import frozen
from ferrule.graph import Array, Shape
from ferrule.operators.arithmetic.window import Window

SLACK_ELEMENTS = 64
"""Kernels may read up to one vector beyond the last element."""


@frozen
class Image:
    """An image of `shape`, padded for a window; extents are in pixels, steps in elements."""

    shape: Shape
    """NHWC."""
    top: int = 0
    left: int = 0
    rows: int
    columns: int
    phases: int = 1
    zero_point: int = 0

    @classmethod
    def for_window(cls, window: Window, shape: Shape, output: Shape, *, zero_point: int, phases: int = 1) -> Image:
        """Return the layout that holds every pixel under a window, with padding outside the image."""
        columns = (output[2] - 1) * window.stride_w + (window.width - 1) * window.dilation_w + 1
        columns = -(-columns // phases) * phases
        return cls(
            shape=shape,
            top=window.padding.top,
            left=min(window.padding.left, columns),  # more of it lies under no window
            rows=(output[1] - 1) * window.stride_h + (window.height - 1) * window.dilation_h + 1,
            columns=columns,
            phases=phases,
            zero_point=zero_point,
        )

    @property
    def row_elements(self) -> int:
        """Number of elements in a row."""
        return self.columns * self.shape[3]

    def scratch_bytes(self, element_bytes: int) -> int:
        """Return the size of the image in bytes, including the elements that kernels may read beyond it."""
        return (self.rows * self.row_elements + SLACK_ELEMENTS) * element_bytes

    def offset(self, row: int, column: int) -> int:
        """Return the offset of a pixel from the start, in elements."""
        part = self.columns // self.phases
        return row * self.row_elements + (column % self.phases * part + column // self.phases) * self.shape[3]

    def offsets(self, window: Window, *, by_columns: bool = True) -> Array:
        """Return the offsets of the window's rows, or of its pixels if it is read `by_columns`, as int32."""
        columns = range(window.width if by_columns else 1)
        taps = ((i * window.dilation_h, j * window.dilation_w) for i in range(window.height) for j in columns)
        return np.array([self.offset(*tap) for tap in taps], np.int32)

    def fields(self) -> Mapping[str, int]:
        """Return the members of the struct."""
        batches, input_h, input_w, input_c = self.shape
        others = {name: value for name, value in asdict(self).items() if name != "shape"}
        return {"batches": batches, "input_h": input_h, "input_w": input_w, "input_c": input_c, **others}
