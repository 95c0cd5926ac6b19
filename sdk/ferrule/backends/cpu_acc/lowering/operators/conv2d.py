# SPDX-License-Identifier: Apache-2.0
"""CONV_2D in C."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernel_call import kernel_call, output_value, window_value
from ferrule.backends.cpu_acc.lowering.kernels.choice import (
    SLOWER_WITHOUT_DSP,
    Candidate,
    Feature,
    Row,
    choose,
    has_dsp,
)
from ferrule.backends.cpu_acc.lowering.kernels.conv2d_block import BLOCK_ROWS, block_part, proved_live
from ferrule.backends.cpu_acc.lowering.kernels.dual_mac_s16 import CONV_2D_DUAL_S16
from ferrule.backends.cpu_acc.lowering.kernels.generic import (
    from_run_time,
    lower_plain,
    macs_of,
    ruled_kernel,
    ruled_part,
    weight_bytes_of,
)
from ferrule.backends.cpu_acc.lowering.kernels.int8_channels import (
    Channels,
    can_pair,
    channel_words,
    int8_channels,
    live_blobs,
    pair_weights,
)
from ferrule.backends.cpu_acc.lowering.kernels.mixed import both, rest_of
from ferrule.backends.cpu_acc.lowering.kernels.mve import MVE_CONV_2D_ROW
from ferrule.backends.cpu_acc.lowering.kernels.scalar import CONV_2D_SCALAR
from ferrule.backends.cpu_acc.lowering.kernels.winograd import WINOGRAD_ROWS
from ferrule.backends.cpu_acc.lowering.overlap import Reads, pixel_overlaps
from ferrule.backends.cpu_acc.lowering.proofs.requantization import NOT_PROVED
from ferrule.backends.firmware import Blob, LoweredOp, LoweringContext
from ferrule.dom import Aggregate, Field, Identifier, Integer, Null
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType
from ferrule.operators.conv2d import Conv2dDescriptor, groups_of
from ferrule.operators.weighted import WEIGHTED_RULES, factors, has_zero_point

_WORTH_LISTING = 0.75


def lower_conv2d(context: LoweringContext) -> LoweredOp:
    """Return the call of the CONV_2D kernel that suits the types, the window, the weights, the core and the goal."""
    if has_zero_point(context.input(1)):
        return choose(context, _OFFSET_ROWS)
    if groups_of(context.input(0), context.input(1)) > 1:
        return choose(context, GROUPED_ROWS)
    return choose(context, CONV_2D_ROWS[-1:] if from_run_time(context) else CONV_2D_ROWS)


def _descriptor(context: LoweringContext) -> Conv2dDescriptor:
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, Conv2dDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    return descriptor


def _plain(context: LoweringContext) -> Candidate:
    return _unpaired(context, "conv2d")


def _grouped(context: LoweringContext) -> Candidate:
    weights = context.input(1).shape
    groups = groups_of(context.input(0), context.input(1))
    return _unpaired(context, "conv2d_grouped", group_input_c=weights[3], group_output_c=weights[0] // groups)


def _unpaired(context: LoweringContext, kernel: str, **fields: int) -> Candidate:
    descriptor, image = _descriptor(context), context.input(0)
    channels = context.operands.output.shape[3]
    return Candidate(
        kernel=kernel,
        instructions=10 * macs_of(context) + 30 * context.operands.output.elements,
        weight_bytes=weight_bytes_of(context, channels),
        lower=lambda: lower_plain(
            context,
            kernel,
            window=descriptor.window(context.input(1)),
            image=image,
            output=context.operands.output,
            channels=channels,
            activation=descriptor.activation,
            channel_factors=() if image.dtype.is_float else factors(context.operands, 0),
            reads=Reads.PER_ELEMENT,
            output_c=channels,
            **fields,
        ),
    )


def _block(context: LoweringContext) -> Candidate | str:
    """Return the block kernel; if some channels have no proved constants, with the paired kernel for those."""
    found = BLOCK_ROWS[0].candidate(context)
    if found != NOT_PROVED:
        return found
    channels, proved = proved_live(context)
    others = np.flatnonzero(~proved & ~channels.dead)
    if not proved.any() or not others.size:
        return NOT_PROVED
    first = block_part(context, np.flatnonzero(proved))
    second = _paired_part(rest_of(context), replace(channels, dead=np.zeros_like(channels.dead)), others)
    return first if isinstance(first, str) else second if isinstance(second, str) else both(first, second)


def _paired(context: LoweringContext) -> Candidate | str:
    descriptor = _descriptor(context)
    if context.input(0).dtype is not DataType.INT8:
        return "the data is not int8"
    if not has_dsp(context.target.core):
        return SLOWER_WITHOUT_DSP
    channels = int8_channels(context, descriptor.activation, 0)
    return _paired_part(context, channels, np.flatnonzero(~channels.dead))


def _paired_part(context: LoweringContext, channels: Channels, live: Array) -> Candidate | str:
    """Return the paired kernel for some channels of a layer; or why it cannot."""
    descriptor = _descriptor(context)
    if not can_pair(channels.chosen(live), context.operands.output, descriptor.activation):
        return "a weight or a sum is too large to be paired, or an output is scaled up"
    return Candidate(
        kernel="conv2d_paired_s8",
        instructions=_paired_instructions(context, live.size, channels.matrix.shape[1]),
        weight_bytes=live.size * channels.matrix.shape[1] + 14 * live.size,
        scratch_bytes=_paired_scratch(channels.matrix.shape[1], context),
        lower=lambda: _lower_paired(context, descriptor, channels, live),
    )


def _paired_instructions(context: LoweringContext, live: int, products: int) -> int:
    words = -(-products // 4)
    output = context.operands.output
    gather = 20 * words + 80 if context.input(0).shape[3] % 4 == 0 else 90 * words
    return -(-output.elements // output.shape[3] // 2) * (-(-live // 2) * (15 * words + 46) + gather)


def _lower_paired(context: LoweringContext, descriptor: Conv2dDescriptor, channels: Channels, live: Array) -> LoweredOp:
    image, output = context.input(0), context.operands.output
    window = descriptor.window(context.input(1))
    chosen = channels.chosen(live)
    matrix, inputs = chosen.matrix, None
    pointwise = window.is_pointwise
    if pointwise:
        matrix, inputs = _leave_out_inputs(context, matrix)
    whole_words = image.shape[3] % 4 == 0
    single_pixels = pointwise and (whole_words or inputs is not None)
    kernel = ruled_kernel(context, "conv2d_1x1_paired" if single_pixels else "conv2d_paired")
    words = max(-(-matrix.shape[1] // 4), 1)
    weights = context.blob("weights", pair_weights(matrix, 2))
    scales = context.blob("channels", channel_words(chosen, 2))
    positions, fixed = live_blobs(context, channels, live)
    return kernel_call(
        context,
        kernel,
        contribution=ruled_part(context, kernel),
        header="conv2d",
        table="conv2d_paired_s8_params",
        overlaps=pixel_overlaps(context, window, image, output, pixels=2),
        scratch_bytes=words * (16 if whole_words or inputs is not None else 20),
        window=window_value(window, image, output),
        input_zero_point=image.zero_point,
        inputs=inputs,
        paired=Aggregate(
            (
                Field(Identifier(weights.name), "weights"),
                Field(Identifier(scales.name), "channels"),
                Field(Identifier(positions.name), "positions"),
                Field(Null() if fixed is None else Identifier(fixed.name), "fixed"),
                Field(Integer(words), "words"),
                Field(Integer(len(live)), "live_c"),
                Field(Integer(len(channels.matrix)), "output_c"),
                Field(output_value(output, descriptor.activation), "output"),
            )
        ),
        extra_blobs=(weights, scales, positions, *(() if fixed is None else (fixed,))),
    )


def _paired_scratch(products: int, context: LoweringContext) -> int:
    return -(-products // 4) * (16 if context.input(0).shape[3] % 4 == 0 else 20)


def _leave_out_inputs(context: LoweringContext, matrix: Array) -> tuple[Array, Blob | None]:
    """Return the weights without the inputs whose weights are all zero, and the list of the remaining inputs.

    Collecting listed inputs takes longer than reading all in order. The weights are therefore unchanged, and the list
    is None, unless at least a quarter of the inputs is left out.
    """
    used = np.flatnonzero(matrix.any(axis=0))
    words = -(-max(used.size, 1) // 4)
    if 4 * words > _WORTH_LISTING * matrix.shape[1]:
        return matrix, None
    listed = np.zeros(4 * words, np.int16)
    listed[: used.size] = used
    return matrix[:, used] if used.size else matrix[:, :1], context.blob("inputs", listed)


def _without_groups(row: Row) -> Row:
    def candidate(context: LoweringContext) -> Candidate | str:
        groups = groups_of(context.input(0), context.input(1))
        return row.candidate(context) if groups == 1 else f"the layer has {groups} groups"

    return replace(row, candidate=candidate)


CONV_2D_ROWS: tuple[Row, ...] = tuple(
    map(
        _without_groups,
        (
            MVE_CONV_2D_ROW,
            *WINOGRAD_ROWS,
            replace(BLOCK_ROWS[0], candidate=_block),
            *BLOCK_ROWS[1:],
            Row(
                kernel="conv2d_paired_s8",
                needs=frozenset({Feature.LONG_MULTIPLY}),
                rules=WEIGHTED_RULES,
                candidate=_paired,
            ),
            *CONV_2D_SCALAR,
            CONV_2D_DUAL_S16,
            Row(kernel="conv2d", rules=WEIGHTED_RULES, candidate=_plain),
        ),
    )
)
"""The kernels of CONV_2D without groups."""
GROUPED_ROWS: tuple[Row, ...] = (Row(kernel="conv2d_grouped", rules=WEIGHTED_RULES, candidate=_grouped),)
"""The kernels of CONV_2D with groups."""
_OFFSET_ROWS = (Row(kernel="conv2d_offset_s8", rules=WEIGHTED_RULES, candidate=_plain),)
"""The kernel for weights with a zero point."""
