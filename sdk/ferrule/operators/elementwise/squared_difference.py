# SPDX-License-Identifier: Apache-2.0
"""SQUARED_DIFFERENCE, with broadcasting."""

from __future__ import annotations

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import UnsupportedError
from ferrule.graph import DataType, Descriptor, LayerType
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.broadcast import infer_broadcast
from ferrule.operators.arithmetic.error_bound import rounded
from ferrule.operators.arithmetic.fixed_point import MAX_SHIFT, Int64Array, quantize_multiplier
from ferrule.operators.elementwise.binary import arithmetic_check, arithmetic_kernel, sample_pair
from ferrule.operators.elementwise.stored_binary import Result, Term, result_of, terms_of
from ferrule.operators.operator import Operands, Operator
from ferrule.operators.sample import LayerSample

_TYPES = frozenset({DataType.FLOAT32, DataType.INT8, DataType.INT16, DataType.INT32})
_LEFT_SHIFT = {DataType.INT8: 7, DataType.INT16: 0}


@frozen
class SquaredDifferenceDescriptor(Descriptor):
    """Two inputs that broadcast by numpy's rules, one output."""


@frozen
class SquaredDifference:
    """The arithmetic of SQUARED_DIFFERENCE of int8 and int16; the square fits into 32 bits."""

    first: Term
    second: Term
    result: Result

    def apply(self, first: Int64Array, second: Int64Array) -> Int64Array:
        """Return the stored results for stored values of broadcastable shapes."""
        return self.result.apply(np.square(self.first.apply(first) - self.second.apply(second)))


def squared_difference_of(operands: Operands) -> SquaredDifference:
    """Return the arithmetic of a quantised layer; UnsupportedError if its scales are too far apart."""
    output = operands.output
    left_shift = _LEFT_SHIFT[output.dtype]
    first, second, twice_max = terms_of(operands, left_shift)
    multiplier, shift = quantize_multiplier(twice_max * twice_max / ((1 << 2 * left_shift) * output.scale))
    if shift > MAX_SHIFT:
        raise UnsupportedError(f"tensor '{output.name}' has scale {output.scale:g}, too small for the squares")
    return SquaredDifference(first=first, second=second, result=result_of(output, Activation.NONE, multiplier, shift))


def _combination(_: SquaredDifferenceDescriptor, operands: Operands) -> SquaredDifference:
    return squared_difference_of(operands)


def _sample(sample: LayerSample) -> Descriptor:
    sample_pair(sample, None)
    sample.output = sample.quantization(sample.dtype, 0.9)
    return SquaredDifferenceDescriptor()


SQUARED_DIFFERENCE = Operator(
    descriptor=SquaredDifferenceDescriptor,
    type=LayerType.SQUARED_DIFFERENCE,
    elementwise=True,
    shapes=infer_broadcast,
    check=arithmetic_check(LayerType.SQUARED_DIFFERENCE, _TYPES, _combination),
    kernel=arithmetic_kernel(lambda first, second: np.square(first - second), _combination),
    bound=rounded(),
    sample=_sample,
)
