# SPDX-License-Identifier: Apache-2.0
"""DIV, FLOOR_DIV and FLOOR_MOD, with broadcasting."""

from __future__ import annotations

from functools import partial

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, LayerType
from ferrule.operators.arithmetic import fixed_point_functions as functions
from ferrule.operators.arithmetic.broadcast import infer_broadcast
from ferrule.operators.arithmetic.error_bound import known_inputs, rounded
from ferrule.operators.arithmetic.fixed_point import (
    Int64Array,
    quantize_multiplier,
    rounding_divide_by_pot,
    saturating_rounding_doubling_high_mul,
    wrap_int32,
)
from ferrule.operators.arithmetic.onnx_real import computed_as_real
from ferrule.operators.elementwise.binary import (
    BinaryDescriptor,
    arithmetic_check,
    arithmetic_kernel,
    sample_arithmetic,
)
from ferrule.operators.elementwise.functions_of_two import ElementwiseBinaryDescriptor, function_of_two
from ferrule.operators.elementwise.stored_binary import Result, result_of
from ferrule.operators.operator import Evaluation, Operands, Operator, required_array

_DIV_TYPES = frozenset({DataType.FLOAT32, DataType.INT8, DataType.INT32})
_FLOORED_TYPES = frozenset({DataType.FLOAT32, DataType.INT32})
_INT32_MIN = -(1 << 31)
_LEAST_SHIFT, _MOST_SHIFT = -24, 23
"""The shifts of the factor for which the total shift of a quotient is 0 to 63, to the right."""


@frozen
class FlooredDescriptor(ElementwiseBinaryDescriptor):
    """The descriptor of FLOOR_DIV and FLOOR_MOD; digests of networks include its name."""


@frozen
class Quotient:
    """The arithmetic of DIV of int8: a reciprocal by Newton's method, and a total shift.

    A total shift of more than 31 bits is that of TensorFlow Lite Micro on a processor whose shifts are modulo 32.
    """

    first_offset: int
    second_offset: int
    result: Result

    def apply(self, first: Int64Array, second: Int64Array) -> Int64Array:
        """Return the stored quotients of stored values with broadcastable shapes; x / 0 is a limit, 0 / 0 is 0."""
        divisor = second + self.second_offset
        value = np.where(divisor < 0, -1, 1) * (first + self.first_offset)
        inverse, inverse_shift = functions.reciprocal(np.maximum(np.abs(divisor), 1), 31)
        headroom = _leading_sign_bits(value)
        quotient = saturating_rounding_doubling_high_mul(value << headroom, inverse)
        right = inverse_shift + headroom - self.result.shift
        scaled = saturating_rounding_doubling_high_mul(quotient, self.result.multiplier)
        beyond = (scaled >> (right & 31)) + (scaled > np.where(scaled < 0, 0, -1))
        moved = np.where(right > 31, beyond, rounding_divide_by_pot(scaled, np.clip(right, 0, 31)))
        by_zero = np.sign(value) << 16  # beyond the limits
        stored = wrap_int32(np.where(divisor == 0, by_zero, moved) + self.result.zero_point)
        return np.clip(stored, self.result.low, self.result.high)


def quotient_of(descriptor: BinaryDescriptor, operands: Operands) -> Quotient:
    """Return the arithmetic of an int8 DIV; UnsupportedError if its scales are too far apart."""
    first, second, output = *operands.pair, operands.output
    real = first.scale / (second.scale * output.scale)
    multiplier, shift = quantize_multiplier(real)
    if not _LEAST_SHIFT <= shift <= _MOST_SHIFT:
        raise UnsupportedError(
            f"the quotient's scale over that of '{output.name}' is {real:g}, expected 2^{_LEAST_SHIFT - 1} to "
            f"2^{_MOST_SHIFT}"
        )
    return Quotient(
        first_offset=-first.zero_point,
        second_offset=-second.zero_point,
        result=result_of(output, descriptor.activation, multiplier, shift),
    )


def _leading_sign_bits(values: Int64Array) -> Int64Array:
    positive = functions.leading_zeros(np.maximum(values, 1)) - 1
    negative = functions.leading_zeros(np.maximum(-2 * values - 1, 1))
    return np.where(values == 0, 31, np.where(values < 0, negative, positive))


def _divide(first: Array, second: Array) -> Array:
    return _cut_quotient(first, second) if first.dtype == np.int32 else np.asarray(first / second)


def _cut_quotient(first: Array, second: Array) -> Array:
    """Return int32 quotients cut towards zero; a division by 0 is 0, and -2^31 / -1 wraps."""
    wide, divisor = first.astype(np.int64), second.astype(np.int64)
    quotient = np.abs(wide) // np.maximum(np.abs(divisor), 1)
    signed = np.where((wide < 0) != (divisor < 0), -quotient, quotient)
    return np.where(divisor == 0, 0, signed).astype(np.int32)


def _floor_div(first: Array, second: Array) -> Array:
    """Return quotients rounded down; floats are divided in float64, as in TensorFlow Lite Micro."""
    if first.dtype == np.int32:
        quotient = first.astype(np.int64) // np.where(second == 0, 1, second)
        return np.where(second == 0, 0, quotient).astype(np.int32)
    return np.floor(first.astype(np.float64) / second.astype(np.float64)).astype(np.float32)


def _floor_mod(first: Array, second: Array) -> Array:
    """Return remainders with the sign of the divisor."""
    if first.dtype == np.int32:
        remainder = first.astype(np.int64) % np.where(second == 0, 1, second)
        return np.where(second == 0, 0, remainder).astype(np.int32)
    remainder = np.fmod(first, second)
    return np.where((remainder != 0) & ((second < 0) != (remainder < 0)), remainder + second, remainder)


def _bound(evaluation: Evaluation) -> list[Array]:
    """Return that of the quotient; there is none where the divisor may be 0."""
    (found,) = rounded()(evaluation)
    error = evaluation.errors[1]
    if error is None:
        return [found]
    divisor = required_array(evaluation.inputs, 1).astype(np.float64)
    info = evaluation.operands.input(1)
    zero_point = 0 if info.quantization is None else info.zero_point
    return [np.where(np.abs(divisor - zero_point) <= error, np.inf, found)]


DIV = computed_as_real(
    Operator(
        descriptor=BinaryDescriptor,
        type=LayerType.DIV,
        elementwise=True,
        shapes=infer_broadcast,
        check=arithmetic_check(LayerType.DIV, _DIV_TYPES, quotient_of),
        kernel=arithmetic_kernel(_divide, quotient_of),
        bound=_bound,
        sample=partial(sample_arithmetic, None),
    )
)
FLOOR_DIV = function_of_two(LayerType.FLOOR_DIV, _floor_div, _FLOORED_TYPES, known_inputs, FlooredDescriptor)
FLOOR_MOD = function_of_two(LayerType.FLOOR_MOD, _floor_mod, _FLOORED_TYPES, known_inputs, FlooredDescriptor)
