# SPDX-License-Identifier: Apache-2.0
"""The blocks in which kernels are computed, and how far two kernels in a row may overlap.

A kernel computes its OFM block by block: channels first, then columns, then rows. CONV and REDUCE_SUM have one
job for each IFM block of channels, other kernels have one for each OFM block. The rules follow Vela 5.2.0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ferrule._frozen import positional
from ferrule.backends.ethos_u.commands import Pool
from ferrule.backends.ethos_u.configuration import Configuration
from ferrule.backends.ethos_u.convolution import Convolution
from ferrule.backends.ethos_u.elementwise import ElementwiseKernel
from ferrule.backends.ethos_u.feature_map import BRICK, NHCWB16, FeatureMap
from ferrule.backends.ethos_u.kernel import Kernel, Window
from ferrule.backends.ethos_u.machine import INTERNAL, Range
from ferrule.backends.ethos_u.pooling import Pooling

Addresses = NDArray[np.int64]

MAX_DEPENDENCY = 3
"""The largest BLOCKDEP."""
_SMALL_SHRAM = 16 * 1024
_IFM_BLOCK_DEPTH = {1: 32, 2: 16, 4: 8}
Computing = Convolution | Pooling | ElementwiseKernel


@positional
class Box:
    """A part of a feature map; ends are excluded."""

    y0: int
    y1: int
    x0: int
    x1: int
    c0: int
    c1: int

    def meets(self, other: Box) -> bool:
        """Return whether two boxes have an element in common."""
        return (
            self.y0 < other.y1
            and other.y0 < self.y1
            and self.x0 < other.x1
            and other.x0 < self.x1
            and self.c0 < other.c1
            and other.c0 < self.c1
        )


def uses_table(kernel: Kernel) -> bool:
    """Return whether a kernel reads a look-up table."""
    return isinstance(kernel, Computing) and kernel.activation.table_bytes > 0


def clobbers_tables(kernel: Kernel, configuration: Configuration) -> bool:
    """Return whether a kernel's accumulators may lie where look-up tables are: where the internal memory is small."""
    return configuration.shram_bytes <= _SMALL_SHRAM and not uses_table(kernel)


def allowed_dependency(previous: Kernel, current: Kernel, configuration: Configuration) -> tuple[int, Range]:
    """Return the largest BLOCKDEP of a kernel behind another, and the memory that limits it."""
    shared = Range(region=INTERNAL, start=0, end=configuration.shram_bytes)
    assert isinstance(previous, Computing)
    assert isinstance(current, Computing)
    if uses_table(previous) and clobbers_tables(current, configuration):
        return 0, shared
    allowed = MAX_DEPENDENCY
    for source in (current.ifm, getattr(current, "ifm2", None)):
        if source is None or not _overlap(source, previous.ofm):
            continue
        for elapsed in range(MAX_DEPENDENCY):
            read = _read_box(current, source, elapsed)
            if read is None:
                break
            for left in range(MAX_DEPENDENCY):
                written = _written_box(previous, left)
                if written is None or elapsed + left >= allowed:
                    break
                if _boxes_meet(source, read, previous.ofm, written):
                    allowed, shared = elapsed + left, source.ranges()[0]
                    break
    return allowed, shared


def _overlap(first: FeatureMap, second: FeatureMap) -> bool:
    return any(one.meets(other) for one in first.ranges() for other in second.ranges())


def _block(kernel: Computing, number: int) -> Box | None:
    """Return a block of the OFM, counted from the end if negative."""
    ofm, (height, width, depth) = kernel.ofm, kernel.block
    rows, columns, slices = -(-ofm.height // height), -(-ofm.width // width), -(-ofm.depth // depth)
    total = rows * columns * slices
    index = number if number >= 0 else total + number
    if not 0 <= index < total:
        return None
    y, x, c = index // (columns * slices) * height, index // slices % columns * width, index % slices * depth
    return Box(y, min(y + height, ofm.height), x, min(x + width, ofm.width), c, min(c + depth, ofm.depth))


def _written_box(kernel: Computing, left: int) -> Box | None:
    return _block(kernel, -1 - left)


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
    c0, c1 = (0, 1) if source.depth == 1 else (block.c0, block.c1)
    if dense:
        c0 = job % slices * block_depth
        c1 = min(c0 + block_depth, source.depth)
    window = Window() if isinstance(kernel, ElementwiseKernel) else kernel.window
    y0, y1 = _taken(block.y0, block.y1, window.stride_y, window.top, 1 + (window.taps_y - 1) * window.dilation_y)
    x0, x1 = _taken(block.x0, block.x1, window.stride_x, window.left, 1 + (window.taps_x - 1) * window.dilation_x)
    if source is kernel.ifm and (kernel.upscale if isinstance(kernel, ElementwiseKernel) else window.upscale):
        y0, y1, x0, x1 = y0 // 2, -(-y1 // 2), x0 // 2, -(-x1 // 2)
    if source.height == 1:
        y0, y1 = 0, 1
    if source.width == 1:
        x0, x1 = 0, 1
    return Box(y0, min(y1, source.height), x0, min(x1, source.width), c0, c1)


def _adds_channels(kernel: Computing) -> bool:
    """Return whether a kernel reads the IFM in blocks of channels, with one job for each."""
    if isinstance(kernel, Convolution):
        return not kernel.depthwise
    return isinstance(kernel, Pooling) and kernel.mode is Pool.REDUCE_SUM


def _taken(start: int, end: int, stride: int, padding: int, size: int) -> tuple[int, int]:
    return max(start * stride - padding, 0), (end - 1) * stride - padding + size


def _boxes_meet(source: FeatureMap, read: Box, ofm: FeatureMap, written: Box) -> bool:
    if _same_layout(source, ofm):
        return read.meets(written)
    starts, ends = _runs(source, read)
    others, other_ends = _runs(ofm, written)
    order = np.argsort(others)
    others, furthest = others[order], np.maximum.accumulate(other_ends[order])
    before = np.searchsorted(others, ends)  # those that begin before a run ends
    return bool((before > 0).any() and (furthest[np.maximum(before - 1, 0)] > starts)[before > 0].any())


def _same_layout(first: FeatureMap, second: FeatureMap) -> bool:
    def key(each: FeatureMap) -> tuple[object, ...]:
        return (each.dtype.itemsize, each.layout, each.stride_y, each.stride_x, each.stride_c, each.tiles)

    return first.depth == second.depth and key(first) == key(second)


def _runs(of: FeatureMap, box: Box) -> tuple[Addresses, Addresses]:
    """Return the first byte of each run of channels in a box, and the end of each."""
    size = of.dtype.itemsize
    step = BRICK if of.layout == NHCWB16 else of.depth
    firsts = np.array([max(box.c0, start) for start in range(box.c0 // step * step, box.c1, step)], np.int64)
    lasts = np.minimum((firsts // step + 1) * step, box.c1)
    inside = firsts // step * of.stride_c + firsts % step * size if of.layout == NHCWB16 else firsts * size
    starts = [np.zeros(0, np.int64)]
    for tile in of.tiles:
        rows = np.arange(max(tile.y0, box.y0), min(tile.y1, box.y1)) - tile.y0
        columns = np.arange(max(tile.x0, box.x0), min(tile.x1, box.x1)) - tile.x0
        pixels = tile.base + rows[:, None] * of.stride_y + columns * of.stride_x
        starts.append((pixels[:, :, None] + inside).reshape(-1))
    found = np.concatenate(starts)
    return found, found + np.tile((lasts - firsts) * size, len(found) // max(len(firsts), 1))
