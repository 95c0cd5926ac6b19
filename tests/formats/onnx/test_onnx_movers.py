# SPDX-License-Identifier: Apache-2.0
"""Operators that move elements, between an operator and its conversions: everything between integers is integers."""

from __future__ import annotations

import numpy as np
import pytest
from needs import require_module
from numpy.testing import assert_array_equal
from onnx_models import agrees, load, model, node
from oracle import onnxruntime_outputs

from ferrule.errors import ModelError
from ferrule.graph import Array, DataType, LayerType
from ferrule.network import Network


def floats(network: Network) -> list[str]:
    """Return the layers of float32 that compute integers from integers."""
    before: set[str] = set()
    behind: set[str] = set()
    for layer in network.layers:
        if layer.type == "DEQUANTIZE" or before.intersection(layer.present_inputs):
            before.update(layer.outputs)
    for layer in reversed(network.layers):
        if layer.type == "QUANTIZE" or behind.intersection(layer.outputs):
            behind.update(layer.present_inputs)
    within = [name for name in before & behind if network.info(name).dtype is DataType.FLOAT32]
    makers = [network.producer(name) for name in within]
    return sorted(f"{layer.name} {layer.type}" for layer in makers if layer and layer.type != "DEQUANTIZE")


def check(seed: int) -> None:
    """Assert that a model is integers, and has the results of onnxruntime, or those of the model written out.

    The latter are compared where onnxruntime fuses an operator with its conversions only if they stand beside it.
    """
    from onnx_movers import FUSED_HERE, Drawn

    drawn = Drawn(seed, written_out=False)
    bare = drawn.made()
    what = f"seed {seed}: {drawn.operator} with {drawn.movers}"
    network, feeds = load(bare), drawn.feeds()
    assert floats(network) == [], what
    (found,) = network.run(feeds)
    if drawn.operator not in FUSED_HERE:
        assert_array_equal(found, onnxruntime_outputs(bare, feeds)[0], what)
        return
    written = Drawn(seed, written_out=True).made()
    assert_array_equal(found, load(written).run(feeds)[0], what)
    apart = {"Add", "ReduceMean"}  # which stay in float32 there, behind a product and without a neighbour
    if not apart & {each.op_type for each in written.graph.node}:
        assert_array_equal(found, onnxruntime_outputs(written, feeds)[0], what)


@pytest.mark.parametrize("start", [0, *(pytest.param(each, marks=pytest.mark.nightly) for each in range(40, 1000, 40))])
def test_movers_keep_operators_in_integers(start: int) -> None:
    require_module("onnxruntime", "pip install onnxruntime")
    for seed in range(start, start + 40):
        check(seed)


NUMBERS = np.random.default_rng(3)
CONSTANTS: dict[str, Array] = {
    "s": np.array(0.031, np.float32),
    "z": np.array(-11, np.int8),
    "w": NUMBERS.integers(-127, 128, (6, 20)).astype(np.int8),
    "sw": NUMBERS.uniform(0.001, 0.004, 20).astype(np.float32),
    "zw": np.zeros(20, np.int8),
    "b": NUMBERS.normal(size=20).astype(np.float32),
}


@pytest.mark.parametrize("shape", [(40, 6), (2, 5, 6)])
@pytest.mark.parametrize("turned", [False, True])
def test_a_bias_behind_a_product_of_matrices(shape: tuple[int, ...], turned: bool) -> None:
    """It becomes int32, as that of a Gemm; both forms of the sum are common in transformers."""
    rows = int(np.prod(shape[:-1]))

    def made(*inside: object, end: str) -> object:
        nodes = [
            node("QuantizeLinear", "x s z", "q"),
            node("DequantizeLinear", "q s z", "d"),
            node("DequantizeLinear", "w sw zw", "v", axis=1),
            *inside,
            node("QuantizeLinear", f"{end} s z", "p"),
            node("DequantizeLinear", "p s z", "y"),
        ]
        return model(nodes, {"x": ("float32", shape)}, ["y"], CONSTANTS | {"flat": np.array([rows, 6])}, opset=19)

    network = load(made(node("MatMul", "d v", "m"), node("Add", "b m" if turned else "m b", "r"), end="r"))
    assert [layer.type for layer in network.layers] == ["QUANTIZE", "FULLY_CONNECTED", "DEQUANTIZE"]
    given = {"x": np.random.default_rng(1).normal(size=shape).astype(np.float32) * 2}
    gemm = made(node("Reshape", "d flat", "e"), node("Gemm", "e v b", "r"), end="r")
    assert_array_equal(network.run(given)[0].reshape(rows, 20), onnxruntime_outputs(gemm, given)[0])


def test_a_product_of_matrices_with_three_inputs_in_a_file() -> None:
    made = model(
        [node("MatMul", "x w b", "y")],
        {"x": ("float32", (2, 6))},
        ["y"],
        {"w": np.ones((6, 20), "f"), "b": CONSTANTS["b"]},
    )
    with pytest.raises(ModelError, match="it has 3 inputs, expected 2"):
        load(made)


@pytest.mark.parametrize(
    ("op", "limit", "integers"),
    [("Max", 0.0, True), ("Max", -9.0, True), ("Min", 9.0, True), ("Max", 0.01, False), ("Min", -9.0, False)],
)
def test_limits_that_integers_stand_for(op: str, limit: float, integers: bool) -> None:
    """Where no conversion is behind a Max or Min, its limit must be a whole number of steps, or beyond the range."""
    nodes = [
        node("QuantizeLinear", "x s z", "q"),
        node("DequantizeLinear", "q s z", "d"),
        node(op, "d l", "m"),
        node("Sigmoid", "m", "r"),
        node("QuantizeLinear", "r s z", "p"),
        node("DequantizeLinear", "p s z", "y"),
    ]
    constants = {"s": CONSTANTS["s"], "z": CONSTANTS["z"], "l": np.array(limit, np.float32)}
    given = {"x": np.linspace(-5, 5, 600, dtype=np.float32).reshape(1, 600)}
    network = agrees(model(nodes, {"x": ("float32", (1, 600))}, ["y"], constants, opset=19), given, exact=True)
    assert (floats(network) == []) == integers
    assert LayerType.LOGISTIC in {layer.type for layer in network.layers}
