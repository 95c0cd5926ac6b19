# SPDX-License-Identifier: Apache-2.0
"""TRANSPOSE."""

from __future__ import annotations

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import ModelError
from ferrule.graph import Array, Descriptor, LayerType
from ferrule.operators.movement.checks import movable
from ferrule.operators.operator import Operands, Operator, Shapes, of_one
from ferrule.operators.sample import LayerSample, sample_unary

_MAX_AXES = 6


@frozen
class TransposeDescriptor(Descriptor):
    """One input, one output."""

    permutation: tuple[int, ...]
    """Axis i of the output is axis permutation[i] of the input."""


def infer(descriptor: TransposeDescriptor, operands: Operands) -> Shapes:
    """Return the input's extents in the new order."""
    source = operands.source
    if sorted(descriptor.permutation) != list(range(len(source.shape))):
        raise ModelError(
            f"the permutation is {list(descriptor.permutation)}, expected each axis of tensor '{source.name}' of shape "
            f"{list(source.shape)} once"
        )
    return (tuple(source.shape[axis] for axis in descriptor.permutation),)


def kernel(descriptor: TransposeDescriptor, _: Operands, data: Array) -> Array:
    """Return the input with its axes in the new order."""
    return np.ascontiguousarray(np.transpose(data, descriptor.permutation))


def _keeps_order(descriptor: TransposeDescriptor, _: Operands) -> bool:
    return descriptor.permutation == tuple(range(len(descriptor.permutation)))


def _sample(sample: LayerSample) -> Descriptor:
    rank = len(sample.inputs[0].shape)
    return TransposeDescriptor(permutation=tuple(sample.dice.sample(range(rank), rank)))


TRANSPOSE = Operator(
    descriptor=TransposeDescriptor,
    type=LayerType.TRANSPOSE,
    moves=True,
    is_identity=_keeps_order,
    shapes=infer,
    check=movable(axes=_MAX_AXES),
    kernel=of_one(kernel),
    sample=sample_unary(_sample),
)
