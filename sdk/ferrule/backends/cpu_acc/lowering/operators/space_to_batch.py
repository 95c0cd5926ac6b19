# SPDX-License-Identifier: Apache-2.0
"""SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND in C: strided copies."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from ferrule._frozen import positional
from ferrule.backends.cpu_acc.lowering.kernel_call import descriptor_of
from ferrule.backends.cpu_acc.lowering.strided_copy import Copies, dense_strides
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.graph import Shape
from ferrule.operators.movement.block import BatchToSpaceNdDescriptor, SpaceToBatchNdDescriptor, fill_value


@positional
class _Places:
    """Neighbouring places of the blocks on one axis that reach the same blocks: `count` of them from `first` on."""

    first: int
    count: int
    block: int
    """The first block that has elements of the undivided tensor at these places."""
    blocks: int


def _places(extent: int, size: int, before: int, blocks: int) -> list[_Places]:
    """Group the places of an axis, on which the first of `extent` elements has the position `before`."""

    def reached(place: int) -> tuple[int, int]:
        return max(0, -((place - before) // size)), min(blocks - 1, (before + extent - 1 - place) // size)

    groups = [(ends, [*same]) for ends, same in itertools.groupby(range(size), reached)]
    return [_Places(same[0], len(same), first, last - first + 1) for (first, last), same in groups if first <= last]


def _copies(
    whole: Shape, divided: Shape, block: Sequence[int], before: Sequence[int]
) -> Iterator[tuple[Sequence[int], Sequence[int], Sequence[int], int, int]]:
    """Yield the copies between an undivided and a divided tensor: shape, strides and offsets of both, undivided first.

    `before` has the position of the first element of the undivided tensor on each divided axis.
    """
    strides, parts = dense_strides(whole), dense_strides(divided)
    middle = range(len(block))
    steps = [stride * whole[0] * parts[0] for stride in dense_strides(tuple(block))]
    groups = [_places(whole[1 + axis], block[axis], before[axis], divided[1 + axis]) for axis in middle]
    for chosen in itertools.product(*groups):
        shape = [*(each.count for each in chosen), whole[0], *(each.blocks for each in chosen), whole[-1]]
        mine = [strides[1 + axis] for axis in middle]
        mine += [strides[0], *(strides[1 + axis] * block[axis] for axis in middle), 1]
        start = sum(
            (each.block * block[axis] + each.first - before[axis]) * strides[1 + axis]
            for axis, each in enumerate(chosen)
        )
        there = sum(each.first * steps[axis] + each.block * parts[1 + axis] for axis, each in enumerate(chosen))
        yield shape, mine, [*steps, *parts], start, there


def lower_space_to_batch(context: LoweringContext) -> LoweredOp:
    """Return the copies for SPACE_TO_BATCH_ND, after a fill if it pads."""
    descriptor = descriptor_of(context, SpaceToBatchNdDescriptor)
    source, output = context.operands.ends
    copies = Copies(context)
    if source.elements != output.elements:
        copies.fill(np.array([fill_value(context.operands)], output.dtype.numpy), output.elements)
    for copy in _copies(source.shape, output.shape, descriptor.block, descriptor.before):
        copies.copy(*copy)
    return copies.lowered()


def lower_batch_to_space(context: LoweringContext) -> LoweredOp:
    """Return the copies for BATCH_TO_SPACE_ND."""
    descriptor = descriptor_of(context, BatchToSpaceNdDescriptor)
    copies = Copies(context)
    divided = context.source.shape
    for shape, mine, theirs, start, there in _copies(
        context.output.shape, divided, descriptor.block, descriptor.before
    ):
        copies.copy(shape, theirs, mine, there, start)
    return copies.lowered()
