# SPDX-License-Identifier: Apache-2.0
"""ADD_N: the sum of two or more tensors of one shape."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, Descriptor, LayerType
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.error_bound import monotone, of_floats, sums
from ferrule.operators.arithmetic.fixed_point import Int64Array, quantize_multiplier
from ferrule.operators.elementwise.stored_binary import Result, result_of
from ferrule.operators.movement.checks import check_activations, check_quantisations, check_types, same_shapes
from ferrule.operators.operator import Arrays, Operands, Operator, Shapes, required_arrays
from ferrule.operators.sample import LayerSample

_TYPES = frozenset({DataType.FLOAT32, DataType.INT8})
_MOST_INT8 = 15
"""The most int8 inputs whose scaled sum fits into 32 bits."""
FRACTION_BITS = 19
"""Fractional bits of the sum of int8 values."""


@frozen
class AddNDescriptor(Descriptor):
    """Two or more inputs of one shape, one output."""


@frozen
class IntegerSum:
    """The arithmetic of ADD_N of int8; as in TensorFlow Lite Micro, the sum starts with minus the zero point."""

    zero_point: int
    result: Result

    def apply(self, stored: Sequence[Int64Array]) -> Int64Array:
        """Return the stored sum of stored values."""
        total = sum((each - self.zero_point for each in stored), np.full_like(stored[0], -self.zero_point))
        return self.result.apply(total << FRACTION_BITS)


def infer(_: AddNDescriptor, operands: Operands) -> Shapes:
    """Return the shape of the inputs, which all have the same."""
    return (same_shapes(operands)[0].shape,)


def integer_sum(operands: Operands) -> IntegerSum:
    """Return the arithmetic of an int8 layer; UnsupportedError if the output's scale is too small."""
    source, output = operands.ends
    multiplier, shift = quantize_multiplier(2 * source.scale / ((1 << (FRACTION_BITS + 1)) * output.scale))
    if shift > 0:
        raise UnsupportedError(f"tensor '{output.name}' has scale {output.scale:g}, too small for the sum")
    return IntegerSum(zero_point=source.zero_point, result=result_of(output, Activation.NONE, multiplier, shift))


def check(_: AddNDescriptor, operands: Operands) -> None:
    """Refuse types and quantisations that TensorFlow Lite Micro's kernel does not support."""
    check_types(operands, _TYPES)
    count = len(operands.inputs)
    if count < 2:
        raise UnsupportedError(f"it has {count} inputs, expected at least 2")
    if operands.output.dtype.is_float:
        return
    check_quantisations(Operands(operands.inputs))
    check_activations(*operands.ends)
    if count > _MOST_INT8:
        raise UnsupportedError(f"it has {count} inputs, ADD_N of int8 takes at most {_MOST_INT8}")
    integer_sum(operands)


def kernel(_: AddNDescriptor, operands: Operands, arrays: Arrays) -> list[Array]:
    """Return the sum, added up in the order of the inputs."""
    given = required_arrays(arrays, range(len(arrays)))
    if operands.output.dtype is DataType.INT8:
        return [integer_sum(operands).apply([array.astype(np.int64) for array in given]).astype(np.int8)]
    total = np.zeros_like(given[0])
    with np.errstate(all="ignore"):
        for array in given:
            total = total + array
    return [total]


def _terms(_: AddNDescriptor, operands: Operands) -> int:
    return len(operands.inputs)


def _sample(sample: LayerSample) -> Descriptor:
    shape, own = sample.shape(), sample.quantization(sample.dtype)
    for _ in range(sample.dice.randint(2, 4)):
        sample.take(shape, own)
    sample.output = sample.quantization(sample.dtype, None if own is None else 1.5 * own.scale)
    return AddNDescriptor()


ADD_N = Operator(
    descriptor=AddNDescriptor,
    type=LayerType.ADD_N,
    elementwise=True,
    shapes=infer,
    check=check,
    kernel=kernel,
    bound=of_floats(sums(_terms), monotone),
    sample=_sample,
)
