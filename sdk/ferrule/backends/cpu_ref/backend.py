# SPDX-License-Identifier: Apache-2.0
"""The CpuRef backend: the numpy reference, on the host only."""

from __future__ import annotations

from typing import ClassVar

from ferrule._typing import override
from ferrule.backends.backend import LayerSupport, Support
from ferrule.backends.capability import HAS_FP16, ROUNDING_RULES, Capabilities
from ferrule.backends.cpu_ref.workloads import CpuRefWorkloadFactory
from ferrule.backends.device import BackendId
from ferrule.backends.optimization_views import ModelOptions
from ferrule.backends.shared.host_memory import HostMemoryBackend
from ferrule.backends.target import Target
from ferrule.backends.tensor_handle import MemoryManager
from ferrule.backends.workload import WorkloadFactory
from ferrule.errors import FerruleError
from ferrule.graph import ALL_ROUNDINGS, Graph, Layer
from ferrule.operators.table import OPERATORS


class CpuRefSupport:
    """Supports every layer that its operator accepts; that is every type except PRE_COMPILED."""

    def supports(self, graph: Graph, layer: Layer, target: Target) -> Support:
        """Return whether a numpy kernel exists for the layer and accepts it."""
        operator = OPERATORS.get(layer.type)
        if operator is None:
            return Support(f"there is no numpy kernel for {layer.type}")
        if not isinstance(layer.descriptor, operator.descriptor):
            found, wanted = type(layer.descriptor).__name__, operator.descriptor.__name__
            return Support(f"the descriptor is {found}, expected {wanted}")
        try:
            operator.accept_layer(graph, layer)
        except FerruleError as error:
            return Support(str(error))
        return Support()


class CpuRef(HostMemoryBackend):
    """Runs layers with the numpy kernels, which define the correct results but are slow."""

    id: ClassVar[BackendId] = BackendId("CpuRef")

    @override
    def layer_support(self) -> LayerSupport:
        return CpuRefSupport()

    @override
    def capabilities(self) -> Capabilities:
        return {HAS_FP16: True, ROUNDING_RULES: " ".join(sorted(ALL_ROUNDINGS))}

    @override
    def workload_factory(self, memory: MemoryManager | None, options: ModelOptions) -> WorkloadFactory:
        del memory, options
        return CpuRefWorkloadFactory()
