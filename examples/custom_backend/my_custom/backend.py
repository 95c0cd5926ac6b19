# SPDX-License-Identifier: Apache-2.0
"""The backend: a stateless factory of everything else in this folder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ferrule import override
from ferrule.backends import (
    ROUNDING_RULES,
    Backend,
    BackendId,
    BackendOption,
    Capabilities,
    CreationOptions,
    CustomAllocator,
    FirmwareTarget,
    LayerSupport,
    MemoryManager,
    ModelOptions,
    OptimizationViews,
    Target,
    WorkloadFactory,
    untouched,
)
from ferrule.graph import SubgraphView
from my_custom.context import CustomContext
from my_custom.firmware import CustomTarget
from my_custom.layer_support import CustomLayerSupport
from my_custom.memory import CustomMemoryManager, CustomTensorHandleFactory
from my_custom.optimization import optimize
from my_custom.program import MAX_ELEMENTS
from my_custom.workloads import CustomWorkloadFactory

PROGRAMS = BackendOption(
    name="programs", default=True, meaning="put additions that hang together in one program", firmware=True
)


class MyCustom(Backend):
    """An imaginary adder, on the host and on boards."""

    id: ClassVar[BackendId] = BackendId("MyCustom")

    @override
    def layer_support(self) -> LayerSupport:
        return CustomLayerSupport()

    @override
    def capabilities(self) -> Capabilities:
        return {"MaxElements": MAX_ELEMENTS, ROUNDING_RULES: "tflm onnx onnx-uint8"}

    @override
    def model_options(self) -> Sequence[BackendOption]:
        return (PROGRAMS,)

    @override
    def optimize_subgraph(self, view: SubgraphView, target: Target) -> OptimizationViews:
        return optimize(view) if target.options.get(PROGRAMS.name, PROGRAMS.default) else untouched(view)

    # ---- host face

    @override
    def memory_manager(self, allocator: CustomAllocator | None = None) -> MemoryManager:
        return CustomMemoryManager()

    @override
    def tensor_handle_factories(self, memory: MemoryManager | None) -> Sequence[CustomTensorHandleFactory]:
        return (CustomTensorHandleFactory(memory if isinstance(memory, CustomMemoryManager) else None),)

    @override
    def workload_factory(self, memory: MemoryManager | None, options: ModelOptions) -> WorkloadFactory:
        return CustomWorkloadFactory()

    @override
    def context(self, options: CreationOptions) -> CustomContext:
        return CustomContext(options)

    # ---- firmware face

    @override
    def firmware_target(self) -> FirmwareTarget:
        return CustomTarget()
