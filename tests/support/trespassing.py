# SPDX-License-Identifier: Apache-2.0
"""A backend that accesses memory which is not its own, beside one that does not, for the check of ownership."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from mock_backends import registry_of

from ferrule._typing import override
from ferrule.backends import BackendId
from ferrule.backends.cpu_ref import CpuRef
from ferrule.backends.optimization_views import ModelOptions
from ferrule.backends.registry import BackendRegistry
from ferrule.backends.shared.host_memory import address
from ferrule.backends.tensor_handle import FactoryId, MemoryManager
from ferrule.backends.workload import Workload, WorkloadFactory, WorkloadInfo
from ferrule.graph import Array

SEEN: dict[str, Array] = {}
"""The memory of tensors that the backends have mapped: the backend and the layer with 'in' or 'out'."""


class Noting:
    """Runs a layer, and notes where its tensors lie."""

    def __init__(self, info: WorkloadInfo, backend: str, fault: Fault | None) -> None:
        self._inner = CpuRef().workload_factory(None, {}).create_workload(info)
        self._info = info
        self._backend = backend
        self._fault = fault

    def execute(self) -> None:
        """Run the layer, with the fault if there is one."""
        source, target = self._info.inputs[0], self._info.outputs[0]
        assert source is not None
        SEEN[f"{self._backend} {self._info.layer.name} in"] = given = source.map()
        SEEN[f"{self._backend} {self._info.layer.name} out"] = result = target.map()
        for constant in self._info.constants:
            if constant is not None and constant.data is not None:
                SEEN[f"{self._backend} {self._info.layer.name} constant"] = constant.data
        if self._fault is None:
            self._inner.execute()
        else:
            self._fault(given, result, self._inner.execute)
        source.unmap()
        target.unmap()


Fault = Callable[[Array, Array, Callable[[], object]], None]
"""What a faulty layer does with its input, its output, and its work."""


def writes_its_input(given: Array, result: Array, work: Callable[[], object]) -> None:
    """Use the input as scratch."""
    work()
    given[...] = 0


def reads_elsewhere(given: Array, result: Array, work: Callable[[], object]) -> None:
    """Read its own input where the other backend wrote it."""
    work()
    result[...] = SEEN["Honest layer0 out"]


def writes_late(given: Array, result: Array, work: Callable[[], object]) -> None:
    """Write the input of an earlier layer."""
    work()
    SEEN["Trespasser layer1 in"][...] = 0


def reads_its_output(given: Array, result: Array, work: Callable[[], object]) -> None:
    """Let the result depend on what was in the output before."""
    before = int(result.reshape(-1).view(np.uint8)[0])
    work()
    result[0, 1] = before


def leaves_a_byte(given: Array, result: Array, work: Callable[[], object]) -> None:
    """Leave the last element of the output as it was."""
    before = result[-1, -1].copy()
    work()
    result[-1, -1] = before


def reads_behind_its_input(given: Array, result: Array, work: Callable[[], object]) -> None:
    """Read the byte behind the last one of the input."""
    ctypes.string_at(address(given) + given.nbytes, 1)
    work()


def writes_behind_its_output(given: Array, result: Array, work: Callable[[], object]) -> None:
    """Write the byte behind the last one of the output."""
    work()
    ctypes.memset(address(result) + result.nbytes, 0, 1)


def writes_before_its_output(given: Array, result: Array, work: Callable[[], object]) -> None:
    """Write the third byte before the first one of the output."""
    work()
    ctypes.memset(address(result) - 3, 0, 1)


def writes_a_constant(given: Array, result: Array, work: Callable[[], object]) -> None:
    """Write the first byte of a constant as C does, which knows of no read-only arrays."""
    work()
    ctypes.memset(address(SEEN["Trespasser layer2 constant"]), 0, 1)


def reads_behind_a_constant(given: Array, result: Array, work: Callable[[], object]) -> None:
    """Read the byte behind the last one of a constant."""
    constant = SEEN["Trespasser layer2 constant"]
    ctypes.string_at(address(constant) + constant.nbytes, 1)
    work()


FAULTS: dict[str, tuple[str, Fault]] = {
    "writes its input": ("layer2", writes_its_input),
    "reads elsewhere": ("layer1", reads_elsewhere),
    "writes late": ("layer2", writes_late),
    "reads its output": ("layer1", reads_its_output),
    "leaves a byte": ("layer2", leaves_a_byte),
    "reads behind its input": ("layer2", reads_behind_its_input),
    "writes behind its output": ("layer2", writes_behind_its_output),
    "writes before its output": ("layer2", writes_before_its_output),
    "writes a constant": ("layer2", writes_a_constant),
    "reads behind a constant": ("layer2", reads_behind_a_constant),
}
"""The faulty layer and the fault, by name."""


class _Workloads(WorkloadFactory):
    def __init__(self, backend: Honest) -> None:
        self._backend = backend

    @override
    def create_workload(self, info: WorkloadInfo) -> Workload:
        layer, fault = FAULTS.get(self._backend.fault, ("", None))
        return Noting(info, self._backend.id, fault if layer == info.layer.name else None)


class Honest(CpuRef):
    """A backend that shares its tensors in fallback memory."""

    id: ClassVar[BackendId] = BackendId("Honest")
    factory_id: ClassVar[FactoryId] = FactoryId("Honest/Host")
    fallback_memory_required: ClassVar[bool] = True
    fault: ClassVar[str] = ""

    @override
    def workload_factory(self, memory: MemoryManager | None, options: ModelOptions) -> WorkloadFactory:
        return _Workloads(self)


def trespassing(fault: str) -> BackendRegistry:
    """Return a registry with Honest and Trespasser, which has a fault of the table."""
    attributes = {"id": BackendId("Trespasser"), "factory_id": FactoryId("Trespasser/Host"), "fault": fault}
    return registry_of(Honest, type("Trespasser", (Honest,), attributes))
