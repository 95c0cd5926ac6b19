# SPDX-License-Identifier: Apache-2.0
"""RESHAPE, SQUEEZE and EXPAND_DIMS in C: no code, or a copy of a constant."""

from __future__ import annotations

from ferrule.backends.cpu_acc.lowering.movement import Axis, Movement, Movements
from ferrule.backends.firmware import LoweredOp, LoweringContext


def lower_view(context: LoweringContext) -> LoweredOp:
    """Return the output as a view of the input; a constant, which lies elsewhere, is copied."""
    source = context.input(0)
    if not context.is_constant(0):
        return LoweredOp(kernel="view", view_of=source.name)
    movements = Movements(context)
    movement = Movement(axes=(Axis(source.elements, 1, 1),))
    movements.copy(movement, source.dtype.size_bytes, movements.source(0), context.output_pointer())
    return movements.lowered("reshape")
