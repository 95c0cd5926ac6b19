# SPDX-License-Identifier: Apache-2.0
"""Backends for the optimizer's tests: they accept layers by type, rewrite layers by name, and run nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ferrule._typing import override
from ferrule.backends import Backend, BackendId, LayerSupport, Support
from ferrule.backends.capability import Capabilities
from ferrule.backends.optimization_views import (
    ModelOptions,
    OptimizationViews,
    PreCompiledDescriptor,
    Substitution,
    pre_compiled,
    untouched,
)
from ferrule.backends.registry import BackendRegistry
from ferrule.backends.target import Target
from ferrule.backends.tensor_handle import (
    FactoryId,
    HandleCapability,
    MemoryManager,
    MemorySource,
    TensorHandle,
    TensorHandleFactory,
)
from ferrule.backends.workload import Workload, WorkloadFactory, WorkloadInfo
from ferrule.graph import DataType, Graph, Layer, LayerType, SubgraphView, TensorInfo
from ferrule.network import Network

Refuses = Callable[[Graph, Layer], str]
Optimise = Callable[[SubgraphView], OptimizationViews]


class FlagFactory(TensorHandleFactory):
    """A factory whose flags alone matter."""

    def __init__(
        self,
        name: str,
        *,
        imports: MemorySource = MemorySource.UNDEFINED,
        exports: MemorySource = MemorySource.UNDEFINED,
        maps: bool = True,
        capabilities: Iterable[HandleCapability] = (),
        alignment: int = 1,
    ) -> None:
        self.id = FactoryId(name)
        self.import_flags = imports
        self.export_flags = exports
        self.supports_map_unmap = maps
        self._capabilities = frozenset(capabilities)
        self._alignment = alignment

    @override
    def create_handle(self, info: TensorInfo, *, managed: bool) -> TensorHandle:
        raise AssertionError("the optimizer makes no handles")

    @override
    def capabilities(self, layer: Layer | None = None, connected: Layer | None = None) -> frozenset[HandleCapability]:
        return self._capabilities

    @override
    def memory_alignment(self, source: MemorySource) -> int:
        return self._alignment


class NoWorkloads(WorkloadFactory):
    @override
    def create_workload(self, info: WorkloadInfo) -> Workload:
        raise AssertionError("the optimizer makes no workloads")


@dataclass(frozen=True)
class MockSupport:
    refuses: Refuses

    def supports(self, graph: Graph, layer: Layer, target: Target) -> Support:
        return Support(self.refuses(graph, layer))


def takes_all(graph: Graph, layer: Layer) -> str:
    return ""


def takes(*types: LayerType) -> Refuses:
    return lambda graph, layer: "" if layer.type in types else f"{layer.type} is not for me"


def takes_names(names: Collection[str]) -> Refuses:
    return lambda graph, layer: "" if layer.name in names else f"{layer.name} is not for me"


def takes_types(*dtypes: DataType) -> Refuses:
    """Accept conversions, and layers whose float tensors all have one of these types."""

    def refuses(graph: Graph, layer: Layer) -> str:
        infos = [info for info in (*graph.input_infos(layer), *graph.output_infos(layer)) if info is not None]
        wrong = [info for info in infos if info.dtype.is_float and info.dtype not in dtypes]
        conversion = layer.type in {LayerType.CONVERT_FP16_TO_FP32, LayerType.CONVERT_FP32_TO_FP16}
        return f"tensor '{wrong[0].name}' is {wrong[0].dtype}" if wrong and not conversion else ""

    return refuses


def backend(
    name: str,
    refuses: Refuses = takes_all,
    *,
    optimise: Optimise = untouched,
    capabilities: Mapping[str, bool] | None = None,
    factories: Sequence[TensorHandleFactory] = (),
    preferences: Sequence[str] | None = None,
) -> type[Backend]:
    """Return a mock backend class."""

    class MockBackend(Backend):
        id = BackendId(name)

        @override
        def layer_support(self) -> LayerSupport:
            return MockSupport(refuses)

        @override
        def capabilities(self) -> Capabilities:
            return capabilities or {}

        @override
        def optimize_subgraph(self, view: SubgraphView, target: Target) -> OptimizationViews:
            return optimise(view)

        @override
        def workload_factory(self, memory: MemoryManager | None, options: ModelOptions) -> WorkloadFactory:
            return NoWorkloads()

        @override
        def tensor_handle_factories(self, memory: MemoryManager | None) -> Sequence[TensorHandleFactory]:
            return factories

        @override
        def handle_factory_preferences(self) -> Sequence[FactoryId]:
            return [FactoryId(key) for key in ([f.id for f in factories] if preferences is None else preferences)]

    return MockBackend


def registry(*backends: type[Backend]) -> BackendRegistry:
    found = BackendRegistry()
    for item in backends:
        found.register(item.id, item, origin="test")
    return found


def by_name(view: SubgraphView) -> OptimizationViews:
    """As Arm NN's mock backend does: fail layers named "unoptimizable", and pre-compile the others."""
    failed = [name for name in view.names if "unoptimizable" in name]
    if not failed:
        return OptimizationViews(substitutions=(compiled(view),))
    good = [name for name in view.names if name not in failed]
    return OptimizationViews(
        substitutions=tuple(compiled(SubgraphView.of(view.graph, [name])) for name in good),
        failed=tuple(SubgraphView.of(view.graph, [name]) for name in failed),
        reasons=dict.fromkeys(failed, "its name says so"),
    )


def compiled(view: SubgraphView) -> Substitution:
    return pre_compiled(f"compiled {view.names[0]}", view, PreCompiledDescriptor(payload=view.names))


def floats(name: str, shape: tuple[int, ...] = (1, 4), dtype: DataType = DataType.FLOAT32) -> TensorInfo:
    return TensorInfo(name, shape, dtype)


def line(*names: str) -> Network:
    """Return a chain of layers with these names after input x: TANH where a name contains "tanh", otherwise RELU."""
    network = Network("line")
    tensor = network.add_input(floats("x"))
    for name in names:
        add = network.add_tanh_layer if "tanh" in name else network.add_relu_layer
        tensor = add(tensor, name=name)
    network.set_outputs([tensor])
    return network
