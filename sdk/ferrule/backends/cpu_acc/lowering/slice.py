# SPDX-License-Identifier: Apache-2.0
"""SLICE and STRIDED_SLICE in C."""

from __future__ import annotations

from collections.abc import Sequence

from ferrule.backends.cpu_acc.lowering.movement import Movement, Movements, axes_of, dense_strides
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.operators.slice import Range, SliceDescriptor, StridedSliceDescriptor, slice_ranges, strided_ranges


def lower_slice(context: LoweringContext) -> LoweredOp:
    """Return the copy for SLICE."""
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, SliceDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    return _lower(context, "slice", slice_ranges(descriptor, context.input(0)))


def lower_strided_slice(context: LoweringContext) -> LoweredOp:
    """Return the copy for STRIDED_SLICE."""
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, StridedSliceDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    return _lower(context, "strided_slice", strided_ranges(descriptor, context.input(0)))


def _lower(context: LoweringContext, kernel: str, ranges: Sequence[Range]) -> LoweredOp:
    source = context.input(0)
    own = dense_strides(source.shape)
    counts = tuple(taken.count for taken in ranges)
    strides = tuple(taken.step * stride for taken, stride in zip(ranges, own, strict=True))
    offset = sum(taken.start * stride for taken, stride in zip(ranges, own, strict=True))
    movements = Movements(context)
    movement = Movement(axes=axes_of(counts, strides, dense_strides(counts)), input_offset=offset)
    movements.copy(movement, source.dtype.size_bytes, movements.source(0), context.output_pointer())
    return movements.lowered(kernel)
