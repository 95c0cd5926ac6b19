# SPDX-License-Identifier: Apache-2.0
"""Layers with weights as convolutions of NHWC images, and the names of their kernels for each rule of rounding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.cpu_acc.lowering.kernel_call import Member, output_fields, window_fields
from ferrule.backends.cpu_acc.lowering.overlap import Reads, pixel_overlaps
from ferrule.backends.cpu_acc.lowering.proofs.channel_ranges import channel_axis
from ferrule.backends.firmware import LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.graph import Array
from ferrule.memory.request import Overlap
from ferrule.operators.arithmetic.fixed_point import Factor
from ferrule.operators.table import OPERATORS
from ferrule.operators.weighted.convolved import Convolved, convolved
from ferrule.operators.weighted.products import centred, factors

TOO_LARGE = "a sum is too large, or an output is scaled up"


@frozen(eq=False)
class Convolution(Convolved):
    """A layer with weights, in the context in which it is lowered."""

    context: LoweringContext

    @classmethod
    def of(cls, context: LoweringContext) -> Convolution:
        """Return the convolution of a layer; UnsupportedError if its descriptor is of another kind."""
        found = convolved(context.layer, context.operands)
        return cls(
            context=context,
            window=found.window,
            image=found.image,
            output=found.output,
            activation=found.activation,
            depth_multiplier=found.depth_multiplier,
        )

    @property
    def macs(self) -> int:
        """The multiply-accumulates of the layer; 0 if its operator counts none."""
        return OPERATORS[self.context.layer.type].macs(self.context.layer.descriptor, self.context.operands)

    @property
    def in_a_row(self) -> Convolution:
        """The layer with the pixels of all images in one row, if its window is one pixel; otherwise itself."""
        if not self.window.is_pointwise:
            return self
        image, output = (
            replace(info, shape=(1, 1, info.elements // info.shape[3], info.shape[3]))
            for info in (self.image, self.output)
        )
        return replace(self, image=image, output=output)

    @property
    def window_fields(self) -> Mapping[str, int]:
        """The members of a `struct ferrule_window`."""
        return window_fields(self.window, self.image, self.output)

    @property
    def image_fields(self) -> Mapping[str, Member]:
        """The members for the window and the zero point of the image."""
        return {"window": self.window_fields, "input_zero_point": self.image.zero_point}

    @property
    def view_fields(self) -> Mapping[str, Mapping[str, int]]:
        """The member for a `struct ferrule_view` of all channels of the image and of the output."""
        _, height, width, channels = self.output.shape
        return {
            "view": {
                "groups": 1,
                "pixel_c": self.image.shape[3],
                "group_output": channels,
                "first": 0,
                "column": channels,
                "row": width * channels,
                "image": height * width * channels,
                "more": 0,
            }
        }

    @property
    def output_fields(self) -> Mapping[str, int]:
        """The members of a `struct ferrule_output_s8`."""
        return output_fields(self.output, self.activation)

    def factors(self) -> Sequence[Factor]:
        """Return the output multiplier of each channel."""
        return factors(self.context.operands, channel_axis(self.context.layer))

    def bias(self, dtype: type[np.number[Any]]) -> Array:
        """Return the constant bias of each channel as a type; zeros if there is none."""
        given = self.context.constant(2)
        return np.zeros(self.output.shape[3], dtype) if given is None else given.reshape(-1).astype(dtype)

    def overlaps(
        self, *, reads: Reads = Reads.BEFORE, pixels: int = 1, tile: tuple[int, int] | None = None
    ) -> tuple[Overlap, ...]:
        """Return the overlap of a kernel that goes pixel by pixel, see `pixel_overlaps`."""
        return pixel_overlaps(self.context, self.window, self.image, self.output, reads=reads, pixels=pixels, tile=tile)


def from_run_time(context: LoweringContext) -> bool:
    """Return whether a weighted layer has weights or a bias from run time, which only the generic kernels can take."""
    return OPERATORS[context.layer.type].weighted and any(
        context.layer.inputs[index] is not None and not context.is_constant(index)
        for index in range(1, len(context.layer.inputs))
    )


def stored_weights(context: LoweringContext) -> Array:
    """Return the constant weights of a layer as they are stored."""
    weights = context.constant(1)
    if weights is None:
        raise UnsupportedError(f"layer '{context.layer.name}' has no weights")
    return weights


def weights_of(context: LoweringContext) -> Array:
    """Return the constant weights of a layer, minus their zero point: int16 if it is not 0."""
    return centred(stored_weights(context), context.input(1))
