# SPDX-License-Identifier: Apache-2.0
"""The host face of backends that compile: their programs run on arrays, and single layers are compiled alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from ferrule import DataType, Network, Quantization, TensorInfo
from ferrule._typing import override
from ferrule.backends import BackendId, Support, Target
from ferrule.backends.backend import LayerSupport
from ferrule.backends.optimization_views import OptimizationViews, PreCompiledDescriptor, pre_compiled
from ferrule.backends.registry import BackendRegistry
from ferrule.backends.shared.host_memory import CompilingBackend
from ferrule.backends.target import default_target
from ferrule.backends.workload import WorkloadInfo
from ferrule.errors import FerruleError, UnsupportedError
from ferrule.graph import Array, Graph, Layer, LayerType, SubgraphView
from ferrule.operators.operator import Operands
from ferrule.optimizer import OptimizerOptions, optimize
from ferrule.runtime import Runtime
from ferrule.testing.backends.loaded_layer import LoadedLayer

X = np.array([[1, -2, 3, -128]], np.int8)


@dataclass(frozen=True)
class Sum:
    """How often each input is added up."""

    times: tuple[int, ...]


class Support_:  # noqa: N801 the name of the interface is taken
    def supports(self, graph: Graph, layer: Layer, target: Target) -> Support:
        return Support("" if layer.type is LayerType.MAXIMUM else "the unit has MAXIMUM only")


class Compiler(CompilingBackend):
    """Compiles MAXIMUM; a program writes the largest of all inputs."""

    id: ClassVar[BackendId] = BackendId("Compiler")
    program: ClassVar[type] = Sum
    ran: ClassVar[list[Sum]] = []
    whole = True

    @override
    def layer_support(self) -> LayerSupport:
        return Support_()

    @override
    def optimize_subgraph(self, view: SubgraphView, target: Target) -> OptimizationViews:
        if not self.whole and len(view.names) == 1:
            return OptimizationViews(failed=(view,), reasons={view.names[0]: "too small"})
        descriptor = PreCompiledDescriptor(payload=Sum(times=(1,) * len(view.inputs)))
        return OptimizationViews(substitutions=(pre_compiled(f"{view.names[-1]}/sum", view, descriptor),))

    @override
    def run_program(self, program: Sum, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        assert len(inputs) == len(program.times)
        self.ran.append(program)
        outputs[0][...] = np.maximum.reduce(list(inputs))


class Reluctant(Compiler):
    """Compiles no layer alone."""

    whole = False


def network(*, repeated: bool = False) -> Network:
    made = Network("largest")
    for name in ("x",) if repeated else ("x", "y"):
        made.add_input(TensorInfo(name, (1, 4), DataType.INT8, quantization=Quantization.of(0.5)))
    last = made.add_maximum_layer("x", "x" if repeated else "y", name="first")
    made.set_outputs([last if repeated else made.add_maximum_layer(last, "x", name="second")])
    return made


def test_a_program_runs_on_the_memory_of_its_tensors() -> None:
    registry, made = BackendRegistry(), network()
    registry.register("Compiler", Compiler)
    with Runtime(registry=registry) as runtime:
        optimized = optimize(made, ["Compiler"], runtime.registry, OptimizerOptions(simplify=False))
        assert [layer.type for layer in optimized.graph.layers] == [LayerType.PRE_COMPILED]
        Compiler.ran.clear()
        (output,) = runtime.enqueue_workload(runtime.load_network(optimized), [X, -X])
    assert output.tolist() == made.run([X, -X])[0].tolist()
    assert Compiler.ran == [Sum(times=(1, 1))]


def test_a_layer_that_was_not_offered_is_compiled_alone() -> None:
    """Also one that reads a tensor twice, of which its program has one input."""
    graph = network(repeated=True)
    Compiler.ran.clear()
    loaded = LoadedLayer(Compiler(), graph, {})
    loaded.acquire()
    try:
        (output,) = loaded.run([X])
    finally:
        loaded.release()
    assert output.tolist() == X.tolist()
    assert Compiler.ran == [Sum(times=(1,))]


def info(graph: Graph, layer: Layer) -> WorkloadInfo:
    target = default_target(Compiler.id)
    constants = (None,) * len(layer.inputs)
    operands = Operands.of(graph, layer)
    return WorkloadInfo(layer=layer, operands=operands, inputs=(), constants=constants, outputs=(), target=target)


def test_a_layer_that_does_not_compile_alone_is_an_error_with_the_reason() -> None:
    graph = network()
    factory = Reluctant().workload_factory(None, {})
    with pytest.raises(UnsupportedError, match="layer 'first': Compiler does not compile it: too small"):
        factory.create_workload(info(graph, graph.layers[0]))


def test_a_program_of_another_backend_is_refused() -> None:
    graph = network()
    view = SubgraphView.of(graph, ["first", "second"])
    (layer,) = pre_compiled("foreign", view, PreCompiledDescriptor(payload=b"")).layers
    foreign = Graph("foreign")
    for each in graph.inputs:
        foreign.add_input(each)
    foreign.add_layer(layer, graph.results)
    foreign.set_outputs(layer.outputs)
    with pytest.raises(FerruleError, match="layer 'foreign' was compiled by another backend than Compiler"):
        Compiler().workload_factory(None, {}).create_workload(info(foreign, layer))
