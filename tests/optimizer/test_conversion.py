# SPDX-License-Identifier: Apache-2.0
"""float16: networks reduced to it, layers lifted out of it, conversions that cancel; and debug layers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from compare import assert_arrays_equal
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from optimizer_mocks import backend, floats, line, registry, takes_types

from ferrule.backends.capability import HAS_FP16
from ferrule.backends.target import Face
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, Graph, Layer, LayerType
from ferrule.network import Network
from ferrule.network.execution import check_inputs
from ferrule.network.validation import check_layer
from ferrule.operators.interpreter import execute
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS
from ferrule.operators.transfer import DebugDescriptor
from ferrule.optimizer import OptimizerOptions, optimize
from ferrule.testing.backends.random_networks import random_network

PLAIN = OptimizerOptions(simplify=False)
REDUCED = OptimizerOptions(simplify=False, reduce_fp32_to_fp16=True)
HALF = backend("Half", capabilities={HAS_FP16: True})
X = np.array([[-1.5, 0.25, 3.0, 4.001]], np.float32)


def run(graph: Graph, *inputs: Array) -> list[Array]:
    for layer in graph.layers:
        if layer.type is not LayerType.PRE_COMPILED:
            check_layer(graph, layer)
    return execute(graph, check_inputs(graph, inputs))


def kinds(graph: Graph) -> list[str]:
    return [layer.type.removeprefix("CONVERT_") for layer in graph.layers]


class TestReduction:
    def test_conversions_stand_at_the_borders(self) -> None:
        result = optimize(line("a", "b"), ["Half"], registry(HALF), REDUCED)
        assert kinds(result.graph) == ["FP32_TO_FP16", "RELU", "RELU", "FP16_TO_FP32"]
        assert [(info.name, info.dtype) for info in result.graph.outputs] == [("b", DataType.FLOAT32)]
        assert result.graph.info(result.graph.layer("a").outputs[0]).dtype is DataType.FLOAT16
        assert_array_equal(run(result.graph, X)[0], np.maximum(X, 0).astype(np.float16).astype(np.float32))

    def test_the_first_preferred_backend_decides(self) -> None:
        plain = backend("Plain")
        result = optimize(line("a"), ["Plain", "Half"], registry(plain, HALF), REDUCED)
        assert kinds(result.graph) == ["RELU"]
        assert result.messages == ("the network stays in float32: backend Plain does not have the capability HasFp16",)

    def test_a_tensor_is_converted_once_for_all_readers(self) -> None:
        network = Network("fork")
        x = network.add_input(floats("x"))
        a = network.add_relu_layer(x, name="a")
        network.set_outputs([a, network.add_add_layer(x, a, name="b")])
        result = optimize(network, ["Half"], registry(HALF), REDUCED)
        assert sorted(kinds(result.graph)) == ["ADD", "FP16_TO_FP32", "FP16_TO_FP32", "FP32_TO_FP16", "RELU"]
        assert [info.name for info in result.graph.outputs] == ["a", "b"]

    def test_what_has_no_float16_kernel_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def check(descriptor: object, operands: Operands) -> None:
            if operands.output.dtype is DataType.FLOAT16:
                raise UnsupportedError(f"tensor '{operands.output.name}' is float16, which tanh cannot do")

        monkeypatch.setitem(OPERATORS, LayerType.TANH, replace(OPERATORS[LayerType.TANH], check=check))
        result = optimize(line("a", "tanh", "b"), ["Half"], registry(HALF), REDUCED)
        assert result.messages == ("layer 'tanh' stays in float32: tensor 'tanh' is float16, which tanh cannot do",)
        assert result.warnings == result.messages
        assert kinds(result.graph) == [
            *("FP32_TO_FP16", "RELU", "FP16_TO_FP32"),
            "TANH",
            *("FP32_TO_FP16", "RELU", "FP16_TO_FP32"),
        ]

    def test_a_layer_that_the_backend_takes_in_float32_only_is_named(self) -> None:
        def no_half_tanh(graph: Graph, layer: Layer) -> str:
            half = layer.type is LayerType.TANH and graph.input_infos(layer)[0].dtype is DataType.FLOAT16  # type: ignore[union-attr]
            return "there is no float16 tanh" if half else ""

        partly = backend("Partly", no_half_tanh, capabilities={HAS_FP16: True})
        result = optimize(line("a", "tanh"), ["Partly"], registry(partly), REDUCED)
        assert result.warnings == (
            "layer 'tanh' runs in float32 on Partly, between conversions: there is no float16 tanh",
        )
        assert result.graph.info(result.graph.layer("tanh").outputs[0]).dtype is DataType.FLOAT32

    @settings(max_examples=40)
    @given(st.integers(0, 10_000))
    def test_reduced_networks_are_valid_and_close(self, seed: int) -> None:
        network = random_network(seed, 6, DataType.FLOAT32)
        result = optimize(network, ["Half"], registry(HALF), REDUCED)
        for layer in result.graph.layers:
            check_layer(result.graph, layer)
        assert [(i.name, i.dtype, i.shape) for i in result.graph.outputs] == [
            (i.name, i.dtype, i.shape) for i in network.outputs
        ]


def half_line(*names: str) -> Network:
    network = Network("half")
    tensor = network.add_input(floats("x", dtype=DataType.FLOAT16))
    for name in names:
        tensor = network.add_relu_layer(tensor, name=name)
    network.set_outputs([tensor])
    return network


class TestWrapping:
    SINGLE = backend("Single", takes_types(DataType.FLOAT32))

    def test_a_float16_layer_runs_in_float32_between_conversions(self) -> None:
        result = optimize(half_line("a"), ["Single"], registry(self.SINGLE), PLAIN)
        assert [layer.name for layer in result.graph.layers] == [
            "convert_fp16_to_fp32-0-a",
            "a",
            "convert_fp32_to_fp16-0-a",
        ]
        assert {given.backend for given in result.assignment.values()} == {"Single"}
        lifted = "layer 'a' runs in float32 on Single, between conversions: tensor 'x' is float16"
        assert any(message.startswith(lifted) for message in result.messages)
        assert [(i.name, i.dtype) for i in result.graph.outputs] == [("a", DataType.FLOAT16)]
        half = X.astype(np.float16)
        assert_array_equal(run(result.graph, half)[0], np.maximum(half, 0))

    def test_a_backend_that_has_float16_is_not_needed_then(self) -> None:
        result = optimize(half_line("a"), ["Single", "Half"], registry(self.SINGLE, HALF), PLAIN)
        assert {given.backend for given in result.assignment.values()} == {"Single"}

    def test_conversions_go_to_whoever_takes_them(self) -> None:
        def no_conversions(graph: Graph, layer: object) -> str:
            name = str(getattr(layer, "type", ""))
            return "no conversions" if "CONVERT" in name else takes_types(DataType.FLOAT32)(graph, layer)  # type: ignore[arg-type]

        bare = backend("Bare", no_conversions)
        result = optimize(half_line("a"), ["Bare", "Half"], registry(bare, HALF), PLAIN)
        assert result.assignment["a"].backend == "Bare"
        assert result.assignment["convert_fp16_to_fp32-0-a"].backend == "Half"
        with pytest.raises(UnsupportedError, match="Bare: tensor 'x' is float16"):
            optimize(half_line("a"), ["Bare"], registry(bare), PLAIN)

    def test_conversions_that_round_stay_between_two_wrapped_layers(self) -> None:
        result = optimize(half_line("a", "b"), ["Single"], registry(self.SINGLE), PLAIN)
        assert kinds(result.graph) == [
            "FP16_TO_FP32",
            "RELU",
            "FP32_TO_FP16",
            "FP16_TO_FP32",
            "RELU",
            "FP32_TO_FP16",
        ]

    def test_a_constant_is_converted_beforehand(self) -> None:
        network = Network("constant")
        x = network.add_input(floats("x", dtype=DataType.FLOAT16))
        k = network.add_constant_array("k", np.ones((1, 4), np.float16))
        network.set_outputs([network.add_add_layer(x, k, name="sum")])
        result = optimize(network, ["Single"], registry(self.SINGLE), PLAIN)
        assert kinds(result.graph) == ["FP16_TO_FP32", "ADD", "FP32_TO_FP16"]
        half = X.astype(np.float16)
        assert_array_equal(run(result.graph, half)[0], network.run([half])[0])


def test_inverse_conversions_that_change_no_bit_are_removed() -> None:
    """Widening to float32 and narrowing back is exact, so that such a pair between two layers is removed."""
    from ferrule.graph import Layer, assemble
    from ferrule.operators.table import unary_layer
    from ferrule.optimizer.conversion import NARROWING, WIDENING, converted, remove_inverse_conversions

    graph = half_line("a", "b")
    tensors = {tensor.info.name: tensor for tensor in graph.tensors}
    tensors["wide"] = converted(tensors["a"], "wide", DataType.FLOAT32)
    tensors["back"] = converted(tensors["a"], "back", DataType.FLOAT16)
    b = graph.layer("b")
    moved = Layer("b", b.type, b.descriptor, inputs=("back",), outputs=("b",))
    pair = [unary_layer("w", WIDENING, "a", "wide"), unary_layer("n", NARROWING, "wide", "back")]
    built = assemble("pair", inputs=["x"], outputs=["b"], layers=[graph.layer("a"), *pair, moved], tensors=tensors)
    assert [layer.name for layer in remove_inverse_conversions(built).layers] == ["a", "b"]
    shown = assemble(
        "shown", inputs=["x"], outputs=["b", "wide", "back"], layers=[graph.layer("a"), *pair, moved], tensors=tensors
    )
    kept = remove_inverse_conversions(shown)
    assert [layer.name for layer in kept.layers] == ["a", "w", "n", "b"]
    assert kept.layer("b").inputs == ("a",)
    half = X.astype(np.float16)
    assert_arrays_equal(run(shown, half), run(kept, half))


class TestDebug:
    OPTIONS = OptimizerOptions(simplify=False, debug=True)

    def test_one_stands_behind_every_output_of_every_layer(self) -> None:
        network = Network("split")
        x = network.add_input(floats("x"))
        network.set_outputs(network.add_split_layer(network.add_relu_layer(x, name="a"), 1, 2, name="s"))
        result = optimize(network, ["Half"], registry(HALF), self.OPTIONS)
        debug = [layer for layer in result.graph.layers if layer.type is LayerType.DEBUG]
        assert [layer.descriptor for layer in debug] == [
            DebugDescriptor(layer="a", output=0),
            DebugDescriptor(layer="s", output=0),
            DebugDescriptor(layer="s", output=1),
        ]
        assert [info.name for info in result.graph.outputs] == [info.name for info in network.outputs]
        assert_arrays_equal(run(result.graph, X), network.run([X]))

    def test_it_belongs_to_the_writer(self) -> None:
        other = backend("Other")
        options = OptimizerOptions(simplify=False, debug=True, hints={"b": "Other"})
        result = optimize(line("a", "b"), ["Half"], registry(HALF, other), options)
        assert result.assignment["debug-0-a"].backend == "Half"
        assert result.assignment["debug-0-b"].backend == "Other"

    def test_firmware_has_none(self) -> None:
        with pytest.raises(UnsupportedError, match="debug layers run on the host only"):
            optimize(line("a"), ["Half"], registry(HALF), OptimizerOptions(debug=True, face=Face.FIRMWARE))
