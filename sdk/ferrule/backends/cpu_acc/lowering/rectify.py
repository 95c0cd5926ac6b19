# SPDX-License-Identifier: Apache-2.0
"""RELU, RELU6, RELU_N1_TO_1, LEAKY_RELU and PRELU in C; those of one int8 are tables."""

from __future__ import annotations

from ferrule.backends.cpu_acc.lowering.binary import binary_call, broadcast_shape
from ferrule.backends.cpu_acc.lowering.nonlinear import look_up
from ferrule.backends.cpu_acc.lowering.unary import unary_call
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.dom import Aggregate, Field, Integer
from ferrule.errors import UnsupportedError
from ferrule.graph import DataType
from ferrule.operators.activation import Activation
from ferrule.operators.rectify import LeakyReluDescriptor, Slope, int8_table, prelu_of, rectifier_of


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
