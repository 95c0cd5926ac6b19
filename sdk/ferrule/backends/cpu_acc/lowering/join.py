# SPDX-License-Identifier: Apache-2.0
"""CONCATENATION and SPLIT in C: one copy per input or output."""

from __future__ import annotations

from ferrule.backends.cpu_acc.lowering.movement import Movement, Movements, axes_of, dense_strides
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.operators.join import ConcatenationDescriptor, SplitDescriptor


def lower_concatenation(context: LoweringContext) -> LoweredOp:
    """Return one copy per input."""
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, ConcatenationDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    output = context.operands.output
    strides = dense_strides(output.shape)
    movements = Movements(context)
    offset = 0
    for index in range(len(context.layer.inputs)):
        source = context.input(index)
        movement = Movement(axes=axes_of(source.shape, dense_strides(source.shape), strides), output_offset=offset)
        movements.copy(movement, source.dtype.size_bytes, movements.source(index), context.output_pointer())
        offset += source.shape[descriptor.axis] * strides[descriptor.axis]
    return movements.lowered("concatenation")


def lower_split(context: LoweringContext) -> LoweredOp:
    """Return one copy per output."""
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, SplitDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    source = context.input(0)
    strides = dense_strides(source.shape)
    movements = Movements(context)
    origin = movements.source(0)
    offset = 0
    for index, output in enumerate(context.operands.outputs):
        movement = Movement(axes=axes_of(output.shape, strides, dense_strides(output.shape)), input_offset=offset)
        movements.copy(movement, source.dtype.size_bytes, origin, context.output_pointer(index))
        offset += output.shape[descriptor.axis] * strides[descriptor.axis]
    return movements.lowered("split")
