# SPDX-License-Identifier: Apache-2.0
"""GpuAcc's workload factory, and the table of its layer types."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ferrule._typing import override
from ferrule.backends.gpu_acc.session import Session
from ferrule.backends.gpu_acc.workloads.launch import Loading
from ferrule.backends.gpu_acc.workloads.simple import (
    CopyWorkload,
    arithmetic,
    extremum,
    pool2d,
    quantize,
    softmax,
    table,
)
from ferrule.backends.gpu_acc.workloads.weighted import conv2d, depthwise_conv2d, fully_connected
from ferrule.backends.workload import Workload, WorkloadFactory, WorkloadInfo
from ferrule.errors import UnsupportedError
from ferrule.graph import LayerType

WORKLOADS: Mapping[LayerType, Callable[[Loading], Workload]] = {
    LayerType.ADD: arithmetic,
    LayerType.AVERAGE_POOL_2D: pool2d,
    LayerType.CONV_2D: conv2d,
    LayerType.DEPTHWISE_CONV_2D: depthwise_conv2d,
    LayerType.DEQUANTIZE: table,
    LayerType.EXPAND_DIMS: CopyWorkload,
    LayerType.FULLY_CONNECTED: fully_connected,
    LayerType.HARD_SWISH: table,
    LayerType.LEAKY_RELU: table,
    LayerType.LOGISTIC: table,
    LayerType.MAXIMUM: extremum,
    LayerType.MAX_POOL_2D: pool2d,
    LayerType.MINIMUM: extremum,
    LayerType.MUL: arithmetic,
    LayerType.QUANTIZE: quantize,
    LayerType.RELU: table,
    LayerType.RELU6: table,
    LayerType.RELU_N1_TO_1: table,
    LayerType.RESHAPE: CopyWorkload,
    LayerType.SOFTMAX: softmax,
    LayerType.SQUEEZE: CopyWorkload,
    LayerType.SUB: arithmetic,
    LayerType.TANH: table,
}
"""The function or class that makes a workload, by layer type."""


class GpuAccWorkloadFactory(WorkloadFactory):
    """Makes the workloads of one loaded network; they share its session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @override
    def create_workload(self, info: WorkloadInfo) -> Workload:
        make = WORKLOADS.get(info.layer.type)
        if make is None:
            raise UnsupportedError(f"layer '{info.layer.name}': there is no OpenCL kernel for {info.layer.type}")
        return make(Loading(info, self._session))
