# SPDX-License-Identifier: Apache-2.0
"""SVDF, UNIDIRECTIONAL_SEQUENCE_LSTM and CIRCULAR_BUFFER in C."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernel_call import (
    KernelCall,
    Member,
    descriptor_of,
    limit_fields,
)
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Row
from ferrule.backends.cpu_acc.lowering.kernels.convolution import TOO_LARGE
from ferrule.backends.cpu_acc.lowering.kernels.float_pixels import FLOAT_SOURCES, blocks_of, has_fpu
from ferrule.backends.cpu_acc.lowering.kernels.lstm import LstmLayer, lstm_rows, once
from ferrule.backends.cpu_acc.lowering.kernels.row_matrix import slowness
from ferrule.backends.cpu_acc.lowering.kernels.svdf import SvdfLayer, svdf_rows
from ferrule.backends.cpu_acc.lowering.operators.activation import SIGMOID
from ferrule.backends.cpu_acc.lowering.overlap import replaced_overlaps
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, Rounding
from ferrule.operators.arithmetic.fixed_point import Factor, reduced_multiplier, wrap_int32
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
from ferrule.operators.table import OPERATORS

_FLOAT_BLOCK = 8
"""The value of FERRULE_LSTM_BLOCK."""


def _generic_svdf(context: LoweringContext) -> Candidate:
    """Return the kernel for the types of data and state, with weights in the model's order."""
    descriptor, output = descriptor_of(context, SvdfDescriptor), context.output
    feature, time = _constant(context, 1), _constant(context, 2)
    floats, fields = context.source.dtype.is_float, dict[str, Member](shape=_svdf_shape(context))
    fields["feature_weights"] = context.blob("feature", feature)
    if not floats:
        fields["feature_bias"] = _feature_bias(context).astype(np.int32)
    fields |= {"time_weights": context.blob("time", time), "bias": _svdf_bias(context)}
    fields |= limit_fields(output, descriptor.activation) if floats else _svdf_scaling(context)
    plain = (9 if floats else 5) * _macs(context) + 4 * time.size + 120 * output.elements
    kernel = "svdf_f32" if floats else "svdf_s16_state" if time.dtype == np.int16 else "svdf_s8"
    return Candidate(
        kernel=kernel,
        instructions=int(plain * (0.4 + 0.6 * slowness(context))),
        weight_bytes=feature.nbytes + time.nbytes + 4 * len(feature),
        overlaps=partial(replaced_overlaps, context, {STATE: 1}),
        call=lambda: KernelCall(
            kernel,
            "ferrule/kernels/svdf.h",
            fields,
            table="svdf_f32_params" if floats else "svdf_s8_params",
            inputs=(0, STATE),
        ),
    )


def _svdf_shape(context: LoweringContext) -> Mapping[str, int]:
    return {
        "batches": context.source.shape[0],
        "features": context.source.shape[1],
        "units": context.output.shape[1],
        "rank": descriptor_of(context, SvdfDescriptor).rank,
        "memory": context.input(2).shape[1],
    }


def _svdf_bias(context: LoweringContext) -> Array:
    given = context.constant(3)
    dtype = np.float32 if context.source.dtype.is_float else np.int32
    return np.zeros(context.output.shape[1], dtype) if given is None else given.reshape(-1)


def _feature_bias(context: LoweringContext) -> Array:
    """Return the contribution of the data's zero point by filter, int64."""
    return np.asarray(-context.source.zero_point * _constant(context, 1).sum(axis=1, dtype=np.int64))


def _svdf_scaling(context: LoweringContext) -> Mapping[str, int]:
    to_state, to_output = svdf_factors(context.operands)
    return {
        "state_multiplier": to_state.multiplier,
        "state_shift": to_state.shift,
        "state_zero_point": context.input(STATE).zero_point,
        "output_multiplier": to_output.multiplier,
        "output_shift": to_output.shift,
        "output_zero_point": context.output.zero_point,
    }


def _svdf_layer(context: LoweringContext) -> SvdfLayer:
    """Return a layer of int8."""
    shape, time = _svdf_shape(context), _constant(context, 2)
    by_unit = time.astype(np.int64).reshape(shape["units"], -1)
    # Sums over time wrap, so may the biases.
    bias = wrap_int32(_svdf_bias(context) - context.input(STATE).zero_point * by_unit.sum(axis=1))
    reach = np.abs(by_unit).sum(axis=1) * -np.iinfo(time.dtype).min + np.abs(bias)
    small = reach.max() < 1 << 30 and svdf_factors(context.operands)[1].shift < 0
    return SvdfLayer(
        context=context,
        feature=_constant(context, 1),
        feature_bias=_feature_bias(context),
        time=time,
        to_state=svdf_factors(context.operands)[0],
        shape=shape,
        fields={"bias": bias.astype(np.int32), **_svdf_scaling(context), "small_sums": int(small)},
    )


SVDF_ROWS = (*svdf_rows(_svdf_layer), Row(kernel="svdf", rules=frozenset(Rounding), candidate=_generic_svdf))
"""The kernels of SVDF."""


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


