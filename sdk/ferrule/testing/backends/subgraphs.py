# SPDX-License-Identifier: Apache-2.0
"""Tests of the optimisation of subgraphs by a backend."""

from __future__ import annotations

import pytest

from ferrule.backends.optimization_views import OptimizationViews
from ferrule.backends.target import default_target
from ferrule.graph import DataType, SubgraphView
from ferrule.optimizer.partition import extract_subgraphs
from ferrule.optimizer.views import TakenNames, check_views
from ferrule.testing.backends.family import Family
from ferrule.testing.backends.layers import supported
from ferrule.testing.backends.networks import check_network, some_taken
from ferrule.testing.backends.random_networks import TYPES, random_network, shared_network
from ferrule.testing.backends.subject import SubjectRuntime


class SubgraphFamily(Family):
    """Tests of the result of `optimize_subgraph`."""

    @pytest.mark.parametrize("seed", range(12))
    def test_every_layer_stands_in_one_list(self, runtime: SubjectRuntime, seed: int) -> None:
        """Each layer is in one of the four lists, replacements keep their borders, and the graph is unchanged."""
        graph = random_network(seed, 10)
        before = (graph.layers, graph.tensors, graph.outputs)
        backend = runtime.backend()
        support, target = backend.layer_support(), default_target(backend.id)
        taken = [layer.name for layer in graph.layers if support.supports(graph, layer, target)]
        for view in extract_subgraphs(graph, taken):
            views, again = (self._checked(runtime, view) for _ in range(2))
            assert _names(views) == _names(again), f"two objects of the backend differ: {views} and {again}"
        assert (graph.layers, graph.tensors, graph.outputs) == before, "optimize_subgraph changed the graph"

    @pytest.mark.parametrize("dtype", TYPES, ids=str)
    def test_a_layer_alone(self, runtime: SubjectRuntime, dtype: str) -> None:
        """The result for a subgraph of one layer is valid, for each supported layer type."""
        for graph in supported(runtime.backend(), [DataType(dtype)], [1]):
            self._checked(runtime, SubgraphView.of(graph, ["layer"]))

    @pytest.mark.parametrize("seed", range(6))
    def test_outputs_stay(self, runtime: SubjectRuntime, seed: int) -> None:
        """A network gives the same results after the backend has optimised its subgraphs."""
        options = runtime.subject.optimizer_options(simplify=False)
        check_network(runtime, shared_network(500 + seed, 12), runtime.preferences, options)

    def test_it_takes_something(self, runtime: SubjectRuntime) -> None:
        """The backend supports at least one layer; otherwise all other tests here would pass vacuously."""
        some_taken(runtime)

    def _checked(self, runtime: SubjectRuntime, view: SubgraphView) -> OptimizationViews:
        backend = runtime.backend()
        views = backend.optimize_subgraph(view, default_target(backend.id, options=runtime.subject.model_options))
        check_views(backend.id, view, views, TakenNames(view.graph))
        return views


def _names(views: OptimizationViews) -> tuple[list[tuple[str, ...]], ...]:
    return (
        [part.replaced.names for part in views.substitutions],
        [part.names for part in views.failed],
        [part.names for part in views.untouched],
        [part.names for part in views.deleted],
    )
