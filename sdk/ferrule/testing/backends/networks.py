# SPDX-License-Identifier: Apache-2.0
"""Whole networks through optimizer and runtime, alone and beside another backend."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from ferrule.backends.context import NetworkId
from ferrule.backends.shared.host_memory import aligned_empty
from ferrule.backends.shared.host_memory.canaries import Fenced
from ferrule.graph import Array, DataType, Graph, LayerType
from ferrule.network import Network
from ferrule.optimizer import OptimizedNetwork, OptimizerOptions, optimize
from ferrule.runtime import Runtime
from ferrule.testing.backends.comparison import graph_difference, random_inputs
from ferrule.testing.backends.family import Family
from ferrule.testing.backends.layer_cases import LAYER_TYPES, add_case
from ferrule.testing.backends.layers import answer, shared_case, supported
from ferrule.testing.backends.random_networks import shared_network
from ferrule.testing.backends.subject import Neighbour, SubjectRuntime

_RUNS = 2
_CHAINABLE = (DataType.INT8, DataType.FLOAT32, DataType.INT16, DataType.FLOAT16)
_SHARING = [pytest.param(False, id="copied"), pytest.param(True, id="imported")]


def check_network(
    runtime: Runtime, network: Graph, preferences: Sequence[str], options: OptimizerOptions
) -> OptimizedNetwork:
    """Run a network twice on the preferred backends; AssertionError describes a difference from the reference."""
    optimized = optimize(network, preferences, runtime.registry, options)
    number = runtime.load_network(optimized)
    try:
        for seed in range(_RUNS):
            inputs = random_inputs(network, seed)
            kept = [array.tobytes() for array in inputs]
            fences = [Fenced(info) for info in network.outputs]
            results = runtime.enqueue_workload(number, inputs, [fence.array for fence in fences])
            assert [array.tobytes() for array in inputs] == kept, f"run {seed} of {network.name} wrote an input"
            damage = next(filter(None, (fence.damage() for fence in fences)), "")
            assert not damage, f"run {seed} of {network.name}: {damage}"
            wrong = graph_difference(network, inputs, results)
            owners = {name: given.device for name, given in optimized.assignment.items()}
            assert not wrong, f"run {seed} of {network.name} on {owners}: {wrong}"
    finally:
        runtime.unload_network(number)
    return optimized


def load(runtime: SubjectRuntime, network: Graph, options: OptimizerOptions | None = None) -> NetworkId:
    """Load a network, optimised for the backend under test and its neighbour."""
    chosen = options or runtime.subject.optimizer_options()
    return runtime.load_network(optimize(network, runtime.preferences, runtime.registry, chosen))


def check_run(runtime: Runtime, number: NetworkId, network: Graph, seed: int = 0) -> None:
    """Run a loaded network once; AssertionError describes a difference from the reference."""
    inputs = random_inputs(network, seed)
    wrong = graph_difference(network, inputs, runtime.enqueue_workload(number, inputs))
    assert not wrong, wrong


class EndToEndFamily(Family):
    """End-to-end tests: a network's results do not depend on where its layers run."""

    @pytest.mark.parametrize("type_", LAYER_TYPES, ids=str)
    def test_each_layer(self, runtime: SubjectRuntime, type_: LayerType) -> None:
        """The backend gets exactly the layers that it supports; the others go to the next backend, with the reason."""
        backend, options = runtime.backend(), runtime.subject.optimizer_options(simplify=False)
        for dtype in DataType:
            graph, refusal = shared_case(type_, dtype, 0)
            if refusal:
                continue
            support = answer(backend, graph)
            try:
                optimized = check_network(runtime, graph, runtime.preferences, options)
            except AssertionError as error:
                error.add_note(f"the layer has {graph.layers[0].descriptor}")
                raise
            if not support:
                refused = optimized.refusals["layer", backend.id]
                assert refused == support.reason, f"the reason is {refused!r}, expected {support.reason!r}"
            owners = {str(optimized.assignment[layer.name].backend) for layer in optimized.graph.layers}
            assert not support or backend.id in owners, f"{graph.name} is supported, but runs on {owners}"

    @pytest.mark.parametrize("shared", _SHARING)
    @pytest.mark.parametrize("seed", range(12))
    def test_random_networks(self, runtime: SubjectRuntime, seed: int, *, shared: bool) -> None:
        """Networks of all operators, with branches and several outputs, give the reference's results."""
        options = runtime.subject.optimizer_options(
            import_enabled=shared, export_enabled=shared, simplify=seed % 2 == 0
        )
        check_network(runtime, shared_network(seed, 8), runtime.preferences, options)

    @pytest.mark.parametrize("shared", _SHARING)
    @pytest.mark.parametrize("seed", range(12))
    def test_networks_divided_at_random(self, runtime: SubjectRuntime, seed: int, *, shared: bool) -> None:
        """Networks whose layers are assigned at random to the backend or its neighbour give the reference's results."""
        dice = random.Random(seed)  # noqa: S311 - no secret
        network = shared_network(1000 + seed, 8, dice.choice([DataType.INT8, DataType.INT16]))
        hints = {layer.name: dice.choice(runtime.preferences) for layer in network.layers}
        options = runtime.subject.optimizer_options(
            hints=hints, import_enabled=shared, export_enabled=shared, simplify=False, debug=seed % 4 == 0
        )
        check_network(runtime, network, runtime.preferences[::-1], options)

    @pytest.mark.parametrize("shared", _SHARING)
    def test_data_changes_hands_and_comes_back(self, runtime: SubjectRuntime, *, shared: bool) -> None:
        """Between two layers of its neighbour, the backend reads and writes through its own handles."""
        network = sandwich(some_taken(runtime))
        hints = {"before": Neighbour.id, "layer": runtime.subject.id, "after": Neighbour.id}
        options = runtime.subject.optimizer_options(
            hints=hints, import_enabled=shared, export_enabled=shared, simplify=False
        )
        optimized = check_network(runtime, network, [Neighbour.id], options)
        found = {str(given.backend) for given in optimized.assignment.values()}
        assert runtime.subject.id in found, f"the layer in the middle runs on {found}"

    def test_the_callers_buffers(self, runtime: SubjectRuntime) -> None:
        """Outputs are written into the caller's buffers, aligned or not, and inputs are not changed."""
        taken = first_taken(runtime)
        network = sandwich(taken) if taken is not None else shared_network(0, 4, DataType.INT8)
        options = runtime.subject.optimizer_options(import_enabled=True, export_enabled=True, simplify=False)
        number = load(runtime, network, options)
        try:
            for shift in (0, 1, 64):
                inputs = [_shifted(array, shift) for array in random_inputs(network, shift)]
                kept = [array.copy() for array in inputs]
                buffers = [_shifted(np.zeros(info.shape, info.dtype.numpy), shift) for info in network.outputs]
                results = runtime.enqueue_workload(number, inputs, buffers)
                assert all(one is other for one, other in zip(results, buffers, strict=True)), (
                    "the results are not in the caller's buffers"
                )
                same = all(np.array_equal(one, other, equal_nan=True) for one, other in zip(inputs, kept, strict=True))
                assert same, "an input was changed"
                wrong = graph_difference(network, kept, buffers)
                assert not wrong, f"memory {shift} elements off its alignment: {wrong}"
        finally:
            runtime.unload_network(number)


