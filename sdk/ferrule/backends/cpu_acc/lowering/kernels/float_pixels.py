# SPDX-License-Identifier: Apache-2.0
"""Layers with weights in float32, as in `ferrule/kernels/float_pixels.h`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall, Member, limit_fields
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Row
from ferrule.backends.cpu_acc.lowering.kernels.convolution import Convolution, from_run_time, stored_weights
from ferrule.backends.cpu_acc.lowering.kernels.equivalent import in_groups
from ferrule.backends.cpu_acc.lowering.kernels.generic import given_bias, given_weights
from ferrule.backends.cpu_acc.lowering.kernels.packing import filled
from ferrule.backends.cpu_acc.lowering.kernels.parts import Part, PlannedPart, part_fields, part_rows
from ferrule.backends.cpu_acc.lowering.overlap import Reads
from ferrule.backends.firmware import LoweringContext
from ferrule.dom import Identifier
from ferrule.graph import Array, DataType
from ferrule.operators.activation import Activation, fused_activation

FLOAT_SOURCES = "float_pixels", "float_scalars", "float_vectors"
"""The C of sums in blocks."""
BLOCKS = 4, 8
"""Channels of a block, as in the header."""
_PAIR = 2
"""Pixels that are computed at once."""
_CALL = 400
"""Instructions of a call, beside those of pixels."""


def has_fpu(context: LoweringContext) -> bool:
    """Return whether a core computes float32 in hardware, as the host does."""
    core = context.target.core
    return core is None or core.fpu


def _without_fpu(context: LoweringContext) -> tuple[int, int]:
    """Return about what a product and an output take in software, which depends on the values.

    About half of the values that a ReLU leaves are 0, and their products take less.
    """
    core, source = context.target.core, context.graph.producer(context.source.name)
    rectified = source is not None and fused_activation(source.descriptor) in {Activation.RELU, Activation.RELU6}
    if core is not None and core.baseline:
        return (155 if rectified else 203), 200
    return (108 if rectified else 125), 200


def _not_in_blocks(context: LoweringContext) -> str | None:
    """Return the reason why weights cannot be in blocks, or need not."""
    if from_run_time(context):
        return "the weights or the bias are not constant"
    return None if has_fpu(context) else "the core has no floating-point unit"


def blocks_of(weights: Array, bias: Array, block: int) -> Array:
    """Return the stream of weights [channels, products] and biases in blocks of so many channels."""
    whole = filled(np.column_stack([weights, bias]), block, 1)
    return whole.reshape(-1, block, whole.shape[1]).transpose(0, 2, 1).reshape(-1).astype(np.float32)


def _conv2d_in_blocks(context: LoweringContext) -> Candidate | str:
    if (reason := _not_in_blocks(context)) is not None:
        return reason
    layer = Convolution.of(context)
    weights, bias, (_, groups) = stored_weights(context), layer.bias(np.float32), _groups(layer)
    channels, products = len(weights) // groups, weights[0].size
    block = min(BLOCKS, key=lambda block: _instructions(layer, block))

    def stream() -> Array:
        matrices = weights.reshape(groups, channels, products), bias.reshape(groups, channels)
        return np.concatenate([blocks_of(*each, block) for each in zip(*matrices, strict=True)])

    return _candidate(
        layer,
        "conv2d_block_f32",
        {"block": block, "weights": layer.context.blob("weights", stream()), "bias": None},
        instructions=_instructions(layer, block),
        weight_bytes=4 * groups * -(-channels // block) * block * (products + 1),
    )


def _instructions(layer: Convolution, block: int) -> int:
    """Return the estimate of a layer with weights in blocks."""
    _, groups = _groups(layer)
    channels, products = layer.output.shape[3] // groups, layer.macs // layer.output.elements
    found = layer.pixels * (groups * pixel_instructions(layer.context, channels, products, block) + 30) + _CALL
    vectors, taps = _has_vectors(layer.context), layer.window.height * layer.window.width
    if groups > 1:  # the products of a group are not neighbours in the image
        per_group, per_tap = (25, 6.5) if vectors else (55, 3)
        found += layer.pixels * groups * (per_group + per_tap * taps)
    elif vectors and layer.pixels % _PAIR:  # the last pixel alone
        found += -(-channels // block) * block * (0.05 + 0.6 / block) * products
    return int(found)


def pixel_instructions(context: LoweringContext, channels: int, products: int, block: int) -> float:
    """Return the estimate of the channels of a group at a pixel."""
    per_product, per_channel = (0.7 + 0.4 / block, 3) if _has_vectors(context) else (2.1 + 0.8 / block, 4)
    return -(-channels // block) * (block * (per_product * products + per_channel) + 16)


def _conv2d_plain(context: LoweringContext) -> Candidate | str:
    layer = Convolution.of(context)
    fpu = has_fpu(context)
    per_mac, per_element = (6, 60) if fpu else _without_fpu(context)
    return _candidate(
        layer,
        "conv2d_f32",
        {"block": 1, "weights": given_weights(context), "bias": given_bias(layer, np.float32)},
        instructions=per_mac * layer.macs + per_element * layer.output.elements + _CALL,
        weight_bytes=stored_weights(context).nbytes + 4 * layer.output.shape[3] if context.is_constant(1) else 0,
    )


def _candidate(
    layer: Convolution, title: str, members: Mapping[str, Member], *, instructions: int, weight_bytes: int
) -> Candidate:
    context = layer.context
    depth, groups = _groups(layer)
    channels = layer.output.shape[3] // groups
    in_blocks = members["block"] != 1
    pixels = _PAIR if in_blocks else 1
    if groups > 1:  # the pixels of a row are computed group by group
        pixels = layer.pixels if layer.window.is_pointwise else layer.output.shape[2]
    return Candidate(
        kernel=title,
        instructions=instructions,
        weight_bytes=weight_bytes,
        overlaps=partial(
            layer.overlaps,
            reads=Reads.AGAIN if in_blocks and _has_vectors(context) else Reads.PER_ELEMENT,
            pixels=pixels,
        ),
        call=lambda: KernelCall(
            "conv2d_f32",
            "ferrule/kernels/conv2d.h",
            {
                "window": {**_window_fields(layer), "input_c": depth},
                "view": {**layer.view_fields["view"], "groups": groups, "group_output": channels},
                "output_c": channels,
                "store": Identifier(f"ferrule_float_blocks_{members['block']}"),
                **members,
                **limit_fields(layer.output, layer.activation),
            },
            title=title,
            sources=FLOAT_SOURCES,
            local=from_run_time(context),
        ),
    )


def _groups(layer: Convolution) -> tuple[int, int]:
    """Return the input channels of a group, and the number of groups."""
    weights = layer.context.input(1).shape
    depth = weights[-1]
    return depth, layer.image.shape[3] // depth


def _window_fields(layer: Convolution) -> Mapping[str, int]:
    """Return the window; the pixels of all images are one row for a window of one pixel."""
    fields = layer.window_fields
    if not layer.window.is_pointwise:
        return fields
    row = {"batches": 1, "input_h": 1, "input_w": layer.pixels, "output_h": 1, "output_w": layer.pixels}
    return {**fields, **row}


def _part_in_blocks(layer: Convolution, part: Part) -> Sequence[PlannedPart] | str:
    context = layer.context
    if (reason := _not_in_blocks(context)) is not None:
        return reason
    if not part.is_dense:
        return "the outputs of a pixel are not neighbours"
    if (part.taps < 0).any():
        return "a pixel has no weights"  # not weights of zero: their product with infinity is not zero
    weights, products = stored_weights(context).reshape(-1)[part.taps[0]], part.taps[0, 0].size
    each = {block: pixel_instructions(context, part.outputs, products, block) for block in BLOCKS}
    block = min(each, key=lambda block: each[block])

    def fields(more: bool) -> Mapping[str, Member]:
        matrix = weights.reshape(part.outputs, products)
        return {
            **part_fields(layer, part, more=more),
            "output_c": part.outputs,
            "block": block,
            "store": Identifier(f"ferrule_float_blocks_{block}"),
            "weights": blocks_of(matrix, layer.bias(np.float32)[part.owners[0]], block),
            "bias": None,
            **limit_fields(layer.output, layer.activation),
        }

    return [
        PlannedPart(
            instructions=int(layer.image.shape[0] * part.height * part.width * (each[block] + 30)),
            weight_bytes=4 * -(-part.outputs // block) * block * (products + 1),
            scratch_bytes=0,
            overlaps=tuple,
            fields=fields,
        )
    ]


def _depthwise_in_blocks(context: LoweringContext) -> Candidate | str:
    if (reason := _not_in_blocks(context)) is not None:
        return reason
    layer = Convolution.of(context)
    if layer.depth_multiplier != 1:
        return "the channels are multiplied"
    block, channels = BLOCKS[-1], layer.output.shape[3]
    if channels < block:
        return f"there are fewer than {block} channels"
    blocks = -(-channels // block)
    order = np.minimum(np.arange(blocks)[:, None] * block, channels - block) + np.arange(block)
    taps = layer.window.height * layer.window.width
    per_tap, per_block = (8.6, 50) if _has_vectors(context) else (20.2, 60)
    reads = Reads.PER_ELEMENT if channels % block else Reads.PER_CHANNEL

    def stream() -> Array:
        weights = stored_weights(context).reshape(taps, channels).T
        return blocks_of(weights[order.reshape(-1)], layer.bias(np.float32)[order.reshape(-1)], block)

    return _depthwise(
        layer,
        "depthwise_conv2d_block_f32",
        "channels_8",
        {"block": block, "weights": layer.context.blob("weights", stream()), "bias": None},
        pixels=_PAIR,
        reads=Reads.AGAIN if _has_vectors(context) else reads,
        instructions=int(_CALL + layer.pixels * (25 + blocks * (per_tap * _taps_inside(layer) + per_block))),
        weight_bytes=4 * order.size * (taps + 1),
    )


def _taps_inside(layer: Convolution) -> float:
    """Return the mean number of a pixel's taps that are inside the image."""
    window, (_, height, width, _) = layer.window, layer.output.shape
    found = 1.0
    for size, dilation, stride, before, extent, outputs in (
        (window.height, window.dilation_h, window.stride_h, window.padding.top, layer.image.shape[1], height),
        (window.width, window.dilation_w, window.stride_w, window.padding.left, layer.image.shape[2], width),
    ):
        places = np.arange(outputs)[:, None] * stride - before + np.arange(size) * dilation
        found *= float(((places >= 0) & (places < extent)).sum()) / outputs
    return found


