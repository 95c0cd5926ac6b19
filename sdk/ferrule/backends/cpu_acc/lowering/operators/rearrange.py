# SPDX-License-Identifier: Apache-2.0
"""Layers that repeat, reverse or interleave elements, in C: compositions of strided copies."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ferrule.backends.cpu_acc.lowering.operators.movement import (
    Axis,
    Movement,
    Movements,
    axes_of,
    dense_strides,
    descriptor_of,
)
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.graph import LayerType
from ferrule.operators.block import (
    BatchToSpaceNdDescriptor,
    DepthToSpaceDescriptor,
    SpaceToBatchNdDescriptor,
    SpaceToDepthDescriptor,
    fill_value,
)
from ferrule.operators.mirror import MirrorPadDescriptor, ReverseV2Descriptor
from ferrule.operators.repeat import TileDescriptor


def lower_tile(context: LoweringContext) -> LoweredOp:
    """Return the copies for TILE: of the input to the first tile, and then of what is there, one axis at a time."""
    multiples = descriptor_of(context, TileDescriptor).multiples
    source, output = context.input(0), context.operands.output
    strides, size_bytes = dense_strides(output.shape), source.dtype.size_bytes
    target = context.output_pointer()
    movements = Movements(context)
    first = Movement(axes=axes_of(source.shape, dense_strides(source.shape), strides))
    movements.copy(first, size_bytes, movements.source(0), target)
    for axis in reversed(range(len(multiples))):
        if multiples[axis] > 1:
            done = (*source.shape[: axis + 1], *output.shape[axis + 1 :])
            step = source.shape[axis] * strides[axis]
            repeated = Axis(multiples[axis] - 1, 0, step)
            movement = Movement(axes=(repeated, *axes_of(done, strides, strides)), output_offset=step)
            movements.copy(movement, size_bytes, target, target)
    return movements.lowered("tile")


def lower_broadcast(context: LoweringContext) -> LoweredOp:
    """Return the copy for BROADCAST_TO or FILL, whose input has a stride of 0 on repeated axes."""
    source, output = context.input(0), context.operands.output
    shape = (1,) * (len(output.shape) - len(source.shape)) + source.shape if source.elements > 1 else ()
    strides = [0 if extent == 1 else stride for extent, stride in zip(shape, dense_strides(shape), strict=True)]
    strides = strides or [0] * len(output.shape)
    movements = Movements(context)
    movement = Movement(axes=axes_of(output.shape, strides, dense_strides(output.shape)))
    movements.copy(movement, source.dtype.size_bytes, movements.source(0), context.output_pointer())
    return movements.lowered(context.layer.type.lower())


def lower_zeros_like(context: LoweringContext) -> LoweredOp:
    """Return the call that clears the output's bytes."""
    movements = Movements(context)
    movements.fill(np.zeros(1, np.uint8), context.operands.output.size_bytes, context.output_pointer())
    return movements.lowered("zeros_like")


def lower_reverse(context: LoweringContext) -> LoweredOp:
    """Return the copy for REVERSE_V2, which reads the input with negative strides."""
    axes = descriptor_of(context, ReverseV2Descriptor).axes
    source = context.input(0)
    own = dense_strides(source.shape)
    strides = [-stride if axis in axes else stride for axis, stride in enumerate(own)]
    offset = sum((source.shape[axis] - 1) * own[axis] for axis in axes)
    movements = Movements(context)
    movement = Movement(axes=axes_of(source.shape, strides, own), input_offset=offset)
    movements.copy(movement, source.dtype.size_bytes, movements.source(0), context.output_pointer())
    return movements.lowered("reverse")


def lower_mirror_pad(context: LoweringContext) -> LoweredOp:
    """Return the copies for MIRROR_PAD: of the input, and then of the elements inside each edge to its outside."""
    descriptor = descriptor_of(context, MirrorPadDescriptor)
    source, output = context.input(0), context.operands.output
    strides, size_bytes = dense_strides(output.shape), source.dtype.size_bytes
    target = context.output_pointer()
    movements = Movements(context)
    corner = sum(first * stride for first, stride in zip(descriptor.before, strides, strict=True))
    inner = Movement(axes=axes_of(source.shape, dense_strides(source.shape), strides), output_offset=corner)
    movements.copy(inner, size_bytes, movements.source(0), target)
    for axis, (before, after) in enumerate(zip(descriptor.before, descriptor.after, strict=True)):
        # The axes in front are complete, and those behind have their own elements only.
        shape = [*output.shape[:axis], 0, *source.shape[axis + 1 :]]
        base = sum(
            first * stride for first, stride in zip(descriptor.before[axis + 1 :], strides[axis + 1 :], strict=True)
        )
        step, last = strides[axis], before + source.shape[axis] - 1
        skipped = int(descriptor.reflect)
        for count, edge, inside in ((before, before - 1, before + skipped), (after, last + 1, last - skipped)):
            if count:
                sign = 1 if inside > edge else -1
                axes = list(axes_of(tuple(shape), strides, strides))
                axes[axis] = Axis(count, sign * step, -sign * step)
                movement = Movement(
                    axes=tuple(axes), input_offset=base + inside * step, output_offset=base + edge * step
                )
                movements.copy(movement, size_bytes, target, target)
    return movements.lowered("mirror_pad")


