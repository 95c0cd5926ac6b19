# SPDX-License-Identifier: Apache-2.0
"""REDUCE_MAX, REDUCE_MIN, REDUCE_ANY, REDUCE_ALL, ARG_MAX and ARG_MIN in C."""

from __future__ import annotations

import math

from ferrule.backends.cpu_acc.lowering.kernel_call import kernel_call
from ferrule.backends.cpu_acc.lowering.operators.reduce import loops, loops_value
from ferrule.backends.cpu_acc.lowering.operators.unary import unary_call
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.graph import DataType
from ferrule.operators.arg_select import ArgSelectDescriptor
from ferrule.operators.reduce import ReduceDescriptor

_SUFFIXES = {DataType.INT8: "s8", DataType.FLOAT32: "f32", DataType.BOOL: "bool"}


def lower_reduce_select(context: LoweringContext) -> LoweredOp:
    """Return the call of the reduction that is named after the layer's type and the type of its elements."""
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, ReduceDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    kept, reduced = loops(context.input(0).shape, descriptor.axes)
    return unary_call(
        context,
        _kernel(context),
        header="reduce_select",
        parameters="reduce_select_params",
        kept=loops_value(kept),
        reduced=loops_value(reduced),
    )


def lower_arg_select(context: LoweringContext) -> LoweredOp:
    """Return the call for ARG_MAX or ARG_MIN."""
    descriptor, shape = context.layer.descriptor, context.input(0).shape
    if not isinstance(descriptor, ArgSelectDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    axis = descriptor.axis
    return kernel_call(
        context,
        _kernel(context),
        header="reduce_select",
        table="arg_select_params",
        outer=math.prod(shape[:axis]),
        extent=shape[axis],
        inner=math.prod(shape[axis + 1 :]),
    )


def _kernel(context: LoweringContext) -> str:
    return f"{context.layer.type.lower()}_{_SUFFIXES[context.input(0).dtype]}"