def first_taken(runtime: SubjectRuntime) -> Graph | None:
    """Return the first supported `shared_case` that fits between two other layers; None if there is none."""
    found = supported(runtime.backend(), _CHAINABLE, range(4))
    return next((graph for graph in found if graph.outputs[0].dtype is graph.inputs[0].dtype), None)


def some_taken(runtime: SubjectRuntime) -> Graph:
    """Return the result of `first_taken`; AssertionError if it is None."""
    taken = first_taken(runtime)
    assert taken is not None, f"{runtime.subject.id} supports none of the families' layers that fit between two others"
    return taken


def sandwich(case: Graph) -> Network:
    """Return the layer of a case with a MAXIMUM of equal operands before its first input and after its output."""
    network = Network("sandwich")
    first = case.inputs[0]
    network.add_input(replace(first, name="x"))
    before = network.add_maximum_layer("x", "x", name="before")
    written = add_case(network, case, {first.name: network.info(before)})
    network.set_outputs([network.add_maximum_layer(written[0], written[0], name="after")])
    return network


def _shifted(array: Array, elements: int) -> Array:
    """Return a copy that begins some elements after an aligned address."""
    size = array.size + elements
    memory = aligned_empty((size,), DataType(array.dtype.name), 4096)
    view = memory[elements:].reshape(array.shape)
    np.copyto(view, array)
    return view
