# SPDX-License-Identifier: Apache-2.0
"""The layer types that have kernels for the host's vector instructions, and the lowering of the two poolings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ferrule.backends.cpu_acc.host.library import HOST
from ferrule.backends.cpu_acc.host.lowering.call import Host
from ferrule.backends.cpu_acc.host.lowering.conv2d import lower_conv2d, lower_fully_connected
from ferrule.backends.cpu_acc.host.lowering.depthwise_conv2d import lower_depthwise_conv2d
from ferrule.backends.cpu_acc.host.lowering.sum import lower_sum
from ferrule.backends.cpu_acc.lowering.kernel_call import kernel_call, window_value
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.graph import DataType, LayerType, Rounding
from ferrule.operators.fixed_point import activation_range
from ferrule.operators.pool2d import Pool2dDescriptor


def lower_pool2d(context: LoweringContext, host: Host) -> LoweredOp | None:
    """Return the call for an int8 AVERAGE_POOL_2D or MAX_POOL_2D, None for other types and rules of rounding."""
    descriptor, image, output = context.layer.descriptor, context.input(0), context.operands.output
    if not isinstance(descriptor, Pool2dDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    if output.dtype is not DataType.INT8 or context.layer.rounding is not Rounding.TFLM:
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


HostLowering = Callable[[LoweringContext, Host], LoweredOp | None]
"""Lowers a layer for the host; returns None for a layer that the portable kernels must run."""

HOST_LOWERINGS: Mapping[LayerType, HostLowering] = {
    LayerType.CONV_2D: lower_conv2d,
    LayerType.DEPTHWISE_CONV_2D: lower_depthwise_conv2d,
    LayerType.FULLY_CONNECTED: lower_fully_connected,
    LayerType.AVERAGE_POOL_2D: lower_pool2d,
    LayerType.MAX_POOL_2D: lower_pool2d,
    LayerType.ADD: lower_sum,
    LayerType.SUB: lower_sum,
}
