# SPDX-License-Identifier: Apache-2.0
"""CONCATENATION, SPLIT and SPLIT_V."""

from __future__ import annotations

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import ModelError
from ferrule.graph import Array, DataType, Descriptor, LayerType, Shape
from ferrule.operators.movement.checks import (
    MOVABLE,
    check_axes,
    check_axis,
    check_count,
    check_quantisations,
    check_types,
)
from ferrule.operators.operator import Arrays, Operands, Operator, Shapes, required_array, required_arrays
from ferrule.operators.sample import LayerSample

_SPLIT_TYPES = MOVABLE - {DataType.BOOL}
_MAX_AXES = 6


@frozen
class ConcatenationDescriptor(Descriptor):
    """One or more inputs, one output."""

    axis: int
    """The axis, non-negative."""


@frozen
class SplitDescriptor(Descriptor):
    """One input, `splits` outputs of equal extent along the axis."""

    axis: int
    """The axis, non-negative."""
    splits: int


@frozen
class SplitVDescriptor(Descriptor):
    """One input, one output per size."""

    axis: int
    """The axis, non-negative."""
    sizes: tuple[int, ...]
    """The extent of each output along the axis; their sum is the input's extent."""


def _with_extent(shape: Shape, axis: int, extent: int) -> Shape:
    return (*shape[:axis], extent, *shape[axis + 1 :])


def infer_concatenation(descriptor: ConcatenationDescriptor, operands: Operands) -> Shapes:
    """Return the shape of the inputs concatenated along the axis."""
    infos = operands.required(range(max(len(operands.inputs), 1)))
    shape, axis = infos[0].shape, descriptor.axis
    check_axis(infos[0], axis)
    for info in infos[1:]:
        if len(info.shape) != len(shape) or any(
            mine != other for index, (mine, other) in enumerate(zip(info.shape, shape, strict=True)) if index != axis
        ):
            raise ModelError(
                f"tensor '{info.name}' has shape {list(info.shape)}, expected {list(shape)} as '{infos[0].name}' has, "
                f"apart from axis {axis}"
            )
    return (_with_extent(shape, axis, sum(info.shape[axis] for info in infos)),)


def check_concatenation(_: ConcatenationDescriptor, operands: Operands) -> None:
    """Refuse layers that TensorFlow Lite Micro refuses, in particular inputs that would need requantisation."""
    check_types(operands, MOVABLE)
    check_quantisations(operands)
    check_axes(operands.output, _MAX_AXES)


def compute_concatenation(descriptor: ConcatenationDescriptor, _: Operands, arrays: Arrays) -> list[Array]:
    """Return the inputs concatenated along the axis."""
    parts = required_arrays(arrays, range(len(arrays)))
    return [np.concatenate(parts, axis=descriptor.axis)]


def infer_split(descriptor: SplitDescriptor, operands: Operands) -> Shapes:
    """Return one shape per output."""
    source = operands.source
    shape, axis, splits = source.shape, descriptor.axis, descriptor.splits
    if not 0 <= axis < len(shape) or splits < 1 or shape[axis] % splits:
        raise ModelError(
            f"tensor '{source.name}' of shape {list(shape)} does not split into {splits} equal parts along axis {axis}"
        )
    return (_with_extent(shape, axis, shape[axis] // splits),) * splits


def infer_split_v(descriptor: SplitVDescriptor, operands: Operands) -> Shapes:
    """Return one shape per size."""
    source = operands.source
    shape, axis, sizes = source.shape, descriptor.axis, descriptor.sizes
    if not 0 <= axis < len(shape) or min(sizes, default=0) < 1 or sum(sizes) != shape[axis]:
        raise ModelError(
            f"tensor '{source.name}' of shape {list(shape)} does not split into parts of {list(sizes)} "
            f"elements along axis {axis}"
        )
    return tuple(_with_extent(shape, axis, size) for size in sizes)


def check_split(descriptor: SplitDescriptor | SplitVDescriptor, operands: Operands) -> None:
    """Refuse types and ranks that no reference kernel supports, and a wrong number of outputs."""
    check_types(operands, _SPLIT_TYPES)
    check_axes(operands.source, _MAX_AXES)
    check_count(operands, descriptor.splits if isinstance(descriptor, SplitDescriptor) else len(descriptor.sizes))


def compute_split(descriptor: SplitDescriptor | SplitVDescriptor, operands: Operands, arrays: Arrays) -> list[Array]:
    """Return the parts of the input."""
    ends = np.cumsum([info.shape[descriptor.axis] for info in operands.outputs])[:-1]
    parts = np.split(required_array(arrays, 0), ends, axis=descriptor.axis)
    return [np.ascontiguousarray(part) for part in parts]


def _sample_concatenation(sample: LayerSample) -> Descriptor:
    shape = sample.shape()
    axis = sample.dice.randint(0, len(shape) - 1)
    sample.keep(shape)
    for _ in range(sample.dice.randint(0, 2)):
        sample.take(_with_extent(shape, axis, sample.dice.randint(1, 4)), sample.output)
    return ConcatenationDescriptor(axis=axis)


def _sample_split(sample: LayerSample) -> Descriptor:
    shape = sample.shape()
    axis, count = sample.dice.randint(0, len(shape) - 1), sample.dice.randint(1, 3)
    sample.keep(_with_extent(shape, axis, shape[axis] * count))
    return SplitDescriptor(axis=axis, splits=count)


def _sample_split_v(sample: LayerSample) -> Descriptor:
    shape = sample.shape()
    axis = sample.dice.randint(0, len(shape) - 1)
    sizes = tuple(sample.dice.randint(1, 4) for _ in range(sample.dice.randint(1, 3)))
    sample.keep(_with_extent(shape, axis, sum(sizes)))
    return SplitVDescriptor(axis=axis, sizes=sizes)


CONCATENATION = Operator(
    descriptor=ConcatenationDescriptor,
    type=LayerType.CONCATENATION,
    is_identity=lambda _, operands: len(operands.inputs) == 1,
    moves=True,
    shapes=infer_concatenation,
    check=check_concatenation,
    kernel=compute_concatenation,
    sample=_sample_concatenation,
)
SPLIT = Operator(
    descriptor=SplitDescriptor,
    type=LayerType.SPLIT,
    is_identity=lambda descriptor, _: descriptor.splits == 1,
    moves=True,
    shapes=infer_split,
    check=check_split,
    kernel=compute_split,
    sample=_sample_split,
)
SPLIT_V = Operator(
    descriptor=SplitVDescriptor,
    type=LayerType.SPLIT_V,
    moves=True,
    shapes=infer_split_v,
    check=check_split,
    kernel=compute_split,
    sample=_sample_split_v,
)
