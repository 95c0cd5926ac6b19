# SPDX-License-Identifier: Apache-2.0
"""Quantised operators whose conversions stand beyond operators that move or limit elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from covering import covering
from needs import require_module
from onnx_models import agrees, load, model, node

from ferrule.graph import DataType, LayerType
from ferrule.network import Network

SHAPE = (2, 6, 8, 8)
MOVES = frozenset({LayerType.RESHAPE, LayerType.TRANSPOSE})
"""What may come behind the last DEQUANTIZE: the order of axes of the model's output."""
OPERATORS: Mapping[str, Sequence[Any]] = {
    "Conv": [
        ("DequantizeLinear", "w sw zw", "v", {"axis": 0}),
        ("DequantizeLinear", "b sb zb", "c", {"axis": 0}),
        ("Conv", "d v c", "r", {}),
    ],
    "ReduceMean": [("ReduceMean", "d axes", "r", {})],
    "GlobalAveragePool": [("GlobalAveragePool", "d", "r", {})],
    "AveragePool": [("AveragePool", "d", "r", {"kernel_shape": [2, 2]})],
    "Add": [("Add", "d e", "r", {})],
    "Mul": [("Mul", "d e", "r", {})],
    "Sigmoid": [("Sigmoid", "d", "r", {})],
    "Relu": [("Relu", "d", "r", {})],
    "HardSwish": [("HardSwish", "d", "r", {})],
    "Softmax": [("Softmax", "d", "r", {})],
}
"""Operators from "d", some also from "e", to "r"."""
MOVERS: Mapping[str, Sequence[Any]] = {
    "Reshape": [("Reshape", "A shape", "B", {})],
    "Flatten": [("Flatten", "A", "B", {})],
    "Unsqueeze and Squeeze": [("Unsqueeze", "A axis", "M", {}), ("Squeeze", "M axis", "B", {})],
    "Transpose": [("Transpose", "A", "B", {"perm": [0, 2, 3, 1]})],
    "Identity": [("Identity", "A", "B", {})],
    "Dropout": [("Dropout", "A", "B", {})],
    "Pad": [("Pad", "A pads", "B", {})],
    "Gather": [("Gather", "A rows", "B", {"axis": 1})],
    "Slice": [("Slice", "A starts ends", "B", {})],
    "DepthToSpace": [("DepthToSpace", "A", "B", {"blocksize": 1})],
    "MaxPool": [("MaxPool", "A", "B", {"kernel_shape": [1, 1]})],
    "Tile": [("Tile", "A repeats", "B", {})],
    "Relu, Flatten": [("Relu", "A", "M", {}), ("Flatten", "M", "B", {})],
    "Flatten, Relu": [("Flatten", "A", "M", {}), ("Relu", "M", "B", {})],
    "Flatten, Clip": [("Flatten", "A", "M", {}), ("Clip", "M low high", "B", {})],
}
"""Operators from "A" to "B"."""


def constants(dtype: str) -> dict[str, Any]:
    generator, low = np.random.default_rng(0), int(np.iinfo(dtype).min)
    scales = generator.uniform(0.001, 0.004, 6).astype(np.float32)
    return {
        "sx": np.float32(0.023),
        "zx": np.array(low + 117, dtype),
        "sy": np.float32(0.031),
        "zy": np.array(low + 101, dtype),
        "w": generator.integers(-127, 128, (6, 6, 1, 1)).astype(np.int8),
        "sw": scales,
        "zw": np.zeros(6, np.int8),
        "b": generator.integers(-2000, 2000, 6).astype(np.int32),
        "sb": np.asarray(np.float32(0.023) * scales, np.float32),
        "zb": np.zeros(6, np.int32),
        "axes": np.array([2, 3]),
        "axis": np.array([0]),
        "shape": np.array([2, -1]),
        "pads": np.array([0, 0, 1, 1, 0, 0, 1, 1]),
        "rows": np.array([2, 0, 1]),
        "starts": np.array([0, 1]),
        "ends": np.array([2, 5]),
        "repeats": np.array([1, 1, 2, 1]),
        "low": np.float32(-0.7),
        "high": np.float32(1.1),
        "half": np.float32(0.5),
    }


def named(rows: Sequence[Any], **names: str) -> list[Any]:
    """Return nodes with other names of tensors."""

    def of(text: str) -> str:
        return " ".join(names.get(name, name) for name in text.split())

    return [node(op, of(inputs), of(outputs), **attributes) for op, inputs, outputs, attributes in rows]


