# SPDX-License-Identifier: Apache-2.0
"""Failures of Arm NN's optimizer and runtime that no other test covers."""

from __future__ import annotations

import pytest
from mock_backends import CountingAllocator, Mock, assigned, chain, check_chain, mock, registry_of, sample

from ferrule.backends.backend import Support
from ferrule.backends.context import CreationOptions
from ferrule.backends.cpu_ref import CpuRef
from ferrule.backends.optimization_views import ModelOptions, OptimizationViews
from ferrule.backends.target import Target
from ferrule.errors import ModelError
from ferrule.graph import Graph, Layer, LayerType, Quantization, SubgraphView
from ferrule.network import Network
from ferrule.optimizer import OptimizerOptions, optimize
from ferrule.runtime import Runtime

PLAIN = OptimizerOptions(simplify=False)


def failing(self: Mock, view: SubgraphView, options: ModelOptions) -> OptimizationViews:
    """Fail on the whole subgraph."""
    del self, options
    return OptimizationViews(failed=(view,))


@pytest.mark.parametrize("options", [PLAIN, OptimizerOptions(simplify=False, import_enabled=True, export_enabled=True)])
def test_a_backend_that_failed_on_all_leaves_no_copies_at_the_ends(options: OptimizerOptions) -> None:
    """In Arm NN, inputs and outputs stay with the backend that failed, with copies from and to it."""
    broken = mock("Broken", optimize_subgraph=failing)
    with Runtime(registry=registry_of(broken, Mock)) as runtime:
        optimized = optimize(chain(), ["Broken", "Mock"], runtime.registry, options)
        assert {given.backend for given in optimized.assignment.values()} == {"Mock"}
        assert not {layer.type for layer in optimized.graph.layers} & {LayerType.MEM_COPY, LayerType.MEM_IMPORT}
        number = runtime.load_network(optimized)
        check_chain(runtime, number)


def test_a_network_keeps_its_memory_while_another_runs_on_the_thread() -> None:
    """Arm NN releases a network's memory when another network runs, and acquires it again each time."""
    allocator = CountingAllocator()
    with Runtime(CreationOptions(custom_allocators={"Mock": allocator}), registry_of(Mock)) as runtime:
        first, second = (runtime.load_network(assigned(chain(), {})) for _ in range(2))
        for _ in range(3):
            for number in (first, second):
                runtime.enqueue_workload(number, [sample()])
        assert (allocator.total, len(allocator.held)) == (2, 2)
    assert allocator.held == []


def test_each_backends_reason_stands_by_itself() -> None:
    """In Arm NN, the reason of one backend's refusal continues in the next backend's text."""
    network = Network("two")
    network.add_input(chain().inputs[0])
    network.set_outputs([network.add_tanh_layer(network.add_relu_layer("x", name="first"), name="second")])
    refusing = [mock(name, layer_support=lambda self: _Refusing(self.id)) for name in ("One", "Two")]
    optimized = optimize(network, ["One", "Two", "CpuRef"], registry_of(*refusing, CpuRef), PLAIN)
    assert dict(optimized.refusals) == {
        (layer, backend): f"{backend} has no {kind}"
        for layer, kind in (("first", "RELU"), ("second", "TANH"))
        for backend in ("One", "Two")
    }


class _Refusing:
    def __init__(self, name: str) -> None:
        self._name = name

    def supports(self, graph: Graph, layer: Layer, target: Target) -> Support:
        del graph
        return Support(f"{self._name} has no {layer.type}")


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_no_tensor_has_a_scale_that_is_none(scale: float) -> None:
    """Arm NN notices a scale of 0 only during the assignment, and only in one of its types."""
    with pytest.raises(ModelError, match="expected a positive finite number"):
        Quantization(scales=(scale,))
