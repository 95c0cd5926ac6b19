# SPDX-License-Identifier: Apache-2.0
"""SVDF, UNIDIRECTIONAL_SEQUENCE_LSTM and CIRCULAR_BUFFER in C."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernel_call import float_limits
from ferrule.backends.cpu_acc.lowering.stateful import stateful_call
from ferrule.backends.firmware import Blob, FieldValue, LoweredOp, LoweringContext
from ferrule.dom import Aggregate, Expression, Field, Identifier, Integer
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType
from ferrule.operators.circular_buffer import COUNT, FRAMES, CircularBufferDescriptor
from ferrule.operators.fixed_point import reduced_multiplier
from ferrule.operators.lstm import (
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
from ferrule.operators.sigmoid_table import SIGMOID_TABLE
from ferrule.operators.svdf import STATE, SvdfDescriptor, svdf_factors
from ferrule.operators.weighted import Factor


def lower_svdf(context: LoweringContext) -> LoweredOp:
    """Return the call of the SVDF kernel for the types of data and state."""
    descriptor = context.layer.descriptor
    assert isinstance(descriptor, SvdfDescriptor)
    data, output = context.input(0), context.operands.output
    feature, time = _constant(context, 1), _constant(context, 2)
    given = context.constant(3)
    floats = data.dtype.is_float
    bias = np.zeros(output.shape[1], np.float32 if floats else np.int32) if given is None else given.reshape(-1)
    shape = {
        "batches": data.shape[0],
        "features": data.shape[1],
        "units": output.shape[1],
        "rank": descriptor.rank,
        "memory": time.shape[1],
    }
    fields: dict[str, FieldValue] = {"shape": _integers(shape), "feature_weights": context.blob("feature", feature)}
    if floats:
        low, high = float_limits(descriptor.activation)
        fields |= {"time_weights": context.blob("time", time), "bias": context.blob("bias", bias)}
        fields |= {"low": low, "high": high}
        return _svdf_call(context, "svdf_f32", "svdf_f32_params", fields)
    offsets = -data.zero_point * feature.astype(np.int64).sum(axis=1)
    to_state, to_output = svdf_factors(context.operands)
    fields |= {
        "feature_bias": context.blob("feature_bias", offsets.astype(np.int32)),
        "time_weights": context.blob("time", time),
        "bias": context.blob("bias", bias),
        "state_multiplier": to_state.multiplier,
        "state_shift": to_state.shift,
        "state_zero_point": context.input(STATE).zero_point,
        "output_multiplier": to_output.multiplier,
        "output_shift": to_output.shift,
        "output_zero_point": output.zero_point,
    }
    kernel = "svdf_s16_state" if time.dtype == np.int16 else "svdf_s8"
    return _svdf_call(context, kernel, "svdf_s8_params", fields)


def _svdf_call(context: LoweringContext, kernel: str, table: str, fields: Mapping[str, FieldValue]) -> LoweredOp:
    return stateful_call(context, kernel, fields, header="svdf", table=table, inputs=(0, STATE), states={STATE: 1})


def lower_circular_buffer(context: LoweringContext) -> LoweredOp:
    """Return the call for CIRCULAR_BUFFER, with a count if its period is longer than one run."""
    descriptor, frame = context.layer.descriptor, context.input(0)
    assert isinstance(descriptor, CircularBufferDescriptor)
    states = (FRAMES,) if descriptor.cycles == 1 else (FRAMES, COUNT)
    return stateful_call(
        context,
        "circular_buffer_s8" if descriptor.cycles == 1 else "circular_buffer_counted_s8",
        {
            "frame": frame.elements,
            "others": (descriptor.slots - 1) * frame.elements,
            "cycles": descriptor.cycles,
        },
        header="circular_buffer",
        table="circular_buffer_params",
        inputs=(0, *states),
        states={state: state for state in states},
    )


def lower_lstm(context: LoweringContext) -> LoweredOp:
    """Return the call of the LSTM kernel for the type of the data."""
    descriptor = context.layer.descriptor
    assert isinstance(descriptor, LstmDescriptor)
    data = context.input(0)
    weights, recurrent, bias = (
        np.concatenate([_constant(context, index) for index in indices])
        for indices in (INPUT_WEIGHTS, RECURRENT_WEIGHTS, BIASES)
    )
    fields: dict[str, FieldValue] = {"shape": _lstm_shape(context, descriptor)}
    if data.dtype is DataType.INT8:
        bias = (bias - data.zero_point * weights.astype(np.int64).sum(axis=1)).astype(np.int32)
    fields |= {
        "weights": context.blob("weights", weights),
        "recurrent": context.blob("recurrent", recurrent),
        "bias": context.blob("bias", bias, alignment=max(4, bias.itemsize)),
    }
    if data.dtype.is_float:
        fields["cell_clip"] = max(descriptor.cell_clip, 0.0)
        return _lstm_call(context, "lstm_f32", fields, sources=("expf", "tanhf"))
    if data.dtype is DataType.INT8:
        offset = -context.input(HIDDEN).zero_point * recurrent.astype(np.int64).sum(axis=1)
        fields["offset"] = context.blob("offset", offset.astype(np.int32))
    table = context.blob("table", np.asarray(SIGMOID_TABLE - 32768, np.int16))
    fields["scaling"] = _scaling(context, descriptor, table.name)
    kernel = "lstm_s8" if data.dtype is DataType.INT8 else "lstm_s16"
    return _lstm_call(context, kernel, fields, extra_blobs=(table,))


def _lstm_call(
    context: LoweringContext,
    kernel: str,
    fields: Mapping[str, FieldValue],
    *,
    sources: tuple[str, ...] = (),
    extra_blobs: tuple[Blob, ...] = (),
) -> LoweredOp:
    return stateful_call(
        context,
        kernel,
        fields,
        header="lstm",
        table=f"{kernel}_params",
        inputs=(0, HIDDEN, CELL),
        states={HIDDEN: 1, CELL: 2},
        sources=sources,
        extra_blobs=extra_blobs,
    )


def _lstm_shape(context: LoweringContext, descriptor: LstmDescriptor) -> Expression:
    first, second, depth = context.input(0).shape
    batches, steps = (second, first) if descriptor.time_major else (first, second)
    return _integers(
        {
            "batches": batches,
            "steps": steps,
            "inputs": depth,
            "units": context.input(HIDDEN).shape[1],
            "batch_rows": 1 if descriptor.time_major else steps,
            "step_rows": batches if descriptor.time_major else 1,
        }
    )


def _scaling(context: LoweringContext, descriptor: LstmDescriptor, table: str) -> Expression:
    operands = context.operands
    scaling = LstmScaling.of(operands, descriptor)
    wide = context.input(0).dtype is DataType.INT16
    multiplier, shift = cell_position(cell_power(operands) + 12)
    return Aggregate(
        (
            Field(_factors(scaling.input_factors, reduced=wide), "input"),
            Field(_factors(scaling.recurrent_factors, reduced=wide), "recurrent"),
            Field(_factor(scaling.forget), "forget"),
            Field(_factor(scaling.update), "update"),
            Field(_factor(scaling.hidden), "hidden"),
            Field(Integer(context.input(HIDDEN).zero_point), "hidden_zero_point"),
            Field(Integer(scaling.clip), "cell_clip"),
            Field(_sigmoid(table, 3, 0), "gates"),
            Field(_sigmoid(table, multiplier, shift), "cell"),
        )
    )


def _sigmoid(table: str, multiplier: int, shift: int) -> Expression:
    values = (Field(Identifier(table), "table"), Field(Integer(multiplier), "multiplier"))
    return Aggregate((*values, Field(Integer(shift), "shift"), Field(Integer(0), "elements")))


def _factors(factors: Sequence[Factor], *, reduced: bool) -> Expression:
    """Return the initial value of an array; factors of sums of 64 bits have multipliers of 15 bits."""
    return Aggregate(tuple(Field(_factor(factor, reduced=reduced)) for factor in factors))


def _factor(factor: Factor, *, reduced: bool = False) -> Expression:
    multiplier = int(reduced_multiplier(factor.multiplier)) if reduced else factor.multiplier
    return _integers({"multiplier": multiplier, "shift": factor.shift})


def _integers(values: Mapping[str, int]) -> Expression:
    return Aggregate(tuple(Field(Integer(value), name) for name, value in values.items()))


def _constant(context: LoweringContext, index: int) -> Array:
    array = context.constant(index)
    if array is None:
        raise UnsupportedError(f"layer '{context.layer.name}': input {index} is absent, expected a constant")
    return array
