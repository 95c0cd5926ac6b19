# SPDX-License-Identifier: Apache-2.0
"""The axes along and across which the window of a DEPTHWISE_CONV_2D slides, for kernels that go plane by plane."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.cpu_acc.lowering.kernel_call import Member
from ferrule.backends.cpu_acc.lowering.kernels.convolution import Convolution
from ferrule.backends.cpu_acc.lowering.kernels.int8_channels import Channels
from ferrule.backends.cpu_acc.lowering.kernels.packing import filled
from ferrule.backends.cpu_acc.lowering.overlap import plane_overlaps
from ferrule.dom import Identifier
from ferrule.graph import Array
from ferrule.memory.request import Overlap

MOST_CHANNELS = 1 << 15
"""The places of channels in a pixel have 16 bits."""
TOO_MANY_CHANNELS = "the places of the channels do not fit into 16 bits"


@frozen
class Axis:
    """One axis of the image, for the window of a layer."""

    input_extent: int
    output_extent: int
    input_bytes: int
    """Between neighbouring indices."""
    output_bytes: int
    stride: int
    dilation: int
    pad: int
    taps: int
    """Of the window."""

    @property
    def parts(self) -> int:
        """The number of images into which the dilation divides this axis."""
        return self.dilation // math.gcd(self.stride, self.dilation)

    @property
    def part_stride(self) -> int:
        """The window's stride in such an image, where it is not dilated."""
        return self.stride // math.gcd(self.stride, self.dilation)

    @property
    def outputs(self) -> int:
        """The most outputs of such an image."""
        return -(-self.output_extent // self.parts)

    @property
    def fields(self) -> Mapping[str, Member]:
        """The members of a `struct ferrule_axis`."""
        return {
            "input_extent": self.input_extent,
            "output_extent": self.output_extent,
            "input_bytes": self.input_bytes,
            "output_bytes": self.output_bytes,
            "stride": self.stride,
            "dilation": self.dilation,
            "pad": self.pad,
            "parts": self.parts,
            "part_stride": self.part_stride,
        }


@frozen
class Sliding:
    """The axis along which a window slides (steps), and the axis across it (lines)."""

    layer: Convolution
    lines: Axis
    steps: Axis
    transposed: bool
    """Whether the steps go from row to row, not from column to column."""

    def overlaps(self) -> tuple[Overlap, ...]:
        """Return the overlap of a kernel that copies lines of some channels once, in order, before it needs them."""
        if self.layer.depth_multiplier != 1:
            return ()
        if self.lines.parts * self.steps.parts == 1:
            return plane_overlaps(self.layer.context, self.layer.window, transposed=self.transposed)
        image, output = self.layer.image, self.layer.output
        in_place = image.shape == output.shape and all(
            axis.stride == 1 and axis.pad % axis.dilation == 0 for axis in (self.lines, self.steps)
        )
        if not in_place or self.layer.context.is_constant(0):
            return ()
        # each part replaces itself; parts are not in the order of memory, so that only the same place is safe
        return (Overlap(input=image.name, output=output.name, distance_bytes=0, step_bytes=image.size_bytes),)

    def taps(self, channels: Channels) -> Array:
        """Return the weights as [channels, lines, steps], of one channel at least: C has no empty arrays."""
        window = self.layer.window
        taps = filled(channels.matrix, 1, 1).reshape(-1, window.height, window.width)
        return taps.transpose(0, 2, 1) if self.transposed else taps


def slidings(layer: Convolution) -> list[Sliding]:
    """Return the two ways to slide, along rows first."""
    window, image, output = layer.window, layer.image.shape, layer.output.shape
    rows, columns = (
        Axis(
            input_extent=image[index],
            output_extent=output[index],
            input_bytes=math.prod(image[index + 1 :]),
            output_bytes=math.prod(output[index + 1 :]),
            stride=stride,
            dilation=dilation,
            pad=pad,
            taps=taps,
        )
        for index, stride, dilation, pad, taps in (
            (1, window.stride_h, window.dilation_h, window.padding.top, window.height),
            (2, window.stride_w, window.dilation_w, window.padding.left, window.width),
        )
    )
    return [
        Sliding(layer=layer, lines=rows, steps=columns, transposed=False),
        Sliding(layer=layer, lines=columns, steps=rows, transposed=True),
    ]


def by_input(channels: Channels) -> Channels:
    """Return the channels so ordered that neighbours have neighbouring inputs, if inputs have several outputs."""
    multiplier = channels.layer.depth_multiplier
    return channels.chosen(np.lexsort((channels.places, channels.places % multiplier)))


def place_fields(channels: Channels) -> Mapping[str, Member]:
    """Return the members for the places of channels, and for the dead channels."""
    multiplier, dead, places = channels.layer.depth_multiplier, channels.dead, channels.places
    in_order = np.array_equal(places, np.arange(len(dead)))
    return {
        "live_c": len(places),
        "inputs": None if multiplier == 1 else filled(places // multiplier, 1).astype(np.int16),
        "places": None if in_order else filled(places, 1).astype(np.int16),
        "dead": {
            "store": Identifier("ferrule_store_dead") if dead.any() else None,
            "mask": _mask(dead) if dead.any() else None,
            "fixed": channels.fixed_pixel,
        },
    }


def _mask(chosen: Array) -> Array:
    """Return words of 32 bits, the least significant first."""
    bits = np.pad(chosen, (0, -len(chosen) % 32)).reshape(-1, 32)
    words: Array = (bits.astype(np.uint32) << np.arange(32, dtype=np.uint32)).sum(axis=1, dtype=np.uint32)
    return words
