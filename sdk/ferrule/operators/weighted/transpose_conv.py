# SPDX-License-Identifier: Apache-2.0
"""TRANSPOSE_CONV."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, Descriptor, LayerType, Quantization
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.blas import matrix_product
from ferrule.operators.arithmetic.error_bound import sums
from ferrule.operators.arithmetic.window import NO_PADDING, Window, same_of, sliding_windows
from ferrule.operators.operator import Operands, Operator, Shapes
from ferrule.operators.sample import LayerSample
from ferrule.operators.weighted.products import (
    WEIGHTED_RULES,
    Packed,
    Plan,
    check_weighted,
    check_weights,
    has_zero_point,
    row_terms,
    weighted_kernel,
)


@frozen
class TransposeConvDescriptor(Descriptor):
    """Inputs: NHWC image, OHWI weights, optional bias [O]. One output, NHWC.

    Each pixel of the image adds a window of products to the output; the window of pixel (0, 0) begins at (-pad_top,
    -pad_left). What lies outside the output is left out.
    """

    output_h: int
    """The height of the output, as `output_w`."""
    output_w: int
    stride_h: int = 1
    """Rows of the output between two rows of the image, as `stride_w`."""
    stride_w: int = 1
    pad_top: int = 0
    pad_left: int = 0
    activation: Activation = Activation.NONE


def _infer(descriptor: TransposeConvDescriptor, operands: Operands) -> Shapes:
    image, weights = operands.pair
    for info, layout in ((image, "NHWC"), (weights, "OHWI")):
        if len(info.shape) != 4:
            raise UnsupportedError(f"tensor '{info.name}' has shape {list(info.shape)}, expected {layout}")
    for name in ("output_h", "output_w", "stride_h", "stride_w"):
        if getattr(descriptor, name) < 1:
            raise UnsupportedError(f"{name} is {getattr(descriptor, name)}, expected 1 or more")
    if min(descriptor.pad_top, descriptor.pad_left) < 0:
        raise UnsupportedError(
            f"the padding is {descriptor.pad_top} and {descriptor.pad_left}, expected no negative number"
        )
    if image.shape[3] != weights.shape[3]:
        raise UnsupportedError(
            f"image '{image.name}' has {image.shape[3]} channels and weights '{weights.name}' take {weights.shape[3]}, "
            "expected the same number"
        )
    return ((image.shape[0], descriptor.output_h, descriptor.output_w, weights.shape[0]),)


def _check(descriptor: TransposeConvDescriptor, operands: Operands) -> None:
    """Refuse what no weighted operator takes, and weights with a zero point, which TensorFlow Lite Micro ignores."""
    check_weighted(descriptor, operands, channel_axis=0)
    weights = operands.input(1)
    if has_zero_point(weights):
        raise UnsupportedError(f"weights '{weights.name}' have a zero point that is not 0, expected symmetric weights")


def _pack(weights: Array, _: Operands) -> Packed:
    """Return the weights with the window turned by 180 degrees."""
    matrix = weights[:, ::-1, ::-1].reshape(weights.shape[0], -1).T
    return matrix, matrix


def _sums(descriptor: TransposeConvDescriptor, operands: Operands, image: Array, plan: Plan) -> Array:
    """Convolve the image, spread out by the strides, with the turned window."""
    batch, height, width, channels = operands.output.shape
    _, rows, columns, depth = operands.input(1).shape
    window = Window(height=rows, width=columns, stride_h=1, stride_w=1)
    spread = np.full((batch, height + rows - 1, width + columns - 1, depth), plan.fill, plan.weights.dtype)
    down = _places(image.shape[1], descriptor.stride_h, rows - 1 - descriptor.pad_top, spread.shape[1])
    across = _places(image.shape[2], descriptor.stride_w, columns - 1 - descriptor.pad_left, spread.shape[2])
    spread[:, down[1][:, None], across[1]] = image[:, down[0][:, None], across[0]]
    patches = sliding_windows(spread, window, height, width).reshape(batch * height * width, -1)
    return matrix_product(patches, plan.weights).reshape(batch * height, width * channels)


def _places(extent: int, stride: int, first: int, most: int) -> tuple[Array, Array]:
    """Return the indices along an axis of the image that have a place, and their places in the spread image."""
    index = np.arange(extent)
    place = index * stride + first
    inside = (place >= 0) & (place < most)
    return index[inside], place[inside]


def _macs(_: TransposeConvDescriptor, operands: Operands) -> int:
    """Return the products inside and outside the output."""
    weights = operands.input(1)
    return weights.elements * operands.source.elements // weights.shape[3]


def _sample(sample: LayerSample) -> Descriptor:
    shape, dice = sample.image(), sample.dice
    window, strides = (dice.randint(1, 3), dice.randint(1, 4)), (dice.randint(1, 2), dice.randint(1, 3))
    sample.take(shape)
    sample.weigh((dice.randint(1, 9), *window, shape[3]), 0)
    weights = sample.inputs[1]
    if has_zero_point(weights):
        sample.inputs[1] = replace(weights, quantization=Quantization.of(weights.scale))
    same = dice.random() < 0.5
    height, width = (
        extent * stride if same else (extent - 1) * stride + size
        for extent, stride, size in zip(shape[1:3], strides, window, strict=True)
    )
    padding = same_of((height, width), window, strides) if same else NO_PADDING
    return TransposeConvDescriptor(
        output_h=height,
        output_w=width,
        stride_h=strides[0],
        stride_w=strides[1],
        pad_top=padding.top,
        pad_left=padding.left,
        activation=sample.activation(),
    )


TRANSPOSE_CONV = Operator(
    descriptor=TransposeConvDescriptor,
    type=LayerType.TRANSPOSE_CONV,
    channel_axis=0,
    shapes=_infer,
    check=_check,
    check_values=partial(check_weights, channel_axis=0),
    kernel=weighted_kernel(_pack, _sums, channel_axis=0),
    bound=sums(row_terms),
    rules=WEIGHTED_RULES,
    macs=_macs,
    sample=_sample,
)
