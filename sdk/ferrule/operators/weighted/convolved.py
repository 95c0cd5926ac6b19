# SPDX-License-Identifier: Apache-2.0
"""Layers with weights as convolutions of images, as kernels compute them."""

from __future__ import annotations

from dataclasses import replace

from ferrule._frozen import frozen
from ferrule.errors import UnsupportedError
from ferrule.graph import Layer, TensorInfo
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.window import Padding, Window
from ferrule.operators.operator import Operands
from ferrule.operators.weighted.conv2d import Conv2dDescriptor
from ferrule.operators.weighted.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor
from ferrule.operators.weighted.transpose_conv import TransposeConvDescriptor


@frozen(eq=False)
class Convolved:
    """A layer with weights; FULLY_CONNECTED is a convolution of an image of one column."""

    window: Window
    image: TensorInfo
    output: TensorInfo
    activation: Activation
    depth_multiplier: int = 1

    @property
    def pixels(self) -> int:
        """The number of output pixels of all images."""
        return self.output.elements // self.output.shape[3]


def convolved(layer: Layer, operands: Operands) -> Convolved:
    """Return a layer as a convolution; UnsupportedError if its descriptor is of another kind."""
    (image, weights), output, multiplier = operands.pair, operands.output, 1
    match layer.descriptor:
        case Conv2dDescriptor() as descriptor:
            window = descriptor.window(weights)
        case DepthwiseConv2dDescriptor() as descriptor:
            window, multiplier = descriptor.window(weights), descriptor.depth_multiplier
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
            raise UnsupportedError(f"layer '{layer.name}' has a {type(layer.descriptor).__name__}")
    return Convolved(
        window=window, image=image, output=output, activation=descriptor.activation, depth_multiplier=multiplier
    )
