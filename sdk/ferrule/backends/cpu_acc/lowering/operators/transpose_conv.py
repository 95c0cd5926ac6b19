# SPDX-License-Identifier: Apache-2.0
"""TRANSPOSE_CONV in C."""

from __future__ import annotations

from dataclasses import replace

from ferrule.backends.cpu_acc.lowering.kernels.generic import lower_plain
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.operators.transpose_conv import TransposeConvDescriptor
from ferrule.operators.weighted import factors
from ferrule.operators.window import Padding, Window


def lower_transpose_conv(context: LoweringContext) -> LoweredOp:
    """Return the call for TRANSPOSE_CONV, whose output shares no memory with its input."""
    descriptor, image, weights = context.layer.descriptor, context.input(0), context.input(1)
    if not isinstance(descriptor, TransposeConvDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    op = lower_plain(
        context,
        "transpose_conv",
        window=Window(
            height=weights.shape[1],
            width=weights.shape[2],
            stride_h=descriptor.stride_h,
            stride_w=descriptor.stride_w,
            padding=Padding(top=descriptor.pad_top, left=descriptor.pad_left),
        ),
        image=image,
        output=context.operands.output,
        channels=weights.shape[0],
        activation=descriptor.activation,
        channel_factors=() if image.dtype.is_float else factors(context.operands, 0),
        output_c=weights.shape[0],
    )
    return replace(op, overlaps=())
