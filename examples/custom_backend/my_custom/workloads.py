# SPDX-License-Identifier: Apache-2.0
"""Workloads: layers that run on the host, where numpy takes the place of the device."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ferrule import override
from ferrule.backends import PreCompiledDescriptor, TensorHandle, Workload, WorkloadFactory, WorkloadInfo
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, LayerType
from ferrule.operators import BinaryDescriptor
from my_custom.arithmetic import Combination, FloatSum, add, arithmetic_of
from my_custom.program import AdditionProgram


class AdditionWorkload:
    """One addition; one operand may be a constant."""

    def __init__(
        self, arithmetic: Combination | FloatSum, operands: Sequence[TensorHandle | Array], target: TensorHandle
    ) -> None:
        self._arithmetic = arithmetic
        self._operands = operands
        self._target = target

    def execute(self) -> None:
        """Read both operands, add them and write the sum."""
        first, second = (item.map() if isinstance(item, TensorHandle) else item for item in self._operands)
        np.copyto(self._target.map(), add(self._arithmetic, first, second))
        for item in (*self._operands, self._target):
            if isinstance(item, TensorHandle):
                item.unmap()


class ProgramWorkload:
    """A pre-compiled program."""

    def __init__(self, program: AdditionProgram, info: WorkloadInfo) -> None:
        self._program = program
        self._inputs = [handle for handle in info.inputs if handle is not None]
        self._outputs = info.outputs

    def execute(self) -> None:
        """Run the program on the present values of the inputs."""
        results = self._program.run([handle.map() for handle in self._inputs])
        for handle, result in zip(self._outputs, results, strict=True):
            np.copyto(handle.map(), result)
        for handle in (*self._inputs, *self._outputs):
            handle.unmap()


class CustomWorkloadFactory(WorkloadFactory):
    """Creates the workloads of one loaded network."""

    @override
    def create_workload(self, info: WorkloadInfo) -> Workload:
        layer = info.layer
        if isinstance(layer.descriptor, PreCompiledDescriptor):
            program = layer.descriptor.payload
            if not isinstance(program, AdditionProgram):
                raise UnsupportedError(f"layer '{layer.name}' was pre-compiled by another backend")
            return ProgramWorkload(program, info)
        if layer.type is LayerType.ADD and isinstance(layer.descriptor, BinaryDescriptor):
            arithmetic = arithmetic_of(layer.descriptor, info.operands)
            return AdditionWorkload(arithmetic, _operands(info), info.outputs[0])
        raise UnsupportedError(f"layer '{layer.name}': the device adds, it has no {layer.type}")


def _operands(info: WorkloadInfo) -> list[TensorHandle | Array]:
    operands: list[TensorHandle | Array] = []
    for handle, constant in zip(info.inputs, info.constants, strict=True):
        if handle is not None:
            operands.append(handle)
        elif constant is not None and constant.data is not None:
            operands.append(constant.data)
    return operands
