# SPDX-License-Identifier: Apache-2.0
"""Layers with each rule of rounding, and each backend: it declares the rule, or refuses the layer by its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from merged import merged
from numpy.testing import assert_array_equal

import ferrule
from ferrule._typing import override
from ferrule.backends import BackendId, LayerSupport, Target
from ferrule.backends.backend import Support
from ferrule.backends.capability import ROUNDING_RULES, Capabilities, CapabilityValue, declared_rules
from ferrule.backends.contract import BrokenBackendError
from ferrule.backends.cpu_ref import CpuRef
from ferrule.backends.guarded import guarded
from ferrule.backends.optimization_views import OptimizationViews, untouched
from ferrule.backends.registry import BackendRegistry, default_registry
from ferrule.backends.target import Face, default_target
from ferrule.graph import ALL_ROUNDINGS, DataType, Graph, GraphEditor, Layer, LayerType, Rounding, SubgraphView
from ferrule.network import Network
from ferrule.optimizer import OptimizerOptions, optimize
from ferrule.runtime import Runtime
from ferrule.testing.backends.layer_cases import layer_case

OTHERS = sorted(ALL_ROUNDINGS - {Rounding.TFLM})
SHIPPED = [row.id for row in default_registry().rows()]
ASKED: list[str] = []
"""The layers for which `Watched` was asked."""
OFFERED: list[str] = []
"""The layers that were offered to `Watched`, as part of subgraphs."""


class WatchedSupport:
    """Supports everything."""

    def supports(self, graph: Graph, layer: Layer, target: Target) -> Support:
        ASKED.append(layer.name)
        return Support()


class Watched(CpuRef):
    """A backend that declares ONNX's rule only, and claims to support everything."""

    id: ClassVar[BackendId] = BackendId("Watched")
    rules: ClassVar[CapabilityValue] = "onnx"

    @override
    def capabilities(self) -> Capabilities:
        return {ROUNDING_RULES: self.rules}

    @override
    def layer_support(self) -> LayerSupport:
        return WatchedSupport()

    @override
    def optimize_subgraph(self, view: SubgraphView, target: Target) -> OptimizationViews:
        OFFERED.extend(view.names)
        return untouched(view)


@pytest.fixture(autouse=True)
def _forget() -> None:
    ASKED.clear()
    OFFERED.clear()


def dense(rule: Rounding) -> Graph:
    """Return a network of one FULLY_CONNECTED, which every shipped backend supports by the TFLM rule."""
    return layer_case(LayerType.FULLY_CONNECTED, DataType.INT8, 0, rule)


def within(type_: LayerType, rule: Rounding) -> Network:
    """Return a network with an IF or a WHILE, whose graphs have a layer with a rule."""
    network = Network("outer")
    info = dense(rule).inputs[0]
    network.add_input(replace(info, name="x"))
    flag = ferrule.TensorInfo(name="flag", shape=(1,), dtype=DataType.BOOL)
    network.add_input(flag)
    body = Network("body")
    body.add_input(replace(info, name="y"))
    body.add_input(replace(flag, name="go"))
    if rule is Rounding.SINGLE:
        weights, symmetric = np.eye(info.shape[-1], dtype=np.int8), ferrule.Quantization.of(0.5)
        body.add_fully_connected_layer(
            "y", weights, weights_quantization=symmetric, quantization=info.quantization, name="sum"
        )
    else:
        body.add_add_layer("y", "y", quantization=info.quantization, name="sum")
    if type_ is LayerType.IF:
        body.set_outputs(["sum"])
        network.set_outputs(network.add_if_layer("flag", ["x", "flag"], ruled(body, sum=rule), body, name="outer"))
        return network
    body.set_outputs(["sum", "go"])
    condition = Network("condition")
    condition.add_input(replace(info, name="z"))
    condition.add_input(replace(flag, name="on"))
    condition.set_outputs(["on"])
    outputs = network.add_while_layer(["x", "flag"], condition, ruled(body, sum=rule), name="outer")
    network.set_outputs(outputs[:1])
    return network


