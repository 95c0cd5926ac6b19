# SPDX-License-Identifier: Apache-2.0
"""CONV_2D and FULLY_CONNECTED on cores without the DSP extension (`ferrule/kernels/multiply.h`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernel_call import kernel_call, output_value, window_value
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Feature, Row, has_dsp
from ferrule.backends.cpu_acc.lowering.kernels.generic import macs_of, ruled_kernel, ruled_part
from ferrule.backends.cpu_acc.lowering.kernels.int8_channels import Channels, can_scale, int8_channels
from ferrule.backends.cpu_acc.lowering.overlap import Reads, pixel_overlaps
from ferrule.backends.firmware import Blob, LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, TensorInfo
from ferrule.operators.conv2d import Conv2dDescriptor
from ferrule.operators.fully_connected import FullyConnectedDescriptor
from ferrule.operators.weighted import WEIGHTED_RULES
from ferrule.operators.window import Window

QUAD, DUO, OCTET = 4, 2, 8
"""The channels of a block, as in the header."""
_WORTH_LISTING = 0.75
_ROW = Window(height=1, width=1, stride_h=1, stride_w=1)
_LARGEST_PAIR = 255
"""The largest magnitude of two weights whose products with any int8 data add up to 16 bits."""


def plain_scales(channels: Channels, zero_point: int, places: Array) -> Array:
    """Return FERRULE_PLAIN_SCALE_WORDS words of each channel; `places` are their indices in an output pixel."""
    words = np.zeros((max(len(channels.factors), 1), 5), np.int64)
    for index, (bias, factor, place) in enumerate(zip(channels.bias, channels.factors, places, strict=True)):
        right = -factor.shift
        words[index] = (2 * bias, factor.multiplier, right, ((2 * zero_point + 1) << right) >> 1, place)
    return words.reshape(-1).astype(np.int32)


def cost_on(context: LoweringContext, instructions: int) -> int:
    """Return the costs on the core; with the DSP extension, more than those of its kernels, less than plain ones."""
    if has_dsp(context.target.core):
        return 9 * macs_of(context) + 30 * context.operands.output.elements
    return instructions


def _whole_blocks(channels: Array, block: int) -> Array:
    """Return the channels' indices, the last one repeated up to a whole block."""
    missing = -channels.size % block
    return np.concatenate([channels, channels[-1:].repeat(missing)]) if channels.size else channels


