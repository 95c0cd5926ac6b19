# SPDX-License-Identifier: Apache-2.0
"""Rows of layers that move elements by several functions of the library: slices, concatenations and permutations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ferrule.codegen.acl.builder import AclTensor
from ferrule.codegen.acl.layouts import dimension_of, permutation
from ferrule.codegen.acl.movement import (
    Sides,
    concatenate,
    moved_check,
    moving,
    pad,
    rank_reason,
    slice_between,
    unreachable_pad,
)
from ferrule.codegen.acl.rows import QUANTIZED, Add, LayerParts, LayerView, Row, not_constant
from ferrule.codegen.acl.targets import acl_name
from ferrule.dom import Integer
from ferrule.graph import DataType, LayerType, Shape
from ferrule.operators.movement.block import (
    BatchToSpaceNdDescriptor,
    DepthToSpaceDescriptor,
    SpaceToBatchNdDescriptor,
    SpaceToDepthDescriptor,
)
from ferrule.operators.movement.gather import GatherDescriptor
from ferrule.operators.movement.join import SplitVDescriptor
from ferrule.operators.movement.mirror import MirrorPadDescriptor, ReverseV2Descriptor
from ferrule.operators.movement.repeat import TileDescriptor
from ferrule.operators.movement.slice import Range
from ferrule.operators.movement.stack import PackDescriptor, UnpackDescriptor
from ferrule.operators.reductions.arg_select import ArgSelectDescriptor


class _Steps:
    """Adds one movement after the other; `current` has the elements so far."""

    def __init__(self, part: LayerParts) -> None:
        self._part = part
        self._count = 0
        self.current = part.input(0)

    def _name(self) -> str:
        self._count += 1
        return self._part.name(f"step{self._count}")

    def _scratch(self, shape: Shape) -> AclTensor:
        return self._part.builder.scratch(self._name(), self.current, shape)

    def reshape(self, *shape: int) -> None:
        """Give the elements another shape, of which one extent may be -1."""
        missing = math.prod(self.current.shape) // abs(math.prod(shape))
        shape = tuple(missing if extent < 0 else extent for extent in shape)
        self.current = self._part.builder.viewed(self.current, shape, self._name())

    def transpose(self, *axes: int) -> None:
        """Move the axes."""
        target = self._scratch(tuple(self.current.shape[axis] for axis in axes))
        self._part.builder.permute(self._name(), self.current, target, permutation(axes))
        self.current = target

    def taken(self, ranges: Mapping[int, Range], target: AclTensor | None = None) -> AclTensor:
        """Return a part of the elements, by default in a new tensor: ranges of some axes, and all of the others.

        Without a target, it is all of them if no axis is shortened or turned.
        """
        shape = self.current.shape
        axes = [ranges.get(axis, Range(start=0, step=1, count=extent)) for axis, extent in enumerate(shape)]
        if target is None:
            wanted = tuple(each.count for each in axes)
            if wanted == shape and all(each.step == 1 or each.count == 1 for each in axes):
                return self.current
            target = self._scratch(wanted)
        slice_between(self._part, self.current, target, axes)
        return target

    def join(self, parts: Sequence[AclTensor], axis: int) -> None:
        """Concatenate tensors along an axis."""
        shape = list(parts[0].shape)
        shape[axis] = sum(each.shape[axis] for each in parts)
        target = self._scratch(tuple(shape))
        concatenate(self._part, parts, target, axis, self._name())
        self.current = target

    def finish(self) -> None:
        """Give the elements the shape of the output, in the output's memory."""
        self._part.builder.reshape(self.current, self._part.output(0), self._name())


def _pack(part: LayerParts) -> None:
    axis = part.descriptor(PackDescriptor).axis
    output = part.output(0)
    shape = (*output.shape[:axis], 1, *output.shape[axis + 1 :])
    parts = [part.input(index, shape) for index in range(len(part.layer.inputs))]
    if len(parts) == 1:
        part.builder.reshape(parts[0], output, part.stem)
        return
    concatenate(part, parts, output, axis, part.name())


def _unpack(part: LayerParts) -> None:
    axis = part.descriptor(UnpackDescriptor).axis
    steps = _Steps(part)
    for index in range(len(part.layer.outputs)):
        output = part.output(index)
        taken = steps.taken({axis: Range(start=index, step=1, count=1)})
        part.builder.reshape(taken, output, part.name(f"part{index}"))


