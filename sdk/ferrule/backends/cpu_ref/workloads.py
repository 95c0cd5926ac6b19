# SPDX-License-Identifier: Apache-2.0
"""CpuRef's workloads: the numpy kernels applied to tensor handles."""

from __future__ import annotations

import numpy as np

from ferrule._typing import override
from ferrule.backends.tensor_handle import TensorHandle
from ferrule.backends.workload import Workload, WorkloadFactory, WorkloadInfo
from ferrule.errors import UnsupportedError
from ferrule.graph import Array
from ferrule.operators.operator import Operator
from ferrule.operators.table import OPERATORS


class KernelWorkload:
    """Runs an operator's kernel; constants and operands are looked up once, at construction."""

    __slots__ = ("_arrays", "_descriptor", "_inputs", "_kernel", "_operands", "_outputs")

    def __init__(self, operator: Operator, info: WorkloadInfo) -> None:
        self._kernel = operator.kernel
        self._descriptor = info.layer.descriptor
        self._operands = info.operands
        self._arrays = [None if tensor is None else tensor.data for tensor in info.constants]
        self._inputs = [(index, handle) for index, handle in enumerate(info.inputs) if handle is not None]
        self._outputs = info.outputs

    def execute(self) -> None:
        """Run the kernel and copy its results into the output handles."""
        arrays = self._arrays.copy()
        for index, handle in self._inputs:
            arrays[index] = handle.map()
        results = self._kernel(self._descriptor, self._operands, arrays)
        for target, result in zip(self._outputs, results, strict=True):
            _write(target, result)
        for _, handle in self._inputs:
            handle.unmap()


class CpuRefWorkloadFactory(WorkloadFactory):
    """Makes a workload for every layer that CpuRef supports."""

    @override
    def create_workload(self, info: WorkloadInfo) -> Workload:
        operator = OPERATORS.get(info.layer.type)
        if operator is None:
            raise UnsupportedError(f"there is no numpy kernel for {info.layer.type}")
        operator.accept(info.layer.descriptor, info.operands)
        return KernelWorkload(operator, info)


def _write(target: TensorHandle, result: Array) -> None:
    array = target.map()
    if array.shape != result.shape:
        raise RuntimeError(f"the kernel returned shape {list(result.shape)} for tensor '{target.info.name}'")
    np.copyto(array, result, casting="no")
    target.unmap()
