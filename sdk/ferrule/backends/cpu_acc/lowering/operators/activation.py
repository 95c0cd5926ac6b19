# SPDX-License-Identifier: Apache-2.0
"""Activations in C: LOGISTIC, TANH, HARD_SWISH, SOFTMAX, PRELU and the variants of RELU."""

from __future__ import annotations

import numpy as np

from ferrule.backends.cpu_acc.lowering.operators.binary import binary_call, broadcast_shape
from ferrule.backends.cpu_acc.lowering.operators.unary import look_up, unary_call
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.dom import Aggregate, Field, Integer
from ferrule.errors import UnsupportedError
from ferrule.graph import DataType, Rounding
from ferrule.operators.activation import Activation
from ferrule.operators.nonlinear import hard_swish_table, logistic_table, sigmoid_multiplier, tanh_table
from ferrule.operators.rectify import LeakyReluDescriptor, Slope, int8_table, prelu_of, rectifier_of
from ferrule.operators.sigmoid_table import SIGMOID_TABLE
from ferrule.operators.softmax import (
    SoftmaxDescriptor,
    exponentials,
    int16_multiplier,
    int16_tables,
    onnx_exponentials,
    onnx_steps,
)


def lower_logistic(context: LoweringContext) -> LoweredOp:
    """Return LOGISTIC as a table look-up for int8, otherwise as a call of the kernel for the data type."""
    source = context.input(0)
    match source.dtype:
        case DataType.INT8:
            return look_up(context, logistic_table(source))
        case DataType.INT16:
            return _sigmoid(context, "logistic_s16", (0,))
        case _:
            return _nonlinear_float(context, "logistic_f32", ("expf",))


def lower_tanh(context: LoweringContext) -> LoweredOp:
    """Return TANH as a table look-up for int8, otherwise as a call of the kernel for the data type."""
    source = context.input(0)
    match source.dtype:
        case DataType.INT8:
            return look_up(context, tanh_table(source))
        case DataType.INT16:
            return _sigmoid(context, "tanh_s16", (0, 1))
        case _:
            return _nonlinear_float(context, "tanh_f32", ("tanhf", "expf"))


def lower_hard_swish(context: LoweringContext) -> LoweredOp:
    """Return HARD_SWISH as a table look-up for int8, otherwise as a call of the float32 kernel."""
    source = context.input(0)
    if source.dtype is DataType.INT8:
        return look_up(context, hard_swish_table(source, context.operands.output))
    return _nonlinear_float(context, "hard_swish_f32", ())


def _sigmoid(context: LoweringContext, kernel: str, exact_shifts: tuple[int, ...]) -> LoweredOp:
    multiplier, shift = sigmoid_multiplier(context.input(0).scale, exact_shifts)
    return unary_call(
        context,
        kernel,
        header="nonlinear",
        parameters="sigmoid_s16_params",
        # minus one half, so that each entry fits an int16
        table=context.blob("table", np.asarray(SIGMOID_TABLE - 32768, np.int16)),
        multiplier=multiplier,
        shift=shift,
        elements=context.input(0).elements,
    )


def _nonlinear_float(context: LoweringContext, kernel: str, sources: tuple[str, ...]) -> LoweredOp:
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


def lower_rectify(context: LoweringContext) -> LoweredOp:
    """Return the call for RELU, RELU6, RELU_N1_TO_1 or LEAKY_RELU."""
    layer, elements = context.layer, context.input(0).elements
    dtype = context.operands.output.dtype
    if dtype is DataType.INT8:
        return look_up(context, int8_table(rectifier_of(layer.type, layer.descriptor, context.operands)))
    if dtype is DataType.INT16:
        rectifier = rectifier_of(layer.type, layer.descriptor, context.operands)
        return unary_call(
            context,
            "rectify_s16",
            header="rectify",
            parameters="rectify_s16_params",
            positive=_slope_fields(rectifier.positive),
            negative=_slope_fields(rectifier.negative),
            low=rectifier.low,
            high=rectifier.high,
            elements=elements,
        )
    if isinstance(layer.descriptor, LeakyReluDescriptor):
        return unary_call(
            context,
            "leaky_relu_f32",
            header="rectify",
            parameters="leaky_relu_f32_params",
            alpha=layer.descriptor.alpha,
            elements=elements,
        )
    low, high = Activation(layer.type.value).limits
    if high is None:
        return unary_call(context, "relu_f32", header="rectify", parameters="relu_f32_params", elements=elements)
    return unary_call(
        context,
        "bounded_relu_f32",
        header="rectify",
        parameters="bounded_relu_f32_params",
        low=low,
        high=high,
        elements=elements,
    )


