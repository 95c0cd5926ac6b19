# SPDX-License-Identifier: Apache-2.0
"""SPACE_TO_DEPTH, DEPTH_TO_SPACE, SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND, which move blocks of pixels."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import ModelError
from ferrule.graph import Array, DataType, Descriptor, LayerType
from ferrule.operators.movement.checks import MOVABLE, check_quantisations, check_types, movable
from ferrule.operators.operator import Operands, Operator, Shapes, of_one
from ferrule.operators.sample import LayerSample

_DEPTH_TYPES = MOVABLE - {DataType.INT16, DataType.BOOL}
_IMAGE_AXES = 4
_BATCH_AXES = range(3, 5)


@frozen
class SpaceToDepthDescriptor(Descriptor):
    """One image, one output with `block_size` squared as many channels."""

    block_size: int


@frozen
class DepthToSpaceDescriptor(Descriptor):
    """One image, one output with `block_size` times as many rows and columns."""

    block_size: int


@frozen
class SpaceToBatchNdDescriptor(Descriptor):
    """One input of 3 or 4 axes, one output; the axes between the first and the last are divided into blocks."""

    block: tuple[int, ...]
    """Extent of a block on each divided axis."""
    before: tuple[int, ...]
    """Number of elements added in front of each divided axis, with the value of zero."""
    after: tuple[int, ...]
    """Number of elements added behind each divided axis."""


@frozen
class BatchToSpaceNdDescriptor(Descriptor):
    """One input of 3 or 4 axes, one output; the axes between the first and the last are made of blocks."""

    block: tuple[int, ...]
    """Extent of a block on each of these axes."""
    before: tuple[int, ...]
    """Number of elements removed in front of each of these axes."""
    after: tuple[int, ...]
    """Number of elements removed behind each of these axes."""


DepthDescriptor = SpaceToDepthDescriptor | DepthToSpaceDescriptor
BatchDescriptor = SpaceToBatchNdDescriptor | BatchToSpaceNdDescriptor


def infer_depth(descriptor: DepthDescriptor, operands: Operands) -> Shapes:
    """Return the shape after the exchange of pixels and channels."""
    source, size = operands.source, descriptor.block_size
    if len(source.shape) == _IMAGE_AXES and size >= 1:
        batches, rows, columns, channels = source.shape
        if isinstance(descriptor, SpaceToDepthDescriptor):
            if rows % size == columns % size == 0:
                return ((batches, rows // size, columns // size, channels * size * size),)
        elif channels % (size * size) == 0:
            return ((batches, rows * size, columns * size, channels // size // size),)
    raise ModelError(
        f"tensor '{source.name}' of shape {list(source.shape)} does not divide into blocks of {size} by {size}"
    )


def infer_batch(descriptor: BatchDescriptor, operands: Operands) -> Shapes:
    """Return the shape after the exchange of blocks and batches."""
    source = operands.source
    block, before, after = descriptor.block, descriptor.before, descriptor.after
    batches, *middle = source.shape[:-1] if len(source.shape) in _BATCH_AXES else (1,)
    count = math.prod(block)
    valid = len(block) == len(before) == len(after) == len(middle) > 0 and min(*block, 1) == 1
    if valid and min(*before, *after) >= 0:
        sides = list(zip(middle, block, before, after, strict=True))
        if isinstance(descriptor, SpaceToBatchNdDescriptor):
            padded = [extent + first + last for extent, _, first, last in sides]
            if all(extent % size == 0 for extent, size in zip(padded, block, strict=True)):
                extents = [extent // size for extent, size in zip(padded, block, strict=True)]
                return ((batches * count, *extents, source.shape[-1]),)
        else:
            extents = [extent * size - first - last for extent, size, first, last in sides]
            if batches % count == 0 and min(extents) > 0:
                return ((batches // count, *extents, source.shape[-1]),)
    raise ModelError(
        f"tensor '{source.name}' of shape {list(source.shape)} does not fit blocks of {list(block)} with "
        f"{list(before)} and {list(after)} elements at the edges"
    )


def check_batch(descriptor: BatchDescriptor, operands: Operands) -> None:
    """Refuse types without a reference kernel, and padding in another quantisation than the data's."""
    check_types(operands, MOVABLE)
    if isinstance(descriptor, SpaceToBatchNdDescriptor) and any((*descriptor.before, *descriptor.after)):
        check_quantisations(operands)


def fill_value(operands: Operands) -> int:
    """Return the stored value of the elements that SPACE_TO_BATCH_ND adds."""
    return 0 if operands.output.quantization is None else operands.output.zero_point


