# SPDX-License-Identifier: Apache-2.0
"""SELECT_V2: elements of one of two tensors, with broadcasting."""

from __future__ import annotations

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import ModelError
from ferrule.graph import Array, DataType, Descriptor, LayerType
from ferrule.operators.arithmetic.error_bound import known
from ferrule.operators.movement.checks import MOVABLE, check_axes, check_quantisations, check_types, expect_type
from ferrule.operators.operator import Arrays, Operands, Operator, Shapes, required_arrays
from ferrule.operators.sample import LayerSample

MAX_AXES = 5


@frozen
class SelectV2Descriptor(Descriptor):
    """Inputs: a bool condition, the elements where it is true, and those where it is false. One output."""


def infer(_: SelectV2Descriptor, operands: Operands) -> Shapes:
    """Return the shape that all inputs broadcast to."""
    infos = operands.required(range(3))
    try:
        return (np.broadcast_shapes(*(info.shape for info in infos)),)
    except ValueError:
        shapes = ", ".join(f"'{info.name}' {list(info.shape)}" for info in infos)
        raise ModelError(f"its inputs do not broadcast to one shape: {shapes}") from None


def check(_: SelectV2Descriptor, operands: Operands) -> None:
    """Refuse a condition that is not bool, and tensors of different types or quantisations."""
    expect_type(operands.source, DataType.BOOL)
    moved = Operands((operands.input(1), operands.input(2)), operands.outputs)
    check_types(moved, MOVABLE)
    check_quantisations(moved)
    check_axes(operands.output, MAX_AXES)


def kernel(_: SelectV2Descriptor, __: Operands, arrays: Arrays) -> list[Array]:
    """Return the elements that the condition selects."""
    return [np.where(*required_arrays(arrays, range(3)))]


def _sample(sample: LayerSample) -> Descriptor:
    shape = sample.shape()
    sample.add("input_0", shape[-1:], DataType.BOOL)
    sample.output = sample.quantization(sample.dtype)
    sample.take(shape, sample.output)
    sample.take(tuple(sample.dice.choice([extent, 1]) for extent in shape), sample.output)
    sample.output_type = sample.dtype
    return SelectV2Descriptor()


SELECT_V2 = Operator(
    descriptor=SelectV2Descriptor,
    type=LayerType.SELECT_V2,
    elementwise=True,
    shapes=infer,
    check=check,
    kernel=kernel,
    bound=known(0),
    sample=_sample,
)
