# SPDX-License-Identifier: Apache-2.0
"""The CpuRef backend: the reference, on the host only."""

from __future__ import annotations

from typing import ClassVar

from ferrule._typing import override
from ferrule.backends.backend import LayerSupport
from ferrule.backends.capability import EXTERNALLY_MANAGED_MEMORY, HAS_FP16, Capabilities
from ferrule.backends.cpu_ref.support import CpuRefSupport
from ferrule.backends.cpu_ref.workloads import CpuRefWorkloadFactory
from ferrule.backends.device import BackendId
from ferrule.backends.optimization_views import ModelOptions
from ferrule.backends.shared.host_memory import HostMemoryBackend
from ferrule.backends.tensor_handle import MemoryManager
from ferrule.backends.workload import WorkloadFactory


class CpuRef(HostMemoryBackend):
    """The numpy kernels, which define what is right; slow."""

    id: ClassVar[BackendId] = BackendId("CpuRef")

    @override
    def layer_support(self) -> LayerSupport:
        return CpuRefSupport()

    @override
    def capabilities(self) -> Capabilities:
        return {HAS_FP16: True, EXTERNALLY_MANAGED_MEMORY: True}

    @override
    def workload_factory(self, memory: MemoryManager | None, options: ModelOptions) -> WorkloadFactory:
        del memory, options
        return CpuRefWorkloadFactory()