def lower_prelu(context: LoweringContext) -> LoweredOp:
    """Return the call for PRELU."""
    dtype = context.operands.output.dtype
    shape = broadcast_shape(context)
    if dtype.is_float:
        return binary_call(context, "prelu_f32", "prelu_f32_params", header="rectify", shape=shape)
    if dtype not in {DataType.INT8, DataType.INT16}:
        raise UnsupportedError(f"layer '{context.layer.name}' (PRELU) has no kernel for {dtype}")
    prelu = prelu_of(context.operands)
    return binary_call(
        context,
        "prelu_s8" if dtype is DataType.INT8 else "prelu_s16",
        "prelu_params",
        header="rectify",
        shape=shape,
        input_zero_point=prelu.input_zero_point,
        alpha_zero_point=prelu.alpha_zero_point,
        output_zero_point=prelu.output_zero_point,
        positive=_slope_fields(prelu.positive),
        negative=_slope_fields(prelu.negative),
    )


def _slope_fields(slope: Slope) -> Aggregate:
    return Aggregate(
        (
            Field(Integer(slope.multiplier), "multiplier"),
            Field(Integer(slope.shift), "shift"),
            Field(Integer(slope.sign), "sign"),
        )
    )


def lower_onnx_softmax(context: LoweringContext) -> LoweredOp:
    """Return the call for SOFTMAX by ONNX's rule."""
    source, output = context.input(0), context.operands.output
    depth = source.shape[-1]
    if context.operands.rounding is Rounding.ONNX_FLOAT:
        return unary_call(
            context,
            "real_softmax_s8",
            header="softmax",
            parameters="real_softmax_params",
            exponentials=context.blob("exponentials", onnx_exponentials(source.scale, depth)),
            scale=output.scale,
            zero_point=output.zero_point,
            rows=source.elements // depth,
            depth=depth,
        )
    return unary_call(
        context,
        "float_softmax_s8",
        header="softmax",
        parameters="float_softmax_params",
        exponentials=context.blob("exponentials", onnx_exponentials(source.scale, depth)),
        steps=onnx_steps(output),
        zero_point=output.zero_point,
        rows=source.elements // depth,
        depth=depth,
    )


def lower_softmax(context: LoweringContext) -> LoweredOp:
    """Return the call for SOFTMAX; for int8 input, the exponentials of all differences are in a table."""
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, SoftmaxDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    source, output = context.input(0), context.operands.output
    depth = source.shape[-1]
    rows = source.elements // depth
    match source.dtype, output.dtype:
        case (DataType.INT8, DataType.INT8 | DataType.INT16):
            table = context.blob("exponentials", exponentials(descriptor.beta, source.scale))
            return unary_call(
                context,
                "softmax_s8" if output.dtype is DataType.INT8 else "softmax_s8_s16",
                header="softmax",
                parameters="softmax_s8_params",
                exponentials=table,
                count=int(table.data.size),
                rows=rows,
                depth=depth,
            )
        case (DataType.INT16, DataType.INT16):
            exp_table, inverse_table = int16_tables()
            multiplier, shift = int16_multiplier(descriptor.beta, source.scale)
            return unary_call(
                context,
                "softmax_s16",
                header="softmax",
                parameters="softmax_s16_params",
                exp_table=context.blob("exp_table", exp_table),
                inverse_table=context.blob("inverse_table", inverse_table),
                multiplier=multiplier,
                shift=shift,
                rows=rows,
                depth=depth,
            )
        case (DataType.FLOAT32, DataType.FLOAT32):
            return unary_call(
                context,
                "softmax_f32",
                header="softmax",
                parameters="softmax_f32_params",
                sources=("expf",),
                beta=descriptor.beta,
                rows=rows,
                depth=depth,
            )
        case _:
            raise UnsupportedError(
                f"layer '{context.layer.name}': there is no kernel for SOFTMAX of {source.dtype} to {output.dtype}"
            )
