# SPDX-License-Identifier: Apache-2.0
"""What all operations that compute have in common: their memory accesses, their work, and windows on the IFM."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ferrule._frozen import frozen
from ferrule.backends.ethos_u.activation import activation
from ferrule.backends.ethos_u.commands import Short
from ferrule.backends.ethos_u.configuration import Configuration
from ferrule.backends.ethos_u.errors import StreamError, UnsupportedModeError
from ferrule.backends.ethos_u.feature_map import MAX_ELEMENTS, FeatureMap, feature_map
from ferrule.backends.ethos_u.machine import Machine, Range
from ferrule.backends.ethos_u.stream import Operation, Registers

Integers = NDArray[Any]
"""int32 or int64."""

NEAREST, ZEROS = 1, 2
OFM_EXTENT = (Short.OFM_HEIGHT_M1, Short.OFM_WIDTH_M1, Short.OFM_DEPTH_M1)
_BLOCK_EXTENT = (Short.OFM_BLK_HEIGHT_M1, Short.OFM_BLK_WIDTH_M1, Short.OFM_BLK_DEPTH_M1)


@frozen
class Work:
    """What an operation does, known before it is executed."""

    macs: int = 0
    """Multiplications of weights; 0 for other operations."""
    reads: tuple[Range, ...] = ()
    writes: tuple[Range, ...] = ()
    bytes_read: int = 0
    bytes_written: int = 0
    effort: int = 0
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


Execute = Callable[[Machine], None]
"""The execution of an operation; errors as for `Kernel`."""


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
    def extended(self) -> tuple[int, int]:
        """Rows and columns of the IFM after upscaling and padding."""
        return self.top + self.height + self.bottom, self.left + self.width + self.right

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
        upscaled = stored
        if self.upscale == NEAREST:
            upscaled = stored.repeat(2, 0).repeat(2, 1)
        elif self.upscale == ZEROS:
            height, width, depth = stored.shape
            upscaled = np.zeros((2 * height, 2 * width, depth), stored.dtype)
            upscaled[::2, ::2] = stored
        upscaled = upscaled[: self.height, : self.width]
        if not self.is_padded:
            return np.ascontiguousarray(upscaled)
        padded = np.full((*self.extended, stored.shape[2]), fill, stored.dtype)
        padded[self.top : self.top + self.height, self.left : self.left + self.width] = upscaled
        return padded

    def met(self, extended: Integers, ofm: FeatureMap) -> Iterator[Integers]:
        """Yield, for each tap, the elements of the extended IFM that it meets, one for each element of the OFM."""
        rows, columns = (ofm.height - 1) * self.stride_y + 1, (ofm.width - 1) * self.stride_x + 1
        for y in range(0, self.taps_y * self.dilation_y, self.dilation_y):
            for x in range(0, self.taps_x * self.dilation_x, self.dilation_x):
                yield extended[y : y + rows : self.stride_y, x : x + columns : self.stride_x]


class Computing(ABC):
    """An operation that computes an OFM, prepared from its registers."""

    window: Window
    ifm: FeatureMap
    ifm2: FeatureMap | None = None
    work: Work

    def __init__(self, operation: Operation, configuration: Configuration) -> None:
        registers = operation.registers
        height, width, depth = (registers[code] + 1 for code in OFM_EXTENT)
        self.ofm = feature_map(registers, "OFM", height, width, depth)
        self.activation = activation(registers, configuration)
        height, width, depth = (registers[code] + 1 for code in _BLOCK_EXTENT)
        self.block = height, width, depth
        """Rows, columns and channels of a block of the OFM."""

    @property
    def inputs(self) -> tuple[FeatureMap, ...]:
        """The IFM and, if there is one, the IFM2."""
        return (self.ifm,) if self.ifm2 is None else (self.ifm, self.ifm2)

    def work_of(self, effort: int, *, macs: int = 0, weights: Sequence[Range] = ()) -> Work:
        """Return the work of the operation; `effort` is that beside the storing of the OFM."""
        table = () if self.activation.table is None else (self.activation.table,)
        return Work(
            macs=macs,
            reads=(*(each for source in self.inputs for each in source.ranges()), *table, *weights),
            writes=self.ofm.ranges(),
            bytes_read=sum(each.size_bytes for each in self.inputs) + sum(each.size_bytes for each in weights),
            bytes_written=self.ofm.size_bytes,
            effort=effort + 60 * self.ofm.elements,
        )

    @abstractmethod
    def execute(self, machine: Machine) -> None:
        """Do the operation; errors as for `Kernel`."""


def upscale_mode(registers: Registers) -> int:
    """Return the upscaling of the IFM; UnsupportedModeError if there is none of that number."""
    mode = registers[Short.IFM_UPSCALE] & 3
    if mode > ZEROS:
        raise UnsupportedModeError(f"there is no upscaling {mode}")
    return mode


def sliding(registers: Registers) -> Window:
    """Return the kernel that the registers state, without padding and the IFM's extent."""
    word = registers[Short.KERNEL_STRIDE]
    dilation_x, dilation_y = 1 + (word >> 3 & 1), 1 + (word >> 4 & 1)
    return Window(
        taps_y=registers[Short.KERNEL_HEIGHT_M1] // dilation_y + 1,
        taps_x=registers[Short.KERNEL_WIDTH_M1] // dilation_x + 1,
        dilation_y=dilation_y,
        dilation_x=dilation_x,
        stride_y=1 + (word >> 1 & 1 | word >> 8 & 2),
        stride_x=1 + (word & 1 | word >> 5 & 2),
    )


def covered(registers: Registers, kernel: Window) -> tuple[int, int]:
    """Return the rows and columns of the IFM, with padding, that a kernel covers for all of the OFM."""
    return (
        registers[Short.OFM_HEIGHT_M1] * kernel.stride_y + registers[Short.KERNEL_HEIGHT_M1] + 1,
        registers[Short.OFM_WIDTH_M1] * kernel.stride_x + registers[Short.KERNEL_WIDTH_M1] + 1,
    )


def window(registers: Registers) -> Window:
    """Return the window that the registers state.

    Raises:
        StreamError: the padding exceeds what the kernel covers, so that the IFM is empty.
        UnsupportedModeError: the IFM is too large, or Vela emits no such mode.
    """
    if registers[Short.KERNEL_STRIDE] & 0x20:
        raise UnsupportedModeError("the decomposition of kernels into 4 x 4 is not supported")
    if registers[Short.ACC_FORMAT] & 3 > 1:
        raise UnsupportedModeError("accumulators of 16-bit floating point are not supported")
    kernel = sliding(registers)
    rows, columns = covered(registers, kernel)
    top, bottom = registers[Short.IFM_PAD_TOP], registers[Short.IFM_PAD_BOTTOM]
    left, right = registers[Short.IFM_PAD_LEFT], registers[Short.IFM_PAD_RIGHT]
    height, width = rows - top - bottom, columns - left - right
    if height < 1 or width < 1:
        raise StreamError(
            f"the IFM has {height} rows and {width} columns: the padding exceeds what the kernel covers",
        )
    if rows * columns > MAX_ELEMENTS:
        raise UnsupportedModeError(f"the IFM has {height} x {width} pixels, more than are executed")
    return replace(
        kernel,
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
    pixels = math.prod(view.extended)
    if pixels * depth > MAX_ELEMENTS:
        raise UnsupportedModeError(
            f"IFM has {pixels} pixels with padding and {depth} channels, more than the {MAX_ELEMENTS} elements that"
            " are executed"
        )
    return ifm
