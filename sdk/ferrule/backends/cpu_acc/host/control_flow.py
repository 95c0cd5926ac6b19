# SPDX-License-Identifier: Apache-2.0
"""Workloads of IF and WHILE on the host: the workloads of the layers of their graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ferrule.backends.shared.host_memory import HostTensorHandle
from ferrule.backends.target import Target
from ferrule.backends.tensor_handle import TensorHandle
from ferrule.backends.workload import Workload, WorkloadInfo
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, Graph
from ferrule.operators.control_flow import IfDescriptor, WhileDescriptor, counted, work_of_iteration

Create = Callable[[WorkloadInfo], Workload]


class ControlFlowWorkload:
    """Runs the graphs of an IF or WHILE layer; the condition is read between two graphs."""

    __slots__ = ("_graphs", "_inputs", "_loop_of", "_outputs")

    def __init__(self, info: WorkloadInfo, create: Create) -> None:
        """`create` makes the workloads of the layers."""
        descriptor = info.layer.descriptor
        if not isinstance(descriptor, IfDescriptor | WhileDescriptor):
            raise UnsupportedError(f"layer '{info.layer.name}' has a {type(descriptor).__name__}")
        self._graphs = [_GraphWorkload(graph, info.target, create) for graph in descriptor.graphs.values()]
        self._loop_of = descriptor if isinstance(descriptor, WhileDescriptor) else None
        self._inputs: list[TensorHandle | Array] = []
        for handle, constant in zip(info.inputs, info.constants, strict=True):
            if handle is not None:
                self._inputs.append(handle)
            elif constant is not None and constant.data is not None:
                self._inputs.append(constant.data)
            else:
                raise UnsupportedError(f"layer '{info.layer.name}' lacks an input")
        self._outputs = info.outputs

    def execute(self) -> None:
        """Run the layers and write the outputs."""
        values = [each.map() if isinstance(each, TensorHandle) else each for each in self._inputs]
        if self._loop_of is None:
            then, other = self._graphs
            results: Sequence[Array] = (then if bool(values[0].reshape(())) else other).run(values[1:])
        else:
            results = self._loop(values, self._loop_of)
        for target, result in zip(self._outputs, results, strict=True):
            np.copyto(target.map(), result, casting="no")
            target.unmap()
        for each in self._inputs:
            if isinstance(each, TensorHandle):
                each.unmap()

    def _loop(self, values: Sequence[Array], loop: WhileDescriptor) -> Sequence[Array]:
        condition, body = self._graphs
        work = work_of_iteration(loop)
        with counted() as iterations:
            while bool(condition.run(values)[0].reshape(())):
                iterations.begin(loop.limit, work)
                # a result may lie in an input of the body, over which the next iteration writes another one
                values = [result.copy() for result in body.run(values)]
        return values


class _GraphWorkload:
    """The workloads of a graph's layers, with a handle for each tensor."""

    __slots__ = ("_handles", "_inputs", "_results", "_workloads")

    def __init__(self, graph: Graph, target: Target, create: Create) -> None:
        self._handles = {
            tensor.info.name: HostTensorHandle(tensor.info) for tensor in graph.tensors if not tensor.is_constant
        }
        self._inputs = [info.name for info in graph.inputs]
        self._results: list[HostTensorHandle | Array] = []
        for info in graph.outputs:
            data = graph.tensor(info.name).data
            self._results.append(self._handles[info.name] if data is None else data)
        self._workloads = [
            create(WorkloadInfo.of(graph, layer, self._handles.__getitem__, target)) for layer in graph.layers
        ]

    def run(self, values: Sequence[Array]) -> list[Array]:
        """Return the outputs, which the next run overwrites."""
        for name, value in zip(self._inputs, values, strict=True):
            np.copyto(self._handles[name].memory(), value, casting="no")
        for workload in self._workloads:
            workload.execute()
        return [each.memory() if isinstance(each, HostTensorHandle) else each for each in self._results]