def _multiplied_in_blocks(context: LoweringContext) -> Candidate | str:
    if Convolution.of(context).depth_multiplier == 1:
        return "the channels are not multiplied"
    return _not_in_blocks(context) or _conv2d_in_blocks(in_groups(context))


def _depthwise_plain(context: LoweringContext) -> Candidate | str:
    layer = Convolution.of(context)
    channels = layer.output.shape[3]
    per_mac, per_element = (15, 30) if has_fpu(context) else _without_fpu(context)
    return _depthwise(
        layer,
        "depthwise_conv2d_f32",
        "channels",
        {"block": channels, "weights": given_weights(context), "bias": given_bias(layer, np.float32)},
        pixels=1,
        reads=Reads.PER_CHANNEL,
        instructions=per_mac * layer.macs + per_element * layer.output.elements + _CALL,
        weight_bytes=stored_weights(context).nbytes + 4 * channels if context.is_constant(1) else 0,
    )


def _depthwise(
    layer: Convolution,
    title: str,
    store: str,
    members: Mapping[str, Member],
    *,
    pixels: int,
    reads: Reads,
    instructions: int,
    weight_bytes: int,
) -> Candidate:
    return Candidate(
        kernel=title,
        instructions=instructions,
        weight_bytes=weight_bytes,
        overlaps=partial(layer.overlaps, reads=reads, pixels=pixels),
        call=lambda: KernelCall(
            "depthwise_conv2d_f32",
            "ferrule/kernels/depthwise_conv2d.h",
            {
                "window": layer.window_fields,
                "output_c": layer.output.shape[3],
                "depth_multiplier": layer.depth_multiplier,
                "store": Identifier(f"ferrule_float_{store}"),
                **members,
                **limit_fields(layer.output, layer.activation),
            },
            title=title,
            sources=FLOAT_SOURCES,
            local=from_run_time(layer.context),
        ),
    )


