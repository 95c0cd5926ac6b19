# SPDX-License-Identifier: Apache-2.0
"""The safe distances between input and output of kernels, from the order of their steps.

A kernel that goes over an NHWC image goes in steps: in each, it reads the windows of some output pixels, then writes
these pixels. The functions here follow the bytes written and the bytes still to be read through all steps, and return
the distances that `ferrule.memory.Overlap` defines.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import numpy as np

from ferrule.backends.firmware import LoweringContext
from ferrule.graph import Array, DataType, TensorInfo
from ferrule.memory.request import Overlap
from ferrule.operators.arithmetic.window import Window


class Reads(StrEnum):
    """When a kernel that goes pixel by pixel reads a window."""

    BEFORE = "before"
    """In full, before it writes the first byte of the pixels of the step."""
    PER_ELEMENT = "per element"
    """Once more for each element of the pixel."""
    THROUGHOUT = "throughout"
    """Again and again until the last byte of the step's pixels is written."""
    PER_CHANNEL = "per channel"
    """One channel of the input at a time, before it writes the elements of the pixel that belong to the channel."""
    AGAIN = "again"
    """In full, and maybe in full again when all the step's pixels were written."""


def elementwise_overlaps(context: LoweringContext) -> tuple[Overlap, ...]:
    """Return the overlap of a kernel that goes from element to element of its first input."""
    source, output = context.operands.ends
    # C allows the same memory to be read as one type and written as another one only if one of them is char.
    may_alias = source.dtype is output.dtype or {source.dtype, output.dtype} & {DataType.INT8, DataType.UINT8}
    if context.is_constant(0) or not may_alias:
        return ()
    distance = max(output.size_bytes - source.size_bytes, 0)
    return (Overlap(input=source.name, output=output.name, distance_bytes=distance),)


def replaced_overlaps(context: LoweringContext, replaced: Mapping[int, int]) -> tuple[Overlap, ...]:
    """Return the overlaps of a kernel that may write outputs over inputs; `replaced` maps inputs to outputs."""
    found = {
        (context.input(old).name, new): Overlap(
            input=context.input(old).name, output=context.operands.outputs[new].name, distance_bytes=0
        )
        for old, new in replaced.items()
        if not context.is_constant(old)
    }
    return tuple(found.values())


def pixel_overlaps(
    context: LoweringContext,
    window: Window,
    image: TensorInfo,
    output: TensorInfo,
    *,
    reads: Reads = Reads.BEFORE,
    pixels: int = 1,
    tile: tuple[int, int] | None = None,
) -> tuple[Overlap, ...]:
    """Return the overlap of a kernel that computes all channels of an output pixel in one step.

    `image` and `output` are NHWC. A step has `pixels` consecutive pixels in the order of memory, which may go over the
    end of a row, or with `tile` the pixels of a tile of (rows, columns); tiles go from left to right, then downwards.
    With `reads` PER_ELEMENT, PER_CHANNEL and AGAIN, steps of so many pixels at most may begin at any pixel, and their
    elements may be written in any order. A constant input has no overlap.
    """
    if context.is_constant(0):
        return ()
    waiting = None
    behind = {Reads.PER_ELEMENT: 1, Reads.PER_CHANNEL: image.shape[3], Reads.AGAIN: 0}.get(reads)
    if behind is not None:
        # the most bytes by which the written part of a step is ahead of what was read
        waiting = (pixels * output.shape[3] - behind) * output.dtype.size_bytes
        pixels = 1
    distance = _pixel_distance(window, image, output, pixels, tile, waiting, throughout=reads is Reads.THROUGHOUT)
    return (
        Overlap(
            input=context.source.name,
            output=context.output.name,
            distance_bytes=max(distance, -image.size_bytes),
        ),
    )


def plane_overlaps(context: LoweringContext, window: Window, *, transposed: bool) -> tuple[Overlap, ...]:
    """Return the overlap of a depthwise kernel that computes all pixels of some channels, then of the next channels.

    Input and output have the same channels. The kernel copies lines of a channel into scratch, once each and in order.
    A line of the output is written when the lines of its windows have been copied, and no later ones. Lines are rows,
    or columns if `transposed`. A constant input has no overlap.
    """
    if context.is_constant(0):
        return ()
    image, output = context.operands.ends
    pixel_bytes = image.shape[3] * image.dtype.size_bytes
    if not transposed:
        step, distance = pixel_bytes, max(_line_distance(window, image, output) * pixel_bytes, -image.size_bytes)
    elif _replaces_columns(window, image, output):
        # Columns are not in the order of memory, so only the same place may be safe; no other multiple of the step is.
        step, distance = max(image.size_bytes, output.size_bytes), 0
    else:
        return ()
    return (Overlap(input=image.name, output=output.name, distance_bytes=distance, step_bytes=step),)


