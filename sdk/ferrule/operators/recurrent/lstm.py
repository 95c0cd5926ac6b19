# SPDX-License-Identifier: Apache-2.0
"""UNIDIRECTIONAL_SEQUENCE_LSTM without peepholes, projection and layer normalisation, as TensorFlow Lite Micro has it.

Integer cells have int16 values. A gate's two sums, over the input and over the hidden state, are each rounded to int16
in Q3.12 and then added with saturation; its result is in Q0.15.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import ModelError, UnsupportedError
from ferrule.graph import Array, DataType, Descriptor, LayerType, Quantization, TensorInfo
from ferrule.graph.real_values import ieee_floats, saturated
from ferrule.operators.arithmetic.blas import matrix_product
from ferrule.operators.arithmetic.error_bound import accumulated, known_inputs, of_floats, or_zeros, rounding
from ferrule.operators.arithmetic.fixed_point import (
    MAX_SHIFT,
    MAX_WIDE_SHIFT,
    Factor,
    factor_arrays,
    multiply_by_quantized_multiplier,
    multiply_wide_by_quantized_multiplier,
    wrap_int32,
)
from ferrule.operators.elementwise.nonlinear import logistic_s16, saturate_16, tanh_s16
from ferrule.operators.movement.checks import check_activations, check_alike, expect_type
from ferrule.operators.operator import Arrays, Evaluation, Operands, Operator, Shapes, required_array, required_arrays
from ferrule.operators.sample import LayerSample
from ferrule.operators.weighted.products import check_rows, required_constants

GATES = ("input", "forget", "cell", "output")
"""The order of the gates in the format."""
INPUT_WEIGHTS, RECURRENT_WEIGHTS, BIASES = range(1, 5), range(5, 9), range(12, 16)
HIDDEN, CELL = 18, 19
"""Positions of the states among the inputs; their new values are outputs 1 and 2."""
ABSENT = frozenset({*range(9, 12), *range(16, 18), *range(20, 24)})
"""Positions of peephole weights, projection and normalisation, which are not supported."""
_LARGEST_DATA = {DataType.INT8: 256, DataType.INT16: 1 << 15}
"""A bound on the magnitude of a stored value minus its zero point, plus that of the zero point."""
_GATE_SCALE = 2.0**-12
_UNIT_SCALE = 2.0**-15
_CELL_POWERS = range(-30, 3)
_Step = Callable[[Array, Array, Array], tuple[Array, Array]]
"""(values of a step, hidden state, cell state) -> the states behind it."""


@frozen
class LstmDescriptor(Descriptor):
    """Inputs: data, 4 weights [S, I], 4 recurrent weights [S, S], 4 biases [S], hidden state and cell state [B, S].

    They have the positions of the format, with absent inputs between them. The order of the gates is input, forget,
    cell, output. Data is [B, T, I], or [T, B, I] if time is major. Outputs:
    the hidden states of all steps, and the new states.
    """

    time_major: bool = False
    cell_clip: float = 0.0
    """Limit on the magnitude of the cell state; 0 or less for none."""


def _infer(descriptor: LstmDescriptor, operands: Operands) -> Shapes:
    for index in ABSENT:
        info = operands.inputs[index] if index < len(operands.inputs) else None
        if info is not None:
            raise UnsupportedError(f"input {index} is '{info.name}', expected no peephole, projection or normalisation")
    data, hidden = operands.source, operands.input(HIDDEN)
    if len(data.shape) != 3 or len(hidden.shape) != 2:
        raise UnsupportedError(
            f"tensors '{data.name}' and '{hidden.name}' have shapes {list(data.shape)} and {list(hidden.shape)}, "
            "expected 3 and 2 axes"
        )
    batches, units = data.shape[1 if descriptor.time_major else 0], hidden.shape[1]
    wanted = {
        **dict.fromkeys(INPUT_WEIGHTS, (units, data.shape[2])),
        **dict.fromkeys(RECURRENT_WEIGHTS, (units, units)),
        **dict.fromkeys(BIASES, (units,)),
        **dict.fromkeys((HIDDEN, CELL), (batches, units)),
    }
    for index, shape in wanted.items():
        info = operands.input(index)
        if info.shape != shape:
            raise ModelError(f"tensor '{info.name}' has shape {list(info.shape)}, expected {list(shape)}")
    return (*data.shape[:2], units), hidden.shape, hidden.shape


def _check(descriptor: LstmDescriptor, operands: Operands) -> None:
    data, hidden, cell = operands.required((0, HIDDEN, CELL))
    expect_type(data, DataType.FLOAT32, DataType.INT8, DataType.INT16)
    floats = data.dtype.is_float
    bias = DataType.INT64 if data.dtype is DataType.INT16 else DataType.INT32
    for indices, wanted in (
        ((HIDDEN,), data.dtype),
        ((CELL,), data.dtype if floats else DataType.INT16),
        ((*INPUT_WEIGHTS, *RECURRENT_WEIGHTS), data.dtype if floats else DataType.INT8),
        (BIASES, data.dtype if floats else bias),
    ):
        for index in indices:
            expect_type(operands.input(index), wanted)
    for output, state in zip(operands.outputs, (hidden, hidden, cell), strict=True):
        check_alike(output, state)
    if floats:
        return
    check_activations(data, hidden, cell, *operands.required((*INPUT_WEIGHTS, *RECURRENT_WEIGHTS)))
    for index in (*INPUT_WEIGHTS, *RECURRENT_WEIGHTS):
        if operands.input(index).zero_point != 0:
            raise UnsupportedError(f"weights '{operands.input(index).name}' have a zero point, expected symmetric ones")
    cell_power(operands)
    LstmScaling.of(operands, descriptor)


def _check_values(_: LstmDescriptor, operands: Operands, values: Arrays) -> None:
    """Refuse weights and biases from run time, and weights with which a sum may overflow."""
    weights, recurrent, bias = (
        np.concatenate(required_constants(operands, values, indices))
        for indices in (INPUT_WEIGHTS, RECURRENT_WEIGHTS, BIASES)
    )
    dtype = operands.source.dtype
    if not dtype.is_float:
        bits = 47 if dtype is DataType.INT16 else 31
        check_rows(operands, weights, bias, largest=_LARGEST_DATA[dtype], bits=bits)
        check_rows(operands, recurrent, None, largest=_LARGEST_DATA[dtype], bits=bits)


def cell_power(operands: Operands) -> int:
    """Return the exponent of the cell state's scale, which must be a power of two."""
    cell = operands.input(CELL)
    fraction, exponent = math.frexp(cell.scale)
    if fraction != 0.5 or exponent - 1 not in _CELL_POWERS:
        raise UnsupportedError(
            f"cell state '{cell.name}' has scale {cell.scale:g}, expected a power of two from 2^-30 to 4"
        )
    return exponent - 1


