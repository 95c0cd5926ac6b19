# SPDX-License-Identifier: Apache-2.0
"""The order in which the NPU reads weights, and its inverse in numpy.

Outermost first: blocks of output channels; blocks of input channels; tiles of the kernel of at most 8 x 8 taps, fewer
with dilation. Inside of a tile, the part-kernel order is groups of input channels, groups of output channels, taps; the
depth-first order is groups of output channels, taps, groups of input channels. Innermost are the channels of a group of
outputs, and then those of a group of inputs. Where a group or block exceeds the tensor, the stream has zeros.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ferrule._frozen import frozen

Int16 = npt.NDArray[np.int16]
KERNEL_TILE = 8


@frozen
class WeightOrder:
    """What the order of one operation's weights depends on, for one core; all numbers are at least 1."""

    ofm_depth: int
    """Output channels of this core."""
    ifm_depth: int
    kernel_height: int
    """Taps, not counting the gaps of dilation."""
    kernel_width: int
    ofm_block_depth: int
    """Output channels in a block, for this core."""
    ofm_ublock_depth: int
    ifm_ublock_depth: int
    ifm_bits: int = 8
    part_kernel: bool = False
    depthwise: bool = False
    dilation_height: int = 1
    """1 or 2."""
    dilation_width: int = 1
    """1 or 2."""

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The shape of the weights in order OHWI; depthwise weights have a single input channel."""
        return self.ofm_depth, self.kernel_height, self.kernel_width, self.input_channels

    @property
    def input_channels(self) -> int:
        """Input channels of one output channel."""
        return 1 if self.depthwise else self.ifm_depth

    @property
    def ifm_block_depth(self) -> int:
        """Input channels in a block."""
        if self.depthwise:
            return 1
        return 16 if self.is_part_kernel or self.ifm_bits == 16 else 32

    @property
    def input_group_depth(self) -> int:
        """Input channels in a group."""
        return 1 if self.depthwise else self.ifm_ublock_depth

    @property
    def is_part_kernel(self) -> bool:
        """Whether the taps of a kernel lie inside the groups of channels; never so for depthwise weights."""
        return self.part_kernel and not self.depthwise

    @property
    def tap_multiple(self) -> int:
        """The number of taps in a tile is rounded up to a multiple of this."""
        if self.depthwise:
            return 4
        if self.is_part_kernel:
            return 2 if self.ifm_bits == 16 else 4
        return 1

    @property
    def tile_height(self) -> int:
        """Rows of the kernel in a tile."""
        return KERNEL_TILE // self.dilation_height

    @property
    def tile_width(self) -> int:
        """Columns of the kernel in a tile."""
        return KERNEL_TILE // self.dilation_width

    @property
    def count(self) -> int:
        """The number of weights in the stream, with the zeros that fill it up."""
        group = self.input_group_depth if self.is_part_kernel else self.ifm_block_depth
        outputs = _grouped(self.ofm_depth, self.ofm_block_depth, self.ofm_ublock_depth)
        inputs = _grouped(self.input_channels, self.ifm_block_depth, group)
        taps = sum(
            rows * columns * _round_up(height * width, self.tap_multiple)
            for rows, height in _parts(self.kernel_height, self.tile_height)
            for columns, width in _parts(self.kernel_width, self.tile_width)
        )
        return outputs * inputs * taps


def places(order: WeightOrder) -> npt.NDArray[np.int64]:
    """Return for each weight of a stream its index among the weights in order OHWI, or -1 for one that fills up."""
    return np.concatenate(list(_tiles(order)))


def arranged(stream: Int16, order: WeightOrder) -> Int16:
    """Return the weights in order OHWI; the stream has at least `order.count`."""
    where = places(order)
    result = np.zeros(math.prod(order.shape), np.int16)
    used = where >= 0
    result[where[used]] = stream[: len(where)][used]
    return result.reshape(order.shape)


def _tiles(order: WeightOrder) -> Iterator[npt.NDArray[np.int64]]:
    for first_output in range(0, order.ofm_depth, order.ofm_block_depth):
        outputs = min(order.ofm_block_depth, order.ofm_depth - first_output)
        for first_input in range(0, order.input_channels, order.ifm_block_depth):
            for top in range(0, order.kernel_height, order.tile_height):
                for left in range(0, order.kernel_width, order.tile_width):
                    yield _tile(order, first_output, outputs, first_input, top, left)


def _tile(
    order: WeightOrder, first_output: int, outputs: int, first_input: int, top: int, left: int
) -> npt.NDArray[np.int64]:
    height = min(order.tile_height, order.kernel_height - top)
    width = min(order.tile_width, order.kernel_width - left)
    inputs = order.ifm_block_depth
    if order.is_part_kernel:
        inputs = min(inputs, order.input_channels - first_input)
    groups = np.arange(0, inputs, order.input_group_depth)
    single = np.zeros(1, np.int64)
    # the axes: outer group of inputs, group of outputs, tap, inner group of inputs, output in group, input in group
    outer, inner = (groups, single) if order.is_part_kernel else (single, groups)
    output, tap, input_ = np.ix_(
        np.arange(0, outputs, order.ofm_ublock_depth),
        np.arange(_round_up(height * width, order.tap_multiple)),
        np.arange(order.input_group_depth),
    )
    output, tap = output.reshape(-1, 1, 1, 1, 1), tap.reshape(-1, 1, 1, 1)
    output = first_output + output + np.arange(order.ofm_ublock_depth).reshape(-1, 1)
    input_ = first_input + outer.reshape(-1, 1, 1, 1, 1, 1) + inner.reshape(-1, 1, 1) + input_.reshape(-1)
    row, column = np.divmod(tap, width)
    used = (input_ < order.input_channels) & (output < order.ofm_depth) & (row < height)
    place = ((output * order.kernel_height + top + row) * order.kernel_width + left + column) * order.input_channels
    return np.where(used, place + input_, -1).ravel()


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def _parts(extent: int, size: int) -> tuple[tuple[int, int], ...]:
    """Return the numbers and the sizes of the parts of an extent, all of one size but the last."""
    return (extent // size, size), (1, extent % size)


def _grouped(extent: int, block: int, group: int) -> int:
    """Return an extent whose blocks are each filled up to whole groups."""
    return sum(count * _round_up(size, group) for count, size in _parts(extent, block))
