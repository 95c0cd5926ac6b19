# SPDX-License-Identifier: Apache-2.0
"""SLICE and STRIDED_SLICE."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import ModelError, UnsupportedError
from ferrule.graph import Array, DataType, Descriptor, LayerType, Shape, TensorInfo
from ferrule.operators.movement.checks import MOVABLE, check_axes, check_types
from ferrule.operators.operator import Arrays, Operands, Operator, Shapes, always, of_one, required_array
from ferrule.operators.sample import LayerSample, sample_unary

_MAX_AXES = 5
_BEGINS_AT_RUN_TIME = 0.3
"""The part of the samples."""


@frozen
class SliceDescriptor(Descriptor):
    """One input, one output; or two inputs, the second of which is the begin: one int32 per axis, known at run time.

    A begin from run time with which the slice would leave the tensor counts as the nearest one with which it does not.
    """

    begin: tuple[int, ...]
    """() if it is the second input."""
    size: tuple[int, ...]
    """Number of elements per axis; -1 means all up to the end, for a begin that is not an input."""


@frozen
class StridedSliceDescriptor(Descriptor):
    """One input, one output; bit i of a mask refers to axis i, as in TensorFlow."""

    begin: tuple[int, ...]
    end: tuple[int, ...]
    strides: tuple[int, ...]
    begin_mask: int = 0
    end_mask: int = 0
    shrink_axis_mask: int = 0


@frozen
class Range:
    """The selected indices of one axis: start, start + step..."""

    start: int
    step: int
    count: int


def slice_ranges(descriptor: SliceDescriptor, source: TensorInfo) -> tuple[Range, ...]:
    """Return the range of each axis that SLICE selects.

    Raises:
        ModelError: the slice is empty or not within the tensor.
    """
    if not len(descriptor.begin) == len(descriptor.size) == len(source.shape):
        raise ModelError(
            f"begin and size have {len(descriptor.begin)} and {len(descriptor.size)} elements, "
            f"expected {len(source.shape)} as tensor '{source.name}' has axes"
        )
    ranges = []
    for begin, size, extent in zip(descriptor.begin, descriptor.size, source.shape, strict=True):
        count = extent - begin if size == -1 else size
        if begin < 0 or count < 1 or begin + count > extent:
            raise ModelError(
                f"the slice from {list(descriptor.begin)} of size {list(descriptor.size)} is empty or leaves "
                f"tensor '{source.name}' of shape {list(source.shape)}"
            )
        ranges.append(Range(start=begin, step=1, count=count))
    return tuple(ranges)


def strided_ranges(descriptor: StridedSliceDescriptor, source: TensorInfo) -> tuple[Range, ...]:
    """Return the range of each axis that STRIDED_SLICE selects; a removed axis has a count of 1.

    Raises:
        ModelError: nothing is selected, an index is out of range, a stride is 0, or the parameters do not have one
            element per axis.
    """
    if not len(descriptor.begin) == len(descriptor.end) == len(descriptor.strides) == len(source.shape):
        raise ModelError(
            f"begin, end and strides have {len(descriptor.begin)}, {len(descriptor.end)} and "
            f"{len(descriptor.strides)} elements, expected {len(source.shape)} as tensor '{source.name}' has axes"
        )
    return tuple(_strided_range(descriptor, axis, source) for axis in range(len(source.shape)))


def _strided_range(descriptor: StridedSliceDescriptor, axis: int, source: TensorInfo) -> Range:
    extent, step = source.shape[axis], descriptor.strides[axis]
    where = f"axis {axis} of tensor '{source.name}' of shape {list(source.shape)}"
    if step == 0:
        raise ModelError(f"the stride of {where} is 0")
    begin = None if descriptor.begin_mask >> axis & 1 else descriptor.begin[axis]
    end = None if descriptor.end_mask >> axis & 1 else descriptor.end[axis]
    taken = range(extent)[begin:end:step]
    if descriptor.shrink_axis_mask >> axis & 1:
        start = range(extent)[begin::step].start
        if not 0 <= start < extent:
            raise ModelError(f"the index {begin} is not on {where}")
        return Range(start=start, step=1, count=1)
    if not taken:
        raise ModelError(f"the slice selects nothing on {where}")
    return Range(start=taken.start, step=step, count=len(taken))


def infer_slice(descriptor: SliceDescriptor, operands: Operands) -> Shapes:
    """Return the number of elements selected on each axis."""
    if len(operands.inputs) > 1:
        _check_begin(descriptor, operands)
        return (descriptor.size,)
    return (tuple(taken.count for taken in slice_ranges(descriptor, operands.source)),)


def _check_begin(descriptor: SliceDescriptor, operands: Operands) -> None:
    source, begin = operands.pair
    if descriptor.begin or begin.shape != (len(source.shape),):
        raise ModelError(
            f"the begin '{begin.name}' has shape {list(begin.shape)}, and there are {len(descriptor.begin)} constants; "
            f"expected {len(source.shape)} elements as tensor '{source.name}' has axes, and no constants"
        )
    fits = len(descriptor.size) == len(source.shape) and all(
        1 <= size <= extent for size, extent in zip(descriptor.size, source.shape, strict=True)
    )
    if not fits:
        raise ModelError(
            f"the size is {list(descriptor.size)} with a begin from run time, expected 1 to the extent of each axis of "
            f"tensor '{source.name}' of shape {list(source.shape)}"
        )


def infer_strided_slice(descriptor: StridedSliceDescriptor, operands: Operands) -> Shapes:
    """Return the number of elements selected on each axis, without the removed axes."""
    ranges = strided_ranges(descriptor, operands.source)
    return (tuple(taken.count for axis, taken in enumerate(ranges) if not descriptor.shrink_axis_mask >> axis & 1),)


def check_slice(_: SliceDescriptor, operands: Operands) -> None:
    """Refuse types that no kernel moves, and ranks without a TensorFlow Lite Micro kernel."""
    check_types(Operands(operands.inputs[:1], operands.outputs), MOVABLE)
    check_axes(operands.source, _MAX_AXES)
    if len(operands.inputs) > 1 and operands.input(1).dtype is not DataType.INT32:
        raise UnsupportedError(
            f"the begin '{operands.input(1).name}' is {operands.input(1).dtype}, expected int32, or a constant"
        )


def check_strided_slice(descriptor: StridedSliceDescriptor, operands: Operands) -> None:
    """Refuse layers that TensorFlow Lite Micro's kernel does not support or computes incorrectly."""
    check_types(operands, MOVABLE)
    check_axes(operands.source, _MAX_AXES)
    for axis, step in enumerate(descriptor.strides):
        if descriptor.shrink_axis_mask >> axis & 1 and step < 0:
            raise UnsupportedError(f"axis {axis} is removed with a stride of {step}, expected a positive one")