@frozen
class LstmScaling:
    """The constants of the integer arithmetic."""

    input_factors: tuple[Factor, ...]
    """By gate: from sums over the input to Q3.12."""
    recurrent_factors: tuple[Factor, ...]
    forget: Factor
    """From forget gate times cell state to the cell state."""
    update: Factor
    """From input gate times cell gate to the cell state."""
    hidden: Factor
    """From output gate times the cell's hyperbolic tangent to the hidden state."""
    clip: int
    """Limit on the magnitude of the stored cell state; -1 for none."""

    @classmethod
    def of(cls, operands: Operands, descriptor: LstmDescriptor) -> LstmScaling:
        """Return the constants for the tensors' scales; UnsupportedError if one is out of range."""
        data, hidden, cell = operands.required((0, HIDDEN, CELL))
        limit = MAX_WIDE_SHIFT if data.dtype is DataType.INT16 else MAX_SHIFT
        unit = _UNIT_SCALE
        steps = descriptor.cell_clip / cell.scale
        return cls(
            input_factors=tuple(_gate(data, operands.input(index), limit) for index in INPUT_WEIGHTS),
            recurrent_factors=tuple(_gate(hidden, operands.input(index), limit) for index in RECURRENT_WEIGHTS),
            forget=Factor.of(unit * cell.scale / cell.scale, cell),
            update=Factor.of(unit * unit / cell.scale, cell),
            hidden=Factor.of(unit * unit / hidden.scale, hidden),
            clip=int(min(steps, 32767.0)) if descriptor.cell_clip > 0 else -1,
        )


def _gate(source: TensorInfo, weights: TensorInfo, limit: int) -> Factor:
    return Factor.of(source.scale * weights.scale / _GATE_SCALE, weights, limit)


def _kernel(descriptor: LstmDescriptor, operands: Operands, arrays: Arrays) -> list[Array]:
    data, hidden, cell = required_arrays(arrays, (0, HIDDEN, CELL))
    steps = data if descriptor.time_major else data.swapaxes(0, 1)
    floats = data.dtype == np.float32
    advance = _float_step(descriptor, arrays) if floats else _integer_step(descriptor, operands, arrays)
    outputs = []
    for values in steps:
        hidden, cell = advance(values, hidden, cell)
        outputs.append(hidden)
    stacked = np.stack(outputs)
    return [np.ascontiguousarray(stacked if descriptor.time_major else stacked.swapaxes(0, 1)), hidden, cell]