def _split_v(part: LayerParts) -> None:
    about = part.descriptor(SplitVDescriptor)
    steps = _Steps(part)
    if len(about.sizes) == 1:
        steps.finish()
        return
    start = 0
    for index, count in enumerate(about.sizes):
        steps.taken({about.axis: Range(start=start, step=1, count=count)}, part.output(index))
        start += count


def _reverse(part: LayerParts) -> None:
    steps = _Steps(part)
    shape = steps.current.shape
    turned = part.descriptor(ReverseV2Descriptor).axes
    steps.current = steps.taken({axis: Range(start=shape[axis] - 1, step=-1, count=shape[axis]) for axis in turned})
    steps.finish()


def _mirror_pad(part: LayerParts) -> None:
    about = part.descriptor(MirrorPadDescriptor)
    steps = _Steps(part)
    for axis, (before, after) in enumerate(zip(about.before, about.after, strict=True)):
        extent, skipped = steps.current.shape[axis], int(about.reflect)
        parts = [steps.current]
        if before:
            parts.insert(0, steps.taken({axis: Range(start=skipped + before - 1, step=-1, count=before)}))
        if after:
            parts.append(steps.taken({axis: Range(start=extent - 1 - skipped, step=-1, count=after)}))
        if len(parts) > 1:
            steps.join(parts, axis)
    steps.finish()


