# SPDX-License-Identifier: Apache-2.0
"""Layers with weights as convolutions of NHWC images, and the names of their kernels for each rule of rounding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ferrule._frozen import frozen
from ferrule.backends.cpu_acc.lowering.kernel_call import output_fields, window_fields, wrong_descriptor
from ferrule.backends.cpu_acc.lowering.overlap import Reads, pixel_overlaps
from ferrule.backends.firmware import LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, Rounding, TensorInfo
from ferrule.memory.request import Overlap
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.window import Padding, Window
from ferrule.operators.table import OPERATORS
from ferrule.operators.weighted.conv2d import Conv2dDescriptor
from ferrule.operators.weighted.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor
from ferrule.operators.weighted.products import Factor, centred, factors
from ferrule.operators.weighted.transpose_conv import TransposeConvDescriptor

TOO_LARGE = "a sum is too large, or an output is scaled up"
RULE_KERNELS = {Rounding.TFLM: "", Rounding.SINGLE: "single_", Rounding.ONNX: "onnx_"}
"""The part of an int8 kernel's name that tells its rule."""


@frozen(eq=False)
class Convolution:
    """A layer with weights; FULLY_CONNECTED is a convolution of an image of one column."""

    context: LoweringContext
    window: Window
    image: TensorInfo
    output: TensorInfo
    activation: Activation
    channel_axis: int = 0
    """The axis of the weights that corresponds to the output's channels."""
    depth_multiplier: int = 1

    @classmethod
    def of(cls, context: LoweringContext) -> Convolution:
        """Return the convolution of a layer; UnsupportedError if its descriptor is of another kind."""
        weights, image, output = context.input(1), context.source, context.output
        axis, multiplier = 0, 1
        match context.layer.descriptor:
            case Conv2dDescriptor() as descriptor:
                window = descriptor.window(weights)
            case DepthwiseConv2dDescriptor() as descriptor:
                window, axis, multiplier = descriptor.window(weights), 3, descriptor.depth_multiplier
            case TransposeConvDescriptor() as descriptor:
                window = Window(
                    height=weights.shape[1],
                    width=weights.shape[2],
                    stride_h=descriptor.stride_h,
                    stride_w=descriptor.stride_w,
                    padding=Padding(top=descriptor.pad_top, left=descriptor.pad_left),
                )
            case FullyConnectedDescriptor() as descriptor:
                channels, products = weights.shape
                rows = image.elements // products
                window = Window(height=1, width=1, stride_h=1, stride_w=1)
                image = replace(image, shape=(rows, 1, 1, products))
                output = replace(output, shape=(rows, 1, 1, channels))
            case _:
                raise wrong_descriptor(context)
        return cls(
            context=context,
            window=window,
            image=image,
            output=output,
            activation=descriptor.activation,
            channel_axis=axis,
            depth_multiplier=multiplier,
        )

    @property
    def is_int8(self) -> bool:
        """Whether the data is int8."""
        return self.image.dtype is DataType.INT8

    @property
    def pixels(self) -> int:
        """The number of output pixels of all images."""
        return self.output.elements // self.output.shape[3]

    @property
    def macs(self) -> int:
        """The multiply-accumulates of the layer; 0 if its operator counts none."""
        return OPERATORS[self.context.layer.type].macs(self.context.layer.descriptor, self.context.operands)

    @property
    def window_fields(self) -> Mapping[str, int]:
        """The members of a `struct ferrule_window`."""
        return window_fields(self.window, self.image, self.output)

    @property
    def output_fields(self) -> Mapping[str, int]:
        """The members of a `struct ferrule_output_s8`."""
        return output_fields(self.output, self.activation)

    def factors(self) -> Sequence[Factor]:
        """Return the output multiplier of each channel."""
        return factors(self.context.operands, self.channel_axis)

    def overlaps(
        self, *, reads: Reads = Reads.BEFORE, pixels: int = 1, tile: tuple[int, int] | None = None
    ) -> tuple[Overlap, ...]:
        """Return the overlap of a kernel that goes pixel by pixel, see `pixel_overlaps`."""
        return pixel_overlaps(self.context, self.window, self.image, self.output, reads=reads, pixels=pixels, tile=tile)

    def ruled(self, form: str) -> str:
        """Return the name of the int8 kernel of that form for the layer's rule."""
        return f"{form}_{RULE_KERNELS[self.context.layer.rounding]}s8"


def rule_sources(rule: Rounding) -> tuple[str, ...]:
    """Return the sources that int8 kernels of a rule need besides their own."""
    return () if rule is Rounding.TFLM else ("requantize_once",)


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