def exchange(descriptor: DepthDescriptor, operands: Operands, data: Array) -> Array:
    """Return the pixels of each block as one pixel, or each pixel as the pixels of a block."""
    size, gathers = descriptor.block_size, isinstance(descriptor, SpaceToDepthDescriptor)
    batches, rows, columns, _ = (operands.output if gathers else operands.source).shape
    inner = (rows, size, columns, size) if gathers else (rows, columns, size, size)
    parts = data.reshape(batches, *inner, -1)
    return np.ascontiguousarray(parts.transpose(0, 1, 3, 2, 4, 5)).reshape(operands.output.shape)


def compute_space_to_batch(descriptor: SpaceToBatchNdDescriptor, operands: Operands, data: Array) -> Array:
    """Return the elements at each place of a block as batches of their own."""
    pads = [(0, 0), *zip(descriptor.before, descriptor.after, strict=True), (0, 0)]
    padded = np.pad(data, pads, constant_values=fill_value(operands))
    middle = range(len(descriptor.block))
    divided = [(padded.shape[1 + axis] // descriptor.block[axis], descriptor.block[axis]) for axis in middle]
    parts = padded.reshape(data.shape[0], *(extent for pair in divided for extent in pair), data.shape[-1])
    order = (*(2 + 2 * axis for axis in middle), 0, *(1 + 2 * axis for axis in middle), parts.ndim - 1)
    return np.ascontiguousarray(parts.transpose(order)).reshape(operands.output.shape)


def compute_batch_to_space(descriptor: BatchToSpaceNdDescriptor, operands: Operands, data: Array) -> Array:
    """Return the batches as elements of blocks."""
    output = operands.output
    block = descriptor.block
    count = len(block)
    parts = data.reshape(*block, output.shape[0], *data.shape[1:])
    order = (count, *(index for axis in range(count) for index in (count + 1 + axis, axis)), parts.ndim - 1)
    whole = [extent * size for extent, size in zip(data.shape[1:-1], block, strict=True)]
    joined = parts.transpose(order).reshape(output.shape[0], *whole, data.shape[-1])
    kept = tuple(
        slice(first, extent - last)
        for first, extent, last in zip(descriptor.before, whole, descriptor.after, strict=True)
    )
    return np.ascontiguousarray(joined[(slice(None), *kept)])


def _sample_depth(descriptor: type[DepthDescriptor], sample: LayerSample) -> Descriptor:
    size = sample.dice.randint(1, 3)
    batches, rows, columns, channels = (sample.dice.randint(1, 3) for _ in range(4))
    gathers = descriptor is SpaceToDepthDescriptor
    shape = (
        (batches, rows * size, columns * size, channels) if gathers else (batches, rows, columns, channels * size**2)
    )
    sample.keep(shape)
    return descriptor(block_size=size)


def _sample_space_to_batch(sample: LayerSample) -> Descriptor:
    block = tuple(sample.dice.randint(1, 3) for _ in range(sample.dice.randint(1, 2)))
    before = tuple(sample.dice.randint(0, 2) for _ in block)
    middle = tuple(sample.dice.randint(1, 6) for _ in block)
    after = tuple(-(first + extent) % size for first, extent, size in zip(before, middle, block, strict=True))
    sample.keep((sample.dice.randint(1, 2), *middle, sample.dice.randint(1, 3)))
    return SpaceToBatchNdDescriptor(block=block, before=before, after=after)


def _sample_batch_to_space(sample: LayerSample) -> Descriptor:
    block = tuple(sample.dice.randint(1, 3) for _ in range(sample.dice.randint(1, 2)))
    middle = tuple(sample.dice.randint(2, 4) for _ in block)
    before, after = (tuple(sample.dice.randint(0, size - 1) for size in block) for _ in range(2))
    batches = math.prod(block) * sample.dice.randint(1, 2)
    sample.keep((batches, *middle, sample.dice.randint(1, 3)))
    return BatchToSpaceNdDescriptor(block=block, before=before, after=after)


SPACE_TO_DEPTH, DEPTH_TO_SPACE = (
    Operator(
        descriptor=descriptor,
        type=type_,
        moves=True,
        shapes=infer_depth,
        check=movable(_DEPTH_TYPES),
        kernel=of_one(exchange),
        sample=partial(_sample_depth, descriptor),
    )
    for type_, descriptor in (
        (LayerType.SPACE_TO_DEPTH, SpaceToDepthDescriptor),
        (LayerType.DEPTH_TO_SPACE, DepthToSpaceDescriptor),
    )
)
SPACE_TO_BATCH_ND, BATCH_TO_SPACE_ND = (
    Operator(
        descriptor=descriptor,
        type=type_,
        moves=True,
        shapes=infer_batch,
        check=check_batch,
        kernel=of_one(kernel),
        sample=sample,
    )
    for type_, descriptor, kernel, sample in (
        (LayerType.SPACE_TO_BATCH_ND, SpaceToBatchNdDescriptor, compute_space_to_batch, _sample_space_to_batch),
        (LayerType.BATCH_TO_SPACE_ND, BatchToSpaceNdDescriptor, compute_batch_to_space, _sample_batch_to_space),
    )
)
