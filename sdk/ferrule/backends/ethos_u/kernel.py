# SPDX-License-Identifier: Apache-2.0
"""What all operations that compute have in common: their memory accesses, their work, and windows on the IFM."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ferrule._frozen import frozen
from ferrule.backends.ethos_u.commands import Short
from ferrule.backends.ethos_u.errors import StreamError, UnsupportedModeError
from ferrule.backends.ethos_u.feature_map import MAX_ELEMENTS, FeatureMap, feature_map
from ferrule.backends.ethos_u.machine import Machine, Range
from ferrule.backends.ethos_u.stream import Registers

Integers = NDArray[Any]
"""int32 or int64."""

NEAREST, ZEROS = 1, 2


@frozen
class Work:
    """What an operation does, known before it is executed."""

    macs: int
    """Multiplications of weights; 0 for other operations."""
    reads: tuple[Range, ...]
    writes: tuple[Range, ...]
    bytes_read: int
    bytes_written: int
    effort: int
    """Estimated nanoseconds of the host for the slowest of the implementations; bounds what is executed."""


class Kernel(Protocol):
    """An operation, prepared from its registers."""

    work: Work

    def execute(self, machine: Machine) -> None:
        """Do the operation.

        Raises:
            NpuBusError: a feature map, weights, scales or a table are not accessible.
            StreamError: the operation depends on contents of the memory that are not valid.
        """


@frozen
class Window:
    """The kernel that slides over the IFM, by default one pixel, and the IFM's extent, which no register states."""

    taps_y: int = 1
    """Rows of the kernel, not counting the gaps of dilation."""
    taps_x: int = 1
    dilation_y: int = 1
    dilation_x: int = 1
    stride_y: int = 1
    stride_x: int = 1
    top: int = 0
    left: int = 0
    bottom: int = 0
    right: int = 0
    height: int = 1
    """Rows of the IFM after upscaling, without padding."""
    width: int = 1
    upscale: int = 0
    """0, NEAREST or ZEROS."""

    @property
    def taps(self) -> int:
        """Number of taps."""
        return self.taps_y * self.taps_x

    @property
    def is_padded(self) -> bool:
        """Whether a side has padding."""
        return bool(self.top or self.left or self.bottom or self.right)

    def stored_extent(self) -> tuple[int, int]:
        """Return rows and columns of the IFM in memory."""
        return (-(-self.height // 2), -(-self.width // 2)) if self.upscale else (self.height, self.width)

    def extend(self, stored: Integers, fill: int = 0) -> Integers:
        """Return the IFM after upscaling and padding."""
        upscaled = upscale(stored, self.upscale)[: self.height, : self.width]
        if not self.is_padded:
            return np.ascontiguousarray(upscaled)
        rows, columns = self.top + self.height + self.bottom, self.left + self.width + self.right
        padded = np.full((rows, columns, stored.shape[2]), fill, stored.dtype)
        padded[self.top : self.top + self.height, self.left : self.left + self.width] = upscaled
        return padded

    def tap(self, extended: Integers, row: int, column: int, ofm: FeatureMap) -> Integers:
        """Return the elements of the extended IFM that one tap meets, one for each element of the OFM."""
        y, x = row * self.dilation_y, column * self.dilation_x
        return extended[
            y : y + (ofm.height - 1) * self.stride_y + 1 : self.stride_y,
            x : x + (ofm.width - 1) * self.stride_x + 1 : self.stride_x,
        ]


def upscale(stored: Integers, mode: int) -> Integers:
    """Return an array with twice the rows and columns, by repetition or with zeros between, or the array itself."""
    if mode == NEAREST:
        return np.asarray(stored.repeat(2, 0).repeat(2, 1))
    if mode == ZEROS:
        height, width, depth = stored.shape
        wide = np.zeros((2 * height, 2 * width, depth), stored.dtype)
        wide[::2, ::2] = stored
        return wide
    return stored


def upscale_mode(registers: Registers) -> int:
    """Return the upscaling of the IFM; UnsupportedModeError if there is none of that number."""
    mode = registers[Short.IFM_UPSCALE] & 3
    if mode > ZEROS:
        raise UnsupportedModeError(f"there is no upscaling {mode}")
    return mode


def output_map(registers: Registers) -> FeatureMap:
    """Return the OFM, whose extent the registers state; errors as for `feature_map`."""
    height, width = registers[Short.OFM_HEIGHT_M1] + 1, registers[Short.OFM_WIDTH_M1] + 1
    return feature_map(registers, "OFM", height, width, registers[Short.OFM_DEPTH_M1] + 1)


def output_block(registers: Registers) -> tuple[int, int, int]:
    """Return rows, columns and channels of a block of the OFM."""
    height, width = registers[Short.OFM_BLK_HEIGHT_M1] + 1, registers[Short.OFM_BLK_WIDTH_M1] + 1
    return height, width, registers[Short.OFM_BLK_DEPTH_M1] + 1


def window(registers: Registers, ofm: FeatureMap) -> Window:
    """Return the window that the registers state.

    Raises:
        StreamError: the padding exceeds what the kernel covers, so that the IFM is empty.
        UnsupportedModeError: the IFM is too large, or Vela emits no such mode.
    """
    word = registers[Short.KERNEL_STRIDE]
    if word & 0x20:
        raise UnsupportedModeError("the decomposition of kernels into 4 x 4 is not supported")
    if registers[Short.ACC_FORMAT] & 3 > 1:
        raise UnsupportedModeError("accumulators of 16-bit floating point are not supported")
    stride_x = 1 + (word & 1 | word >> 5 & 2)
    stride_y = 1 + (word >> 1 & 1 | word >> 8 & 2)
    rows, columns = registers[Short.KERNEL_HEIGHT_M1] + 1, registers[Short.KERNEL_WIDTH_M1] + 1
    dilation_x, dilation_y = 1 + (word >> 3 & 1), 1 + (word >> 4 & 1)
    top, bottom = registers[Short.IFM_PAD_TOP], registers[Short.IFM_PAD_BOTTOM]
    left, right = registers[Short.IFM_PAD_LEFT], registers[Short.IFM_PAD_RIGHT]
    height = (ofm.height - 1) * stride_y + rows - top - bottom
    width = (ofm.width - 1) * stride_x + columns - left - right
    if height < 1 or width < 1:
        raise StreamError(
            f"the IFM has {height} rows and {width} columns: the padding exceeds what the kernel covers",
        )
    if (height + top + bottom) * (width + left + right) > MAX_ELEMENTS:
        raise UnsupportedModeError(f"the IFM has {height} x {width} pixels, more than are executed")
    return Window(
        taps_y=(rows - 1) // dilation_y + 1,
        taps_x=(columns - 1) // dilation_x + 1,
        dilation_y=dilation_y,
        dilation_x=dilation_x,
        stride_y=stride_y,
        stride_x=stride_x,
        top=top,
        left=left,
        bottom=bottom,
        right=right,
        height=height,
        width=width,
        upscale=upscale_mode(registers),
    )


def input_map(registers: Registers, view: Window, depth: int) -> FeatureMap:
    """Return the IFM of an operation with a window; errors as for `feature_map`."""
    ifm = feature_map(registers, "IFM", *view.stored_extent(), depth)
    pixels = (view.height + view.top + view.bottom) * (view.width + view.left + view.right)
    if pixels * depth > MAX_ELEMENTS:
        raise UnsupportedModeError(
            f"IFM has {pixels} pixels with padding and {depth} channels, more than the {MAX_ELEMENTS} elements that"
            " are executed"
        )
    return ifm
