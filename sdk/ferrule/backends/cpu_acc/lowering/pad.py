# SPDX-License-Identifier: Apache-2.0
"""PAD and PADV2 in C: the output is filled, then the input is copied into it."""

from __future__ import annotations

import numpy as np

from ferrule.backends.cpu_acc.lowering.movement import Movement, Movements, axes_of, dense_strides
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.operators.pad import PadDescriptor, PadV2Descriptor, fill_value


def lower_pad(context: LoweringContext) -> LoweredOp:
    """Return the fill and the copy."""
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, PadDescriptor | PadV2Descriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    source, output = context.input(0), context.operands.output
    strides = dense_strides(output.shape)
    movements = Movements(context)
    if source.elements != output.elements:
        value = np.array([fill_value(descriptor, context.operands)], output.dtype.numpy)
        movements.fill(value, output.elements, context.output_pointer())
    offset = sum(before * stride for before, stride in zip(descriptor.before, strides, strict=True))
    movement = Movement(axes=axes_of(source.shape, dense_strides(source.shape), strides), output_offset=offset)
    movements.copy(movement, source.dtype.size_bytes, movements.source(0), context.output_pointer())
    return movements.lowered("pad")
