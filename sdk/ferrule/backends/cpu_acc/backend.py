# SPDX-License-Identifier: Apache-2.0
"""The CpuAcc backend: its layer support, and its firmware and host faces, which call the kernels in `src_c/kernels`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from ferrule._typing import override
from ferrule.backends.backend import LayerSupport, Support
from ferrule.backends.capability import FIRMWARE_FLOATS, ROUNDING_RULES, Capabilities
from ferrule.backends.context import BackendContext, CreationOptions
from ferrule.backends.cpu_acc.host.instruction_set import PORTABLE
from ferrule.backends.cpu_acc.host.library import host_library
from ferrule.backends.cpu_acc.host.options import HOST_OPTIONS, INSTRUCTIONS, HostOptions
from ferrule.backends.cpu_acc.lowering.bounds import bound_of
from ferrule.backends.cpu_acc.lowering.operators.control_flow import CONTROL_FLOW, lower_control_flow
from ferrule.backends.cpu_acc.lowering.table import LOWERINGS, costs_of, lowering_of
from ferrule.backends.cpu_acc.streaming.lowering import lower_stream
from ferrule.backends.cpu_acc.streaming.selection import stream
from ferrule.backends.device import BackendId
from ferrule.backends.firmware import FirmwareTarget, KernelCosts, LoweredOp, LoweringContext
from ferrule.backends.optimization_views import ModelOptions, OptimizationViews, untouched
from ferrule.backends.option import BackendOption
from ferrule.backends.shared.host_memory import HOST_FACTORY, HostMemoryBackend
from ferrule.backends.target import Face, Goal, Target
from ferrule.backends.tensor_handle import FactoryId, MemoryManager
from ferrule.backends.workload import WorkloadFactory
from ferrule.errors import FerruleError
from ferrule.graph import DataType, Graph, Layer, LayerType, SubgraphView
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS


class CpuAccSupport:
    """Supports every layer that its operator accepts and that has a C kernel; the check does not lower the layer."""

    def supports(self, graph: Graph, layer: Layer, target: Target) -> Support:
        """Return whether a C kernel exists for the layer and accepts it."""
        if layer.type not in (LOWERINGS.keys() | CONTROL_FLOW):
            return Support(f"there is no C kernel for {layer.type}")
        operands = Operands.of(graph, layer)
        for info in (*operands.inputs, *operands.outputs):
            if info is not None and info.dtype is DataType.FLOAT16:
                return Support(f"tensor '{info.name}' is float16, which no C kernel takes")
        try:
            OPERATORS[layer.type].accept_layer(graph, layer)
        except FerruleError as error:
            return Support(str(error))
        for name, inner in layer.descriptor.graphs.items():
            for each in inner.layers:
                support = self.supports(inner, each, target)
                if support.reason:
                    return Support(f"{name}, layer '{each.name}' {each.type}: {support.reason}")
        return Support()


class CpuAccTarget:
    """Lowers layers to calls of the C kernels; weights are packed and constants folded during lowering."""

    def lower(self, context: LoweringContext) -> LoweredOp:
        """Return the layer as C; UnsupportedError if there is no kernel for it."""
        if context.layer.type is LayerType.PRE_COMPILED:
            return lower_stream(context, self.lower)
        if context.layer.type in CONTROL_FLOW:
            return lower_control_flow(context, self.lower)
        return replace(lowering_of(context.layer)(context), bound=bound_of(context))

    def costs(self, context: LoweringContext) -> Sequence[KernelCosts]:
        """Return the costs of the kernels that can run the layer; empty if it is lowered in one way."""
        return costs_of(context)


class CpuAcc(HostMemoryBackend):
    """Runs layers as C on the processor core: portable C in firmware, vector instructions on the host."""

    id: ClassVar[BackendId] = BackendId("CpuAcc")
    factory_id: ClassVar[FactoryId] = FactoryId("Ferrule/CpuAcc")

    @override
    def layer_support(self) -> LayerSupport:
        return CpuAccSupport()

    @override
    def capabilities(self) -> Capabilities:
        return {
            ROUNDING_RULES: " ".join(sorted(frozenset().union(*(OPERATORS[type_].rules for type_ in LOWERINGS)))),
            FIRMWARE_FLOATS: f"{INSTRUCTIONS.name}={PORTABLE}",
        }

    @override
    def model_options(self) -> Sequence[BackendOption]:
        return HOST_OPTIONS

    @override
    def workload_factory(self, memory: MemoryManager | None, options: ModelOptions) -> WorkloadFactory:
        from ferrule.backends.cpu_acc.host.workloads import CpuAccWorkloadFactory

        del memory
        return CpuAccWorkloadFactory(HostOptions.parse(options))

    @override
    def handle_factory_preferences(self) -> Sequence[FactoryId]:
        return (self.factory_id, HOST_FACTORY)

    @override
    def optimize_subgraph(self, view: SubgraphView, target: Target) -> OptimizationViews:
        if target.face is Face.FIRMWARE and target.goal is Goal.MEMORY:
            return stream(view, target)
        return untouched(view)

    @override
    def context(self, options: CreationOptions) -> BackendContext | None:
        del options
        host_library()
        return None

    @override
    def firmware_target(self) -> FirmwareTarget:
        return CpuAccTarget()
