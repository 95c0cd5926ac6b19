# SPDX-License-Identifier: Apache-2.0
"""The blocks in which kernels are computed, and how far two kernels in a row may overlap.

A kernel computes its OFM block by block: channels first, then columns, then rows. CONV and REDUCE_SUM have one
job for each IFM block of channels, other kernels have one for each OFM block. The rules follow Vela 5.2.0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ferrule.backends.ethos_u.commands import Pool
from ferrule.backends.ethos_u.configuration import Configuration
from ferrule.backends.ethos_u.convolution import Convolution
from ferrule.backends.ethos_u.feature_map import FeatureMap
from ferrule.backends.ethos_u.kernel import Computing, Kernel
from ferrule.backends.ethos_u.machine import INTERNAL, Range
from ferrule.backends.ethos_u.pooling import Pooling

Addresses = NDArray[np.int64]

MAX_DEPENDENCY = 3
"""The largest BLOCKDEP."""
_SMALL_SHRAM = 16 * 1024
_IFM_BLOCK_DEPTH = {1: 32, 2: 16, 4: 8}


Box = tuple[tuple[int, int], ...]
"""A part of a feature map: the first row, column and channel, each with the end behind the last one."""


def uses_table(kernel: Kernel) -> bool:
    """Return whether a kernel reads a look-up table."""
    return isinstance(kernel, Computing) and kernel.activation.table is not None


def clobbers_tables(kernel: Kernel, configuration: Configuration) -> bool:
    """Return whether a kernel's accumulators may lie where look-up tables are: where the internal memory is small."""
    return configuration.shram_bytes <= _SMALL_SHRAM and not uses_table(kernel)


def allowed_dependency(previous: Kernel, current: Kernel, configuration: Configuration) -> tuple[int, Range]:
    """Return the largest BLOCKDEP of a kernel behind another, and the memory that limits it."""
    shared = Range(INTERNAL, 0, configuration.shram_bytes)
    assert isinstance(previous, Computing)
    assert isinstance(current, Computing)
    if uses_table(previous) and clobbers_tables(current, configuration):
        return 0, shared
    allowed = MAX_DEPENDENCY
    for source in current.inputs:
        if not any(one.meets(other) for one in source.ranges() for other in previous.ofm.ranges()):
            continue
        for elapsed in range(MAX_DEPENDENCY):
            read = _read_box(current, source, elapsed)
            if read is None:
                break
            for left in range(MAX_DEPENDENCY):
                written = _block(previous, -1 - left)
                if written is None or elapsed + left >= allowed:
                    break
                if _boxes_meet(source, read, previous.ofm, written):
                    allowed, shared = elapsed + left, source.ranges()[0]
                    break
    return allowed, shared


def _block(kernel: Computing, number: int) -> Box | None:
    """Return a block of the OFM, counted from the end if negative."""
    ofm, (height, width, depth) = kernel.ofm, kernel.block
    rows, columns, slices = -(-ofm.height // height), -(-ofm.width // width), -(-ofm.depth // depth)
    total = rows * columns * slices
    index = number if number >= 0 else total + number
    if not 0 <= index < total:
        return None
    y, x, c = index // (columns * slices) * height, index // slices % columns * width, index % slices * depth
    return (y, min(y + height, ofm.height)), (x, min(x + width, ofm.width)), (c, min(c + depth, ofm.depth))


def _read_box(kernel: Computing, source: FeatureMap, job: int) -> Box | None:
    """Return what a job reads of the IFM or IFM2."""
    slices = block_depth = 1
    dense = _adds_channels(kernel)
    if dense:
        block_depth = _IFM_BLOCK_DEPTH[source.dtype.itemsize]
        slices = -(-source.depth // block_depth)
    block = _block(kernel, job // slices)
    if block is None:
        return None
    rows, columns, channels = block
    if dense:
        first = job % slices * block_depth
        channels = first, min(first + block_depth, source.depth)
    elif source.depth == 1:
        channels = 0, 1
    window = kernel.window
    rows = _taken(rows, window.stride_y, window.top, 1 + (window.taps_y - 1) * window.dilation_y)
    columns = _taken(columns, window.stride_x, window.left, 1 + (window.taps_x - 1) * window.dilation_x)
    if source is kernel.ifm and window.upscale:
        rows, columns = ((start // 2, -(-end // 2)) for start, end in (rows, columns))
    return _inside(rows, source.height), _inside(columns, source.width), channels


def _inside(taken: tuple[int, int], extent: int) -> tuple[int, int]:
    """Return the part of a range that a feature map has; one of a single row or column is read everywhere."""
    return (0, 1) if extent == 1 else (taken[0], min(taken[1], extent))


def _adds_channels(kernel: Computing) -> bool:
    """Return whether a kernel reads the IFM in blocks of channels, with one job for each."""
    if isinstance(kernel, Convolution):
        return not kernel.depthwise
    return isinstance(kernel, Pooling) and kernel.mode is Pool.REDUCE_SUM


def _taken(block: tuple[int, int], stride: int, padding: int, size: int) -> tuple[int, int]:
    start, end = block
    return max(start * stride - padding, 0), (end - 1) * stride - padding + size


def _boxes_meet(source: FeatureMap, read: Box, ofm: FeatureMap, written: Box) -> bool:
    starts, ends = _runs(source, read)
    others, other_ends = _runs(ofm, written)
    order = np.argsort(others)
    others, furthest = others[order], np.maximum.accumulate(other_ends[order])
    before = np.searchsorted(others, ends)  # those that begin before a run ends
    return bool((before > 0).any() and (furthest[np.maximum(before - 1, 0)] > starts)[before > 0].any())


def _runs(of: FeatureMap, box: Box) -> tuple[Addresses, Addresses]:
    """Return the first byte of each run of channels in a box, and the end of each."""
    size = of.dtype.itemsize
    step = of.brick
    (y0, y1), (x0, x1), (c0, c1) = box
    firsts = np.array([max(c0, start) for start in range(c0 // step * step, c1, step)], np.int64)
    lasts = np.minimum((firsts // step + 1) * step, c1)
    inside = firsts // step * of.stride_c + firsts % step * size
    starts = [np.zeros(0, np.int64)]
    for tile in of.tiles:
        rows = np.arange(max(tile.y0, y0), min(tile.y1, y1)) - tile.y0
        columns = np.arange(max(tile.x0, x0), min(tile.x1, x1)) - tile.x0
        pixels = tile.base + rows[:, None] * of.stride_y + columns * of.stride_x
        starts.append((pixels[:, :, None] + inside).reshape(-1))
    found = np.concatenate(starts)
    return found, found + np.tile((lasts - firsts) * size, len(found) // max(len(firsts), 1))
