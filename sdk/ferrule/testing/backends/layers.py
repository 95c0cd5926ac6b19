# SPDX-License-Identifier: Apache-2.0
"""Layer support and workloads: each layer is refused with a reason, or gives the reference's result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import product

import pytest

from ferrule.backends.backend import Backend, Support
from ferrule.backends.capability import declared_rules
from ferrule.backends.guarded import guarded
from ferrule.backends.optimization_views import PreCompiledDescriptor
from ferrule.backends.target import default_target
from ferrule.errors import FerruleError
from ferrule.graph import ALL_ROUNDINGS, DataType, Graph, Layer, LayerType, Rounding, TensorInfo
from ferrule.network.validation import check_layer
from ferrule.operators.table import OPERATORS, having
from ferrule.report.evidence import NO_EVIDENCE, evidence_of
from ferrule.testing.backends.comparison import graph_difference, random_inputs, runs_of
from ferrule.testing.backends.family import Family
from ferrule.testing.backends.layer_cases import LAYER_TYPES, layer_case, offset_weights, placed
from ferrule.testing.backends.loaded_layer import LoadedLayer
from ferrule.testing.backends.subject import SubjectRuntime

SEEDS = range(3)
RULES = sorted(ALL_ROUNDINGS - {Rounding.TFLM})
"""The rules of rounding that a backend has to declare."""
_WEIGHTED = sorted(having(weighted=True))


def refusal_of_reference(graph: Graph) -> str:
    """Return why the operator itself rejects the layer; "" if it accepts it."""
    try:
        check_layer(graph, graph.layers[0])
    except FerruleError as error:
        return str(error)
    return ""


@cache
def shared_case(type_: LayerType, dtype: DataType, seed: int, rounding: Rounding = Rounding.TFLM) -> tuple[Graph, str]:
    """Return the graph of `layer_case`, which accepts no changes, and why the operator rejects its layer, or "".

    It is drawn and checked once per process, since the families of all backends need the same graphs.
    """
    graph = layer_case(type_, dtype, seed, rounding)
    _finish(graph)
    return graph, refusal_of_reference(graph)


@cache
def shared_copy(copied: Callable[[Graph], Graph | None], type_: LayerType, dtype: DataType, seed: int) -> Graph | None:
    """Return a copy of a shared case, which accepts no changes; None if there is none that the operator takes."""
    graph = copied(shared_case(type_, dtype, seed)[0])
    if graph is None or refusal_of_reference(graph):
        return None
    graph.freeze()
    return graph


def ruled_cases(rounding: Rounding, seeds: Iterable[int]) -> Iterator[Graph]:
    """Yield a shared graph for each layer type whose operator computes a rule other than TFLM, and each seed."""
    for type_, seed in product(LAYER_TYPES, seeds):
        if rounding in OPERATORS[type_].rules:
            graph, refusal = shared_case(type_, DataType.INT8, seed, rounding)
            if not refusal:
                yield graph


def _finish(graph: Graph) -> None:
    graph.freeze()
    for layer in graph.layers:
        for inner in layer.descriptor.graphs.values():
            _finish(inner)


def answer(backend: Backend, graph: Graph) -> Support:
    """Return the backend's Support for a graph's only layer; AssertionError if the answer is invalid."""
    support = backend.layer_support().supports(graph, graph.layers[0], default_target(backend.id))
    assert isinstance(support, Support), f"supports() returned {type(support).__name__}, expected Support"
    assert support.reason == support.reason.strip(), f"the reason {support.reason!r} has blanks around it"
    return support


def supported(backend: Backend, dtypes: Iterable[DataType], seeds: Iterable[int]) -> Iterator[Graph]:
    """Yield the shared graphs whose layer a backend supports, by element type, layer type and seed."""
    for dtype, type_, seed in product(dtypes, LAYER_TYPES, seeds):
        graph, refusal = shared_case(type_, dtype, seed)
        if not refusal and answer(backend, graph):
            yield graph


class LayerSupportFamily(Family):
    """Tests of a backend's answers to layer support queries."""

    @pytest.mark.parametrize("type_", LAYER_TYPES, ids=str)
    def test_takes_or_gives_a_reason(self, runtime: SubjectRuntime, type_: LayerType) -> None:
        """The answer for each element type is reproducible; no layer is supported that the operator itself rejects."""
        old = runtime.backend()
        for dtype, seed in product(DataType, SEEDS):
            graph, refusal = shared_case(type_, dtype, seed)
            first, second = answer(old, graph), answer(runtime.backend(), graph)
            assert first == second, f"{graph.name}: {first} from one object, {second} from another"
            assert not (first and refusal), f"{graph.name} is supported, but the operator rejects it: {refusal}"

    @pytest.mark.parametrize("rule", RULES, ids=str)
    def test_refuses_the_rules_that_it_does_not_declare(self, backend: Backend, rule: Rounding) -> None:
        """A layer that rounds by a rule which the backend has not declared is refused by the rule's name."""
        if rule in declared_rules(backend.capabilities()):
            return
        for graph in ruled_cases(rule, SEEDS[:1]):
            reason = answer(guarded(backend), graph).reason
            assert f"'{rule}'" in reason, f"{graph.name}: {reason or 'supported'}"

    def test_refuses_what_another_backend_pre_compiled(self, backend: Backend) -> None:
        """A pre-compiled layer runs only on the backend that compiled it."""
        graph = Graph("foreign")
        graph.add_input(TensorInfo("x", (2,), DataType.FLOAT32))
        descriptor = PreCompiledDescriptor(payload=object())
        layer = Layer("layer", LayerType.PRE_COMPILED, descriptor, inputs=("x",), outputs=("y",))
        graph.add_layer(layer, [TensorInfo("y", (2,), DataType.FLOAT32)])
        graph.set_outputs(["y"])
        assert not answer(backend, graph), "a PRE_COMPILED layer of another backend is supported"


