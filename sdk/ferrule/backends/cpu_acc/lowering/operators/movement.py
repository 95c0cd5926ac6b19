# SPDX-License-Identifier: Apache-2.0
"""Layers that move or repeat elements, such as PAD, TRANSPOSE, SLICE, CONCATENATION and TILE, in C: strided copies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernel_call import descriptor_of, wrong_descriptor
from ferrule.backends.cpu_acc.lowering.strided_copy import Copies, dense_strides
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.graph import LayerType, Shape, TensorInfo
from ferrule.operators.movement.block import DepthToSpaceDescriptor, SpaceToDepthDescriptor
from ferrule.operators.movement.join import ConcatenationDescriptor, SplitDescriptor, SplitVDescriptor
from ferrule.operators.movement.mirror import MirrorPadDescriptor, ReverseV2Descriptor
from ferrule.operators.movement.pad import PadDescriptor, PadV2Descriptor, fill_value
from ferrule.operators.movement.repeat import TileDescriptor
from ferrule.operators.movement.slice import (
    Range,
    SliceDescriptor,
    StridedSliceDescriptor,
    slice_ranges,
    strided_ranges,
)
from ferrule.operators.movement.stack import PackDescriptor, UnpackDescriptor
from ferrule.operators.movement.transpose import TransposeDescriptor


def lower_view(context: LoweringContext) -> LoweredOp:
    """Return RESHAPE, SQUEEZE or EXPAND_DIMS as a view of the input, or as a copy if the input is a constant."""
    if not context.is_constant(0):
        return LoweredOp(kernel="view", view_of=context.source.name)
    return lower_copy(context, "reshape")


def lower_copy(context: LoweringContext, what: str = "copy") -> LoweredOp:
    """Return a copy of the first input's elements to the output; `what` names the lowering."""
    return _copied(context, what, (context.source.elements,), (1,))


def _copied(
    context: LoweringContext, what: str, shape: Sequence[int], input_strides: Sequence[int], input_offset: int = 0
) -> LoweredOp:
    """Return the copy of elements of the first input to a dense output."""
    copies = Copies(context)
    copies.copy(shape, input_strides, dense_strides(tuple(shape)), input_offset)
    return copies.lowered(what)


def lower_transpose(context: LoweringContext) -> LoweredOp:
    """Return the copy for TRANSPOSE, which reads the input with its strides permuted."""
    own, permutation = dense_strides(context.source.shape), descriptor_of(context, TransposeDescriptor).permutation
    return _copied(context, "transpose", context.output.shape, [own[axis] for axis in permutation])


def lower_constant_slice(context: LoweringContext) -> LoweredOp:
    """Return the copy for SLICE with a constant begin."""
    return _lower_ranges(context, slice_ranges(descriptor_of(context, SliceDescriptor), context.source))


def lower_strided_slice(context: LoweringContext) -> LoweredOp:
    """Return the copy for STRIDED_SLICE."""
    return _lower_ranges(context, strided_ranges(descriptor_of(context, StridedSliceDescriptor), context.source))


def _lower_ranges(context: LoweringContext, ranges: Sequence[Range]) -> LoweredOp:
    taken = list(zip(ranges, dense_strides(context.source.shape), strict=True))
    return _copied(
        context,
        context.layer.type.lower(),
        [each.count for each in ranges],
        [each.step * stride for each, stride in taken],
        sum(each.start * stride for each, stride in taken),
    )


def lower_reverse(context: LoweringContext) -> LoweredOp:
    """Return the copy for REVERSE_V2, which reads the input with negative strides."""
    axes, shape = descriptor_of(context, ReverseV2Descriptor).axes, context.source.shape
    own = dense_strides(shape)
    strides = [-stride if axis in axes else stride for axis, stride in enumerate(own)]
    return _copied(context, "reverse", shape, strides, sum((shape[axis] - 1) * own[axis] for axis in axes))


def lower_broadcast(context: LoweringContext) -> LoweredOp:
    """Return the copy for BROADCAST_TO or FILL, whose input has a stride of 0 on repeated axes."""
    source, output = context.operands.ends
    strides = broadcast_strides(source, output) if source.elements > 1 else [0] * len(output.shape)
    return _copied(context, context.layer.type.lower(), output.shape, strides)


def broadcast_strides(info: TensorInfo, output: TensorInfo) -> tuple[int, ...]:
    """Return the strides, in elements, of a dense tensor that broadcasts to an output; 0 on repeated axes."""
    own = zip(info.shape, dense_strides(info.shape), strict=True)
    missing = len(output.shape) - len(info.shape)
    return (0,) * missing + tuple(0 if extent == 1 else stride for extent, stride in own)


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
    return copies.lowered(context.layer.type.lower())


def lower_join(context: LoweringContext) -> LoweredOp:
    """Return the copies for CONCATENATION or PACK, one per input."""
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, ConcatenationDescriptor | PackDescriptor):
        raise wrong_descriptor(context)
    inputs = [context.input(index) for index in range(len(context.layer.inputs))]
    copies = Copies(context)
    for index, (shape, strides, offset) in enumerate(_parts(context.output, inputs, descriptor.axis)):
        copies.copy(shape, dense_strides(shape), strides, output_offset=offset, source=copies.source(index))
    return copies.lowered(context.layer.type.lower())


def lower_split(context: LoweringContext) -> LoweredOp:
    """Return the copies for SPLIT, SPLIT_V or UNPACK, one per output."""
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, SplitDescriptor | SplitVDescriptor | UnpackDescriptor):
        raise wrong_descriptor(context)
    copies = Copies(context)
    parts = _parts(context.source, context.operands.outputs, descriptor.axis)
    for index, (shape, strides, offset) in enumerate(parts):
        copies.copy(shape, strides, dense_strides(shape), offset, target=context.output_pointer(index))
    return copies.lowered("unpack" if context.layer.type is LayerType.UNPACK else "split")


def _parts(whole: TensorInfo, parts: Sequence[TensorInfo], axis: int) -> Iterator[tuple[Shape, tuple[int, ...], int]]:
    """Yield the shape of each part, and its strides and offset in the whole tensor; stacked parts lack the axis."""
    strides, offset = dense_strides(whole.shape), 0
    for part in parts:
        stacked = len(part.shape) < len(whole.shape)
        yield part.shape, strides[:axis] + strides[axis + 1 :] if stacked else strides, offset
        offset += strides[axis] * (1 if stacked else part.shape[axis])


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
    return copies.lowered("mirror_pad")


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
    return copies.lowered("tile")


def lower_zeros_like(context: LoweringContext) -> LoweredOp:
    """Return the call that clears the output's bytes."""
    copies = Copies(context)
    copies.fill(np.zeros(1, np.uint8), context.output.size_bytes)
    return copies.lowered("zeros_like")