def _blocks(matrix: Array, channels: int, products: int) -> Array:
    """Return the int8 weights, filled up with zeros, as [blocks, channels of a block, products]."""
    count, used = matrix.shape
    blocks = max(-(-count // channels), 1)
    whole = np.zeros((blocks * channels, products), np.int8)
    whole[:count, :used] = matrix
    return whole.reshape(blocks, channels, products)


def quad_weights(matrix: Array) -> Array:
    """Return the weights by blocks of four channels: for each product a byte per channel."""
    return _blocks(matrix, QUAD, matrix.shape[1]).transpose(0, 2, 1).reshape(-1)


def octet_weights(matrix: Array) -> Array:
    """Return the weights by blocks of eight channels: for each product a byte per channel."""
    return _blocks(matrix, OCTET, matrix.shape[1]).transpose(0, 2, 1).reshape(-1)


def duo_weights(matrix: Array) -> Array:
    """Return the weights by blocks of two channels: for two products those of the first channel, then the other's."""
    pairs = -(-matrix.shape[1] // 2)
    split = _blocks(matrix, DUO, 2 * pairs).reshape(-1, DUO, pairs, 2)
    return split.transpose(0, 2, 1, 3).reshape(-1)


def _descriptor(context: LoweringContext) -> Conv2dDescriptor:
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, Conv2dDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    return descriptor


def _used_inputs(matrix: Array) -> Array | None:
    """Return the indices of the inputs with weights, or None unless at least a quarter has none."""
    used = np.flatnonzero(matrix.any(axis=0))
    if used.size > _WORTH_LISTING * matrix.shape[1]:
        return None
    return used if used.size else np.zeros(1, used.dtype)


def _conv2d(
    context: LoweringContext,
    kernel: str,
    parts: tuple[str, ...],
    block: int,
    cost: float,
    pack: Callable[[Array], Array],
) -> Candidate | str:
    descriptor, image, output = _descriptor(context), context.input(0), context.operands.output
    if image.dtype is not DataType.INT8:
        return "the data is not int8"
    channels = int8_channels(context, descriptor.activation, 0)
    live = _whole_blocks(np.flatnonzero(~channels.dead), block)
    chosen = channels.chosen(live)
    if not can_scale(chosen, output, descriptor.activation):
        return "a sum is too large, or an output is scaled up"
    window = descriptor.window(context.input(1))
    used = _used_inputs(chosen.matrix) if window.is_pointwise else None
    matrix = chosen.matrix if used is None else chosen.matrix[:, used]
    if block == DUO and not _fits_duo(matrix):
        return "two neighbouring weights are -128"
    products = matrix.shape[1] + (matrix.shape[1] % 2 if block == DUO else 0)
    pixels = output.elements // output.shape[3]

    def lower() -> LoweredOp:
        ruled = ruled_kernel(context, kernel.removesuffix("_s8"))
        weights = context.blob("weights", pack(matrix), alignment=4)
        scales = context.blob("scales", plain_scales(chosen, output.zero_point, live))
        fixed = context.blob("fixed", channels.fixed) if channels.dead.any() else None
        inputs: Blob | None = None
        if used is not None:
            listed = np.zeros(products, np.int16)
            listed[: used.size] = used
            inputs = context.blob("inputs", listed)
        return kernel_call(
            context,
            ruled,
            header="multiply",
            table="conv2d_blocks_s8_params",
            scratch_bytes=4 * products,
            contribution=ruled_part(context, ruled, *parts),
            overlaps=pixel_overlaps(context, window, image, output, pixels=2),
            window=window_value(window, image, output),
            input_zero_point=image.zero_point,
            inputs=inputs,
            products=products,
            weights=weights,
            scales=scales,
            fixed=fixed,
            blocks=live.size // block,
            output_c=len(channels.matrix),
            output=output_value(output, descriptor.activation),
        )

    return Candidate(
        kernel=kernel,
        instructions=cost_on(context, int(pixels * (products * (cost * live.size + 3) + 20 * live.size))),
        weight_bytes=live.size * (products + 20),
        scratch_bytes=4 * products,
        lower=lower,
    )


def _fits_duo(matrix: Array) -> bool:
    magnitudes = np.abs(_blocks(matrix, DUO, matrix.shape[1] + matrix.shape[1] % 2).astype(np.int64))
    return bool((magnitudes[..., 0::2] + magnitudes[..., 1::2] <= _LARGEST_PAIR).all())


def _quad(context: LoweringContext) -> Candidate | str:
    return _conv2d(context, "conv2d_quad_s8", ("multiply_quad",), QUAD, 1.85, quad_weights)


def _duo(context: LoweringContext) -> Candidate | str:
    if context.target.core is None or not context.target.core.baseline:
        return "blocks of four channels take fewer instructions, except on Armv6-M"
    return _conv2d(context, "conv2d_duo_s8", ("multiply_duo",), DUO, 3.3, duo_weights)


def _column(info: TensorInfo, rows: int, channels: int) -> TensorInfo:
    return replace(info, shape=(rows, 1, 1, channels))


def _octet(context: LoweringContext) -> Candidate | str:
    descriptor, data = context.layer.descriptor, context.input(0)
    if not isinstance(descriptor, FullyConnectedDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    output = context.operands.output
    if data.dtype is not DataType.INT8:
        return "the data is not int8"
    channels = int8_channels(context, descriptor.activation, 0)
    if not can_scale(channels, output, descriptor.activation):
        return "a sum is too large, or an output is scaled up"
    count, products = channels.matrix.shape
    rows = data.elements // products

    def lower() -> LoweredOp:
        kernel = ruled_kernel(context, "fully_connected_octet")
        return kernel_call(
            context,
            kernel,
            header="multiply",
            table="fully_connected_octet_s8_params",
            contribution=ruled_part(context, kernel, "multiply_octet"),
            overlaps=pixel_overlaps(
                context, _ROW, _column(data, rows, products), _column(output, rows, count), reads=Reads.PER_ELEMENT
            ),
            rows=rows,
            input_c=products,
            output_c=count,
            weights=context.blob("weights", octet_weights(channels.matrix), alignment=4),
            scales=context.blob("scales", plain_scales(channels, output.zero_point, np.arange(count))),
            output=output_value(output, descriptor.activation),
        )

    per_product = 4.8 if context.target.core is not None and context.target.core.baseline else 2.2
    return Candidate(
        kernel="fully_connected_octet_s8",
        instructions=cost_on(context, int(rows * count * (per_product * products + 20))),
        weight_bytes=-(-count // OCTET) * OCTET * products + 20 * count,
        lower=lower,
    )


CONV_2D_SCALAR: tuple[Row, ...] = (
    Row(kernel="conv2d_quad_s8", needs=frozenset({Feature.LONG_MULTIPLY}), rules=WEIGHTED_RULES, candidate=_quad),
    Row(kernel="conv2d_duo_s8", rules=WEIGHTED_RULES, candidate=_duo),
)
"""The kernels of CONV_2D for cores without the DSP extension; the second one for those of Armv6-M."""
FULLY_CONNECTED_SCALAR: tuple[Row, ...] = (
    Row(kernel="fully_connected_octet_s8", rules=WEIGHTED_RULES, candidate=_octet),
)
"""The kernel of FULLY_CONNECTED for cores without the DSP extension."""