class WorkloadFamily(Family):
    """Tests of the results of a backend's workloads, on the backend's own handles."""

    def test_it_computes_something(self, backend: Backend) -> None:
        """The backend supports at least one layer; otherwise all other tests here would compare nothing."""
        found = next(supported(backend, DataType, SEEDS), None)
        assert found is not None, f"{backend.id} supports none of the families' layers"

    @pytest.mark.parametrize("type_", LAYER_TYPES, ids=str)
    def test_computes_what_it_takes(self, runtime: SubjectRuntime, type_: LayerType) -> None:
        """Each supported layer, in each element type, becomes a workload with the reference's results."""
        for dtype, seed in product(DataType, SEEDS):
            graph, _ = shared_case(type_, dtype, seed)
            self._check(runtime, graph)

    @pytest.mark.parametrize("rule", RULES, ids=str)
    def test_computes_by_the_rules_that_it_declares(self, runtime: SubjectRuntime, rule: Rounding) -> None:
        """Each layer with a rule that the backend declares is refused, or becomes a workload with its results."""
        if rule not in declared_rules(runtime.backend().capabilities()):
            return  # the runtime offers it no such layer
        for graph in ruled_cases(rule, SEEDS):
            self._check(runtime, graph)

    @pytest.mark.parametrize("type_", _WEIGHTED, ids=str)
    def test_weights_may_be_computed(self, runtime: SubjectRuntime, type_: LayerType) -> None:
        """A layer whose weights are computed by another layer is either refused or gives correct results."""
        for dtype, seed in product([DataType.FLOAT32, DataType.INT8, DataType.INT16], SEEDS):
            self._check(runtime, shared_copy(placed, type_, dtype, seed))

    @pytest.mark.parametrize("type_", _WEIGHTED, ids=str)
    def test_weights_may_have_a_zero_point(self, runtime: SubjectRuntime, type_: LayerType) -> None:
        """A layer whose int8 weights have a zero point is either refused or gives correct results."""
        for seed in SEEDS:
            self._check(runtime, shared_copy(offset_weights, type_, DataType.INT8, seed))

    def _check(self, runtime: SubjectRuntime, graph: Graph | None) -> None:
        if graph is None or not answer(runtime.backend(), graph):
            return
        for fenced, runs in ((False, runs_of(graph, 1)), (True, [random_inputs(graph, 2)])):
            loaded = LoadedLayer(runtime.backend(), graph, runtime.subject.model_options, fenced=fenced)
            loaded.acquire()
            compared = NO_EVIDENCE
            try:
                for inputs in runs:
                    made = loaded.run(inputs)
                    wrong = graph_difference(graph, inputs, made)
                    assert not wrong, f"{graph.name} with {graph.layers[0].descriptor}: {wrong}"
                    compared += evidence_of(made, made)
            finally:
                loaded.release()
            assert compared, f"{graph.name} with {graph.layers[0].descriptor}: nothing was compared, {compared.text}"
