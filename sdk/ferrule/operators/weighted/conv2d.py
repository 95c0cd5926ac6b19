# SPDX-License-Identifier: Apache-2.0
"""CONV_2D."""

from __future__ import annotations

from functools import partial

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, Descriptor, LayerType, TensorInfo
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.blas import matrix_product
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
    has_zero_point,
    products_of,
    row_terms,
    weighted_kernel,
)


@frozen
class Conv2dDescriptor(Descriptor):
    """Inputs: NHWC image, OHWI weights, optional bias [O]. One output, NHWC.

    If the image has g times the channels I of the weights, there are g groups: the first O / g channels of the output
    come from the first I channels of the image, and so on.
    """

    stride_h: int = 1
    stride_w: int = 1
    dilation_h: int = 1
    dilation_w: int = 1
    padding: Padding = NO_PADDING
    activation: Activation = Activation.NONE

    def window(self, weights: TensorInfo) -> Window:
        """Return the sliding window for these weights; UnsupportedError if they are not OHWI."""
        if len(weights.shape) != 4:
            raise UnsupportedError(f"weights '{weights.name}' have shape {list(weights.shape)}, expected OHWI")
        return Window.of(self, weights)


def groups_of(image: TensorInfo, weights: TensorInfo) -> int:
    """Return the number of groups."""
    return image.shape[3] // weights.shape[3]


def _infer(descriptor: Conv2dDescriptor, operands: Operands) -> Shapes:
    image, weights = operands.pair
    height, width = descriptor.window(weights).output_size(image)
    if image.shape[3] % weights.shape[3]:
        raise UnsupportedError(
            f"image '{image.name}' has {image.shape[3]} channels and weights '{weights.name}' take {weights.shape[3]}, "
            "expected the same number, or a multiple of it for groups"
        )
    groups = groups_of(image, weights)
    if weights.shape[0] % groups:
        raise UnsupportedError(
            f"weights '{weights.name}' give {weights.shape[0]} channels in {groups} groups, expected a multiple of them"
        )
    return ((image.shape[0], height, width, weights.shape[0]),)


def _check(descriptor: Conv2dDescriptor, operands: Operands) -> None:
    check_weighted(descriptor, operands, channel_axis=0, narrow_bias=True)
    image, weights = operands.pair
    if has_zero_point(weights) and groups_of(image, weights) > 1:
        raise UnsupportedError(
            f"weights '{weights.name}' have a zero point that is not 0, expected symmetric weights with groups"
        )


def _pack(weights: Array, _: Operands) -> Packed:
    matrix = weights.reshape(weights.shape[0], -1).T
    return matrix, matrix


def _sums(descriptor: Conv2dDescriptor, operands: Operands, image: Array, plan: Plan) -> Array:
    batch, height, width, channels = operands.output.shape
    weights = operands.input(1)
    window, depth = descriptor.window(weights), weights.shape[3]
    parts = [
        matrix_product(_patches(image[..., number * depth : (number + 1) * depth], window, plan, operands), matrix)
        for number, matrix in enumerate(np.split(plan.weights, groups_of(operands.source, weights), axis=1))
    ]
    rows = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
    return rows.reshape(batch * height, width * channels)


def _patches(image: Array, window: Window, plan: Plan, operands: Operands) -> Array:
    """Return the pixels under each window position as rows, in the dtype of the plan's weights."""
    batch, height, width, _ = operands.output.shape
    source = padded(image, window.padding, plan.fill, plan.weights.dtype)
    if (window.height, window.width, window.stride_h, window.stride_w) == (1, 1, 1, 1):
        return source.reshape(-1, image.shape[3])
    return sliding_windows(source, window, height, width).reshape(batch * height * width, -1)


def _sample(sample: LayerSample) -> Descriptor:
    shape, dice = sample.image(), sample.dice
    window, strides = sample.pair(3), sample.pair(2)
    sample.take(shape)
    outputs = dice.randint(1, 9)
    groups = 2 if shape[3] % 2 == 0 and outputs % 2 == 0 and dice.random() < 0.5 else 1
    sample.weigh((outputs, *window, shape[3] // groups), 0)
    return Conv2dDescriptor(
        stride_h=strides[0],
        stride_w=strides[1],
        padding=sample.padding(shape, window, strides),
        activation=sample.activation(),
    )


CONV_2D = Operator(
    descriptor=Conv2dDescriptor,
    type=LayerType.CONV_2D,
    channel_axis=0,
    shapes=_infer,
    check=_check,
    check_values=partial(check_weights, channel_axis=0),
    kernel=weighted_kernel(_pack, _sums, channel_axis=0),
    bound=sums(row_terms),
    rules=WEIGHTED_RULES,
    macs=products_of(row_terms),
    sample=_sample,
)
