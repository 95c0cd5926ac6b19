# SPDX-License-Identifier: Apache-2.0
"""Runs a network's layers through a backend's workloads, without the optimizer and the runtime."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ferrule.backends.device import BackendId
from ferrule.backends.shared.host_memory import HostTensorHandle
from ferrule.backends.target import default_target
from ferrule.backends.tensor_handle import MemorySource, TensorHandle
from ferrule.backends.workload import Workload, WorkloadFactory, WorkloadInfo
from ferrule.graph import Array, Graph, TensorInfo
from ferrule.network.execution import operands_of


class LoadedGraph:
    """The workloads of a graph; each tensor has separate memory of exactly its size."""

    def __init__(self, graph: Graph, factory: WorkloadFactory) -> None:
        self.graph = graph
        self.handles: dict[str, TensorHandle] = {
            tensor.info.name: _exact_handle(tensor.info) for tensor in graph.tensors if not tensor.is_constant
        }
        self.workloads: list[Workload] = []
        for layer in graph.layers:
            tensors = [None if name is None else graph.tensor(name) for name in layer.inputs]
            info = WorkloadInfo(
                layer=layer,
                operands=operands_of(graph, layer),
                inputs=tuple(None if name is None else self.handles.get(name) for name in layer.inputs),
                constants=tuple(tensor if tensor is not None and tensor.is_constant else None for tensor in tensors),
                outputs=tuple(self.handles[name] for name in layer.outputs),
                target=default_target(BackendId("CpuAcc")),
            )
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
    assert handle.import_memory(np.empty(info.shape, info.dtype.numpy), MemorySource.MALLOC)
    return handle
