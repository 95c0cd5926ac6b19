# SPDX-License-Identifier: Apache-2.0
"""AVERAGE_POOL_2D and MAX_POOL_2D in C."""

from __future__ import annotations

from ferrule.backends.cpu_acc.lowering.kernel_call import float_limits, kernel_call, window_value
from ferrule.backends.firmware import FieldValue, LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.graph import DataType, LayerType
from ferrule.operators.fixed_point import activation_range
from ferrule.operators.pool2d import Pool2dDescriptor

_SUFFIXES = {DataType.INT8: "s8", DataType.INT16: "s16", DataType.FLOAT32: "f32"}


def lower_pool2d(context: LoweringContext) -> LoweredOp:
    """Return the call of the kernel for the layer's type."""
    descriptor, output = context.layer.descriptor, context.operands.output
    if not isinstance(descriptor, Pool2dDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    low: FieldValue
    high: FieldValue
    if output.dtype.is_float:
        table = "pool2d_f32_params"
        low, high = float_limits(descriptor.activation)
    else:
        table = "pool2d_params"
        low, high = activation_range(descriptor.activation, output)
    kind = "average" if context.layer.type is LayerType.AVERAGE_POOL_2D else "max"
    return kernel_call(
        context,
        f"{kind}_pool2d_{_SUFFIXES[output.dtype]}",
        header="pool2d",
        table=table,
        window=window_value(descriptor.window, context.input(0), output),
        low=low,
        high=high,
    )
