# SPDX-License-Identifier: Apache-2.0
"""Whichever backends run the layers, and whatever they substitute, every bit of the outputs stays."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optimizer_mocks import FlagFactory, backend, registry, takes_names

from ferrule.backends import Backend
from ferrule.backends.optimization_views import OptimizationViews, Substitution
from ferrule.backends.tensor_handle import MemorySource
from ferrule.graph import Array, Graph, LayerType, SubgraphView
from ferrule.network.execution import check_inputs
from ferrule.network.validation import check_layer
from ferrule.operators.interpreter import execute
from ferrule.optimizer import OptimizedNetwork, OptimizerOptions, optimize
from ferrule.testing.backends.random_networks import random_network

SOURCES = (
    MemorySource.UNDEFINED,
    MemorySource.MALLOC,
    MemorySource.DMA_BUF,
    MemorySource.MALLOC | MemorySource.DMA_BUF,
)


def random_backend(dice: random.Random, name: str, graph: Graph, *, everything: bool) -> type[Backend]:
    """Return a backend that supports some layers, fails on some, replaces some one by one, and leaves the rest."""
    names = [layer.name for layer in graph.layers]
    taken = set(names) if everything else {found for found in names if dice.random() < 0.6}
    failing = set() if everything else {found for found in names if dice.random() < 0.3}
    replaced = {found for found in names if dice.random() < 0.3}

    def optimise(view: SubgraphView) -> OptimizationViews:
        failed = [found for found in view.names if found in failing]
        renewed = [found for found in view.names if found in replaced and found not in failing]
        rest = [found for found in view.names if found not in {*failed, *renewed}]
        parts = [SubgraphView.of(view.graph, [found]) for found in renewed]
        return OptimizationViews(
            substitutions=tuple(Substitution(replaced=part, layers=(renewal(part),)) for part in parts),
            failed=tuple(SubgraphView.of(view.graph, [found]) for found in failed),
            untouched=(SubgraphView.of(view.graph, rest),) if rest else (),
        )

    def renewal(part: SubgraphView):  # noqa: ANN202
        (layer,) = part.layers
        return type(layer)(
            name=f"{layer.name} by {name}",
            type=layer.type,
            descriptor=layer.descriptor,
            inputs=layer.inputs,
            outputs=layer.outputs,
        )

    factories = [
        FlagFactory(f"{name}{index}", imports=dice.choice(SOURCES), exports=dice.choice(SOURCES))
        for index in range(dice.randint(0, 2))
    ]
    return backend(name, takes_names(taken), optimise=optimise, factories=factories)


def inputs_of(graph: Graph, seed: int) -> list[Array]:
    generator = np.random.default_rng(seed)
    return [
        generator.normal(0, 2, info.shape).astype(info.dtype.numpy)
        if info.dtype.is_float
        else generator.integers(-100, 100, info.shape).astype(info.dtype.numpy)
        for info in graph.inputs
    ]


def divided(seed: int) -> tuple[Graph, OptimizedNetwork]:
    dice = random.Random(seed)
    graph = random_network(seed, 10)
    kinds = [random_backend(dice, name, graph, everything=name == "D") for name in "ABCD"]
    preferences = [kind.id for kind in kinds[:-1]]
    dice.shuffle(preferences)
    hinted = [layer.name for layer in graph.layers if dice.random() < 0.2]
    options = OptimizerOptions(
        simplify=False,  # simplification may rename layers, which these backends know by name
        import_enabled=dice.random() < 0.5,
        export_enabled=dice.random() < 0.5,
        debug=dice.random() < 0.2,
        hints={name: dice.choice("ABCD") for name in hinted},
    )
    return graph, optimize(graph, [*preferences, "D"], registry(*kinds), options)


@settings(max_examples=80)
@given(st.integers(0, 100_000))
def test_outputs_keep_every_bit(seed: int) -> None:
    graph, result = divided(seed)
    inputs = inputs_of(graph, seed)
    before = execute(graph, check_inputs(graph, inputs))
    after = execute(result.graph, check_inputs(result.graph, inputs))
    for wanted, got in zip(before, after, strict=True):
        assert wanted.dtype == got.dtype
        assert wanted.tobytes() == got.tobytes()


@settings(max_examples=80)
@given(st.integers(0, 100_000))
def test_everything_is_decided_and_consistent(seed: int) -> None:
    graph, result = divided(seed)
    assert [info.name for info in result.graph.outputs] == [info.name for info in graph.outputs]
    assert set(result.assignment) == {layer.name for layer in result.graph.layers}
    computed = {tensor.info.name for tensor in result.graph.tensors if not tensor.is_constant}
    assert set(result.factories) == computed
    owners = {given.backend for given in result.assignment.values()}
    assert set(result.backends) == owners
    for layer in result.graph.layers:
        check_layer(result.graph, layer)
        owner = result.assignment[layer.name].backend
        # the run-time registry holds only the owners' factories; a layer reads its own factory's handles, or plain
        # memory
        own = {factory for factory in result.factories.values() if factory is not None and factory[:-1] == owner}
        for name in layer.outputs:
            assert result.factories[name] is None or result.factories[name] in own
        if layer.type in {LayerType.MEM_COPY, LayerType.MEM_IMPORT}:
            continue
        for name in layer.present_inputs:
            if name in computed:
                assert result.factories[name] is None or result.factories[name] in own


@pytest.mark.parametrize("seed", range(5))
def test_the_same_again(seed: int) -> None:
    first, second = divided(seed)[1], divided(seed)[1]
    assert first.graph.layers == second.graph.layers
    assert (first.assignment, first.factories, first.messages) == (
        second.assignment,
        second.factories,
        second.messages,
    )
