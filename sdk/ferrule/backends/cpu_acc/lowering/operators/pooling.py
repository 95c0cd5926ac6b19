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
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Feature, Row
from ferrule.backends.cpu_acc.lowering.overlap import Reads, pixel_overlaps
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.graph import DataType, LayerType, Rounding
from ferrule.operators.elementwise.onnx_elementwise import OnnxOutput
from ferrule.operators.spatial.pool2d import Pool2dDescriptor

_MOST_COLUMNS = 256
"""The value of FERRULE_POOL2D_MOST_COLUMNS."""
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
        sources=("sqrtf",) if context.layer.type is LayerType.L2_POOL_2D else (),
        overlaps=pixel_overlaps(context, window, image, output, reads=Reads.PER_CHANNEL),
    )


def _candidate(context: LoweringContext, *, words: bool) -> Candidate | str:
    """Return the kernel that goes element by element, or that of `words`, which computes four elements together."""
    output, descriptor = context.output, descriptor_of(context, Pool2dDescriptor)
    read = output.elements * descriptor.window.height * descriptor.window.width
    if words:
        if output.dtype is not DataType.INT8:
            return "the data is not int8"
        if descriptor.pool_w > _MOST_COLUMNS:
            return f"the window has more than {_MOST_COLUMNS} columns"
        groups, rest = divmod(output.shape[3], 4)
        read, per_element = int(read * ((groups * 7 + rest * 7) / (groups * 4 + rest))), 18
    else:
        read, per_element = read * 8, 20
    kernel = f"{_KINDS[context.layer.type]}_pool2d_{'words_' if words else ''}{SUFFIXES[output.dtype]}"
    table = "pool2d_f32_params" if output.dtype.is_float else "pool2d_params"
    call = partial(_pool_call, context, kernel, limit_fields(output, descriptor.activation), table)
    return Candidate(
        kernel=kernel,
        instructions=read + per_element * output.elements,
        weight_bytes=0,
        overlaps=lambda: call().overlaps,
        call=call,
    )


def _rows(kind: str) -> tuple[Row, ...]:
    return (
        Row(
            kernel=f"{kind}_pool2d_words_s8",
            needs=frozenset({Feature.DSP}),
            candidate=partial(_candidate, words=True),
        ),
        Row(kernel=f"{kind}_pool2d", candidate=partial(_candidate, words=False)),
    )


POOL_2D_ROWS: Mapping[LayerType, tuple[Row, ...]] = {
    LayerType.AVERAGE_POOL_2D: _rows("average"),
    LayerType.MAX_POOL_2D: _rows("max"),
    LayerType.L2_POOL_2D: (Row(kernel="l2_pool2d_f32", candidate=partial(_candidate, words=False)),),
}
"""The kernels of the pools."""
