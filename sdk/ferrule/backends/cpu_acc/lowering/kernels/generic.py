# SPDX-License-Identifier: Apache-2.0
"""Weighted layers by the plain kernels, which accept any window and scales, and weights in the model's order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ferrule.backends.contribution import KERNELS, Contribution
from ferrule.backends.cpu_acc.lowering.kernel_call import float_limits, output_value, table_call, window_value
from ferrule.backends.cpu_acc.lowering.overlap import Reads, pixel_overlaps
from ferrule.backends.firmware import FieldValue, LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, Rounding, TensorInfo
from ferrule.operators.activation import Activation
from ferrule.operators.fixed_point import activation_range, reduced_multiplier
from ferrule.operators.table import OPERATORS
from ferrule.operators.weighted import Factor, centred, has_zero_point, is_wide
from ferrule.operators.window import Window

_SUFFIXES = {DataType.INT8: "s8", DataType.INT16: "s16", DataType.FLOAT32: "f32"}
_BIAS = 2
"""The position of the bias among the inputs."""
RULE_KERNELS = {Rounding.TFLM: "", Rounding.SINGLE: "single_", Rounding.ONNX: "onnx_"}
"""The part of an int8 kernel's name that tells its rule."""


def from_run_time(context: LoweringContext) -> bool:
    """Return whether a weighted layer has weights or a bias from run time, which only the plain kernels can take."""
    return OPERATORS[context.layer.type].weighted and any(
        context.layer.inputs[index] is not None and not context.is_constant(index)
        for index in range(1, len(context.layer.inputs))
    )


def weights_of(context: LoweringContext) -> Array:
    """Return the constant weights of a layer, minus their zero point: int16 if it is not 0."""
    return centred(_stored_weights(context), context.input(1))


def _stored_weights(context: LoweringContext) -> Array:
    weights = context.constant(1)
    if weights is None:
        raise UnsupportedError(f"layer '{context.layer.name}' has no weights")
    return weights


def weight_bytes_of(context: LoweringContext, channels: int) -> int:
    """Return the flash that a plain kernel takes for weights and for the constants of its channels."""
    return (weights_of(context).nbytes if context.is_constant(1) else 0) + 9 * channels


def macs_of(context: LoweringContext) -> int:
    """Return the multiply-accumulates of a layer; 0 if its operator counts none."""
    return OPERATORS[context.layer.type].macs(context.layer.descriptor, context.operands)


def lower_plain(
    context: LoweringContext,
    operator: str,
    *,
    window: Window,
    image: TensorInfo,
    output: TensorInfo,
    channels: int,
    activation: Activation,
    channel_factors: Sequence[Factor],
    reads: Reads = Reads.PER_ELEMENT,
    **fields: FieldValue,
) -> LoweredOp:
    """Return the call of `<operator>_s8`, `_s16`, `_narrow_s16` (for an int32 bias) or `_f32`.

    For weights with a zero point, it is that of `<operator>_offset_s8`. Other rules than TFLM's have kernels named
    `<operator>_single_s8` and so on. `fields` are the members of the operator's
    parameter table except the window, weights, scales and limits. `reads` is as in `pixel_overlaps`. Weights and bias
    may come from run time.
    """
    members: dict[str, FieldValue] = {
        "window": window_value(window, image, output),
        **fields,
        "weights": _weights(context),
        "bias": _bias(context, channels),
    }
    if not output.dtype.is_float:
        multipliers = np.array([factor.multiplier for factor in channel_factors], np.int64)
        if is_wide(context.operands):
            multipliers = reduced_multiplier(multipliers)
        members |= {
            "multipliers": context.blob("multipliers", multipliers.astype(np.int32)),
            "shifts": context.blob("shifts", np.array([factor.shift for factor in channel_factors], np.int8)),
        }
    if output.dtype is DataType.INT8:
        members |= {"input_zero_point": image.zero_point, "output": output_value(output, activation)}
    else:
        low, high = float_limits(activation) if output.dtype.is_float else activation_range(activation, output)
        members |= {"low": low, "high": high}
    offset = has_zero_point(context.input(1))
    if offset:
        members["weight_zero_point"] = context.input(1).zero_point
    overlaps = pixel_overlaps(context, window, image, output, reads=reads)
    narrow = output.dtype is DataType.INT16 and not is_wide(context.operands)
    form, suffix = f"{operator}_{'narrow_' if narrow else 'offset_' if offset else ''}", _SUFFIXES[output.dtype]
    kernel = f"{form}{RULE_KERNELS[context.layer.rounding]}{suffix}"
    return table_call(
        context,
        kernel,
        members,
        header=operator,
        table=f"{form}{suffix}_params",
        overlaps=overlaps,
        contribution=ruled_part(context, kernel),
        local=from_run_time(context),
    )


def ruled_kernel(context: LoweringContext, form: str) -> str:
    """Return the name of the int8 kernel of that form for the layer's rule."""
    return f"{form}_{RULE_KERNELS[context.layer.rounding]}s8"


def ruled_part(context: LoweringContext, kernel: str, *others: str) -> Contribution:
    """Return the sources of an int8 kernel and what it needs for the layer's rule."""
    return KERNELS.part(kernel, *others, *rule_sources(context.layer.rounding))


def rule_sources(rule: Rounding) -> tuple[str, ...]:
    """Return the sources that int8 kernels of a rule need besides their own."""
    return () if rule is Rounding.TFLM else ("requantize_once",)


def _weights(context: LoweringContext) -> FieldValue:
    """Return the weights: a constant array, or the pointer to a tensor from run time."""
    if context.is_constant(1):
        return context.blob("weights", _stored_weights(context))
    return context.input_pointer(1)


def _bias(context: LoweringContext, channels: int) -> FieldValue:
    """Return the bias as `_weights` returns weights; zeros if there is none."""
    if len(context.layer.inputs) > _BIAS and context.layer.inputs[_BIAS] is not None and not context.is_constant(_BIAS):
        return context.input_pointer(_BIAS)
    bias = context.constant(_BIAS)
    if bias is None:
        data = context.input(0).dtype
        bias = np.zeros(channels, {DataType.INT8: np.int32, DataType.INT16: np.int64}.get(data, np.float32))
    return context.blob("bias", bias.reshape(-1), alignment=max(4, bias.itemsize))
