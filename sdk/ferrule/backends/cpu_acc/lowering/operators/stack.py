# SPDX-License-Identifier: Apache-2.0
"""PACK and UNPACK in C: one strided copy per part."""

from __future__ import annotations

from ferrule.backends.cpu_acc.lowering.operators.movement import Movement, Movements, axes_of, dense_strides
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.operators.stack import PackDescriptor, UnpackDescriptor


def lower_pack(context: LoweringContext) -> LoweredOp:
    """Return the copies for PACK, one per input."""
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, PackDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    axis = descriptor.axis
    strides = dense_strides(context.operands.output.shape)
    others = strides[:axis] + strides[axis + 1 :]
    movements = Movements(context)
    for index in range(len(context.layer.inputs)):
        part = context.input(index)
        movement = Movement(
            axes=axes_of(part.shape, dense_strides(part.shape), others), output_offset=index * strides[axis]
        )
        movements.copy(movement, part.dtype.size_bytes, movements.source(index), context.output_pointer())
    return movements.lowered("pack")


def lower_unpack(context: LoweringContext) -> LoweredOp:
    """Return the copies for UNPACK, one per output."""
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, UnpackDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    axis, source = descriptor.axis, context.input(0)
    strides = dense_strides(source.shape)
    others = strides[:axis] + strides[axis + 1 :]
    movements = Movements(context)
    origin = movements.source(0)
    for index, part in enumerate(context.operands.outputs):
        movement = Movement(
            axes=axes_of(part.shape, others, dense_strides(part.shape)), input_offset=index * strides[axis]
        )
        movements.copy(movement, part.dtype.size_bytes, origin, context.output_pointer(index))
    return movements.lowered("unpack")
