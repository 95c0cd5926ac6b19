# SPDX-License-Identifier: Apache-2.0
"""LOGISTIC, TANH and HARD_SWISH in C."""

from __future__ import annotations

import numpy as np

from ferrule.backends.cpu_acc.lowering.unary import unary_call
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType
from ferrule.operators.nonlinear import hard_swish_table, logistic_table, sigmoid_multiplier, tanh_table
from ferrule.operators.sigmoid_table import SIGMOID_TABLE


def lower_logistic(context: LoweringContext) -> LoweredOp:
    """Return a look-up for int8, else the call of the kernel for the layer's type."""
    source = context.input(0)
    match source.dtype:
        case DataType.INT8:
            return look_up(context, logistic_table(source))
        case DataType.INT16:
            return _sigmoid(context, "logistic_s16", (0,))
        case _:
            return _float(context, "logistic_f32", ("expf",))


def lower_tanh(context: LoweringContext) -> LoweredOp:
    """Return a look-up for int8, else the call of the kernel for the layer's type."""
    source = context.input(0)
    match source.dtype:
        case DataType.INT8:
            return look_up(context, tanh_table(source))
        case DataType.INT16:
            return _sigmoid(context, "tanh_s16", (0, 1))
        case _:
            return _float(context, "tanh_f32", ("tanhf", "expf"))


def lower_hard_swish(context: LoweringContext) -> LoweredOp:
    """Return a look-up for int8, else the call of the float kernel."""
    source = context.input(0)
    if source.dtype is DataType.INT8:
        return look_up(context, hard_swish_table(source, context.operands.output))
    return _float(context, "hard_swish_f32", ())


_LOOK_UPS = {"int8": "lookup_s8", "int16": "lookup_s8_s16", "int32": "lookup_s8_s32"}


def look_up(context: LoweringContext, table: Array) -> LoweredOp:
    """Return the look-up of an int8 input in a table of 256 results, of the inputs from -128 on."""
    kernel = _LOOK_UPS[table.dtype.name]
    return unary_call(
        context,
        kernel,
        header="lookup",
        parameters=f"{kernel}_params",
        table=context.blob("table", table),
        elements=context.input(0).elements,
    )


def _sigmoid(context: LoweringContext, kernel: str, exact_shifts: tuple[int, ...]) -> LoweredOp:
    multiplier, shift = sigmoid_multiplier(context.input(0).scale, exact_shifts)
    return unary_call(
        context,
        kernel,
        header="nonlinear",
        parameters="sigmoid_s16_params",
        # less the half, so that it fits an int16
        table=context.blob("table", np.asarray(SIGMOID_TABLE - 32768, np.int16)),
        multiplier=multiplier,
        shift=shift,
        elements=context.input(0).elements,
    )


def _float(context: LoweringContext, kernel: str, sources: tuple[str, ...]) -> LoweredOp:
    source = context.input(0)
    if source.dtype is not DataType.FLOAT32:
        raise UnsupportedError(f"layer '{context.layer.name}': there is no kernel {kernel} of {source.dtype}")
    return unary_call(
        context,
        kernel,
        header="nonlinear",
        parameters="nonlinear_f32_params",
        sources=sources,
        elements=source.elements,
    )