def _generic_lstm(context: LoweringContext) -> Candidate:
    """Return the kernel for the type of the data, with weights in the model's order."""
    descriptor, data, floats = descriptor_of(context, LstmDescriptor), context.source, context.source.dtype.is_float
    weights, recurrent, bias = _lstm_arrays(context)
    fields: dict[str, Member] = {
        "shape": _lstm_shape(context, descriptor),
        "weights": weights,
        "recurrent": recurrent,
        "bias": bias,
    }
    if floats:
        fields = {
            "shape": fields["shape"],
            "weights": blocks_of(weights, bias, _FLOAT_BLOCK),
            "recurrent": blocks_of(recurrent, np.zeros_like(bias), _FLOAT_BLOCK),
            "cell_clip": max(descriptor.cell_clip, 0.0),
        }
    else:
        if data.dtype is DataType.INT8:
            bias, offset = _lstm_biases(context)
            fields |= {"bias": bias.astype(np.int32), "offset": offset.astype(np.int32)}
        fields["scaling"] = _scaling(context, descriptor)
    kernel = {DataType.INT8: "lstm_s8", DataType.INT16: "lstm_s16"}.get(data.dtype, "lstm_f32")
    per_mac, per_element = _lstm_costs(context)
    replaced = {HIDDEN: 1, CELL: 2}
    return Candidate(
        kernel=kernel,
        instructions=round(per_mac * _macs(context) + per_element * context.output.elements),
        weight_bytes=weights.nbytes + recurrent.nbytes + 2 * bias.nbytes,
        scratch_bytes=2 * bias.nbytes if floats else 0,
        overlaps=partial(replaced_overlaps, context, replaced),
        call=lambda: KernelCall(
            kernel,
            "ferrule/kernels/lstm.h",
            fields,
            inputs=(0, HIDDEN, CELL),
            sources=("expf", "tanhf", *FLOAT_SOURCES) if floats else (),
        ),
    )


def _lstm_costs(context: LoweringContext) -> tuple[float, float]:
    """Return the instructions of the generic kernel for a product and for an element of the output."""
    core, dtype = context.target.core, context.source.dtype
    baseline = core is not None and core.baseline
    if dtype.is_float:
        if has_fpu(context):
            return (0.86, 460) if core is not None and core.mve else (2.2, 470)
        return (205, 15600) if baseline else (124, 9000)
    if dtype is DataType.INT16:
        return (11, 1390) if baseline else (7, 660)
    return (10, 1400) if baseline else (5, 700)


def _macs(context: LoweringContext) -> int:
    return OPERATORS[context.layer.type].macs(context.layer.descriptor, context.operands)


def _lstm_arrays(context: LoweringContext) -> tuple[Array, Array, Array]:
    """Return the weights, the recurrent weights and the biases of all gates."""
    weights, recurrent, bias = (
        np.concatenate([_constant(context, index) for index in indices])
        for indices in (INPUT_WEIGHTS, RECURRENT_WEIGHTS, BIASES)
    )
    return weights, recurrent, bias


def _lstm_biases(context: LoweringContext) -> tuple[Array, Array]:
    """Return the biases of sums over the input and over the hidden state, with the contributions of zero points."""
    weights, recurrent, bias = _lstm_arrays(context)
    return (
        bias - context.source.zero_point * weights.sum(axis=1, dtype=np.int64),
        -context.input(HIDDEN).zero_point * recurrent.sum(axis=1, dtype=np.int64),
    )


def _lstm_layer(context: LoweringContext) -> LstmLayer | str:
    """Return a layer of integers; the reason if sums of int16 cannot be rounded once in 32 bits."""
    descriptor = descriptor_of(context, LstmDescriptor)
    weights, recurrent, _ = _lstm_arrays(context)
    bias, offset = _lstm_biases(context)
    scaling, fields = LstmScaling.of(context.operands, descriptor), dict(_scaling(context, descriptor))
    if context.source.dtype is DataType.INT16:
        factors = once(scaling.input_factors), once(scaling.recurrent_factors)
        if isinstance(factors[0], str) or isinstance(factors[1], str):
            return TOO_LARGE
        scaling = replace(scaling, input_factors=factors[0], recurrent_factors=factors[1])
        fields |= {
            "input": [asdict(factor) for factor in factors[0]],
            "recurrent": [asdict(factor) for factor in factors[1]],
        }
    return LstmLayer(
        context=context,
        steps=context.source.shape[0] * context.source.shape[1],
        weights=weights,
        recurrent=recurrent,
        bias=bias,
        offset=offset,
        input_factors=scaling.input_factors,
        recurrent_factors=scaling.recurrent_factors,
        others=(scaling.forget, scaling.update, scaling.hidden),
        fields={"shape": _lstm_shape(context, descriptor), "scaling": fields},
    )


LSTM_ROWS = (*lstm_rows(_lstm_layer), Row(kernel="lstm", rules=frozenset(Rounding), candidate=_generic_lstm))
"""The kernels of UNIDIRECTIONAL_SEQUENCE_LSTM."""


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
