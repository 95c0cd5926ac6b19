# SPDX-License-Identifier: Apache-2.0
"""The EthosU backend: subgraphs become streams of Vela, which an Ethos-U or its model executes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from ferrule._typing import override
from ferrule.backends.backend import LayerSupport, Policy
from ferrule.backends.capability import RUNS_BESIDE, Capabilities
from ferrule.backends.device import BackendId
from ferrule.backends.ethos_u.compiler import compile_subgraph
from ferrule.backends.ethos_u.firmware import EthosUTarget
from ferrule.backends.ethos_u.instance import StreamInstance
from ferrule.backends.ethos_u.program import EthosUProgram
from ferrule.backends.ethos_u.settings import OPTIONS
from ferrule.backends.ethos_u.support import EthosUSupport
from ferrule.backends.firmware import FirmwareTarget
from ferrule.backends.optimization_views import OptimizationViews
from ferrule.backends.option import BackendOption
from ferrule.backends.shared.host_memory import CompilingBackend
from ferrule.backends.target import Target
from ferrule.graph import Array, SubgraphView

_SUBGRAPH_COST = 2500
"""Measured on mps2-an505 with zig: 2,048 to 2,388 instructions for a stream of ic, with the interrupt and without
copies, on ethos-u55-128."""


class EthosU(CompilingBackend):
    """Arm's Ethos-U55 and U65: int8 and int16 networks, compiled by Vela.

    On the host, the functional model executes the streams.
    """

    id: ClassVar[BackendId] = BackendId("EthosU")
    program: ClassVar[type] = EthosUProgram

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
    def run_program(self, program: EthosUProgram, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        self.loaded(program)(inputs, outputs)

    @override
    def loaded(self, program: EthosUProgram) -> Callable[[Sequence[Array], Sequence[Array]], None]:
        return StreamInstance(program.stream).run

    @override
    def firmware_target(self) -> FirmwareTarget:
        return EthosUTarget()
