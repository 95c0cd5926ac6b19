# SPDX-License-Identifier: Apache-2.0
"""Layers with weights by the generic kernels, which accept any window and scales, and weights in the model's order."""

from __future__ import annotations

from typing import Any

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernel_call import (
    RULE_KERNELS,
    SUFFIXES,
    KernelCall,
    Member,
    limit_fields,
    rule_sources,
)
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate
from ferrule.backends.cpu_acc.lowering.kernels.convolution import (
    Convolution,
    from_run_time,
    stored_weights,
    weights_of,
)
from ferrule.backends.cpu_acc.lowering.overlap import Reads
from ferrule.backends.firmware import LoweringContext
from ferrule.graph import DataType, LayerType
from ferrule.operators.arithmetic.fixed_point import factor_arrays, reduced_multiplier
from ferrule.operators.weighted.conv2d import groups_of
from ferrule.operators.weighted.products import has_zero_point, is_wide

_BIAS = 2
"""The position of the bias among the inputs."""
_TOGETHER = 4
"""Channels that are computed together."""


def generic_candidate(context: LoweringContext) -> Candidate:
    """Return the generic kernel: `conv2d`, `depthwise_conv2d` or `transpose_conv`."""
    layer = Convolution.of(context)
    channels, reads = layer.output.shape[3], Reads.PER_ELEMENT
    baseline = context.target.core is not None and context.target.core.baseline
    kernel, fields, instructions = "conv2d", {"output_c": channels}, 0
    match context.layer.type:
        case LayerType.DEPTHWISE_CONV_2D:
            kernel, fields, reads = "depthwise_conv2d", {"depth_multiplier": layer.depth_multiplier}, Reads.PER_CHANNEL
            instructions = _depthwise_costs(layer, baseline=baseline)
        case LayerType.TRANSPOSE_CONV:
            kernel, instructions = "transpose_conv", _transpose_costs(layer, baseline=baseline)
        case _:
            groups = groups_of(context.source, context.input(1)) if context.layer.type is LayerType.CONV_2D else 1
            fields |= {"group_input_c": layer.image.shape[3] // groups, "group_output_c": channels // groups}
            instructions = _conv2d_costs(layer, channels // groups, baseline=baseline)
    return Candidate(
        kernel=kernel,
        instructions=instructions,
        weight_bytes=(weights_of(context).nbytes if context.is_constant(1) else 0) + 9 * channels,
        # The output of TRANSPOSE_CONV shares no memory with its input.
        overlaps=lambda: () if kernel == "transpose_conv" else layer.overlaps(reads=reads),
        call=lambda: _call(layer, kernel, fields),
    )


def _conv2d_costs(layer: Convolution, group_output: int, *, baseline: bool) -> int:
    """Return the instructions: of two to four channels of a group at a time, then of a last one alone."""
    # of a product of four channels and of one, of a run of products, of a block, an output and a pixel
    if layer.image.dtype is DataType.INT16:
        costs = (23, 9.5, 72, 77, 156, 195) if baseline else (10.9, 5.3, 63, 56, 85, 163)
    else:
        costs = (24, 12, 45, 0, 110, 400) if baseline else (14.5, 6.5, 40, 0, 60, 150)
    four, one, run, block, element, pixel = costs
    window, groups = layer.window, layer.output.shape[3] // group_output
    runs = window.height * (1 if groups == 1 and window.dilation_w == 1 else window.width)
    fours, rest = divmod(group_output, _TOGETHER)
    blocks, ones = (fours + 1, rest == 1) if rest else (fours, False)
    products = layer.macs // (layer.pixels * layer.output.shape[3])
    group = products * (four * (blocks - ones) + one * ones) + blocks * (runs * run + block) + element * group_output
    return int(layer.pixels * (groups * group + pixel))


def _transpose_costs(layer: Convolution, *, baseline: bool) -> int:
    core = layer.context.target.core
    per_mac, per_element = (10, 200) if baseline else (10, 30)
    if layer.output.dtype.is_float and core is not None and not core.fpu:
        per_mac, per_element = (188, 500) if baseline else (111, 330)
    return per_mac * layer.macs + per_element * layer.output.elements


def _depthwise_costs(layer: Convolution, *, baseline: bool) -> int:
    """Return the instructions: of four channels of int8 at a time unless they are multiplied."""
    per_mac, element, pixel = (9, 130, 400) if baseline else (5.5, 50, 250)
    if layer.depth_multiplier > 1 or layer.output.shape[3] < _TOGETHER or layer.image.dtype is not DataType.INT8:
        per_mac, element = (12, 220) if baseline else (9, 110)
    return int(per_mac * layer.macs + element * layer.output.elements + pixel * layer.pixels)


def _call(layer: Convolution, operator: str, fields: dict[str, int]) -> KernelCall:
    """Return the call of `<operator>_s8`, `_s16`, `_narrow_s16` (for an int32 bias) or `_f32`.

    Other rules than TFLM's have kernels named `<operator>_single_s8` and so on. `fields` are the members of the
    operator's parameter table except the window, weights, scales and limits. Weights and bias may come from run time.
    """
    context, dtype, wide = layer.context, layer.output.dtype, is_wide(layer.context.operands)
    members: dict[str, Member] = {
        "window": layer.window_fields,
        **fields,
        "weights": given_weights(context),
        "bias": given_bias(layer, np.float32 if dtype.is_float else np.int64 if wide else np.int32),
    }
    if not dtype.is_float:
        multipliers, shifts = factor_arrays(layer.factors())
        if wide:
            multipliers = reduced_multiplier(multipliers)
        members |= {
            "multipliers": multipliers.astype(np.int32),
            "shifts": shifts.astype(np.int8),
        }
    if dtype is DataType.INT8:
        members |= {"input_zero_point": layer.image.zero_point, "output": layer.output_fields}
        if operator != "transpose_conv":
            weights = context.input(1)
            members["weight_zero_point"] = weights.zero_point if has_zero_point(weights) else 0
    else:
        members |= limit_fields(layer.output, layer.activation)
    narrow = dtype is DataType.INT16 and not wide
    form, suffix = f"{operator}_{'narrow_' if narrow else ''}", SUFFIXES[dtype]
    return KernelCall(
        f"{form}{RULE_KERNELS[context.layer.rounding]}{suffix}",
        f"ferrule/kernels/{operator}.h",
        members,
        table=f"{form}{suffix}_params",
        sources=rule_sources(context.layer.rounding),
        local=from_run_time(context),
    )


def given_weights(context: LoweringContext) -> Member:
    """Return the weights in their order: a constant array, or the pointer to a tensor from run time."""
    return stored_weights(context) if context.is_constant(1) else context.input_pointer(1)


def given_bias(layer: Convolution, dtype: type[np.number[Any]]) -> Member:
    """Return the bias as `given_weights` returns weights, a constant one as a type; zeros if there is none."""
    context = layer.context
    if len(context.layer.inputs) > _BIAS and context.layer.inputs[_BIAS] is not None and not context.is_constant(_BIAS):
        return context.input_pointer(_BIAS)
    return layer.bias(dtype)
