# SPDX-License-Identifier: Apache-2.0
"""SVDF, UNIDIRECTIONAL_SEQUENCE_LSTM and CIRCULAR_BUFFER in C."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall, Member, descriptor_of, limit_fields
from ferrule.backends.cpu_acc.lowering.operators.activation import SIGMOID
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType
from ferrule.operators.arithmetic.fixed_point import Factor, reduced_multiplier
from ferrule.operators.recurrent.circular_buffer import COUNT, FRAMES, CircularBufferDescriptor
from ferrule.operators.recurrent.lstm import (
    BIASES,
    CELL,
    HIDDEN,
    INPUT_WEIGHTS,
    RECURRENT_WEIGHTS,
    LstmDescriptor,
    LstmScaling,
    cell_position,
    cell_power,
)
from ferrule.operators.recurrent.svdf import STATE, SvdfDescriptor, svdf_factors


def lower_svdf(context: LoweringContext) -> LoweredOp:
    """Return the call of the SVDF kernel for the types of data and state."""
    descriptor = descriptor_of(context, SvdfDescriptor)
    data, output = context.operands.ends
    feature, time = _constant(context, 1), _constant(context, 2)
    given = context.constant(3)
    floats = data.dtype.is_float
    bias = np.zeros(output.shape[1], np.float32 if floats else np.int32) if given is None else given.reshape(-1)
    fields: dict[str, Member] = {
        "shape": {
            "batches": data.shape[0],
            "features": data.shape[1],
            "units": output.shape[1],
            "rank": descriptor.rank,
            "memory": time.shape[1],
        },
        "feature_weights": context.blob("feature", feature),
    }
    if not floats:
        offsets = -data.zero_point * feature.astype(np.int64).sum(axis=1)
        fields["feature_bias"] = offsets.astype(np.int32)
    fields |= {"time_weights": context.blob("time", time), "bias": bias}
    if floats:
        fields |= limit_fields(output, descriptor.activation)
    else:
        to_state, to_output = svdf_factors(context.operands)
        fields |= {
            "state_multiplier": to_state.multiplier,
            "state_shift": to_state.shift,
            "state_zero_point": context.input(STATE).zero_point,
            "output_multiplier": to_output.multiplier,
            "output_shift": to_output.shift,
            "output_zero_point": output.zero_point,
        }
    return KernelCall(
        "svdf_f32" if floats else "svdf_s16_state" if time.dtype == np.int16 else "svdf_s8",
        "ferrule/kernels/svdf.h",
        fields,
        table="svdf_f32_params" if floats else "svdf_s8_params",
        inputs=(0, STATE),
        replaced={STATE: 1},
    ).lowered(context)


def lower_circular_buffer(context: LoweringContext) -> LoweredOp:
    """Return the call for CIRCULAR_BUFFER, with a count if its period is longer than one run."""
    descriptor, frame = descriptor_of(context, CircularBufferDescriptor), context.source.elements
    fields = {"frame": frame, "others": (descriptor.slots - 1) * frame, "cycles": descriptor.cycles}
    counted = descriptor.cycles != 1
    states = (FRAMES, COUNT) if counted else (FRAMES,)
    return KernelCall(
        "circular_buffer_counted_s8" if counted else "circular_buffer_s8",
        "ferrule/kernels/circular_buffer.h",
        fields,
        table="circular_buffer_params",
        inputs=(0, *states),
        replaced={state: state for state in states},
    ).lowered(context)


def lower_lstm(context: LoweringContext) -> LoweredOp:
    """Return the call of the LSTM kernel for the type of the data."""
    descriptor, data = descriptor_of(context, LstmDescriptor), context.source
    weights, recurrent, bias = (
        np.concatenate([_constant(context, index) for index in indices])
        for indices in (INPUT_WEIGHTS, RECURRENT_WEIGHTS, BIASES)
    )
    if data.dtype is DataType.INT8:
        bias = (bias - data.zero_point * weights.astype(np.int64).sum(axis=1)).astype(np.int32)
    fields: dict[str, Member] = {
        "shape": _lstm_shape(context, descriptor),
        "weights": weights,
        "recurrent": recurrent,
        "bias": bias,
    }
    if data.dtype.is_float:
        fields["cell_clip"] = max(descriptor.cell_clip, 0.0)
    else:
        if data.dtype is DataType.INT8:
            offset = -context.input(HIDDEN).zero_point * recurrent.astype(np.int64).sum(axis=1)
            fields["offset"] = offset.astype(np.int32)
        fields["scaling"] = _scaling(context, descriptor)
    return KernelCall(
        {DataType.INT8: "lstm_s8", DataType.INT16: "lstm_s16"}.get(data.dtype, "lstm_f32"),
        "ferrule/kernels/lstm.h",
        fields,
        inputs=(0, HIDDEN, CELL),
        replaced={HIDDEN: 1, CELL: 2},
        sources=("expf", "tanhf") if data.dtype.is_float else (),
    ).lowered(context)


def _lstm_shape(context: LoweringContext, descriptor: LstmDescriptor) -> Mapping[str, int]:
    first, second, depth = context.source.shape
    batches, steps = (second, first) if descriptor.time_major else (first, second)
    return {
        "batches": batches,
        "steps": steps,
        "inputs": depth,
        "units": context.input(HIDDEN).shape[1],
        "batch_rows": 1 if descriptor.time_major else steps,
        "step_rows": batches if descriptor.time_major else 1,
    }


def _scaling(context: LoweringContext, descriptor: LstmDescriptor) -> Mapping[str, Member]:
    scaling = LstmScaling.of(context.operands, descriptor)
    # The factors of sums of 64 bits have multipliers of 15 bits.
    of_sums = _reduced if context.source.dtype is DataType.INT16 else asdict
    multiplier, shift = cell_position(cell_power(context.operands) + 12)
    return {
        "input": [of_sums(factor) for factor in scaling.input_factors],
        "recurrent": [of_sums(factor) for factor in scaling.recurrent_factors],
        "forget": asdict(scaling.forget),
        "update": asdict(scaling.update),
        "hidden": asdict(scaling.hidden),
        "hidden_zero_point": context.input(HIDDEN).zero_point,
        "cell_clip": scaling.clip,
        "gates": {"table": SIGMOID, "multiplier": 3, "shift": 0, "elements": 0},
        "cell": {"table": SIGMOID, "multiplier": multiplier, "shift": shift, "elements": 0},
    }


def _reduced(factor: Factor) -> Mapping[str, int]:
    return {"multiplier": int(reduced_multiplier(factor.multiplier)), "shift": factor.shift}


def _constant(context: LoweringContext, index: int) -> Array:
    array = context.constant(index)
    if array is None:
        raise UnsupportedError(f"layer '{context.layer.name}': input {index} is absent, expected a constant")
    return array
