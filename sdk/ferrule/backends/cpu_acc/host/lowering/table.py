# SPDX-License-Identifier: Apache-2.0
"""The layer types that have kernels for the host's vector instructions, and the lowering of the two poolings."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ferrule.backends.cpu_acc.host.lowering.call import HEADER, Host, host_call
from ferrule.backends.cpu_acc.host.lowering.conv2d import lower_conv2d
from ferrule.backends.cpu_acc.host.lowering.depthwise_conv2d import lower_depthwise_conv2d
from ferrule.backends.cpu_acc.host.lowering.sum import lower_sum
from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall, descriptor_of, limit_fields, window_fields
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.graph import DataType, LayerType, Rounding
from ferrule.operators.spatial.pool2d import Pool2dDescriptor


def lower_pool2d(context: LoweringContext, host: Host) -> LoweredOp | None:
    """Return the call for an int8 AVERAGE_POOL_2D or MAX_POOL_2D, None for other types and rules of rounding."""
    descriptor, image, output = descriptor_of(context, Pool2dDescriptor), context.source, context.output
    if output.dtype is not DataType.INT8 or context.layer.rounding is not Rounding.TFLM:
        return None
    average = context.layer.type is LayerType.AVERAGE_POOL_2D
    call = KernelCall(
        f"{'average' if average else 'max'}_pool2d_s8",
        HEADER,
        {"window": window_fields(descriptor.window, image, output), **limit_fields(output, descriptor.activation)},
        table="pool2d_params",
        scratch_bytes=4 * image.shape[3] if average else 0,
    )
    return host_call(context, host, call)


HostLowering = Callable[[LoweringContext, Host], LoweredOp | None]
"""Lowers a layer for the host; returns None for a layer that the portable kernels must run."""

HOST_LOWERINGS: Mapping[LayerType, HostLowering] = {
    LayerType.CONV_2D: lower_conv2d,
    LayerType.DEPTHWISE_CONV_2D: lower_depthwise_conv2d,
    LayerType.FULLY_CONNECTED: lower_conv2d,
    LayerType.AVERAGE_POOL_2D: lower_pool2d,
    LayerType.MAX_POOL_2D: lower_pool2d,
    LayerType.ADD: lower_sum,
    LayerType.SUB: lower_sum,
}
