# SPDX-License-Identifier: Apache-2.0
"""Functions of two tensors without parameters, with broadcasting; MAXIMUM and MINIMUM keep the quantisation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ferrule._frozen import frozen
from ferrule.graph import Array, DataType, Descriptor, LayerType
from ferrule.operators.arithmetic.broadcast import check_broadcast, infer_broadcast
from ferrule.operators.elementwise.binary import ARITHMETIC_TYPES, arithmetic_check, arithmetic_kernel, sample_pair
from ferrule.operators.movement.checks import check_quantisations
from ferrule.operators.operator import Bound, Operands, Operator
from ferrule.operators.sample import LayerSample


@frozen
class ExtremumDescriptor(Descriptor):
    """Two inputs that broadcast by numpy's rules, one output; for MAXIMUM and MINIMUM."""


@frozen
class ElementwiseBinaryDescriptor(Descriptor):
    """Two inputs that broadcast by numpy's rules, one output; for functions of stored values without parameters."""


@frozen
class BitwiseXorDescriptor(ElementwiseBinaryDescriptor):
    """The descriptor of BITWISE_XOR; digests of networks include its name."""


def _check_extremum(_: ExtremumDescriptor, operands: Operands) -> None:
    check_broadcast(operands, ARITHMETIC_TYPES)
    check_quantisations(operands)


def function_of_two(
    layer_type: LayerType,
    function: Callable[[Array, Array], Any],
    types: frozenset[DataType],
    bound: Bound | None = None,
    descriptor: type[ElementwiseBinaryDescriptor] = ElementwiseBinaryDescriptor,
) -> Operator:
    """Return the operator row for a numpy function of stored values, whatever their quantisations."""
    return Operator(
        descriptor=descriptor,
        type=layer_type,
        elementwise=True,
        shapes=infer_broadcast,
        check=arithmetic_check(layer_type, types),
        kernel=arithmetic_kernel(function),
        bound=bound,
        sample=partial(_sample_function, descriptor()),
    )


def _extremum(layer_type: LayerType, takes_first: Callable[[Array, Array], Array]) -> Operator:
    # If either value is NaN, the result is the second, as in the reference kernels.
    return Operator(
        descriptor=ExtremumDescriptor,
        type=layer_type,
        elementwise=True,
        shapes=infer_broadcast,
        check=_check_extremum,
        kernel=arithmetic_kernel(lambda first, second: np.where(takes_first(first, second), first, second)),
        sample=_sample_extremum,
    )


def _sample_extremum(sample: LayerSample) -> Descriptor:
    sample.output = sample.quantization(sample.dtype)
    sample_pair(sample, sample.output)
    return ExtremumDescriptor()


def _sample_function(descriptor: Descriptor, sample: LayerSample) -> Descriptor:
    sample_pair(sample, None)
    sample.output = sample.quantization(sample.dtype)
    return descriptor


def _right_shift(first: Array, second: Array) -> Array:
    """Return first >> second, for 0 to 31 bits: a shift beyond is the nearest of these."""
    return np.asarray(first >> np.clip(second, 0, 31))


MAXIMUM = _extremum(LayerType.MAXIMUM, np.greater)
MINIMUM = _extremum(LayerType.MINIMUM, np.less)
BITWISE_XOR = function_of_two(
    LayerType.BITWISE_XOR, np.bitwise_xor, frozenset({DataType.INT32}), descriptor=BitwiseXorDescriptor
)
RIGHT_SHIFT = function_of_two(LayerType.RIGHT_SHIFT, _right_shift, frozenset({DataType.INT32}))