def _has_vectors(context: LoweringContext) -> bool:
    """Return whether pixels are computed by vectors, and again without where a number is too small for them."""
    core = context.target.core
    return core is not None and core.fpu and core.mve


CONV_2D_F32: tuple[Row, ...] = (
    Row(kernel="conv2d_block_f32", candidate=_conv2d_in_blocks),
    Row(kernel="conv2d_f32", candidate=_conv2d_plain),
)
"""The kernels of CONV_2D, also with groups, and FULLY_CONNECTED."""
TRANSPOSE_CONV_F32: tuple[Row, ...] = part_rows(
    "conv2d_block_f32",
    "ferrule/kernels/conv2d.h",
    _part_in_blocks,
    sources=FLOAT_SOURCES,
    function="conv2d_f32",
    table="conv2d_f32_params",
    dtype=DataType.FLOAT32,
)[:1]
"""The kernel of TRANSPOSE_CONV beside the generic one: its parts, without weights of zero."""
DEPTHWISE_F32: tuple[Row, ...] = (
    Row(kernel="depthwise_conv2d_block_f32", candidate=_depthwise_in_blocks),
    Row(kernel="conv2d_block_f32", candidate=_multiplied_in_blocks),
    Row(kernel="depthwise_conv2d_f32", candidate=_depthwise_plain),
)
"""The kernels of DEPTHWISE_CONV_2D."""