def between(nodes: Sequence[Any], dtype: str, *, second: bool = False) -> Any:  # noqa: ANN401
    """Return a model with nodes from "d" (and "e") to "r" between conversions."""
    before = [node("QuantizeLinear", "x sx zx", "q"), node("DequantizeLinear", "q sx zx", "d")]
    inputs = {"x": ("float32", SHAPE)}
    if second:
        before += [node("QuantizeLinear", "x2 sx zx", "q2"), node("DequantizeLinear", "q2 sx zx", "e")]
        inputs["x2"] = ("float32", SHAPE)
    after = [node("QuantizeLinear", "r sy zy", "p"), node("DequantizeLinear", "p sy zy", "y")]
    all_ = [*before, *nodes, *after]
    used = {name for each in all_ for name in each.input}
    return model(all_, inputs, ["y"], {name: each for name, each in constants(dtype).items() if name in used})


def floats(network: Network) -> list[str]:
    """Return the types of layers that compute in float32, in order."""
    return [
        str(layer.type)
        for layer in network.layers
        if layer.type not in {LayerType.QUANTIZE, LayerType.DEQUANTIZE}
        and network.info(layer.outputs[0]).dtype is DataType.FLOAT32
        and not (
            layer.type in MOVES and (network.producer(layer.inputs[0] or "") or layer).type is LayerType.DEQUANTIZE
        )
    ]


@pytest.fixture(autouse=True)
def _installed() -> None:
    require_module("onnxruntime", "pip install 'ferrule[oracle]'")


@covering("operator,mover,dtype", list(OPERATORS), list(MOVERS), ["int8", "uint8"], seed=3)
def test_what_moves_elements_before_the_conversion(operator: str, mover: str, dtype: str) -> None:
    """The operator computes with integers, with onnxruntime's results."""
    rows = [*named(OPERATORS[operator], r="A0"), *named(MOVERS[mover], A="A0", B="r")]
    made = between(rows, dtype, second=operator in {"Add", "Mul"})
    network = load(made)
    assert set(floats(network)) <= MOVES
    agrees(made, exact=True)


UNARY = [name for name, rows in OPERATORS.items() if name not in {"Add", "Mul", "Conv", "Softmax"} and len(rows) == 1]
KEPT = [name for name in MOVERS if name not in {"Flatten, Clip", "Transpose"}]
REFUSED = {"Reshape", "Unsqueeze and Squeeze", "Slice", "MaxPool"}
"""Movers behind which onnxruntime 1.32.0 makes an invalid graph of int8."""
IMAGES = {"GlobalAveragePool", "AveragePool", "ReduceMean"}
FLAT = {"Reshape", "Flatten", "Relu, Flatten", "Flatten, Relu"}


@covering(
    "operator,mover,dtype",
    UNARY,
    KEPT,
    ["int8", "uint8"],
    seed=4,
    allowed=lambda operator, mover, dtype: (
        not (operator in IMAGES and mover in FLAT) and not (dtype == "int8" and mover in REFUSED)
    ),
)
def test_what_moves_elements_behind_the_conversion(operator: str, mover: str, dtype: str) -> None:
    made = between([*named(MOVERS[mover], A="d", B="D"), *named(OPERATORS[operator], d="D")], dtype)
    network = load(made)
    assert set(floats(network)) <= MOVES
    agrees(made, exact=True)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_what_joins_elements_before_the_conversion(dtype: str) -> None:
    rows = [
        node("Tanh", "d", "m"),
        node("Flatten", "m", "f"),
        node("Sigmoid", "d", "n"),
        node("Reshape", "n shape", "g"),
    ]
    made = between([*rows, node("Concat", "f g", "c", axis=1), node("Flatten", "c", "r")], dtype)
    assert floats(load(made)) == []
    agrees(made, exact=True)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_padding_with_other_values(dtype: str) -> None:
    """Behind an operator it is quantised as all values; before one, no integer stands for it."""
    rows = [node("Sigmoid", "d", "m"), node("Pad", "m pads half", "r")]
    made = between(rows, dtype)
    assert floats(load(made)) == []
    agrees(made, exact=True)
    made = between([node("Pad", "d pads half", "m"), node("Sigmoid", "m", "r")], dtype)
    assert floats(load(made)) == ["PADV2", "LOGISTIC"]
    agrees(made, exact=True)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(-9.0, 9.0, []), (-0.46, 0.69, []), (-0.45, 0.69, ["RELU_LIMITS"]), (-0.46, 3.1625, ["RELU_LIMITS"])],
)
def test_limits_that_integers_stand_for_exactly(low: float, high: float, expected: list[str]) -> None:
    """The limits -20 and 30 in steps of 0.023, and others between the steps: the range ends at 138 steps."""
    step = np.float32(0.023)
    values = {-0.46: step * np.float32(-20), 0.69: step * np.float32(30)}
    made = between([node("Clip", "d low high", "m"), node("Flatten", "m", "n"), node("Sigmoid", "n", "r")], "int8")
    for each in made.graph.initializer:
        if each.name in {"low", "high"}:
            limit = low if each.name == "low" else high
            each.raw_data = np.float32(values.get(limit, limit)).tobytes()
    network = load(made)
    assert bool(floats(network)) is bool(expected)
    agrees(made, exact=True)