def lower_depth(context: LoweringContext) -> LoweredOp:
    """Return the copy for SPACE_TO_DEPTH or DEPTH_TO_SPACE, which exchanges two of six axes."""
    source, output = context.input(0), context.operands.output
    if context.layer.type is LayerType.SPACE_TO_DEPTH:
        image, deep, size = source, output, descriptor_of(context, SpaceToDepthDescriptor).block_size
    else:
        image, deep, size = output, source, descriptor_of(context, DepthToSpaceDescriptor).block_size
    batches, rows, columns, _ = deep.shape
    channels = image.shape[-1]
    shape = (batches, rows, columns, size, size, channels)
    deep_strides = dense_strides(shape)
    own = dense_strides((batches, rows, size, columns, size, channels))
    image_strides = tuple(own[axis] for axis in (0, 1, 3, 2, 4, 5))
    reads, writes = (image_strides, deep_strides) if image is source else (deep_strides, image_strides)
    movements = Movements(context)
    movement = Movement(axes=axes_of(shape, reads, writes))
    movements.copy(movement, source.dtype.size_bytes, movements.source(0), context.output_pointer())
    return movements.lowered(context.layer.type.lower())


@dataclass(frozen=True, slots=True)
class _Places:
    """Neighbouring places of the blocks on one axis that reach the same blocks: `count` of them from `first` on."""

    first: int
    count: int
    block: int
    """The first block that has elements of the undivided tensor at these places."""
    blocks: int


def _places(extent: int, size: int, before: int, blocks: int) -> list[_Places]:
    """Group the places of an axis, on which the first of `extent` elements has the position `before`."""
    found: list[_Places] = []
    for place in range(size):
        first = max(0, -((place - before) // size))
        last = min(blocks - 1, (before + extent - 1 - place) // size)
        if last < first:
            continue
        known = found[-1] if found else None
        same = known is not None and (known.block, known.blocks) == (first, last - first + 1)
        if known is not None and same and known.first + known.count == place:
            found[-1] = _Places(known.first, known.count + 1, first, known.blocks)
        else:
            found.append(_Places(place, 1, first, last - first + 1))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Blocks:
    """The exchange of batches and places in blocks between an undivided and a divided tensor."""

    whole: tuple[int, ...]
    """The shape of the undivided tensor."""
    divided: tuple[int, ...]
    block: tuple[int, ...]
    before: tuple[int, ...]
    """The position of the first element of the undivided tensor on each divided axis."""

    def movements(self) -> Iterator[tuple[Sequence[int], Sequence[int], Sequence[int], int, int]]:
        """Yield shape, strides and offsets of both tensors, undivided first, of each copy."""
        strides, parts = dense_strides(self.whole), dense_strides(self.divided)
        middle = range(len(self.block))
        batches, channels = self.whole[0], self.whole[-1]
        steps = [stride * batches * parts[0] for stride in dense_strides(self.block)]
        groups = [
            _places(self.whole[1 + axis], self.block[axis], self.before[axis], self.divided[1 + axis])
            for axis in middle
        ]
        for chosen in itertools.product(*groups):
            shape = [*(each.count for each in chosen), batches, *(each.blocks for each in chosen), channels]
            mine = [strides[1 + axis] for axis in middle]
            mine += [strides[0], *(strides[1 + axis] * self.block[axis] for axis in middle), 1]
            theirs = [*steps, *parts]
            start = sum(
                (each.block * self.block[axis] + each.first - self.before[axis]) * strides[1 + axis]
                for axis, each in enumerate(chosen)
            )
            there = sum(each.first * steps[axis] + each.block * parts[1 + axis] for axis, each in enumerate(chosen))
            yield shape, mine, theirs, start, there


def lower_space_to_batch(context: LoweringContext) -> LoweredOp:
    """Return the copies for SPACE_TO_BATCH_ND, after a fill if it pads."""
    descriptor = descriptor_of(context, SpaceToBatchNdDescriptor)
    source, output = context.input(0), context.operands.output
    movements = Movements(context)
    if source.elements != output.elements:
        value = np.array([fill_value(context.operands)], output.dtype.numpy)
        movements.fill(value, output.elements, context.output_pointer())
    origin = movements.source(0)
    blocks = _Blocks(whole=source.shape, divided=output.shape, block=descriptor.block, before=descriptor.before)
    for shape, mine, theirs, start, there in blocks.movements():
        movement = Movement(axes=axes_of(tuple(shape), mine, theirs), input_offset=start, output_offset=there)
        movements.copy(movement, source.dtype.size_bytes, origin, context.output_pointer())
    return movements.lowered("space_to_batch_nd")


def lower_batch_to_space(context: LoweringContext) -> LoweredOp:
    """Return the copies for BATCH_TO_SPACE_ND."""
    descriptor = descriptor_of(context, BatchToSpaceNdDescriptor)
    source, output = context.input(0), context.operands.output
    movements = Movements(context)
    origin = movements.source(0)
    blocks = _Blocks(whole=output.shape, divided=source.shape, block=descriptor.block, before=descriptor.before)
    for shape, mine, theirs, start, there in blocks.movements():
        movement = Movement(axes=axes_of(tuple(shape), theirs, mine), input_offset=there, output_offset=start)
        movements.copy(movement, source.dtype.size_bytes, origin, context.output_pointer())
    return movements.lowered("batch_to_space_nd")