def compute_slice(descriptor: SliceDescriptor, operands: Operands, arrays: Arrays) -> list[Array]:
    """Return the elements within the ranges."""
    if len(arrays) > 1:
        data = required_array(arrays, 0)
        limits = np.subtract(data.shape, descriptor.size)
        begin = np.clip(required_array(arrays, 1), 0, limits).tolist()
        part = tuple(slice(start, start + size) for start, size in zip(begin, descriptor.size, strict=True))
        return [np.ascontiguousarray(data[part])]
    return [_take(np.asarray(arrays[0]), slice_ranges(descriptor, operands.source), operands.output.shape)]


def compute_strided_slice(descriptor: StridedSliceDescriptor, operands: Operands, data: Array) -> Array:
    """Return every stride-th element within the ranges."""
    return _take(data, strided_ranges(descriptor, operands.source), operands.output.shape)


def _take(data: Array, ranges: Sequence[Range], shape: Shape) -> Array:
    indices = tuple(_as_slice(taken) for taken in ranges)
    return np.ascontiguousarray(data[indices]).reshape(shape)


def _as_slice(taken: Range) -> slice:
    stop = taken.start + taken.step * taken.count
    return slice(taken.start, stop if stop >= 0 else None, taken.step)


def _sample_slice(sample: LayerSample) -> Descriptor:
    shape = sample.inputs[0].shape
    if sample.dice.random() < _BEGINS_AT_RUN_TIME:
        sample.add("begin", (len(shape),), DataType.INT32)
        return SliceDescriptor(begin=(), size=tuple(sample.dice.randint(1, extent) for extent in shape))
    begin = tuple(sample.dice.randint(0, extent - 1) for extent in sample.inputs[0].shape)
    size = tuple(sample.dice.choice([-1, 1]) for _ in begin)
    return SliceDescriptor(begin=begin, size=size)


def _sample_strided_slice(sample: LayerSample) -> Descriptor:
    shape = sample.inputs[0].shape
    begin = tuple(sample.dice.randint(0, extent - 1) for extent in shape)
    strides = tuple(sample.dice.choice([1, 2]) for _ in shape)
    return StridedSliceDescriptor(begin=begin, end=shape, strides=strides)


SLICE = Operator(
    descriptor=SliceDescriptor,
    type=LayerType.SLICE,
    moves=True,
    indices=(1,),
    is_identity=always,
    shapes=infer_slice,
    check=check_slice,
    kernel=compute_slice,
    sample=sample_unary(_sample_slice),
)
STRIDED_SLICE = Operator(
    descriptor=StridedSliceDescriptor,
    type=LayerType.STRIDED_SLICE,
    moves=True,
    shapes=infer_strided_slice,
    check=check_strided_slice,
    kernel=of_one(compute_strided_slice),
    sample=sample_unary(_sample_strided_slice),
)
