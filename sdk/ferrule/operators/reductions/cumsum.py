# SPDX-License-Identifier: Apache-2.0
"""CUMSUM: sums of the elements along an axis, up to each element."""

from __future__ import annotations

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import ModelError, UnsupportedError
from ferrule.graph import Array, DataType, Descriptor, LayerType
from ferrule.graph.real_values import ieee_floats, saturated
from ferrule.operators.arithmetic.error_bound import monotone, of_floats, sums
from ferrule.operators.arithmetic.fixed_point import Factor, quantize_multiplier, wrap_int32
from ferrule.operators.movement.checks import check_per_tensor, check_same_type
from ferrule.operators.operator import Operands, Operator, Shapes, of_one
from ferrule.operators.sample import LayerSample

FRACTION_BITS = 19
"""The bits behind the point of the sums of int8; they have 32 bits, and wrap."""


@frozen
class CumsumDescriptor(Descriptor):
    """One input, one output of the same shape."""

    axis: int
    exclusive: bool = False
    """Whether a sum leaves out the element at its own position."""
    reverse: bool = False
    """Whether the sums begin at the end of the axis."""


def _infer(descriptor: CumsumDescriptor, operands: Operands) -> Shapes:
    source = operands.source
    if not 0 <= descriptor.axis < len(source.shape):
        raise ModelError(
            f"tensor '{source.name}' of shape {list(source.shape)} is added up along axis {descriptor.axis}, "
            f"expected one from 0 to {len(source.shape) - 1}"
        )
    return (source.shape,)


def _check(_: CumsumDescriptor, operands: Operands) -> None:
    check_same_type("CUMSUM", operands, (DataType.FLOAT32, DataType.INT8))
    if not operands.output.dtype.is_float:
        check_per_tensor(operands.source, operands.output)
        cumsum_factor(operands)


def cumsum_factor(operands: Operands) -> Factor:
    """Return the factor that scales the sums of int8 to the output; UnsupportedError if it is not below 1."""
    source, output = operands.ends
    multiplier, shift = quantize_multiplier(source.scale / (output.scale * (1 << FRACTION_BITS)))
    if shift > 0:
        raise UnsupportedError(
            f"CUMSUM cannot convert tensor '{source.name}' of scale {source.scale:g} to scale {output.scale:g} of "
            f"'{output.name}': their quotient must be below 2^{FRACTION_BITS}"
        )
    return Factor(multiplier=multiplier, shift=shift)


def _kernel(descriptor: CumsumDescriptor, operands: Operands, data: Array) -> Array:
    """Add up from a first term: 0 for float32, and minus the zero point for int8, as the reference kernel does."""
    source, output, axis = operands.source, operands.output, descriptor.axis
    is_float = source.dtype.is_float
    terms = data if is_float else (data.astype(np.int64) - source.zero_point) << FRACTION_BITS
    first = 0 if is_float else -source.zero_point << FRACTION_BITS
    start = np.full_like(np.take(terms, [0], axis), first)
    ordered = np.concatenate([start, np.flip(terms, axis) if descriptor.reverse else terms], axis)
    with ieee_floats():
        sums = np.cumsum(ordered, axis, dtype=ordered.dtype)  # of float32: one addition after the other
    chosen = np.delete(sums, -1 if descriptor.exclusive else 0, axis)
    sums = np.flip(chosen, axis) if descriptor.reverse else chosen
    if is_float:
        return np.ascontiguousarray(sums)
    factor = cumsum_factor(operands)
    return saturated(wrap_int32(factor.apply(wrap_int32(sums)) + output.zero_point), np.int8)


def _terms(descriptor: CumsumDescriptor, operands: Operands) -> int:
    return operands.source.shape[descriptor.axis]


def _sample(sample: LayerSample) -> Descriptor:
    shape, dice = sample.shape(), sample.dice
    source = sample.take(shape)
    if source.quantization is not None:
        sample.output = sample.quantization(sample.dtype, source.scale * dice.choice([0.5, 1, 3]))
    return CumsumDescriptor(axis=dice.randrange(len(shape)), exclusive=dice.random() < 0.5, reverse=dice.random() < 0.5)


CUMSUM = Operator(
    descriptor=CumsumDescriptor,
    type=LayerType.CUMSUM,
    shapes=_infer,
    check=_check,
    kernel=of_one(_kernel),
    bound=of_floats(sums(_terms), monotone),
    sample=_sample,
)