def _pixel_distance(
    window: Window,
    image: TensorInfo,
    output: TensorInfo,
    pixels: int,
    tile: tuple[int, int] | None,
    waiting: int | None,
    *,
    throughout: bool,
) -> int:
    """Return the largest end of the written bytes minus start of the bytes to be read, after any step.

    While a pixel is written, `waiting` bytes of it may be ahead of its window; None if the window was read before.
    With `throughout`, the windows of a step are read until all its bytes are written.
    """
    batches, height, width, channels = output.shape
    rows = _taps(image.shape[1], height, window.height, window.stride_h, window.dilation_h, window.padding.top)
    columns = _taps(image.shape[2], width, window.width, window.stride_w, window.dilation_w, window.padding.left)
    inside = (rows[0] <= rows[1])[:, None] & (columns[0] <= columns[1])
    low = (rows[0][:, None] * image.shape[2] + columns[0]) * image.shape[3] * image.dtype.size_bytes
    images = np.arange(batches, dtype=np.int64)[:, None] * (image.size_bytes // batches)
    window_first = np.where(inside.ravel(), low.ravel() + images, _NEVER).ravel()  # of the part inside the image
    number = np.arange(batches * height * width, dtype=np.int64)
    if tile is None:
        step = number // pixels
    else:
        row, column = number // width, number % width
        across, down = -(-width // tile[1]), -(-height // tile[0])
        step = (row // height * down + row % height // tile[0]) * across + column // tile[1]
    order = np.argsort(step, kind="stable")
    pixel_bytes = channels * output.dtype.size_bytes
    first, window_first = (number * pixel_bytes)[order], window_first[order]
    last = np.flatnonzero(np.diff(step[order], append=-1))  # the place of the last pixel of each step
    written = np.maximum.accumulate(first + pixel_bytes)[last]
    left = np.minimum.accumulate(window_first[::-1])[::-1][np.append(0, last[:-1] + 1)]
    written, left = (written, left) if throughout else (written[:-1], left[1:])
    distance = int((written - left).max(initial=-_NEVER))
    return distance if waiting is None else max(distance, int((first + waiting - window_first).max(initial=-_NEVER)))


_NEVER = 1 << 62
"""Later than any byte of a tensor."""


def _taps(extent: int, count: int, kernel: int, stride: int, dilation: int, pad: int) -> tuple[Array, Array]:
    """Return the first and the last index inside the image along one axis, by window; the first is larger if none."""
    start = np.arange(count, dtype=np.int64) * stride - pad
    skipped = -(-np.maximum(-start, 0) // dilation)
    fitting = np.minimum((extent - 1 - start) // dilation, kernel - 1)
    empty = (skipped >= kernel) | (fitting < skipped)
    return np.where(empty, extent, start + skipped * dilation), np.where(empty, -1, start + fitting * dilation)


def _line_distance(window: Window, image: TensorInfo, output: TensorInfo) -> int:
    """Return the distance in pixels of a kernel that copies rows of one channel ahead of the row that it writes."""
    batches, height, width, _ = output.shape
    copied = _lines_copied(window.height, window.stride_h, window.dilation_h, window.padding.top, height)
    copied[-1] = image.shape[1]  # no step comes after the last one
    read = np.arange(batches)[:, None] * image.shape[1] + np.clip(copied, 0, image.shape[1])
    ahead = np.arange(1, batches * height + 1) * width - read.ravel() * image.shape[2]
    return int(ahead[:-1].max(initial=-_NEVER))


def _lines_copied(kernel: int, stride: int, dilation: int, pad: int, count: int) -> Array:
    """Return, by line of the output, one more than the last line of the image under its windows."""
    return np.arange(count, dtype=np.int64) * stride - pad + (kernel - 1) * dilation + 1


def _replaces_columns(window: Window, image: TensorInfo, output: TensorInfo) -> bool:
    """Return whether a kernel that copies columns has read each pixel before it writes one at the same place."""
    batches, height, width, _ = output.shape
    if batches != 1:
        return False
    copied = _lines_copied(window.width, window.stride_w, window.dilation_w, window.padding.left, width)
    copied[-1] = image.shape[2]  # no step comes after the last one
    pixel = np.arange(min(height * width, image.shape[1] * image.shape[2]), dtype=np.int64)
    return bool((pixel % image.shape[2] < copied[pixel % width]).all())