def _joined(arrays: Arrays, dtype: type) -> Iterator[Array]:
    """Yield the weights, the recurrent weights and the biases, each with the four gates after one another."""
    for indices in (INPUT_WEIGHTS, RECURRENT_WEIGHTS, BIASES):
        yield np.concatenate(required_arrays(arrays, indices)).astype(dtype)


def _float_step(descriptor: LstmDescriptor, arrays: Arrays) -> _Step:
    weights, recurrent, bias = _joined(arrays, np.float64)
    clip = descriptor.cell_clip if descriptor.cell_clip > 0 else math.inf

    def advance(values: Array, hidden: Array, cell: Array) -> tuple[Array, Array]:
        with ieee_floats():
            sums = matrix_product(values.astype(np.float64), weights.T) + bias
            sums += matrix_product(hidden, recurrent.T)
            given, kept, new, shown = np.split(sums, 4, axis=1)
            state = _sigmoid(kept) * cell + _sigmoid(given) * np.tanh(new)
            state = np.clip(state, -clip, clip).astype(np.float32)
            return np.asarray(_sigmoid(shown) * np.tanh(state.astype(np.float64)), np.float32), state

    return advance


def _step_bound(evaluation: Evaluation) -> Callable[[_Pair, _Pair, _Pair], tuple[Array, Array]]:
    """Return the bounds of the states behind a step, from its values, the states before it, and the bounds of these."""
    parameters = tuple(_joined(evaluation.inputs, np.float64))
    (weights, recurrent, bias), reaches = parameters, tuple(map(np.abs, parameters))

    def rounded(values: Array, error: Array, units: float = 2) -> _Pair:
        return _Pair(values, error + rounding(evaluation, np.abs(values) + error, units))

    def tanh(pair: _Pair) -> _Pair:
        return rounded(np.tanh(pair.values), pair.error)

    def bounds(values: _Pair, hidden: _Pair, cell: _Pair) -> tuple[Array, Array]:
        moved = _sums(values.error, reaches[0], hidden.error, reaches[1])
        reach = _sums(np.abs(values.values), reaches[0], np.abs(hidden.values), reaches[1]) + reaches[2] + moved
        sums = _sums(values.values, weights, hidden.values, recurrent) + bias
        errors = moved + accumulated(evaluation, reach, weights.shape[1] + recurrent.shape[1])
        parts = [_Pair(*each) for each in zip(np.split(sums, 4, axis=1), np.split(errors, 4, axis=1), strict=True)]
        given, kept, shown = (rounded(_sigmoid(parts[gate].values), parts[gate].error / 4, 3) for gate in (0, 1, 3))
        new, old = _product_of(given, tanh(parts[2])), _product_of(kept, cell)
        around = rounding(evaluation, np.abs(new.values) + np.abs(old.values), 2)
        state = rounded(new.values + old.values, new.error + old.error + around)
        result = _product_of(shown, tanh(state))
        return rounded(result.values, result.error).error, state.error

    return bounds


def _sums(values: Array, weights: Array, hidden: Array, recurrent: Array) -> Array:
    return matrix_product(values, weights.T) + matrix_product(hidden, recurrent.T)


@frozen(eq=False, kw_only=False)
class _Pair:
    values: Array
    error: Array


def _product_of(one: _Pair, other: _Pair) -> _Pair:
    error = np.abs(one.values) * other.error + np.abs(other.values) * one.error + one.error * other.error
    return _Pair(one.values * other.values, error)


