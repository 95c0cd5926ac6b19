# SPDX-License-Identifier: Apache-2.0
"""AVERAGE_POOL_2D and MAX_POOL_2D of int8 with the host's vector instructions."""

from __future__ import annotations

from dataclasses import replace

from ferrule.backends.cpu_acc.host.library import HOST
from ferrule.backends.cpu_acc.host.lowering.call import Host
from ferrule.backends.cpu_acc.lowering.kernel_call import kernel_call, window_value
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.graph import DataType, LayerType
from ferrule.operators.fixed_point import activation_range
from ferrule.operators.pool2d import Pool2dDescriptor


def lower_pool2d(context: LoweringContext, host: Host) -> LoweredOp | None:
    """Return the call for int8, None for other types."""
    descriptor, image, output = context.layer.descriptor, context.input(0), context.operands.output
    if not isinstance(descriptor, Pool2dDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    if output.dtype is not DataType.INT8:
        return None
    low, high = activation_range(descriptor.activation, output)
    average = context.layer.type is LayerType.AVERAGE_POOL_2D
    op = kernel_call(
        context,
        f"host_{'average' if average else 'max'}_pool2d_s8_{host.instructions.name}",
        header="host",
        table="pool2d_params",
        contribution=HOST,
        scratch_bytes=4 * image.shape[3] if average else 0,
        window=window_value(descriptor.window, image, output),
        low=low,
        high=high,
    )
    return replace(op, headers=("ferrule/cpu_acc/host.h",))
