# SPDX-License-Identifier: Apache-2.0
"""Quantised ONNX models: operators one by one against onnxruntime, and small networks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest

from ferrule.errors import UnsupportedError
from ferrule.graph import Array, LayerType, Rounding
from ferrule.network import Network
from onnx_models import agrees, count, load, model, node

MICROSOFT = "com.microsoft"
FLOATS = {"x": ("float32", [1, 6, 8, 8])}


def scale(value: float) -> Array:
    return np.array(value, np.float32)


def points(dtype: str) -> dict[str, Array]:
    """Return the scales and zero points of an input and an output."""
    low = np.iinfo(dtype).min
    return {
        "sx": scale(0.023),
        "zx": np.array(low + 117, dtype),
        "sy": scale(0.031),
        "zy": np.array(low + 101, dtype),
    }


def between(nodes: Sequence[Any], dtype: str, constants: Mapping[str, Any], shape: Sequence[int]) -> Any:  # noqa: ANN401
    """Return a model with nodes from the tensor "d" to "r" between conversions, which makes floats of floats."""
    around = [
        node("QuantizeLinear", "x sx zx", "q"),
        node("DequantizeLinear", "q sx zx", "d"),
        *nodes,
        node("QuantizeLinear", "r sy zy", "p"),
        node("DequantizeLinear", "p sy zy", "y"),
    ]
    return model(around, {"x": ("float32", shape)}, ["y"], points(dtype) | dict(constants))


def weights(*shape: int, dtype: str = "int8", seed: int = 0) -> Array:
    """Return random integers for weights."""
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(dtype)


def weighted(*shape: int, channels: int, axis: int = 0, dtype: str = "int8", per_channel: bool) -> dict[str, Array]:
    """Return weights "w" with the scales "sw", the zero points "zw", and the bias "b" with the scales "sb"."""
    generator = np.random.default_rng(1)
    number = (channels,) if per_channel else ()
    scales = generator.uniform(0.001, 0.004, number).astype(np.float32)
    zero = 0 if dtype == "int8" else 131 if not per_channel else 128
    return {
        "w": weights(*shape, dtype=dtype),
        "sw": scales,
        "zw": np.full(number, zero, dtype),
        "b": generator.integers(-20000, 20000, channels).astype(np.int32),
        "sb": np.asarray(np.float32(0.023) * scales, np.float32),
        "zb": np.zeros(number, np.int32),
    }


def held(axis: int) -> list[Any]:
    """Return the nodes that make real numbers of weights and bias."""
    return [
        node("DequantizeLinear", "w sw zw", "v", axis=axis),
        node("DequantizeLinear", "b sb zb", "c", axis=0),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """An operator between conversions, which must become one layer of int8."""

    nodes: Sequence[Any]
    layer: LayerType
    shape: Sequence[int] = (2, 6, 8, 8)
    constants: Mapping[str, Any] = field(default_factory=dict)
    dtypes: Sequence[str] = ("int8", "uint8")


def conv_case(**attributes: Any) -> Callable[[str, bool], Case]:  # noqa: ANN401
    """Return a convolution of 6 channels to 6."""
    group = attributes.get("group", 1)

    def made(dtype: str, per_channel: bool) -> Case:
        values = weighted(6, 6 // group, 3, 3, channels=6, dtype=dtype, per_channel=per_channel)
        layer = LayerType.DEPTHWISE_CONV_2D if group == 6 else LayerType.CONV_2D
        return Case(nodes=[*held(0), node("Conv", "d v c", "r", **attributes)], layer=layer, constants=values)

    return made


def transposed_case(dtype: str, per_channel: bool) -> Case:
    values = weighted(6, 5, 2, 2, channels=5, dtype=dtype, per_channel=per_channel)
    nodes = [*held(1), node("ConvTranspose", "d v c", "r", strides=[2, 2])]
    return Case(nodes=nodes, layer=LayerType.TRANSPOSE_CONV, constants=values)


def gemm_case(dtype: str, per_channel: bool) -> Case:
    values = weighted(20, 6, channels=20, dtype=dtype, per_channel=per_channel)
    nodes = [*held(0), node("Gemm", "d v c", "r", transB=1)]
    return Case(nodes=nodes, layer=LayerType.FULLY_CONNECTED, shape=(40, 6), constants=values)


def matmul_case(dtype: str, per_channel: bool) -> Case:
    values = weighted(6, 20, channels=20, dtype=dtype, per_channel=per_channel)
    nodes = [*held(1)[:1], node("MatMul", "d v", "r")]
    return Case(nodes=nodes, layer=LayerType.FULLY_CONNECTED, shape=(40, 6), constants=values)


WEIGHTED = {
    "Conv": conv_case(pads=[1, 1, 1, 1]),
    "Conv-strides": conv_case(strides=[2, 2]),
    "Conv-depthwise": conv_case(group=6, pads=[1, 1, 1, 1]),
    "Conv-groups": conv_case(group=2),
    "ConvTranspose": transposed_case,
    "Gemm": gemm_case,
    "MatMul": matmul_case,
}


def drawn(shape: Sequence[int], seed: int = 0) -> dict[str, Array]:
    return {"x": np.random.default_rng(seed).normal(size=shape).astype(np.float32) * 2}


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(("kind", "per_channel"), [("int8", False), ("int8", True), ("uint8", False)])
@pytest.mark.parametrize("name", WEIGHTED)
def test_weights(name: str, kind: str, per_channel: bool, dtype: str) -> None:
    case = WEIGHTED[name](kind, per_channel)
    made = between(case.nodes, dtype, case.constants, case.shape)
    if kind == "uint8" and name in {"Conv-groups", "Conv-depthwise", "ConvTranspose"}:
        assert count(load(made), case.layer, LayerType.DEQUANTIZE) == 3, "no kernel has such weights: it stays float32"
        return
    network = agrees(made, drawn(case.shape), exact=True)
    assert rules(network, case.layer) == [Rounding.ONNX]
    assert count(network, LayerType.DEQUANTIZE, LayerType.QUANTIZE) == 2


def rules(network: Network, type_: LayerType) -> list[Rounding]:
    """Return the rules of the layers of a type."""
    return [each.rounding for each in network.layers if each.type is type_]


LINEAR = {
    "QLinearConv": (partial(node, "QLinearConv", "q sx zx w sw zw sy zy b", "p", pads=[1, 1, 1, 1]), LayerType.CONV_2D),
    "QLinearMatMul": (partial(node, "QLinearMatMul", "q sx zx w sw zw sy zy", "p"), LayerType.FULLY_CONNECTED),
    "QGemm": (
        partial(node, "QGemm", "q sx zx w sw zw b sy zy", "p", MICROSOFT, transB=1, alpha=0.5),
        LayerType.FULLY_CONNECTED,
    ),
}


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("name", LINEAR)
def test_weights_of_operators_with_scales(name: str, per_channel: bool, dtype: str) -> None:
    build, layer = LINEAR[name]
    shapes = {"QLinearConv": (6, 6, 3, 3), "QLinearMatMul": (6, 20), "QGemm": (20, 6)}
    shape = (2, 6, 8, 8) if name == "QLinearConv" else (40, 6)
    channels = 6 if name == "QLinearConv" else 20
    values = weighted(*shapes[name], channels=channels, per_channel=per_channel)
    made = model(
        [node("QuantizeLinear", "x sx zx", "q"), build(), node("DequantizeLinear", "p sy zy", "y")],
        {"x": ("float32", shape)},
        ["y"],
        points(dtype) | values,
    )
    network = agrees(made, drawn(shape), exact=True)
    assert rules(network, layer) == [Rounding.ONNX]


SHAPES = [((2, 6, 8, 8), (2, 6, 8, 8)), ((2, 6, 8, 8), (1, 6, 1, 1)), ((1, 6, 1, 1), (2, 6, 8, 8)), ((8,), (6, 8, 8))]


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("op", ["Add", "Mul", "Sub"])
@pytest.mark.parametrize("linear", [False, True])
def test_pairs(op: str, shapes: tuple[Sequence[int], Sequence[int]], dtype: str, linear: bool) -> None:
    """Scales of powers of two, and zero points, make many ties."""
    if linear and op == "Sub":
        assert load_refuses("QLinearSub")
        return
    first, second = shapes
    low = np.iinfo(dtype).min
    constants = {
        "s0": scale(0.03125),
        "z0": np.array(low + 131, dtype),
        "s1": scale(0.0625),
        "z1": np.array(low + 107, dtype),
        "s2": scale(0.125 if op != "Mul" else 0.0078125),
        "z2": np.array(low + 121, dtype),
    }
    inside = [node(op, "d0 d1", "r"), node("QuantizeLinear", "r s2 z2", "p")]
    if linear:
        inside = [node(f"QLinear{op}", "q0 s0 z0 q1 s1 z1 s2 z2", "p", MICROSOFT)]
    made = model(
        [
            *(node("QuantizeLinear", f"x{i} s{i} z{i}", f"q{i}") for i in range(2)),
            *(node("DequantizeLinear", f"q{i} s{i} z{i}", f"d{i}") for i in range(2)),
            *inside,
            node("DequantizeLinear", "p s2 z2", "y"),
        ],
        {"x0": ("float32", first), "x1": ("float32", second)},
        ["y"],
        constants,
    )
    generator = np.random.default_rng(3)
    inputs = {f"x{i}": generator.normal(size=shape).astype(np.float32) * 3 for i, shape in enumerate(shapes)}
    network = agrees(made, inputs, exact=True)
    rule = Rounding.ONNX_UINT8 if dtype == "uint8" and op != "Sub" else Rounding.ONNX
    assert rules(network, LayerType[op.upper()]) == [rule]


def load_refuses(op: str) -> bool:
    """Return whether an operator of onnxruntime is refused by its name."""
    made = model([node(op, "x x", "y", MICROSOFT)], {"x": ("float32", [2])})
    with pytest.raises(UnsupportedError, match=op):
        load(made)
    return True


MOVED = {
    "MaxPool": (partial(node, "MaxPool", "d", "r", kernel_shape=[2, 2]), LayerType.MAX_POOL_2D),
    "Reshape": (partial(node, "Reshape", "d s", "r"), LayerType.RESHAPE),
    "Transpose": (partial(node, "Transpose", "d", "r", perm=[0, 2, 1, 3]), LayerType.TRANSPOSE),
    "Flatten": (partial(node, "Flatten", "d", "r"), LayerType.RESHAPE),
    "Slice": (partial(node, "Slice", "d begin end axes", "r"), LayerType.SLICE),
    "Pad": (partial(node, "Pad", "d pads", "r"), LayerType.PAD),
    "Pad-value": (partial(node, "Pad", "d pads value", "r"), LayerType.PADV2),
    "Resize": (partial(node, "Resize", "d - factors", "r", mode="nearest"), LayerType.RESIZE_NEAREST_NEIGHBOR),
    "Concat": (partial(node, "Concat", "d d half", "r", axis=1), LayerType.CONCATENATION),
    "Max": (partial(node, "Max", "d half", "r"), LayerType.MAXIMUM),
    "Where": (partial(node, "Where", "which d half", "r"), LayerType.SELECT_V2),
    "Relu": (partial(node, "Relu", "d", "r"), LayerType.RELU),
    "Clip": (partial(node, "Clip", "d low high", "r"), LayerType.MINIMUM),
    "GlobalMaxPool": (partial(node, "GlobalMaxPool", "d", "r"), LayerType.REDUCE_MAX),
}
MOVED_CONSTANTS: Mapping[str, Any] = {
    "s": np.array([2, 48, 8]),
    "begin": np.array([1]),
    "end": np.array([5]),
    "axes": np.array([2]),
    "pads": np.array([0, 0, 1, 1, 0, 0, 2, 1]),
    "value": scale(0.7),
    "factors": np.array([1, 1, 2, 2], np.float32),
    "half": np.full((2, 6, 8, 8), 0.5, np.float32),
    "which": np.arange(8) % 2 == 0,
    "low": scale(-1.1),
    "high": scale(0.9),
}


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("same", [True, False], ids=["same", "other"])
@pytest.mark.parametrize("name", MOVED)
def test_elements_are_moved_as_integers(name: str, same: bool, dtype: str) -> None:
    build, layer = MOVED[name]
    made_node = build()
    constants = {**MOVED_CONSTANTS, **({"sy": points(dtype)["sx"], "zy": points(dtype)["zx"]} if same else {})}
    used = {key: value for key, value in constants.items() if key in made_node.input or key in {"sy", "zy"}}
    shape = (2, 6, 8, 8)
    network = agrees(between([made_node], dtype, used, shape), drawn(shape), exact=True)
    assert count(network, layer) >= 1
    assert rules(network, LayerType.QUANTIZE) == [Rounding.ONNX] * (1 if same else 2)
    assert count(network, LayerType.DEQUANTIZE) == 1
    assert all(network.info(each.outputs[0]).dtype == "int8" for each in network.layers[1:-1] if each.type == layer)


@pytest.mark.parametrize(
    ("build", "layers"),
    [
        ([partial(node, "Relu", "c0", "r")], [LayerType.RELU]),
        ([partial(node, "Clip", "c0 low high", "r")], [LayerType.MAXIMUM, LayerType.MINIMUM]),
        ([partial(node, "Clip", "c0 - high", "r")], [LayerType.MINIMUM]),
        ([partial(node, "Clip", "c0 lowest highest", "r")], []),
        (
            [partial(node, "Relu", "c0", "m"), partial(node, "Clip", "m low high", "r")],
            [LayerType.RELU, LayerType.MINIMUM],
        ),
    ],
)
def test_clamps_behind_a_convolution(build: Sequence[Callable[[], Any]], layers: Sequence[LayerType]) -> None:
    clamps = [each() for each in build]
    values = weighted(6, 6, 3, 3, channels=6, per_channel=True)
    limits = {"low": scale(-0.51), "high": scale(1.93), "lowest": scale(-100), "highest": scale(100)}
    read = {name for each in clamps for name in each.input}
    limits = {name: data for name, data in limits.items() if name in read}
    made = between([*held(0), node("Conv", "d v c", "c0"), *clamps], "int8", values | limits, (2, 6, 8, 8))
    network = agrees(made, drawn((2, 6, 8, 8)), exact=True)
    found = [each.type for each in network.layers if each.type in {"RELU", "MAXIMUM", "MINIMUM"}]
    assert found == layers
    assert rules(network, LayerType.CONV_2D) == [Rounding.ONNX]
