# SPDX-License-Identifier: Apache-2.0
"""QUANTIZE and DEQUANTIZE in C."""

from __future__ import annotations

import numpy as np

from ferrule.backends.cpu_acc.lowering.nonlinear import look_up
from ferrule.backends.cpu_acc.lowering.unary import unary_call
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.graph import DataType
from ferrule.operators.quantize import requantization, requantize

_REQUANTIZE = {
    (DataType.INT16, DataType.INT8): "requantize_s16_s8",
    (DataType.INT16, DataType.INT16): "requantize_s16",
    (DataType.INT16, DataType.INT32): "requantize_s16_s32",
    (DataType.INT32, DataType.INT8): "requantize_s32_s8",
    (DataType.INT32, DataType.INT16): "requantize_s32_s16",
}
_FROM_FLOAT = {DataType.INT8: "quantize_f32_s8", DataType.INT16: "quantize_f32_s16"}
_TO_FLOAT = {DataType.INT8: "dequantize_s8", DataType.INT16: "dequantize_s16"}


def lower_quantize(context: LoweringContext) -> LoweredOp:
    """Return a look-up for int8, else the call of the kernel for the layer's types."""
    source, output = context.input(0), context.operands.output
    if source.dtype is DataType.FLOAT32:
        return unary_call(
            context,
            _kernel(context, _FROM_FLOAT.get(output.dtype)),
            header="quantize",
            parameters="quantize_f32_params",
            scale=output.scale,
            zero_point=output.zero_point,
            elements=source.elements,
        )
    multiplier, shift = requantization(source, output)
    if source.dtype is DataType.INT8:
        inputs = np.arange(-128, 128, dtype=np.int8)
        return look_up(context, requantize(inputs, source.zero_point, multiplier, shift, output))
    return unary_call(
        context,
        _kernel(context, _REQUANTIZE.get((source.dtype, output.dtype))),
        header="quantize",
        parameters="requantize_params",
        input_zero_point=source.zero_point,
        output_zero_point=output.zero_point,
        multiplier=multiplier,
        shift=shift,
        elements=source.elements,
    )


def lower_dequantize(context: LoweringContext) -> LoweredOp:
    """Return the call of the kernel for the input's type."""
    source = context.input(0)
    return unary_call(
        context,
        _kernel(context, _TO_FLOAT.get(source.dtype)),
        header="quantize",
        parameters="dequantize_params",
        scale=source.scale,
        zero_point=source.zero_point,
        elements=source.elements,
    )


def _kernel(context: LoweringContext, name: str | None) -> str:
    if name is None:
        source, output = context.input(0), context.operands.output
        raise UnsupportedError(
            f"layer '{context.layer.name}': there is no kernel for {context.layer.type} of {source.dtype} "
            f"to {output.dtype}"
        )
    return name
