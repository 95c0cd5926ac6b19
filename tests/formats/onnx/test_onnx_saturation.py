# SPDX-License-Identifier: Apache-2.0
"""tests/support/onnx_saturation.py: the sums of pairs that onnxruntime has on processors without VNNI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from needs import require_module
from numpy.testing import assert_array_equal
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx_saturation import saturating
from oracle import onnxruntime_outputs

from ferrule import load
from ferrule.graph import Array

INPUTS = {"QGemm": "x sx zx w sw zw b sy zy", "QLinearConv": "x sx zx w sw zw sy zy b"}
SHAPES: Sequence[tuple[str, Sequence[int], Sequence[int], dict[str, Any]]] = (
    ("QLinearMatMul", (3, 7), (7, 5), {}),
    ("QLinearMatMul", (2, 1, 8), (8, 5), {}),
    ("QGemm", (3, 7), (7, 5), {"alpha": 0.5}),
    ("QGemm", (3, 8), (5, 8), {"transB": 1}),
    ("QLinearConv", (2, 3, 8, 9), (5, 3, 2, 3), {"pads": [1, 0, 1, 2], "strides": [2, 1]}),
    ("QLinearConv", (1, 6, 8, 9), (4, 3, 3, 2), {"group": 2, "dilations": [1, 2]}),
)
"""Operators, the shapes of their data and weights, and attributes."""


def made(operator: str, shape: Sequence[int], weights: Array, **attributes: Any) -> ModelProto:  # noqa: ANN401
    """Return a model of one operator on uint8 data."""
    channels = len(weights) if operator == "QLinearConv" or attributes.get("transB") else weights.shape[1]
    constants = {
        "sx": np.float32(0.02),
        "zx": np.uint8(111),
        "w": weights,
        "sw": np.linspace(0.001, 0.002, channels, dtype=np.float32),
        "zw": np.zeros(channels, np.int8),
        "sy": np.float32(0.05),
        "zy": np.uint8(120),
        "b": np.arange(channels, dtype=np.int32) * 1000 - 2000,
    }
    names = INPUTS.get(operator, "x sx zx w sw zw sy zy").split()
    domain = "com.microsoft" if operator == "QGemm" else ""
    graph = helper.make_graph(
        [helper.make_node(operator, names, ["y"], domain=domain, **attributes)],
        "one",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, shape)],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, None)],
        [numpy_helper.from_array(np.asarray(data), name) for name, data in constants.items() if name in names],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


@pytest.mark.parametrize(("operator", "shape", "weights", "attributes"), SHAPES)
def test_pairs_that_do_not_saturate_give_the_sums(
    operator: str, shape: Sequence[int], weights: Sequence[int], attributes: dict[str, Any]
) -> None:
    """Two products of weights up to 64 have no more than 15 bits and a sign."""
    random = np.random.default_rng(0)
    model = made(operator, shape, random.integers(-64, 65, weights).astype(np.int8), **attributes)
    feeds = {"x": random.integers(0, 256, shape).astype(np.uint8)}
    computed = saturating(model, feeds)
    assert computed is not None
    assert_array_equal(computed, load(model.SerializeToString()).run(dict(feeds))[0])


@pytest.mark.parametrize(("operator", "shape", "weights", "attributes"), SHAPES)
def test_onnxruntime_has_the_sums_or_those_of_pairs(
    operator: str, shape: Sequence[int], weights: Sequence[int], attributes: dict[str, Any]
) -> None:
    """Which of the two depends on the processor, but all values of an operator are alike."""
    require_module("onnxruntime", "pip install 'ferrule[oracle]'")
    random = np.random.default_rng(0)
    model = made(operator, shape, random.integers(-128, 128, weights).astype(np.int8), **attributes)
    feeds = {"x": random.integers(100, 256, shape).astype(np.uint8)}
    exact = load(model.SerializeToString(), onnx_arithmetic="as-written").run(dict(feeds))[0]
    (theirs,) = onnxruntime_outputs(model, feeds, fused=False)
    computed = saturating(model, feeds)
    assert computed is not None
    assert np.any(computed != exact)
    assert np.array_equal(theirs, exact) or np.array_equal(theirs, computed)


def test_each_pair_saturates_to_16_bits() -> None:
    model = made("QLinearMatMul", (1, 3), np.array([[127], [127], [1]], np.int8))
    values = {"zx": np.uint8(0), "sy": np.float32(0.02 * 0.001 * 1024), "zy": np.uint8(0)}
    for tensor in model.graph.initializer:
        if tensor.name in values:
            tensor.CopyFrom(numpy_helper.from_array(np.asarray(values[tensor.name]), tensor.name))
    found = saturating(model, {"x": np.full((1, 3), 255, np.uint8)})
    assert found is not None
    assert found.item() == round((32767 + 255) / 1024), "not (2 * 127 * 255 + 255) / 1024, which is 64"


def test_other_operators_and_types_do_not_saturate() -> None:
    model = made("QLinearMatMul", (1, 4), np.ones((4, 2), np.int8))
    assert saturating(model, {"x": np.zeros((1, 4), np.int8)}) is None
    depthwise = made("QLinearConv", (1, 4, 5, 5), np.ones((4, 1, 3, 3), np.int8), group=4)
    assert saturating(depthwise, {"x": np.zeros((1, 4, 5, 5), np.uint8)}) is None
    padded = made("QLinearConv", (1, 4, 5, 5), np.ones((4, 4, 3, 3), np.int8), auto_pad="SAME_UPPER")
    assert saturating(padded, {"x": np.zeros((1, 4, 5, 5), np.uint8)}) is None
    model.graph.node[0].op_type = "Add"
    assert saturating(model, {"x": np.zeros((1, 4), np.uint8)}) is None