def ruled(network: Graph, **rules: Rounding) -> Graph:
    """Return a network in which some layers have other rules."""
    editor = GraphEditor(network)
    for name, rule in rules.items():
        editor.replace_layer(replace(editor.layer(name), rounding=rule))
    return editor.finish()


@pytest.mark.parametrize("rule", Rounding, ids=str)
@pytest.mark.parametrize("face", Face, ids=str)
@pytest.mark.parametrize("backend_id", SHIPPED)
def test_a_backend_declares_a_rule_or_refuses_it_by_name(backend_id: str, face: Face, rule: Rounding) -> None:
    """What a backend does not declare, it refuses; the families of tests compute the layers of the others."""
    backend = guarded(default_registry().create(backend_id))
    graph = dense(rule)
    reason = backend.layer_support().supports(graph, graph.layer("layer"), default_target(backend.id, face)).reason
    declared = declared_rules(backend.capabilities())
    assert Rounding.TFLM in declared
    assert (f"('{rule}'), {backend_id} declares '" in reason) == (rule not in declared), reason


@pytest.mark.parametrize("type_", [LayerType.FULLY_CONNECTED, LayerType.IF, LayerType.WHILE], ids=str)
@pytest.mark.parametrize("rule", [rule for rule in Rounding if rule is not Rounding.ONNX_COLUMNS], ids=str)  # of no sum
def test_a_backend_is_not_asked_for_a_rule_that_it_does_not_declare(type_: LayerType, rule: Rounding) -> None:
    graph = dense(rule) if type_ is LayerType.FULLY_CONNECTED else within(type_, rule)
    (layer,) = graph.layers
    support = guarded(Watched()).layer_support()
    reason = support.supports(graph, layer, default_target(Watched.id)).reason
    taken = rule in {Rounding.TFLM, Rounding.ONNX}  # every backend computes the TFLM rule
    assert ([layer.name] if taken else []) == ASKED
    assert reason == ("" if taken else f"it rounds by {rule.phrase} ('{rule}'), Watched declares 'onnx'")


def test_no_subgraph_has_a_layer_with_a_rule_that_its_backend_does_not_declare() -> None:
    network = Network("chain")
    info = dense(Rounding.TFLM).inputs[0]
    tensor, other = (network.add_input(replace(info, name=name)) for name in "xy")
    for name in ("tflm", "onnx", "single"):
        tensor = network.add_mul_layer(tensor, other, quantization=info.quantization, name=name)
    network.set_outputs([tensor])
    graph = ruled(network, onnx=Rounding.ONNX, single=Rounding.ONNX_UINT8)
    registry = BackendRegistry()
    for backend in (Watched, CpuRef):
        registry.register(backend.id, backend)
    optimized = optimize(graph, [Watched.id, CpuRef.id], registry)
    assert OFFERED == ["tflm", "onnx"]
    assert {name: given.backend for name, given in optimized.assignment.items()} == {
        "tflm": "Watched",
        "onnx": "Watched",
        "single": "CpuRef",
    }


WRONG: Mapping[str, CapabilityValue] = {
    "RoundingRules is 3, expected a text": 3,
    "RoundingRules is True, expected a text": True,
    "there is no rule 'banker', expected tflm, single, onnx, onnx-uint8, onnx-float, onnx-columns": "tflm banker",
    "there is no rule 'tflm,onnx', expected tflm, single, onnx, onnx-uint8, onnx-float, onnx-columns": "tflm,onnx",
}


@pytest.mark.parametrize("message", WRONG)
def test_a_wrong_declaration_is_one_error(message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Watched, "rules", WRONG[message])
    registry = BackendRegistry()
    registry.register(Watched.id, Watched)
    with pytest.raises(BrokenBackendError) as caught:
        optimize(dense(Rounding.TFLM), [Watched.id], registry)
    assert str(caught.value) == f"backend 'Watched' returned a dict from capabilities(): {message}"


