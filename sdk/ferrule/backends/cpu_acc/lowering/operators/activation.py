# SPDX-License-Identifier: Apache-2.0
"""Activations in C: LOGISTIC, TANH, HARD_SWISH, PRELU and the variants of RELU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernel_call import SUFFIXES, KernelCall, Member, kernel_of
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Row
from ferrule.backends.cpu_acc.lowering.operators.binary import any_candidate, blocks_candidate, unlike_products
from ferrule.backends.cpu_acc.lowering.operators.broadcast_costs import Cost
from ferrule.backends.cpu_acc.lowering.operators.unary import BYTES, lower_table
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.graph import Array, DataType, LayerType
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.sigmoid_table import SIGMOID_TABLE
from ferrule.operators.elementwise.nonlinear import sigmoid_multiplier
from ferrule.operators.elementwise.rectify import LeakyReluDescriptor, prelu_of, rectifier_of

_NONLINEAR, _RECTIFY = "ferrule/kernels/nonlinear.h", "ferrule/kernels/rectify.h"


_EXACT_SHIFTS: Mapping[LayerType, tuple[int, ...]] = {LayerType.LOGISTIC: (0,), LayerType.TANH: (0, 1)}
_SOURCES = {LayerType.LOGISTIC: ("expf",), LayerType.TANH: ("tanhf", "expf")}


def lower_nonlinear(context: LoweringContext) -> LoweredOp:
    """Return LOGISTIC, TANH or HARD_SWISH as a table look-up for int8, otherwise as a call of the type's kernel."""
    type_, source = context.layer.type, context.source
    if source.dtype in BYTES:
        return lower_table(context)
    fields: dict[str, Member] = {}
    table, sources = "nonlinear_f32_params", _SOURCES.get(type_, ())
    if source.dtype is DataType.INT16 and type_ in _EXACT_SHIFTS:
        multiplier, shift = sigmoid_multiplier(source.scale, _EXACT_SHIFTS[type_])
        fields = {"table": sigmoid_around_0(type_), "multiplier": multiplier, "shift": shift}
        table, sources = "sigmoid_s16_params", ()
    fields["elements"] = source.elements
    return KernelCall(kernel_of(context), _NONLINEAR, fields, table=table, sources=sources).elementwise(context)


SIGMOID = np.asarray(SIGMOID_TABLE - 32768, np.int16)
"""The table of the sigmoid, minus one half, so that each entry fits an int16."""


def sigmoid_around_0(type_: LayerType) -> Array:
    """Return the table for LOGISTIC or TANH from -256 to 256 steps, minus one half.

    The last values are what TensorFlow Lite Micro takes for all larger arguments; that of LOGISTIC is 32767 in Q0.15.
    """
    most = 32766 if type_ is LayerType.LOGISTIC else 32767
    positive = np.minimum(np.append(SIGMOID, SIGMOID[-1]), most)
    return np.concatenate((-positive[:0:-1], positive)).astype(np.int16)


def lower_rectify(context: LoweringContext) -> LoweredOp:
    """Return the call for RELU, RELU6, RELU_N1_TO_1 or LEAKY_RELU."""
    layer, dtype = context.layer, context.output.dtype
    if dtype in BYTES:
        return lower_table(context)
    fields: dict[str, Member]
    sources: tuple[str, ...] = ()
    if not dtype.is_float:
        rectifier = rectifier_of(layer.type, layer.descriptor, context.operands)
        kernel = "rectify_s16"
        fields = {
            "positive": asdict(rectifier.positive),
            "negative": asdict(rectifier.negative),
            "low": rectifier.low,
            "high": rectifier.high,
        }
    elif isinstance(layer.descriptor, LeakyReluDescriptor):
        kernel, fields = "leaky_relu_f32", {"alpha": layer.descriptor.alpha}
    else:
        low, high = Activation(layer.type.value).limits
        kernel, fields, sources = "bounded_relu_f32", {"low": low, "high": high}, ("float_limits",)
        if high is None:
            kernel, fields, sources = "relu_f32", {}, ()
    fields["elements"] = context.source.elements
    return KernelCall(kernel, _RECTIFY, fields, sources=sources).elementwise(context)


def _prelu_call(context: LoweringContext) -> KernelCall:
    """Return the call of the kernel of PRELU that takes any scales."""
    dtype = context.output.dtype
    if dtype.is_float:
        return KernelCall("prelu_f32", _RECTIFY, {}, table="prelu_f32_params")
    prelu = prelu_of(context.operands)
    fields: dict[str, Member] = {
        "input_zero_point": prelu.input_zero_point,
        "alpha_zero_point": prelu.alpha_zero_point,
        "output_zero_point": prelu.output_zero_point,
        "positive": asdict(prelu.positive),
        "negative": asdict(prelu.negative),
    }
    return KernelCall(f"prelu_{SUFFIXES[dtype]}", _RECTIFY, fields, table="prelu_params")


def _prelu_table(context: LoweringContext) -> Candidate | str:
    if context.output.dtype is not DataType.INT8:
        return "the data is not int8"
    prelu = prelu_of(context.operands)
    if reason := unlike_products(prelu.negative):
        return reason
    results = prelu.apply(np.arange(prelu.input_zero_point, 128)).astype(np.int8)
    fields: dict[str, Member] = {
        "input_offset": -prelu.input_zero_point,
        "alpha_offset": -prelu.alpha_zero_point,
        "multiplier": prelu.negative.multiplier,
        "shift": prelu.negative.shift,
        "table": results,
    }
    call = KernelCall("prelu_table_s8", _RECTIFY, fields, table="prelu_table_params")
    return blocks_candidate(context, call, Cost(mve=3, dsp=9.6, long=18, short=34), weight_bytes=results.size)


_ANY_PRELU = Cost(mve=40, dsp=36, long=36, short=90)
PRELU_ROWS: tuple[Row, ...] = (
    Row(kernel="prelu_table_s8", candidate=_prelu_table),
    Row(kernel="any_prelu", candidate=lambda context: any_candidate(context, _prelu_call(context), _ANY_PRELU)),
)
"""The kernels of PRELU by TFLM's rule."""
