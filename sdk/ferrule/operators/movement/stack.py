# SPDX-License-Identifier: Apache-2.0
"""PACK and UNPACK, which join and split tensors along a new axis."""

from __future__ import annotations

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import ModelError
from ferrule.graph import Array, DataType, Descriptor, LayerType
from ferrule.operators.movement.checks import (
    MOVABLE,
    check_axes,
    check_axis,
    check_count,
    check_types,
    movable,
    same_shapes,
)
from ferrule.operators.operator import Arrays, Operands, Operator, Shapes, required_array, required_arrays
from ferrule.operators.sample import LayerSample

_PACK_TYPES = MOVABLE - {DataType.BOOL}
_UNPACK_TYPES = MOVABLE - {DataType.INT64}
_MAX_AXES = 6


@frozen
class PackDescriptor(Descriptor):
    """One or more inputs of the same shape, one output."""

    axis: int
    """Index of the new axis in the output, non-negative."""


@frozen
class UnpackDescriptor(Descriptor):
    """One input, one output per index of the axis."""

    axis: int
    """The axis that is removed, non-negative."""


def infer_pack(descriptor: PackDescriptor, operands: Operands) -> Shapes:
    """Return the inputs' shape with an additional axis, whose extent is the number of inputs."""
    source, axis = operands.source, descriptor.axis
    shape = source.shape
    if not 0 <= axis <= len(shape):
        raise ModelError(
            f"the new axis is {axis}, expected 0 to {len(shape)} as tensor '{source.name}' has shape {list(shape)}"
        )
    return ((*shape[:axis], len(same_shapes(operands)), *shape[axis:]),)


def infer_unpack(descriptor: UnpackDescriptor, operands: Operands) -> Shapes:
    """Return one shape per index of the axis, without the axis."""
    source = operands.source
    shape, axis = source.shape, descriptor.axis
    check_axis(source, axis)
    return ((*shape[:axis], *shape[axis + 1 :]),) * shape[axis]


def check_unpack(descriptor: UnpackDescriptor, operands: Operands) -> None:
    """Refuse types without a reference kernel, and a wrong number of outputs."""
    check_types(operands, _UNPACK_TYPES)
    source = operands.source
    check_axes(source, _MAX_AXES)
    check_count(operands, source.shape[descriptor.axis])


def compute_pack(descriptor: PackDescriptor, _: Operands, arrays: Arrays) -> list[Array]:
    """Return the inputs joined along the new axis."""
    return [np.stack(required_arrays(arrays, range(len(arrays))), axis=descriptor.axis)]


def compute_unpack(descriptor: UnpackDescriptor, operands: Operands, arrays: Arrays) -> list[Array]:
    """Return the parts of the input, without the axis."""
    data = required_array(arrays, 0)
    return [np.array(data.take(index, axis=descriptor.axis), order="C") for index in range(len(operands.outputs))]


def _sample_pack(sample: LayerSample) -> Descriptor:
    shape = sample.shape(3)
    sample.keep(shape)
    for _ in range(sample.dice.randint(0, 3)):
        sample.take(shape, sample.output)
    return PackDescriptor(axis=sample.dice.randint(0, len(shape)))


def _sample_unpack(sample: LayerSample) -> Descriptor:
    shape = sample.shape()
    sample.keep(shape)
    return UnpackDescriptor(axis=sample.dice.randint(0, len(shape) - 1))


PACK = Operator(
    descriptor=PackDescriptor,
    type=LayerType.PACK,
    moves=True,
    shapes=infer_pack,
    check=movable(_PACK_TYPES, axes=_MAX_AXES, of_output=True),
    kernel=compute_pack,
    sample=_sample_pack,
)
UNPACK = Operator(
    descriptor=UnpackDescriptor,
    type=LayerType.UNPACK,
    moves=True,
    shapes=infer_unpack,
    check=check_unpack,
    kernel=compute_unpack,
    sample=_sample_unpack,
)