def mixed() -> Network:
    """Return a network with layers of three rules, each of a type that Woofles has."""
    random = np.random.default_rng(7)
    network = Network("mixed")
    scale = ferrule.Quantization.of(0.25, -3)
    tensor = network.add_input(
        ferrule.TensorInfo(name="x", shape=(1, 6, 6, 4), dtype=DataType.INT8, quantization=scale)
    )
    for name in ("first", "second", "third"):
        tensor = network.add_conv2d_layer(
            tensor,
            random.integers(-9, 10, (4, 3, 3, 4), dtype=np.int8),
            random.integers(-99, 100, 4, dtype=np.int32),
            padding="same",
            weights_quantization=ferrule.Quantization.of(2.0**-4),
            quantization=scale,
            name=name,
        )
    tensor = network.add_reshape_layer(tensor, (1, 144), name="flat")
    weights = random.integers(-9, 10, (10, 144), dtype=np.int8)
    network.add_fully_connected_layer(
        tensor, weights, weights_quantization=ferrule.Quantization.of(2.0**-5), quantization=scale, name="last"
    )
    network.set_outputs(["last"])
    return merged([ruled(network, second=Rounding.ONNX, third=Rounding.SINGLE)], name="mixed")


OWNERS = {"first": "Woofles", "second": "CpuAcc", "third": "CpuAcc", "flat": "CpuAcc", "last": "Woofles"}
REFUSAL = "it rounds by {}, Woofles declares 'tflm'"


@pytest.mark.cc
def test_a_network_of_several_rules_is_divided_on_the_host() -> None:
    """The backend of each layer computes its rule; one layer of ONNX's rule is on CpuRef by a hint."""
    network = mixed()
    dice = np.random.default_rng(1)
    for hint, second in ((None, "CpuAcc"), ("CpuRef", "CpuRef")):
        options = OptimizerOptions(hints={} if hint is None else {"n0_second": hint})
        with Runtime() as runtime:
            optimized = optimize(network, ["Woofles", "CpuAcc", "CpuRef"], runtime.registry, options)
            found = {name[3:]: given.backend for name, given in optimized.assignment.items() if name[3:] in OWNERS}
            assert found == OWNERS | {"second": second}
            loaded = runtime.load_network(optimized)
            x = dice.integers(-128, 128, (1, 6, 6, 4), dtype=np.int8)
            assert_array_equal(runtime.enqueue_workload(loaded, [x])[0], network.run([x])[0])


@pytest.mark.cc
def test_inspect_names_the_rule_that_a_backend_lacks() -> None:
    inspection = ferrule.inspect(mixed(), backends=["Woofles", "CpuAcc"])
    assert inspection.division is not None
    rows = {row.layer[3:]: row for row in inspection.division.layers}
    assert {name: row.backend for name, row in rows.items()} == OWNERS
    for name, rule in (("second", "ONNX's rule ('onnx')"), ("third", "the rule of one rounding ('single')")):
        assert [refusal.reason for refusal in rows[name].refusals] == [REFUSAL.format(rule)]
    assert [layer.rounding for layer in inspection.layers] == ["tflm", "onnx", "single", "tflm", "tflm"]
    for final in inspection.division.finals:
        owners = {layer.layer[3:]: layer.backend for layer in final.layers if layer.layer[3:] in OWNERS}
        assert owners == OWNERS, final
    assert {final.face for final in inspection.division.finals} == {"host", "firmware"}


@pytest.mark.nightly
def test_a_network_of_several_rules_is_exact_on_a_board() -> None:
    network = mixed()
    x = np.random.default_rng(1).integers(-128, 128, (1, 6, 6, 4), dtype=np.int8)
    report = ferrule.compile(network, backends=["Woofles", "CpuAcc"]).run([x])
    assert report.verdict is ferrule.Verdict.EXACT
    rules = {layer.name[3:]: layer.rounding for layer in report.layers if layer.name[3:] in OWNERS}
    assert rules == {"first": "tflm", "second": "onnx", "third": "single", "flat": "tflm", "last": "tflm"}
