# SPDX-License-Identifier: Apache-2.0
"""The EthosU backend: subgraphs become streams of Vela, which an Ethos-U or its model executes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ferrule._typing import override
from ferrule.backends.backend import LayerSupport, Policy
from ferrule.backends.capability import RUNS_BESIDE, Capabilities
from ferrule.backends.device import BackendId
from ferrule.backends.ethos_u.compiler import compile_subgraph
from ferrule.backends.ethos_u.firmware import EthosUTarget
from ferrule.backends.ethos_u.host import EthosUWorkloadFactory
from ferrule.backends.ethos_u.settings import OPTIONS
from ferrule.backends.ethos_u.support import EthosUSupport
from ferrule.backends.firmware import FirmwareTarget
from ferrule.backends.optimization_views import ModelOptions, OptimizationViews
from ferrule.backends.option import BackendOption
from ferrule.backends.shared.host_memory import HostMemoryBackend
from ferrule.backends.target import Target
from ferrule.backends.tensor_handle import MemoryManager
from ferrule.backends.workload import WorkloadFactory
from ferrule.graph import SubgraphView

_SUBGRAPH_COST = 2500
"""Measured on mps2-an505 with zig: 2,048 to 2,388 instructions for a stream of ic, with the interrupt and without
copies, on ethos-u55-128."""


class EthosU(HostMemoryBackend):
    """Arm's Ethos-U55 and U65: int8 and int16 networks, compiled by Vela.

    On the host, the functional model executes the streams.
    """

    id: ClassVar[BackendId] = BackendId("EthosU")

    @override
    def layer_support(self) -> LayerSupport:
        return EthosUSupport()

    @override
    def capabilities(self) -> Capabilities:
        return {RUNS_BESIDE: _SUBGRAPH_COST}

    @override
    def model_options(self) -> Sequence[BackendOption]:
        return (*OPTIONS, *Policy().model_options())

    @override
    def policy(self, target: Target) -> Policy:
        return Policy.of(target.options)

    @override
    def optimize_subgraph(self, view: SubgraphView, target: Target) -> OptimizationViews:
        return compile_subgraph(view, target)

    @override
    def workload_factory(self, memory: MemoryManager | None, options: ModelOptions) -> WorkloadFactory:
        del memory, options
        return EthosUWorkloadFactory()

    @override
    def firmware_target(self) -> FirmwareTarget:
        return EthosUTarget()
