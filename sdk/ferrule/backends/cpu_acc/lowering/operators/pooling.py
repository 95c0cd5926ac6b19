# SPDX-License-Identifier: Apache-2.0
"""AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D in C."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ferrule.backends.cpu_acc.lowering.kernel_call import (
    SUFFIXES,
    KernelCall,
    Member,
    descriptor_of,
    limit_fields,
    window_fields,
)
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Row
from ferrule.backends.cpu_acc.lowering.operators.pooling_costs import UNROLLED, pool_instructions, window_pixels
from ferrule.backends.cpu_acc.lowering.overlap import Reads, pixel_overlaps
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.dom import Identifier
from ferrule.graph import DataType, LayerType, Rounding
from ferrule.operators.elementwise.onnx_elementwise import OnnxOutput
from ferrule.operators.spatial.pool2d import Pool2dDescriptor

_SOURCES = {
    "average_pool2d_f32": ("float_limits",),
    "max_pool2d_f32": ("float_limits",),
    "l2_pool2d_f32": ("sqrtf",),
    "average_pool2d_s16": ("mve_depthwise_s16",),
    "max_pool2d_s16": ("mve_depthwise_s16",),
}
_MOST_PIXELS = 185
"""Of an average that needs no division."""
_KINDS = {LayerType.AVERAGE_POOL_2D: "average", LayerType.MAX_POOL_2D: "max", LayerType.L2_POOL_2D: "l2"}


def lower_onnx_pool2d(context: LoweringContext) -> LoweredOp:
    """Return the call for AVERAGE_POOL_2D by ONNX's rule."""
    image, output, rounding = context.source, context.output, context.operands.rounding
    result = OnnxOutput.of(output, descriptor_of(context, Pool2dDescriptor).activation, rounding)
    fields = {
        "scale": image.scale,
        "zero_point": image.zero_point,
        "output_scale": output.scale,
        "output_zero_point": float(result.zero_point),
        "stored_offset": result.stored_offset,
        "low": float(result.low),
        "high": float(result.high),
    }
    kind = "columns" if rounding is Rounding.ONNX_COLUMNS else "float"
    return _pool_call(context, f"{kind}_average_pool2d_s8", fields, "float_pool2d_params").lowered(context)


def _pool_call(context: LoweringContext, kernel: str, fields: Mapping[str, Member], table: str) -> KernelCall:
    image, output, window = context.source, context.output, descriptor_of(context, Pool2dDescriptor).window
    return KernelCall(
        kernel,
        "ferrule/kernels/pool2d.h",
        {"window": window_fields(window, image, output), **fields},
        table=table,
        sources=_SOURCES.get(kernel, ()),
        overlaps=pixel_overlaps(context, window, image, output, reads=Reads.PER_CHANNEL),
    )


def _candidate(context: LoweringContext) -> Candidate:
    output, descriptor = context.output, descriptor_of(context, Pool2dDescriptor)
    kernel = f"{_KINDS[context.layer.type]}_pool2d_{SUFFIXES[output.dtype]}"
    table = "pool2d_f32_params" if output.dtype.is_float else "pool2d_params"
    fields: dict[str, Member] = dict(limit_fields(output, descriptor.activation))
    if output.dtype is DataType.INT8:
        fields |= _int8_functions(context)
    call = partial(_pool_call, context, kernel, fields, table)
    instructions = pool_instructions(context)
    return Candidate(
        kernel=kernel,
        instructions=instructions,
        weight_bytes=0,
        overlaps=lambda: call().overlaps,
        call=call,
    )


def _int8_functions(context: LoweringContext) -> dict[str, Member]:
    """Return the functions for windows inside the image, and for those that its edge cuts."""
    window, (rows, columns) = descriptor_of(context, Pool2dDescriptor).window, window_pixels(context)
    kind = f"ferrule_{_KINDS[context.layer.type]}_pool2d"
    size, most = (window.height, window.width), int(rows.max() * columns.max())
    many = context.layer.type is LayerType.AVERAGE_POOL_2D and most > _MOST_PIXELS
    others = Identifier(f"{kind}_{'many' if many else 'any'}_s8")
    is_cut = rows.min() < window.height or columns.min() < window.width
    return {
        "whole": Identifier(f"{kind}_{size[0]}x{size[1]}_s8") if size in UNROLLED else others,
        "cut": others if is_cut else None,
    }


def _rows(kind: str) -> tuple[Row, ...]:
    return (Row(kernel=f"{kind}_pool2d", candidate=_candidate),)


POOL_2D_ROWS: Mapping[LayerType, tuple[Row, ...]] = {
    LayerType.AVERAGE_POOL_2D: _rows("average"),
    LayerType.MAX_POOL_2D: _rows("max"),
    LayerType.L2_POOL_2D: _rows("l2"),
}
"""The kernels of the pools."""
