# SPDX-License-Identifier: Apache-2.0
"""RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR in C: the pixels of each row and column are tables of constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall, Member, descriptor_of
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.graph import Array
from ferrule.operators.spatial.resize import ResizeDescriptor, float_taps, integer_taps, nearest_pixels, onnx_taps

_MOST_PIXELS = 1 << 15
"""Tables have the pixels along an axis as int16."""
Taps = Callable[[ResizeDescriptor, int, int], tuple[Array, Array | None]]
"""The pixels of the input for each index along an axis of the output, given both extents, and their weights."""


def _resize_call(
    context: LoweringContext, kernel: str, taps: Taps, further: Mapping[str, Member] | None = None, *, table: str = ""
) -> LoweredOp:
    descriptor, image = descriptor_of(context, ResizeDescriptor), context.source
    batches, height, width, channels = image.shape
    fields: dict[str, Member] = {"batches": batches, "input_h": height, "input_w": width}
    if kernel == "resize_nearest_neighbor":
        fields["pixel_bytes"] = channels * image.dtype.size_bytes
    else:
        fields["channels"] = channels
    fields |= {"output_h": descriptor.height, "output_w": descriptor.width}
    for axis, before, after in (("row", height, descriptor.height), ("column", width, descriptor.width)):
        pixels, weights = taps(descriptor, before, after)
        if pixels[-1] >= _MOST_PIXELS:
            raise UnsupportedError(
                f"layer '{context.layer.name}': its image has more than {_MOST_PIXELS} pixels along an axis"
            )
        fields[f"{axis}s"] = pixels.astype(np.int16)
        if weights is not None:
            fields[f"{axis}_weights"] = weights
    fields |= further or {}
    return KernelCall(kernel, "ferrule/kernels/resize.h", fields, table=table).lowered(context)


def lower_resize_nearest_neighbor(context: LoweringContext) -> LoweredOp:
    """Return the call for RESIZE_NEAREST_NEIGHBOR, which copies pixels of any type."""
    return _resize_call(context, "resize_nearest_neighbor", lambda *axis: (nearest_pixels(*axis), None))


def lower_resize_bilinear(context: LoweringContext) -> LoweredOp:
    """Return the call for RESIZE_BILINEAR."""
    is_float = context.source.dtype.is_float

    def taps(descriptor: ResizeDescriptor, before: int, after: int) -> tuple[Array, Array]:
        found = (float_taps if is_float else integer_taps)(descriptor, before, after)
        return found.lower, found.weight.astype(np.float32 if is_float else np.int16)

    return _resize_call(context, "resize_bilinear_f32" if is_float else "resize_bilinear_s8", taps)


def lower_onnx_resize_bilinear(context: LoweringContext) -> LoweredOp:
    """Return the call for RESIZE_BILINEAR by ONNX's rule."""
    image, output = context.operands.ends

    def taps(descriptor: ResizeDescriptor, before: int, after: int) -> tuple[Array, Array]:
        found = onnx_taps(descriptor, before, after)
        return found.pixels.reshape(-1), found.weights

    scales = {
        "scale": image.scale,
        "zero_point": image.zero_point,
        "output_scale": output.scale,
        "output_zero_point": output.zero_point,
    }
    table = "float_resize_bilinear_params"
    return _resize_call(context, "float_resize_bilinear_s8", taps, scales, table=table)
