# SPDX-License-Identifier: Apache-2.0
"""RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR in C: the pixels of each row and column are tables of constants."""

from __future__ import annotations

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernel_call import kernel_call
from ferrule.backends.firmware import Blob, LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.graph import Array
from ferrule.operators.resize import ResizeDescriptor, Taps, float_taps, integer_taps, nearest_pixels, onnx_taps

_MOST_PIXELS = 1 << 15


def lower_resize_nearest_neighbor(context: LoweringContext) -> LoweredOp:
    """Return the call for RESIZE_NEAREST_NEIGHBOR, which copies pixels of any type."""
    descriptor, image = _descriptor(context), context.input(0)
    batches, height, width, channels = image.shape
    pixel_bytes = channels * image.dtype.size_bytes
    return kernel_call(
        context,
        "resize_nearest_neighbor",
        header="resize",
        batches=batches,
        input_h=height,
        input_w=width,
        pixel_bytes=pixel_bytes,
        output_h=descriptor.height,
        output_w=descriptor.width,
        rows=_indices(context, "rows", nearest_pixels(descriptor, height, descriptor.height)),
        columns=_indices(context, "columns", nearest_pixels(descriptor, width, descriptor.width)),
    )


def lower_resize_bilinear(context: LoweringContext) -> LoweredOp:
    """Return the call for RESIZE_BILINEAR."""
    descriptor, image = _descriptor(context), context.input(0)
    batches, height, width, channels = image.shape
    is_float = image.dtype.is_float
    find = float_taps if is_float else integer_taps
    rows, columns = find(descriptor, height, descriptor.height), find(descriptor, width, descriptor.width)
    return kernel_call(
        context,
        "resize_bilinear_f32" if is_float else "resize_bilinear_s8",
        header="resize",
        batches=batches,
        input_h=height,
        input_w=width,
        channels=channels,
        output_h=descriptor.height,
        output_w=descriptor.width,
        rows=_indices(context, "rows", rows.lower),
        row_weights=_weights(context, "row_weights", rows, is_float=is_float),
        columns=_indices(context, "columns", columns.lower),
        column_weights=_weights(context, "column_weights", columns, is_float=is_float),
    )


def lower_onnx_resize_bilinear(context: LoweringContext) -> LoweredOp:
    """Return the call for RESIZE_BILINEAR by ONNX's rule."""
    descriptor, image, output = _descriptor(context), context.input(0), context.operands.output
    batches, height, width, channels = image.shape
    rows = onnx_taps(descriptor, height, descriptor.height)
    columns = onnx_taps(descriptor, width, descriptor.width)
    return kernel_call(
        context,
        "float_resize_bilinear_s8",
        header="resize",
        table="float_resize_bilinear_params",
        batches=batches,
        input_h=height,
        input_w=width,
        channels=channels,
        output_h=descriptor.height,
        output_w=descriptor.width,
        rows=_indices(context, "rows", rows.pixels.reshape(-1)),
        row_weights=context.blob("row_weights", rows.weights),
        columns=_indices(context, "columns", columns.pixels.reshape(-1)),
        column_weights=context.blob("column_weights", columns.weights),
        scale=image.scale,
        zero_point=image.zero_point,
        output_scale=output.scale,
        output_zero_point=output.zero_point,
    )


def _descriptor(context: LoweringContext) -> ResizeDescriptor:
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, ResizeDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    return descriptor


def _indices(context: LoweringContext, role: str, pixels: Array) -> Blob:
    if pixels[-1] >= _MOST_PIXELS:
        raise UnsupportedError(
            f"layer '{context.layer.name}': its image has more than {_MOST_PIXELS} pixels along an axis"
        )
    return context.blob(role, pixels.astype(np.int16))


def _weights(context: LoweringContext, role: str, taps: Taps, *, is_float: bool) -> Blob:
    return context.blob(role, taps.weight.astype(np.float32 if is_float else np.int16))