def _repeat(part: LayerParts) -> None:
    """Repeat the elements of TILE and BROADCAST_TO along one axis after the other."""
    about, output = part.layer.descriptor, part.output(0)
    steps = _Steps(part)
    steps.reshape(*(1,) * (len(output.shape) - len(steps.current.shape)), *steps.current.shape)
    multiples = (
        about.multiples
        if isinstance(about, TileDescriptor)
        else [wanted // extent for wanted, extent in zip(output.shape, steps.current.shape, strict=True)]
    )
    for axis, count in enumerate(multiples):
        if count > 1:
            steps.join([steps.current] * count, axis)
    steps.finish()


def _space_to_depth(part: LayerParts) -> None:
    size = part.descriptor(SpaceToDepthDescriptor).block_size
    batches, rows, columns, channels = part.info(0).shape
    _exchange(part, (batches * rows // size, size, columns // size, size * channels))


def _depth_to_space(part: LayerParts) -> None:
    size = part.descriptor(DepthToSpaceDescriptor).block_size
    batches, rows, columns, channels = part.info(0).shape
    _exchange(part, (batches * rows, columns, size, channels // size))


def _exchange(part: LayerParts, shape: Shape) -> None:
    """Exchange the second and the third axis of the elements in a shape."""
    steps = _Steps(part)
    steps.reshape(*shape)
    steps.transpose(0, 2, 1, 3)
    steps.finish()


def _space_to_batch(part: LayerParts) -> None:
    """Divide one axis after the other, the innermost first; each puts its places in a block in front."""
    about, sides = part.descriptor(SpaceToBatchNdDescriptor), _sides(part)
    steps = _Steps(part)
    shape = tuple(extent + sum(side) for extent, side in zip(steps.current.shape, sides, strict=True))
    if shape != steps.current.shape:
        padded = part.builder.scratch(part.name("padded"), steps.current, shape)
        pad(part, steps.current, padded, sides)
        steps.current = padded
    inner = shape[-1]
    for axis, size in reversed(list(enumerate(about.block, start=1))):
        count = shape[axis] // size
        steps.reshape(-1, count, size, inner)
        steps.transpose(2, 0, 1, 3)
        inner *= count
    steps.finish()


def _batch_to_space(part: LayerParts) -> None:
    """Join one axis after the other, the outermost first, by the reverse of the steps of SPACE_TO_BATCH_ND."""
    about = part.descriptor(BatchToSpaceNdDescriptor)
    source = part.info(0).shape
    steps = _Steps(part)
    for axis, size in enumerate(about.block, start=1):
        steps.reshape(size, -1, source[axis], math.prod(source[axis + 1 :]))
        steps.transpose(1, 2, 0, 3)
    whole = [extent * size for extent, size in zip(source[1:-1], about.block, strict=True)]
    steps.reshape(-1, *whole, source[-1])
    sides = zip(whole, about.before, about.after, strict=True)
    steps.current = steps.taken(
        {
            axis: Range(start=before, step=1, count=extent - before - after)
            for axis, (extent, before, after) in enumerate(sides, start=1)
        }
    )
    steps.finish()


def _gather(part: LayerParts) -> None:
    """Add the function on a vector of indices; an index out of range counts as the nearest one in range."""
    data, indices, axis = _gathered(part)
    source = part.input(data)
    given = part.tensor(indices).data
    assert given is not None
    places = np.clip(given.reshape(-1), 0, source.shape[axis] - 1).astype(np.int32)
    name = part.info(indices).name
    vector = part.builder.constant(part.name("indices"), name, places, shape=(places.size,))
    result = part.result((*source.shape[:axis], places.size, *source.shape[axis + 1 :]))
    dimension = Integer(dimension_of(axis, len(source.shape)))
    part.function("Gather", source, vector, result, dimension)
    part.finish(result)


def _gathered(part: LayerView) -> tuple[int, int, int]:
    """Return the positions of the data and of the indices, and the axis."""
    about = part.layer.descriptor
    return (0, 1, about.axis) if isinstance(about, GatherDescriptor) else (1, 0, 0)


def _gather_check(part: LayerView) -> str:
    data, indices, axis = _gathered(part)
    about = part.layer.descriptor
    if not part.is_constant(indices):
        return f"its indices '{part.info(indices).name}' are computed, and the library does not check them"
    if isinstance(about, GatherDescriptor) and about.batch_dims:
        return "its batches have indices of their own, and the library takes one vector"
    if part.is_constant(data):
        return "its data is a constant"
    if part.info(data).shape[axis] == 1:
        return f"the axis of '{part.info(data).name}' has one element, and the library's tensors may lack it"
    return rank_reason(part.info(data))


def _place(operation: str) -> Add:
    """Return what adds the search for an extreme element in the rows of a matrix, with the axis moved to the end."""

    def add(part: LayerParts) -> None:
        axis = part.descriptor(ArgSelectDescriptor).axis
        shape = part.info(0).shape
        steps = _Steps(part)
        if axis != len(shape) - 1:
            steps.transpose(*(each for each in range(len(shape)) if each != axis), axis)
        steps.reshape(-1, shape[axis])
        result = part.result((part.output_info.elements,))
        kind = acl_name("ReductionOperation", f"ARG_IDX_{operation}")
        part.function("ArgMinMaxLayer", steps.current, Integer(0), result, kind)
        part.finish(result)

    return add


def _place_check(part: LayerView) -> str:
    return not_constant(part) or rank_reason(part.info(0))


def _padded_check(part: LayerView) -> str:
    return moved_check(part) or unreachable_pad(part, _sides(part))


def _sides(part: LayerView) -> Sides:
    """Return what SPACE_TO_BATCH_ND adds before and after each axis."""
    about = part.descriptor(SpaceToBatchNdDescriptor)
    return ((0, 0), *zip(about.before, about.after, strict=True), (0, 0))


def _repeated_check(part: LayerView) -> str:
    return moved_check(part) or rank_reason(part.output_info)


_PLACES = QUANTIZED | {DataType.INT32}
ROWS = {
    LayerType.PACK: moving(_pack, _repeated_check),
    LayerType.UNPACK: moving(_unpack),
    LayerType.SPLIT_V: moving(_split_v),
    LayerType.REVERSE_V2: moving(_reverse),
    LayerType.MIRROR_PAD: moving(_mirror_pad),
    LayerType.TILE: moving(_repeat, _repeated_check),
    LayerType.BROADCAST_TO: moving(_repeat, _repeated_check),
    LayerType.SPACE_TO_DEPTH: moving(_space_to_depth),
    LayerType.DEPTH_TO_SPACE: moving(_depth_to_space),
    LayerType.ARG_MAX: Row(_place("MAX"), check=_place_check, types=_PLACES),
    LayerType.ARG_MIN: Row(_place("MIN"), check=_place_check, types=_PLACES),
    LayerType.GATHER: moving(_gather, _gather_check),
    LayerType.EMBEDDING_LOOKUP: moving(_gather, _gather_check),
    LayerType.SPACE_TO_BATCH_ND: moving(_space_to_batch, _padded_check),
    LayerType.BATCH_TO_SPACE_ND: moving(_batch_to_space),
}
