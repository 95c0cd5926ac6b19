# SPDX-License-Identifier: Apache-2.0
"""SOFTMAX, LOG_SOFTMAX, L2_NORMALIZATION and LAYER_NORMALIZATION in C: functions of the rows along the last axis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall, Member, descriptor_of
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.graph import DataType, Rounding
from ferrule.operators.reductions.layer_normalization import LayerNormalizationDescriptor, headroom
from ferrule.operators.reductions.log_softmax import Scaling, radius
from ferrule.operators.reductions.softmax import (
    SoftmaxDescriptor,
    exponentials,
    int16_multiplier,
    int16_tables,
    onnx_exponentials,
    onnx_steps,
)

_SOFTMAX, _NORMALIZE = "ferrule/kernels/softmax.h", "ferrule/kernels/normalize.h"


def _rows_call(
    context: LoweringContext,
    kernel: str,
    header: str,
    fields: Mapping[str, Member],
    *,
    table: str = "",
    sources: tuple[str, ...] = (),
) -> LoweredOp:
    """Return the call of a kernel of rows; `fields` are the members in front of their number and length."""
    source = context.source
    depth = source.shape[-1]
    members = {**fields, "rows": source.elements // depth, "depth": depth}
    return KernelCall(kernel, header, members, table=table, sources=sources).elementwise(context)


def lower_onnx_softmax(context: LoweringContext) -> LoweredOp:
    """Return the call for SOFTMAX by ONNX's rule."""
    source, output = context.operands.ends
    fields: dict[str, Member] = {"exponentials": onnx_exponentials(source.scale, source.shape[-1])}
    if context.operands.rounding is Rounding.ONNX_FLOAT:
        kernel, fields["scale"] = "real_softmax", output.scale
    else:
        kernel, fields["steps"] = "float_softmax", onnx_steps(output)
    fields["zero_point"] = output.zero_point
    return _rows_call(context, f"{kernel}_s8", _SOFTMAX, fields, table=f"{kernel}_params")


def lower_softmax(context: LoweringContext) -> LoweredOp:
    """Return the call for SOFTMAX; for int8 input, the exponentials of all differences are in a table."""
    beta = descriptor_of(context, SoftmaxDescriptor).beta
    source, output = context.operands.ends
    match source.dtype, output.dtype:
        case (DataType.INT8, DataType.INT8 | DataType.INT16):
            kernel = "softmax_s8" if output.dtype is DataType.INT8 else "softmax_s8_s16"
            table = exponentials(beta, source.scale)
            # the largest difference is the first one; further ones have an exponential of 0
            rising: dict[str, Member] = {
                "exponentials": np.append(table, 0)[::-1].astype(table.dtype),
                "count": table.size,
            }
            return _rows_call(context, kernel, _SOFTMAX, rising, table="softmax_s8_params")
        case (DataType.INT16, DataType.INT16):
            exp_table, inverse_table = int16_tables()
            multiplier, shift = int16_multiplier(beta, source.scale)
            fields: dict[str, Member] = {
                "exp_table": exp_table,
                "inverse_table": inverse_table,
                "multiplier": multiplier,
                "shift": shift,
            }
            return _rows_call(context, "softmax_s16", _SOFTMAX, fields)
        case (DataType.FLOAT32, DataType.FLOAT32):
            return _rows_call(context, "softmax_f32", _SOFTMAX, {"beta": beta}, sources=("expf",))
        case _:
            raise UnsupportedError(
                f"layer '{context.layer.name}': there is no kernel for SOFTMAX of {source.dtype} to {output.dtype}"
            )


def _differences(context: LoweringContext) -> Mapping[str, Member]:
    """Return the table of the exponentials of all differences from a row's maximum, and the number of its entries."""
    table = exponentials(1.0, context.source.scale)
    return {"exponentials": table, "count": table.size}


def lower_log_softmax(context: LoweringContext) -> LoweredOp:
    """Return the call for LOG_SOFTMAX; for int8, the exponentials of all differences are in a table."""
    if context.source.dtype is not DataType.INT8:
        return _rows_call(context, "log_softmax_f32", _NORMALIZE, {}, table="rows_f32_params", sources=("expf", "logf"))
    scaling = Scaling.of(context.source.scale)
    fields = {**_differences(context), "least": -min(radius(scaling), 1 << 16) - 1, **asdict(scaling)}
    return _rows_call(context, "log_softmax_s8", _NORMALIZE, fields)


def lower_l2_normalization(context: LoweringContext) -> LoweredOp:
    """Return the call for L2_NORMALIZATION."""
    if context.source.dtype is DataType.INT8:
        return _rows_call(context, "l2_normalization_s8", _NORMALIZE, {"zero_point": context.source.zero_point})
    return _rows_call(context, "l2_normalization_f32", _NORMALIZE, {}, table="rows_f32_params", sources=("sqrtf",))


def lower_layer_normalization(context: LoweringContext) -> LoweredOp:
    """Return the call for LAYER_NORMALIZATION."""
    descriptor = descriptor_of(context, LayerNormalizationDescriptor)
    fields: dict[str, Member] = {
        "gains": np.array(descriptor.gains, np.int32),
        "offsets": np.array(descriptor.offsets, np.int32),
        "shift": descriptor.shift,
        "epsilon": descriptor.epsilon,
        "epsilon_shift": descriptor.epsilon_shift,
        "headroom": headroom(len(descriptor.gains)),
    }
    return _rows_call(context, "layer_normalization_s8", _NORMALIZE, fields)
