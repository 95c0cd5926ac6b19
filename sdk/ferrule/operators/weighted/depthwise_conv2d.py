# SPDX-License-Identifier: Apache-2.0
"""DEPTHWISE_CONV_2D."""

from __future__ import annotations

from functools import partial

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, Descriptor, LayerType, TensorInfo
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.error_bound import sums
from ferrule.operators.arithmetic.window import NO_PADDING, Padding, Window, padded, sliding_windows
from ferrule.operators.operator import Operands, Operator, Shapes
from ferrule.operators.sample import LayerSample
from ferrule.operators.weighted.products import (
    WEIGHTED_RULES,
    Packed,
    Plan,
    check_weighted,
    check_weights,
    products_of,
    weighted_kernel,
)

_EINSUM_CHANNELS = 64
"""From this many channels, einsum, which loops over channels innermost, is faster than one image pass per tap."""


@frozen
class DepthwiseConv2dDescriptor(Descriptor):
    """Inputs: NHWC image, weights [1, H, W, C * multiplier], optional bias. One output, NHWC."""

    depth_multiplier: int = 1
    stride_h: int = 1
    stride_w: int = 1
    dilation_h: int = 1
    dilation_w: int = 1
    padding: Padding = NO_PADDING
    activation: Activation = Activation.NONE

    def window(self, weights: TensorInfo) -> Window:
        """Return the sliding window for these weights; UnsupportedError if they are not [1, H, W, O]."""
        if len(weights.shape) != 4 or weights.shape[0] != 1:
            raise UnsupportedError(f"weights '{weights.name}' have shape {list(weights.shape)}, expected [1, H, W, O]")
        return Window.of(self, weights)


def _infer(descriptor: DepthwiseConv2dDescriptor, operands: Operands) -> Shapes:
    image, weights = operands.pair
    height, width = descriptor.window(weights).output_size(image)
    if image.shape[3] * descriptor.depth_multiplier != weights.shape[3]:
        raise UnsupportedError(
            f"image '{image.name}' has {image.shape[3]} channels and weights '{weights.name}' give {weights.shape[3]}, "
            f"expected {descriptor.depth_multiplier} times as many (depth_multiplier)"
        )
    return ((image.shape[0], height, width, weights.shape[3]),)


def _pack(weights: Array, operands: Operands) -> Packed:
    """Return the weights for the kernel as [height, width, output width * channels], repeated over a row."""
    return weights.reshape(-1, weights.shape[3]), np.tile(weights[0], (1, 1, operands.output.shape[2]))


def _sums(descriptor: DepthwiseConv2dDescriptor, operands: Operands, image: Array, plan: Plan) -> Array:
    """Return the sums of products as [batch * height, width * channels]."""
    batch, height, width, channels = operands.output.shape
    window = descriptor.window(operands.input(1))
    if descriptor.depth_multiplier > 1:
        image = np.repeat(image, descriptor.depth_multiplier, axis=3)
    source = padded(image, window.padding, plan.fill, plan.weights.dtype)
    length = width * channels
    if channels >= _EINSUM_CHANNELS:
        windows = sliding_windows(source, window, height, width)
        taps = plan.weights[:, :, :channels]
        total: Array = np.einsum("bhwyxc,yxc->bhwc", windows, taps)
        return total.reshape(batch * height, length)
    # Columns are grouped by position modulo the stride, so the pixels of a row that meet one tap are contiguous.
    phases = [
        np.ascontiguousarray(source[:, :, phase :: window.stride_w]).reshape(batch, source.shape[1], -1)
        for phase in range(min(window.stride_w, source.shape[2]))
    ]
    sums = np.empty((batch, height, length), source.dtype)
    product = np.empty_like(sums)
    first = True
    for y in range(window.height):
        top = y * window.dilation_h
        rows = slice(top, top + (height - 1) * window.stride_h + 1, window.stride_h)
        for x in range(window.width):
            step, phase = divmod(x * window.dilation_w, window.stride_w)
            pixels = phases[phase][:, rows, step * channels : step * channels + length]
            if first:
                np.multiply(pixels, plan.weights[y, x], out=sums)
                first = False
            else:
                np.multiply(pixels, plan.weights[y, x], out=product)
                sums += product
    return sums.reshape(batch * height, length)


def _terms(_: DepthwiseConv2dDescriptor, operands: Operands) -> int:
    """Return the products that an output element adds up."""
    weights = operands.input(1)
    return weights.shape[1] * weights.shape[2]


def _sample(sample: LayerSample) -> Descriptor:
    shape, dice = sample.image(), sample.dice
    window, strides = sample.pair(3), sample.pair(2)
    multiplier = dice.choice([1, 1, 2])
    sample.take(shape)
    sample.weigh((1, *window, shape[3] * multiplier), 3)
    return DepthwiseConv2dDescriptor(
        depth_multiplier=multiplier,
        stride_h=strides[0],
        stride_w=strides[1],
        padding=sample.padding(shape, window, strides),
        activation=sample.activation(),
    )


DEPTHWISE_CONV_2D = Operator(
    descriptor=DepthwiseConv2dDescriptor,
    type=LayerType.DEPTHWISE_CONV_2D,
    channel_axis=3,
    shapes=_infer,
    check=partial(check_weighted, channel_axis=3),
    check_values=partial(check_weights, channel_axis=3),
    kernel=weighted_kernel(_pack, _sums, channel_axis=3),
    bound=sums(_terms),
    rules=WEIGHTED_RULES,
    macs=products_of(_terms),
    sample=_sample,
)
