# SPDX-License-Identifier: Apache-2.0
"""Layers that move or repeat elements, such as PAD, TRANSPOSE, SLICE, CONCATENATION and TILE, in C: strided copies."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernel_call import descriptor_of, wrong_descriptor
from ferrule.backends.cpu_acc.lowering.strided_copy import Copies, dense_strides
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.graph import LayerType, TensorInfo
from ferrule.operators.movement.block import DepthToSpaceDescriptor, SpaceToDepthDescriptor
from ferrule.operators.movement.join import ConcatenationDescriptor
from ferrule.operators.movement.mirror import MirrorPadDescriptor
from ferrule.operators.movement.pad import PadDescriptor, PadV2Descriptor, fill_value
from ferrule.operators.movement.repeat import TileDescriptor
from ferrule.operators.movement.stack import PackDescriptor
from ferrule.operators.table import OPERATORS

_NAMES = {LayerType.REVERSE_V2: "reverse", LayerType.SPLIT_V: "split"}


def lower_view(context: LoweringContext) -> LoweredOp:
    """Return RESHAPE, SQUEEZE or EXPAND_DIMS as a view of the input, or as a copy if the input is a constant."""
    if not context.is_constant(0):
        return LoweredOp(kernel="view", view_of=context.source.name)
    return lower_copy(context, "reshape")


def lower_copy(context: LoweringContext, what: str = "copy") -> LoweredOp:
    """Return a copy of the first input's elements to the output; `what` names the lowering."""
    copies = Copies(context)
    copies.copy((context.source.elements,), (1,), (1,))
    return copies.lowered(what)


def lower_strided(context: LoweringContext) -> LoweredOp:
    """Return the copies for a layer whose outputs have elements of its input at constant distances, such as TRANSPOSE.

    The numpy kernel moves the numbers of the elements, which show the distances.
    """
    source, type_ = context.source, context.layer.type
    copies = Copies(context)
    numbers = np.arange(source.elements).reshape(source.shape)
    moved = OPERATORS[type_].kernel(context.layer.descriptor, context.operands, [numbers])
    for index, places in enumerate(moved):
        start = places.flat[0]
        along = (np.take(places, min(extent, 2) - 1, axis).flat[0] for axis, extent in enumerate(places.shape))
        strides = [int(each - start) for each in along]
        target = context.output_pointer(index)
        copies.copy(places.shape, strides, dense_strides(places.shape), int(start), target=target)
    return copies.lowered(_NAMES.get(type_, ""))


def lower_join(context: LoweringContext) -> LoweredOp:
    """Return the copies for CONCATENATION or PACK, one per input."""
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, ConcatenationDescriptor | PackDescriptor):
        raise wrong_descriptor(context)
    axis, strides = descriptor.axis, dense_strides(context.output.shape)
    if isinstance(descriptor, PackDescriptor):
        strides = (*strides[:axis], *strides[axis + 1 :])
    copies, start = Copies(context), 0
    for index in range(len(context.layer.inputs)):
        shape = context.input(index).shape
        copies.copy(shape, dense_strides(shape), strides, output_offset=start, source=copies.source(index))
        start += math.prod(shape[axis:])
    return copies.lowered()


def lower_depth(context: LoweringContext) -> LoweredOp:
    """Return the copy for SPACE_TO_DEPTH or DEPTH_TO_SPACE, which exchanges two of six axes."""
    source, output = context.operands.ends
    to_depth = context.layer.type is LayerType.SPACE_TO_DEPTH
    image, deep = (source, output) if to_depth else (output, source)
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, SpaceToDepthDescriptor | DepthToSpaceDescriptor):
        raise wrong_descriptor(context)
    size = descriptor.block_size
    batches, rows, columns, _ = deep.shape
    shape = (batches, rows, columns, size, size, image.shape[-1])
    own = dense_strides((batches, rows, size, columns, size, image.shape[-1]))
    strides = [tuple(own[axis] for axis in (0, 1, 3, 2, 4, 5)), dense_strides(shape)]
    copies = Copies(context)
    copies.copy(shape, *(strides if to_depth else reversed(strides)))
    return copies.lowered()


def lower_pad(context: LoweringContext) -> LoweredOp:
    """Return the calls for PAD or PADV2: the output is filled, then the input is copied into it."""
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, PadDescriptor | PadV2Descriptor):
        raise wrong_descriptor(context)
    source, output = context.operands.ends
    copies = Copies(context)
    if source.elements != output.elements:
        copies.fill(np.array([fill_value(descriptor, context.operands)], output.dtype.numpy), output.elements)
    _copy_inside(copies, source, output, descriptor.before)
    return copies.lowered("pad")


def _copy_inside(copies: Copies, source: TensorInfo, output: TensorInfo, before: Sequence[int]) -> None:
    """Add the copy of the input to the place in the output that begins after so many elements along each axis."""
    strides = dense_strides(output.shape)
    corner = sum(first * stride for first, stride in zip(before, strides, strict=True))
    copies.copy(source.shape, dense_strides(source.shape), strides, output_offset=corner)


def lower_mirror_pad(context: LoweringContext) -> LoweredOp:
    """Return the copies for MIRROR_PAD: of the input, and then of the elements inside each edge to its outside."""
    descriptor = descriptor_of(context, MirrorPadDescriptor)
    source, output, target = context.source, context.output, context.output_pointer()
    strides = dense_strides(output.shape)
    copies = Copies(context)
    _copy_inside(copies, source, output, descriptor.before)
    for axis, (before, after) in enumerate(zip(descriptor.before, descriptor.after, strict=True)):
        # The axes in front are complete, and those behind have their own elements only.
        behind = zip(descriptor.before[axis + 1 :], strides[axis + 1 :], strict=True)
        base = sum(first * stride for first, stride in behind)
        step, last = strides[axis], before + source.shape[axis] - 1
        skipped = int(descriptor.reflect)
        for count, edge, inside in ((before, before - 1, before + skipped), (after, last + 1, last - skipped)):
            if count:
                sign = 1 if inside > edge else -1
                copies.copy(
                    (*output.shape[:axis], count, *source.shape[axis + 1 :]),
                    (*strides[:axis], sign * step, *strides[axis + 1 :]),
                    (*strides[:axis], -sign * step, *strides[axis + 1 :]),
                    base + inside * step,
                    base + edge * step,
                    source=target,
                )
    return copies.lowered()


def lower_tile(context: LoweringContext) -> LoweredOp:
    """Return the copies for TILE: of the input to the first tile, and then of what is there, one axis at a time."""
    multiples = descriptor_of(context, TileDescriptor).multiples
    source, output = context.operands.ends
    strides = dense_strides(output.shape)
    copies = Copies(context)
    _copy_inside(copies, source, output, [0] * len(strides))
    for axis in reversed(range(len(multiples))):
        if multiples[axis] > 1:
            done = (*source.shape[: axis + 1], *output.shape[axis + 1 :])
            step = source.shape[axis] * strides[axis]
            repeated, reads, writes = (multiples[axis] - 1, *done), (0, *strides), (step, *strides)
            copies.copy(repeated, reads, writes, output_offset=step, source=context.output_pointer())
    return copies.lowered()


def lower_zeros_like(context: LoweringContext) -> LoweredOp:
    """Return the call that clears the output's bytes."""
    copies = Copies(context)
    copies.fill(np.zeros(1, np.uint8), context.output.size_bytes)
    return copies.lowered()
