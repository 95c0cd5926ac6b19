# SPDX-License-Identifier: Apache-2.0
"""Runs a network's layers through a backend's workloads, without the optimizer and the runtime."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ferrule.backends.device import BackendId
from ferrule.backends.shared.host_memory import HostTensorHandle
from ferrule.backends.target import default_target
from ferrule.backends.tensor_handle import MemoryRef, TensorHandle
from ferrule.backends.workload import Workload, WorkloadFactory, WorkloadInfo
from ferrule.graph import Array, Graph, TensorInfo


class LoadedGraph:
    """The workloads of a graph; each tensor has separate memory of exactly its size."""

    def __init__(self, graph: Graph, factory: WorkloadFactory) -> None:
        self.graph = graph
        self.handles: dict[str, TensorHandle] = {
            tensor.info.name: _exact_handle(tensor.info) for tensor in graph.tensors if not tensor.is_constant
        }
        self.workloads: list[Workload] = []
        target = default_target(BackendId("CpuAcc"))
        for layer in graph.layers:
            info = WorkloadInfo.of(graph, layer, self.handles.__getitem__, target)
            self.workloads.append(factory.create_workload(info))

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Return copies of the outputs."""
        for info, data in zip(self.graph.inputs, inputs, strict=True):
            np.copyto(self.handles[info.name].map(), data, casting="no")
        for workload in self.workloads:
            assert workload.execute() is None
        return [
            np.copy(tensor.data if tensor.data is not None else self.handles[info.name].map())
            for info in self.graph.outputs
            for tensor in [self.graph.tensor(info.name)]
        ]


def _exact_handle(info: TensorInfo) -> HostTensorHandle:
    handle = HostTensorHandle(info, managed=False)
    assert handle.import_memory(MemoryRef.of_array(np.empty(info.shape, info.dtype.numpy)))
    return handle
