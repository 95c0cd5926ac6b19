# SPDX-License-Identifier: Apache-2.0
"""Broadcasting of two inputs with different shapes, by numpy's rules."""

from __future__ import annotations

import numpy as np

from ferrule.errors import ModelError
from ferrule.graph import DataType, Descriptor, Shape
from ferrule.operators.movement.checks import check_axes, check_types
from ferrule.operators.operator import Operands, Shapes

MAX_AXES = 6
"""The most axes that TensorFlow Lite Micro's kernels broadcast."""


def infer_broadcast(_: Descriptor, operands: Operands) -> Shapes:
    """Return the shape that both inputs broadcast to."""
    first, second = operands.pair
    try:
        return (np.broadcast_shapes(first.shape, second.shape),)
    except ValueError:
        raise ModelError(
            f"tensor '{second.name}' of shape {list(second.shape)} does not broadcast with '{first.name}' of shape "
            f"{list(first.shape)}"
        ) from None


def broadcasts_to(shape: Shape, wanted: Shape) -> bool:
    """Return whether a shape broadcasts to another one."""
    # Not by numpy's function, which refuses more than 32 axes and extents beyond an address.
    last = zip(reversed(shape), reversed(wanted), strict=False)
    return len(shape) <= len(wanted) and all(mine in {1, extent} for mine, extent in last)


def check_broadcast(operands: Operands, allowed: frozenset[DataType]) -> DataType:
    """Return the common type of both inputs and the output.

    Raises:
        UnsupportedError: the types differ, the type is not allowed, or the output has too many axes.
    """
    check_types(operands, allowed)
    check_axes(operands.output, MAX_AXES)
    return operands.output.dtype
