# SPDX-License-Identifier: Apache-2.0
"""Subgraphs offered to backends: valid answers, their effect, and refused answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from optimizer_mocks import Optimise, backend, by_name, compiled, floats, line, registry, takes

from ferrule.backends.optimization_views import (
    InvalidViewsError,
    OptimizationViews,
    PreCompiledDescriptor,
    Substitution,
)
from ferrule.backends.target import Target
from ferrule.errors import UnsupportedError
from ferrule.graph import Graph, Layer, LayerType, SubgraphView, Tensor
from ferrule.network import Network
from ferrule.network.execution import check_inputs
from ferrule.operators.elementwise.rectify import ReluDescriptor
from ferrule.operators.interpreter import execute
from ferrule.optimizer import OptimizedNetwork, OptimizerOptions, optimize

PLAIN = OptimizerOptions(simplify=False)
TYPES = (LayerType.RELU,)


def run(graph: Graph, optimise: Optimise, *, fallback: bool = False) -> OptimizedNetwork:
    backends = [backend("Mock", takes(*TYPES), optimise=optimise)] + ([backend("Other")] if fallback else [])
    return optimize(graph, [item.id for item in backends], registry(*backends), PLAIN)


def names(result: OptimizedNetwork) -> list[tuple[str, str]]:
    return [
        (layer.name, result.assignment[layer.name].backend)
        for layer in result.graph.layers
        if layer.type is not LayerType.MEM_COPY
    ]


def test_fully_unsupported() -> None:
    assert names(run(line("tanh1", "tanh2"), by_name, fallback=True)) == [("tanh1", "Other"), ("tanh2", "Other")]


def test_fully_optimizable() -> None:
    result = run(line("a", "b", "c"), by_name)
    assert names(result) == [("compiled a", "Mock")]
    (layer,) = result.graph.layers
    assert (layer.type, layer.inputs, layer.outputs) == (LayerType.PRE_COMPILED, ("x",), ("c",))


def test_partially_supported() -> None:
    result = run(line("a", "tanh", "b", "c"), by_name, fallback=True)
    assert names(result) == [("compiled a", "Mock"), ("tanh", "Other"), ("compiled b", "Mock")]


def test_fully_unoptimizable() -> None:
    result = run(line("unoptimizable1", "unoptimizable2"), by_name, fallback=True)
    assert names(result) == [("unoptimizable1", "Other"), ("unoptimizable2", "Other")]
    assert result.refusals["unoptimizable1", "Mock"] == "it failed to optimise the layer: its name says so"
    assert "Some sub-graph(s) failed to optimized on Mock backend." in result.messages
    assert "Re-assigning backends to 1 layers inside sub-graph 0" in result.messages


def test_partially_optimizable_only_what_failed_is_given_on() -> None:
    result = run(line("a", "unoptimizable", "b"), by_name, fallback=True)
    assert names(result) == [("compiled a", "Mock"), ("unoptimizable", "Other"), ("compiled b", "Mock")]


def test_a_failure_without_another_backend_names_the_reason() -> None:
    with pytest.raises(UnsupportedError, match=r"'unoptimizable'.*Mock: it failed to optimise the layer: its name"):
        run(line("a", "unoptimizable"), by_name)


def test_the_next_backend_optimises_what_the_first_failed_on() -> None:
    def other(view: SubgraphView) -> OptimizationViews:
        return OptimizationViews(substitutions=(compiled(view),))

    first = backend("First", optimise=by_name)
    second = backend("Second", optimise=other)
    graph = line("a", "unoptimizable1", "unoptimizable2")
    result = optimize(graph, ["First", "Second"], registry(first, second), PLAIN)
    assert names(result) == [("compiled a", "First"), ("compiled unoptimizable1", "Second")]


def test_a_failure_on_the_last_backend_goes_back_to_one_that_would_take_it() -> None:
    """The hint sends the layer to B first; A, which is preferred, has not seen it yet."""
    a, b = backend("A"), backend("B", optimise=by_name)
    options = OptimizerOptions(simplify=False, hints={"unoptimizable": "B"})
    result = optimize(line("a", "unoptimizable"), ["A", "B"], registry(a, b), options)
    assert names(result) == [("a", "A"), ("unoptimizable", "A")]


def test_model_options_reach_their_backend() -> None:
    seen: list[object] = []

    class Curious(backend("Curious")):  # type: ignore[misc]
        def model_options(self) -> None:
            return None

        def optimize_subgraph(self, view: SubgraphView, target: Target) -> OptimizationViews:
            seen.append(target.options)
            return super().optimize_subgraph(view, target)

    options = OptimizerOptions(model_options={"Curious": {"fast": True}})
    optimize(line("a"), ["Curious"], registry(Curious), options)
    assert seen == [{"fast": True}]


class TestDeleted:
    """A RELU of a RELU changes nothing and may be deleted; the values prove that the graph was spliced correctly."""

    @staticmethod
    def deleting(*gone: str) -> Optimise:
        def optimise(view: SubgraphView) -> OptimizationViews:
            rest = [name for name in view.names if name not in gone]
            return OptimizationViews(
                untouched=(SubgraphView.of(view.graph, rest),) if rest else (),
                deleted=tuple(SubgraphView.of(view.graph, [name]) for name in view.names if name in gone),
            )

        return optimise

    @pytest.mark.parametrize("gone", [("b",), ("a", "b"), ("b", "c"), ("c",), ("a",)])
    def test_values_and_output_names_stay(self, gone: tuple[str, ...]) -> None:
        graph = line("a", "b", "c")
        result = run(graph, self.deleting(*gone))
        assert [info.name for info in result.graph.outputs] == ["c"]
        assert {layer.name for layer in result.graph.layers} == {"a", "b", "c"} - set(gone)
        x = np.array([[-1, 2, -3, 4]], np.float32)
        assert_array_equal(execute(result.graph, check_inputs(result.graph, [x])), graph.run([x]))

    def test_what_joins_an_input_to_an_output_stays(self) -> None:
        result = run(line("a", "b"), self.deleting("a", "b"))
        assert [layer.name for layer in result.graph.layers] == ["b"]
        assert result.messages == ("layer 'b' stays, though Mock deletes it: it writes an output of the network",)

    def test_two_outputs_of_one_source(self) -> None:
        network = Network("fork")
        x = network.add_input(floats("x"))
        a = network.add_relu_layer(x, name="a")
        network.set_outputs([network.add_relu_layer(a, name="b"), network.add_relu_layer(a, name="c")])
        result = run(network, self.deleting("b", "c"))
        assert [info.name for info in result.graph.outputs] == ["b", "c"]
        assert [layer.name for layer in result.graph.layers] == ["a", "c"]
        x_ = np.array([[-1, 2, -3, 4]], np.float32)
        assert_array_equal(execute(result.graph, {"x": x_}), network.run([x_]))


def relu(name: str, source: str, output: str) -> Layer:
    return Layer(name, LayerType.RELU, ReluDescriptor(), inputs=(source,), outputs=(output,))


def test_a_replacement_of_several_layers_with_constants() -> None:
    def optimise(view: SubgraphView) -> OptimizationViews:
        weights = Tensor(floats("packed", (2,)), np.zeros(2, np.float32))
        middle = replace(view.info("b"), name="middle")
        layers = (
            Layer(
                "new",
                LayerType.PRE_COMPILED,
                PreCompiledDescriptor(payload=None),
                inputs=("x", "packed"),
                outputs=("middle",),
            ),
            relu("b", "middle", "b"),
        )
        return OptimizationViews(
            substitutions=(Substitution(replaced=view, layers=layers, tensors=(middle,), constants=(weights,)),)
        )

    result = run(line("a", "b"), optimise)
    assert names(result) == [("new", "Mock"), ("b", "Mock")]
    assert result.graph.tensor("packed").is_constant


def substitute(**changes: object) -> Callable[[SubgraphView], OptimizationViews]:
    """Return an optimise function that replaces all layers by one, with some of its fields changed."""

    def optimise(view: SubgraphView) -> OptimizationViews:
        whole = compiled(view)
        layer = {key: value for key, value in changes.items() if key in {"name", "inputs", "outputs", "type"}}
        rest = {key: value for key, value in changes.items() if key not in layer}
        layers = (replace(whole.layers[0], **layer),)
        return OptimizationViews(substitutions=(replace(whole, **({"layers": layers} | rest)),))

    return optimise


def part(view: SubgraphView, *wanted: str) -> SubgraphView:
    return SubgraphView.of(view.graph, wanted)


@pytest.mark.parametrize(
    ("optimise", "message"),
    [
        (lambda view: OptimizationViews(), "layer 'a' in none of its lists"),
        (lambda view: OptimizationViews(untouched=(part(view, "a", "b"),)), "layer 'c' in none of its lists"),
        (lambda view: OptimizationViews(untouched=(view,), failed=(part(view, "b"),)), "layer 'b' 2 times"),
        (lambda view: OptimizationViews(untouched=(view, view)), "layer 'a' 2 times"),
        (lambda view: OptimizationViews(untouched=(SubgraphView(view.graph, ("zz",)),)), "'zz', which it was not"),
        (lambda view: OptimizationViews(untouched=(view, part(view, "tanh"))), "'tanh', which it was not offered"),
        (lambda view: OptimizationViews(untouched=(view, part(view))), "a view without layers in untouched"),
        (lambda view: OptimizationViews(untouched=(SubgraphView(line("a"), ("a",)),)), "a view of another graph"),
        (substitute(layers=()), "replaces layer 'a' by nothing"),
        (substitute(inputs=("c",)), "reads tensor 'c', expected an input of the replaced layers"),
        (substitute(inputs=("nowhere",)), "'compiled a' reads tensor 'nowhere'"),
        (substitute(outputs=()), "writes no 'c', which others read"),
        (substitute(outputs=("c", "c")), "writes tensor 'c', which is written already"),
        (substitute(outputs=("c", "more")), "writes tensor 'more', which the substitution does not describe"),
        (substitute(outputs=("c", "x"), tensors=(floats("x"),)), "tensor 'x' of layer 'compiled a', a name that is"),
        (substitute(tensors=(floats("more"),)), "describes tensor 'more', which no replacement layer writes"),
        (substitute(tensors=(floats("c", (2, 2)),)), "changes tensor 'c' from"),
        (substitute(name="tanh"), "adds layer 'tanh', a name that is taken"),
        (substitute(name=""), "adds layer '', a name that is taken"),
        (substitute(constants=(Tensor(floats("k")),)), "adds a constant 'k' without data"),
        (
            substitute(constants=(Tensor(floats("x"), np.zeros((1, 4), np.float32)),)),
            "adds constant 'x', a name that is taken",
        ),
        (
            substitute(inputs=("k",), constants=(Tensor(floats("k"), np.zeros((2, 4), np.float32)),)),
            r"replaces layers \['a', 'b', 'c'\] by \['compiled a'\].*constant 'k' has data",
        ),
        (substitute(type=LayerType.TANH), "inserted a layer that does not fit: layer 'compiled a' TANH"),
    ],
)
def test_bad_views_are_refused_by_name(optimise: Optimise, message: str) -> None:
    with pytest.raises(InvalidViewsError, match=message) as error:
        run(line("a", "b", "c", "tanh"), optimise, fallback=True)
    assert "Mock" in str(error.value)


def test_deleting_what_is_no_identity_is_refused() -> None:
    network = Network("shapes")
    x = network.add_input(floats("x"))
    network.set_outputs([network.add_relu_layer(network.add_reshape_layer(x, (4, 1), name="r"), name="a")])
    bad = backend("Mock", optimise=TestDeleted.deleting("r"))
    with pytest.raises(InvalidViewsError, match=r"Mock deletes layer 'r', whose input 'x' float32\[1, 4\]"):
        optimize(network, ["Mock"], registry(bad), PLAIN)


def test_deleting_what_has_two_inputs_is_refused() -> None:
    network = Network("two")
    x, y = network.add_input(floats("x")), network.add_input(floats("y"))
    network.set_outputs([network.add_relu_layer(network.add_add_layer(x, y, name="sum"), name="a")])
    bad = backend("Mock", optimise=TestDeleted.deleting("sum"))
    with pytest.raises(InvalidViewsError, match=r"Mock deletes layer 'sum' with inputs \['x', 'y'\]"):
        optimize(network, ["Mock"], registry(bad), PLAIN)


def test_two_names_alike_in_different_subgraphs_are_refused() -> None:
    def optimise(view: SubgraphView) -> OptimizationViews:
        whole = compiled(view)
        return OptimizationViews(substitutions=(replace(whole, layers=(replace(whole.layers[0], name="same"),)),))

    with pytest.raises(InvalidViewsError, match="Mock adds layer 'same', a name that is taken"):
        run(line("a", "tanh", "b"), optimise, fallback=True)


def test_a_substitution_that_makes_a_cycle_is_refused() -> None:
    """In a -> b -> c, where a and c become one layer, that layer would wait for b, and b for it."""

    def optimise(view: SubgraphView) -> OptimizationViews:
        return OptimizationViews(substitutions=(compiled(part(view, "a", "c")),), untouched=(part(view, "b"),))

    with pytest.raises(InvalidViewsError, match=r"Mock replaces layers \['a', 'c'\] .*form a cycle"):
        run(line("a", "b", "c"), optimise)
