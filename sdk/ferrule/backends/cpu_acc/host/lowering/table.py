# SPDX-License-Identifier: Apache-2.0
"""Which layer types have kernels for the host's vector instructions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ferrule.backends.cpu_acc.host.lowering.call import Host
from ferrule.backends.cpu_acc.host.lowering.conv2d import lower_conv2d, lower_fully_connected
from ferrule.backends.cpu_acc.host.lowering.depthwise_conv2d import lower_depthwise_conv2d
from ferrule.backends.cpu_acc.host.lowering.pool2d import lower_pool2d
from ferrule.backends.cpu_acc.host.lowering.sum import lower_sum
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.graph import LayerType

HostLowering = Callable[[LoweringContext, Host], LoweredOp | None]
"""Returns None for a layer that the portable kernels run."""

HOST_LOWERINGS: Mapping[LayerType, HostLowering] = {
    LayerType.CONV_2D: lower_conv2d,
    LayerType.DEPTHWISE_CONV_2D: lower_depthwise_conv2d,
    LayerType.FULLY_CONNECTED: lower_fully_connected,
    LayerType.AVERAGE_POOL_2D: lower_pool2d,
    LayerType.MAX_POOL_2D: lower_pool2d,
    LayerType.ADD: lower_sum,
    LayerType.SUB: lower_sum,
}
