# SPDX-License-Identifier: Apache-2.0
"""TRANSPOSE in C."""

from __future__ import annotations

from ferrule.backends.cpu_acc.lowering.movement import Movement, Movements, axes_of, dense_strides
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.operators.transpose import TransposeDescriptor


def lower_transpose(context: LoweringContext) -> LoweredOp:
    """Return the copy with the input's strides in the new order."""
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, TransposeDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    source, output = context.input(0), context.operands.output
    own = dense_strides(source.shape)
    strides = tuple(own[axis] for axis in descriptor.permutation)
    movements = Movements(context)
    movement = Movement(axes=axes_of(output.shape, strides, dense_strides(output.shape)))
    movements.copy(movement, source.dtype.size_bytes, movements.source(0), context.output_pointer())
    return movements.lowered("transpose")