def _bound(evaluation: Evaluation) -> list[Array]:
    """Return that of the outputs and states, step by step; weights must not be off."""
    arrays, errors, descriptor = evaluation.inputs, evaluation.errors, evaluation.descriptor
    if any(error is not None for index, error in enumerate(errors) if index not in {0, HIDDEN, CELL}):
        return known_inputs(evaluation)
    advance, judge = _float_step(descriptor, arrays), _step_bound(evaluation)
    data, hidden, cell = (
        _Pair(array.astype(np.float64), or_zeros(errors[index], array))
        for index, array in ((index, required_array(arrays, index)) for index in (0, HIDDEN, CELL))
    )
    steps = [each if descriptor.time_major else each.swapaxes(0, 1) for each in (data.values, data.error)]
    outputs = []
    with np.errstate(all="ignore"):
        for values, error in zip(*steps, strict=True):
            moved_hidden, moved_cell = judge(_Pair(values, error), hidden, cell)
            next_hidden, next_cell = advance(values, hidden.values.astype(np.float32), cell.values.astype(np.float32))
            hidden = _Pair(next_hidden.astype(np.float64), moved_hidden)
            cell = _Pair(next_cell.astype(np.float64), moved_cell)
            outputs.append(moved_hidden)
    stacked = np.stack(outputs)
    return [stacked if descriptor.time_major else stacked.swapaxes(0, 1), hidden.error, cell.error]


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _integer_step(descriptor: LstmDescriptor, operands: Operands, arrays: Arrays) -> _Step:
    weights, recurrent, bias = _joined(arrays, np.int64)
    scaling, data, state = LstmScaling.of(operands, descriptor), operands.source, operands.input(HIDDEN)
    position = cell_position(cell_power(operands) + 12)

    def gates(products: Array, factors: Sequence[Factor]) -> Array:
        multipliers, shifts = (np.repeat(each, state.shape[1]) for each in factor_arrays(factors))
        if data.dtype is DataType.INT16:
            return saturate_16(multiply_wide_by_quantized_multiplier(products, multipliers, shifts))
        return saturate_16(multiply_by_quantized_multiplier(wrap_int32(products), multipliers, shifts))

    def advance(values: Array, hidden: Array, cell: Array) -> tuple[Array, Array]:
        given = matrix_product(values.astype(np.int64) - data.zero_point, weights.T) + bias
        kept = matrix_product(hidden.astype(np.int64) - state.zero_point, recurrent.T)
        sums = gates(given, scaling.input_factors) + gates(kept, scaling.recurrent_factors)
        take, forget, new, shown = np.split(saturate_16(sums), 4, axis=1)
        moved = saturate_16(
            _product(logistic_s16(forget, 3, 0), cell, scaling.forget)
            + _product(logistic_s16(take, 3, 0), tanh_s16(new, 3, 0), scaling.update)
        )
        if scaling.clip >= 0:
            moved = np.clip(moved, -scaling.clip, scaling.clip)
        bent = tanh_s16(moved, *position)
        raised = scaling.hidden.apply(bent.astype(np.int64) * logistic_s16(shown, 3, 0))
        return saturated(wrap_int32(raised + state.zero_point), state.dtype.numpy), moved.astype(np.int16)

    return advance


def cell_position(shift: int) -> tuple[int, int]:
    """Return the multiplier and the right shift that bring a cell state of scale 2^(shift - 12) to the table."""
    return (3 << shift, 0) if shift >= 0 else (3, -shift)


def _product(first: Array, second: Array, factor: Factor) -> Array:
    return saturate_16(factor.apply(first.astype(np.int64) * second))


def _macs(_: LstmDescriptor, operands: Operands) -> int:
    data, units = operands.source, operands.input(HIDDEN).shape[1]
    return 4 * math.prod(data.shape[:2]) * units * (data.shape[2] + units)


def _sample(sample: LayerSample) -> Descriptor:
    dice, dtype = sample.dice, sample.dtype
    batches, steps, depth, units = dice.choice([1, 1, 2]), dice.randint(1, 5), dice.randint(1, 9), dice.randint(1, 7)
    time_major = dice.random() < 0.4
    data = sample.take((steps, batches, depth) if time_major else (batches, steps, depth))
    floats = dtype.is_float
    scale = float(np.float32(dice.choice([0.003, 0.01, 0.02])))
    weights = None if floats else Quantization.of(scale)
    for name, width in (("weights", depth), ("recurrent", units)):
        for gate in GATES:
            array = sample.array((units, width), dtype if floats else DataType.INT8)
            sample.hold(f"{name}_{gate}", array / 2 if floats else array, weights)
    wide = DataType.INT64 if dtype is DataType.INT16 else DataType.INT32
    summed = None if data.quantization is None else Quantization.of(data.scale * scale)
    for gate in GATES:
        sample.hold(f"bias_{gate}", sample.array((units,), dtype if floats else wide, -3000, 3000), summed)
    hidden = sample.quantization(dtype, 2.0**-15 if dtype is DataType.INT16 else 1 / 128)
    cell = None if floats else Quantization.of(2.0 ** dice.choice([-12, -11, -10, -13]))
    cell_type = dtype if floats else DataType.INT16
    for name, kind, quantization in (("hidden", dtype, hidden), ("cell", cell_type, cell)):
        sample.add(name, (batches, units), kind, quantization)
    sample.absent = ABSENT - {*range(CELL, 24)}
    sample.output = hidden
    sample.further = [(dtype, hidden), (cell_type, cell)]
    return LstmDescriptor(time_major=time_major, cell_clip=dice.choice([0.0, 0.0, 0.5, 10.0]))


UNIDIRECTIONAL_SEQUENCE_LSTM = Operator(
    descriptor=LstmDescriptor,
    type=LayerType.UNIDIRECTIONAL_SEQUENCE_LSTM,
    shapes=_infer,
    check=_check,
    check_values=_check_values,
    kernel=_kernel,
    bound=of_floats(_bound),
    macs=_macs,
    sample=_sample,
)
