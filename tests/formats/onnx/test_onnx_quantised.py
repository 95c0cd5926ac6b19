# SPDX-License-Identifier: Apache-2.0
"""Quantised ONNX models: operators one by one against onnxruntime, and small networks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from needs import require_module
from onnx_models import agrees, count, load, model, node
from onnx_saturation import saturating
from oracle import onnxruntime_outputs

from ferrule._frozen import frozen
from ferrule.errors import ModelError, UnsupportedError
from ferrule.graph import Array, LayerType, Rounding
from ferrule.network import Network

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


@frozen
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
    if kind == "uint8" and name in {"Conv-groups", "ConvTranspose"}:
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
    constants = points(dtype) | values
    if name == "QLinearMatMul" and dtype == "uint8":
        network = agrees_or_saturates(model([build()], {"q": (dtype, shape)}, ["p"], constants), shape)
    else:
        around = [node("QuantizeLinear", "x sx zx", "q"), build(), node("DequantizeLinear", "p sy zy", "y")]
        made = model(around, {"x": ("float32", shape)}, ["y"], constants)
        network = agrees(made, drawn(shape), exact=True)
    assert rules(network, layer) == [Rounding.ONNX]


def agrees_or_saturates(made: Any, shape: Sequence[int]) -> Network:  # noqa: ANN401
    """Assert that onnxruntime has the network's values, or all those of pairs that saturate, and return the network."""
    network = load(made)
    feeds = {"q": np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)}
    (ours,), (theirs,), computed = network.run(feeds), onnxruntime_outputs(made, feeds), saturating(made, feeds)
    assert computed is not None
    assert np.array_equal(theirs, ours) or np.array_equal(theirs, computed)
    return network


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
    unsigned = op != "Sub" and (dtype == "uint8" or not linear)
    rule = Rounding.ONNX_UINT8 if unsigned else Rounding.ONNX
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


FUNCTIONS = {
    "Abs": LayerType.ABS,
    "Exp": LayerType.EXP,
    "LeakyRelu": LayerType.LEAKY_RELU,
    "Neg": LayerType.NEG,
    "Sigmoid": LayerType.LOGISTIC,
    "Sqrt": LayerType.SQRT,
    "Tanh": LayerType.TANH,
}


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("op", FUNCTIONS)
def test_functions_of_one_tensor(op: str, dtype: str) -> None:
    made = between([node(op, "d", "r")], dtype, {}, (256,))
    values = (np.arange(256, dtype=np.float32) - 117) * np.float32(0.023)
    network = agrees(made, {"x": values}, exact=True)
    assert rules(network, FUNCTIONS[op]) == [Rounding.ONNX]
    assert len(network.layers) == 3


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_one_slope(dtype: str) -> None:
    """A PRelu that has one constant slope, quantised or not, is LEAKY_RELU."""
    slopes = [node("DequantizeLinear", "a sa", "b"), node("PRelu", "d b", "m")]
    more = [node("QuantizeLinear", "m sx zx", "n"), node("DequantizeLinear", "n sx zx", "o"), node("PRelu", "o e", "r")]
    constants = {"a": np.array([[[31]]], "int8"), "sa": scale(0.0077), "e": np.array([-0.13], np.float32)}
    network = agrees(between([*slopes, *more], dtype, constants, (2, 6, 8, 8)), drawn((2, 6, 8, 8)), exact=True)
    assert rules(network, LayerType.LEAKY_RELU) == [Rounding.ONNX] * 2


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(("op", "attributes"), [("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.3})])
def test_functions_with_scales(op: str, attributes: Mapping[str, float], dtype: str) -> None:
    made = model([node(op, "x sx zx sy zy", "y", MICROSOFT, **attributes)], {"x": (dtype, [256])}, ["y"], points(dtype))
    network = agrees(made, {"x": np.arange(256).astype(np.uint8).view(dtype)}, exact=True)
    assert network.inputs[0].dtype == network.outputs[0].dtype == dtype


POOLS: Mapping[str, tuple[Callable[[], Any], LayerType]] = {
    "AveragePool": (partial(node, "AveragePool", "d", "r", kernel_shape=[2, 2]), LayerType.AVERAGE_POOL_2D),
    "AveragePool-pads": (
        partial(node, "AveragePool", "d", "r", kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1),
        LayerType.AVERAGE_POOL_2D,
    ),
    "GlobalAveragePool": (partial(node, "GlobalAveragePool", "d", "r"), LayerType.MEAN),
    "ReduceMean": (partial(node, "ReduceMean", "d axes", "r"), LayerType.MEAN),
    "Softmax": (partial(node, "Softmax", "d", "r"), LayerType.SOFTMAX),
}


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("name", POOLS)
def test_means(name: str, dtype: str) -> None:
    """The same scale before and behind makes many ties."""
    build, layer = POOLS[name]
    scales = points(dtype)
    constants = {"sy": scales["sx"], "zy": scales["zx"]} if name != "Softmax" else {"sy": scale(0.0043)}
    made_node = build()
    axes = {"axes": np.array([2, 3])} if "axes" in made_node.input else {}
    network = agrees(between([made_node], dtype, constants | axes, (2, 6, 8, 8)), drawn((2, 6, 8, 8)), exact=True)
    rule = Rounding.ONNX_UINT8 if layer is LayerType.AVERAGE_POOL_2D else Rounding.ONNX
    assert rules(network, layer) == [rule]
    assert count(network, LayerType.DEQUANTIZE) == 1


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(
    ("op", "layer", "attributes"),
    [
        ("AveragePool", LayerType.AVERAGE_POOL_2D, {"kernel_shape": [2, 2]}),
        ("GlobalAveragePool", LayerType.MEAN, {}),
        ("Softmax", LayerType.SOFTMAX, {"opset": 13}),
    ],
)
def test_means_with_scales(op: str, layer: LayerType, attributes: Mapping[str, Any], dtype: str) -> None:
    scales = points(dtype)
    constants = scales | ({"sy": scale(0.0043)} if op == "Softmax" else {"sy": scales["sx"]})
    linear = node(f"QLinear{op}", "x sx zx sy zy", "y", MICROSOFT, **attributes)
    made = model([linear], {"x": (dtype, [2, 6, 8, 8])}, ["y"], constants)
    inputs = {"x": np.random.default_rng(2).integers(0, 256, (2, 6, 8, 8)).astype(np.uint8).view(dtype)}
    network = agrees(made, inputs, exact=True)
    pool = dtype == "uint8" and layer is LayerType.AVERAGE_POOL_2D
    assert rules(network, layer) == [Rounding.ONNX_UINT8 if pool else Rounding.ONNX]


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "asymmetric", "align_corners"])
def test_interpolation(coordinates: str, dtype: str) -> None:
    resize = node("Resize", "d - factors", "r", mode="linear", coordinate_transformation_mode=coordinates)
    scales = points(dtype)
    constants = {"factors": MOVED_CONSTANTS["factors"], "sy": scales["sx"], "zy": scales["zx"]}
    network = agrees(between([resize], dtype, constants, (2, 6, 8, 8)), drawn((2, 6, 8, 8)), exact=True)
    assert rules(network, LayerType.RESIZE_BILINEAR) == [Rounding.ONNX]


JOINS: Mapping[str, tuple[Callable[[], Any], LayerType, int]] = {
    "QLinearConcat": (
        partial(node, "QLinearConcat", "sy zy x sx zx v sy zy", "y", MICROSOFT, axis=1),
        LayerType.CONCATENATION,
        1,
    ),
    "QLinearWhere": (partial(node, "QLinearWhere", "c x sx zx v sy zy sy zy", "y", MICROSOFT), LayerType.SELECT_V2, 1),
}


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("name", JOINS)
def test_joins_with_scales(name: str, dtype: str) -> None:
    build, layer, converted = JOINS[name]
    shape = (2, 6, 8, 8)
    constants = points(dtype) | ({"c": np.arange(8) % 2 == 0} if name == "QLinearWhere" else {})
    made = model([build()], {"x": (dtype, shape), "v": (dtype, shape)}, ["y"], constants)
    generator = np.random.default_rng(8)
    inputs = {each: generator.integers(0, 256, shape).astype(np.uint8).view(dtype) for each in ("x", "v")}
    network = agrees(made, inputs, exact=True)
    assert count(network, layer) == 1
    assert [rule for rule in rules(network, LayerType.QUANTIZE) if rule is Rounding.ONNX] == [Rounding.ONNX] * converted


def test_what_has_no_form_of_int8_stays_float32() -> None:
    made = between([node("HardSigmoid", "d", "h"), node("Mul", "h d", "r")], "int8", {}, (2, 6, 8, 8))
    network = agrees(made, drawn((2, 6, 8, 8)), exact=True)
    assert rules(network, LayerType.QUANTIZE) == [Rounding.ONNX] * 2
    assert count(network, LayerType.DEQUANTIZE) == 2


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_inputs_and_outputs_keep_the_type_of_the_model(dtype: str) -> None:
    values = weighted(6, 6, 3, 3, channels=6, per_channel=True)
    made = model(
        [
            node("MaxPool", "x", "m", kernel_shape=[2, 2]),
            node("QLinearConv", "m sx zx w sw zw sy zy b", "c"),
            node("Pad", "c pads zero", "p"),
            node("DequantizeLinear", "p sy zy", "d"),
            node("Transpose", "p", "y", perm=[0, 2, 3, 1]),
            node("Shape", "d", "z"),
        ],
        {"x": (dtype, [1, 6, 8, 8])},
        ["y", "c"],
        points(dtype) | values | {"pads": np.array([0, 0, 1, 1, 0, 0, 0, 2]), "zero": np.array(3, dtype)},
    )
    limits = np.iinfo(dtype)
    inputs = {"x": np.random.default_rng(5).integers(limits.min, limits.max + 1, (1, 6, 8, 8)).astype(dtype)}
    network = agrees(made, inputs, exact=True)
    assert [info.dtype for info in (*network.inputs, *network.outputs)] == [dtype] * 3
    assert network.inputs[0].scale == pytest.approx(0.023)


def test_weights_may_be_quantised_in_the_model() -> None:
    """As extra_options={'AddQDQPairToWeight': True} writes them, with Brevitas' Clip (QCDQ), and with a Transpose."""
    generator = np.random.default_rng(4)
    weights_ = generator.normal(size=(6, 20)).astype(np.float32)
    made = between(
        [
            node("QuantizeLinear", "w sw zw", "i", axis=1),
            node("Clip", "i lowest highest", "j"),
            node("DequantizeLinear", "j sw zw", "v", axis=1),
            node("Transpose", "v", "t"),
            node("Gemm", "d t c", "g", transB=1),
            node("QuantizeLinear", "g sy zy", "h"),
            node("Clip", "h lowest highest", "k"),
            node("DequantizeLinear", "k sy zy", "r"),
        ],
        "int8",
        {
            "w": weights_,
            "sw": generator.uniform(0.02, 0.03, 20).astype(np.float32),
            "zw": np.zeros(20, np.int8),
            "lowest": np.array(-7, np.int8),
            "highest": np.array(7, np.int8),
            "c": generator.normal(size=20).astype(np.float32),
        },
        (40, 6),
    )
    network = agrees(made, drawn((40, 6)), exact=True)
    assert rules(network, LayerType.FULLY_CONNECTED) == [Rounding.ONNX]
    assert count(network, LayerType.DEQUANTIZE, LayerType.QUANTIZE) == 2
    assert {each.type for each in network.layers} >= {LayerType.MAXIMUM, LayerType.MINIMUM}


def test_shared_conversions() -> None:
    """Several readers, a repeated pair, and a tensor that is an output as well."""
    made = between(
        [
            node("Neg", "d", "n"),
            *(node("QuantizeLinear", "n sy zy", f"n{i}") for i in range(2)),
            *(node("DequantizeLinear", f"n{i} sy zy", f"m{i}") for i in range(2)),
            node("Abs", "m0", "a"),
            node("QuantizeLinear", "a sx zx", "b"),
            node("DequantizeLinear", "b sx zx", "e"),
            node("Add", "m1 e", "r"),
        ],
        "int8",
        {},
        (2, 6, 8, 8),
    )
    made.graph.output.add().name = "e"
    network = agrees(made, drawn((2, 6, 8, 8)), exact=True)
    assert rules(network, LayerType.ADD) == [Rounding.ONNX_FLOAT]
    assert count(network, LayerType.QUANTIZE) == 1
    assert count(network, LayerType.DEQUANTIZE) == 2


def bad(changes: Mapping[str, Any], *, op: str = "Conv", **attributes: Any) -> Any:  # noqa: ANN401
    """Return a convolution between conversions, with other constants."""
    values = weighted(6, 6, 3, 3, channels=6, per_channel=True) | dict(changes)
    inside = [
        node("DequantizeLinear", "w sw zw", "v", axis=0, **attributes),
        node("DequantizeLinear", "b sb zb", "c", axis=0),
        node(op, "d v c", "r"),
    ]
    made = between(inside, "int8", {}, (2, 6, 8, 8))
    from onnx import numpy_helper

    kept = [each for each in made.graph.initializer if each.name not in values]
    del made.graph.initializer[:]
    made.graph.initializer.extend(
        kept + [numpy_helper.from_array(np.asarray(data), name) for name, data in values.items()]
    )
    return made


def another() -> Any:  # noqa: ANN401
    made = [node("QuantizeLinear", "x sx zx", "q"), node("DequantizeLinear", "q sy zx", "y")]
    return model(made, FLOATS, ["y"], points("int8"))


def scaled_by(data: Array, **others: Array) -> Any:  # noqa: ANN401
    values = points("int8") | weighted(6, 6, 3, 3, channels=6, per_channel=True) | {"sx": data, **others}
    made = [node("QLinearConv", "x sx zx w sw zw sy zy b", "y")]
    return model(made, {"x": ("int8", [1, 6, 8, 8])}, ["y"], values)


def without_output() -> Any:  # noqa: ANN401
    made = model([node("QLinearSigmoid", "x sx zx sy zy", "y", MICROSOFT)], {"x": ("int8", [2])}, ["x"], points("int8"))
    del made.graph.node[0].output[:]
    return made


def dynamic() -> Any:  # noqa: ANN401
    return model([node("DynamicQuantizeLinear", "x", "y s z")], FLOATS, ["y"])


def computed_scale() -> Any:  # noqa: ANN401
    made = [node("ReduceMax", "x", "s", keepdims=0), node("QuantizeLinear", "x s", "y")]
    return model(made, FLOATS, ["y"])


def of_integers() -> Any:  # noqa: ANN401
    made = [
        node("QuantizeLinear", "x sx zx", "q"),
        node("Resize", "q - f", "y", mode="linear"),
    ]
    return model(made, FLOATS, ["y"], points("uint8") | {"f": np.array([1, 1, 2, 2], np.float32)})


REFUSED: Mapping[str, tuple[Callable[[], Any], str, str]] = {
    "bias": (lambda: bad({"sb": np.full(6, 0.001, np.float32)}), "its bias 'c' has the scale", "leave it in float32"),
    "points": (
        lambda: bad({"w": weights(6, 6, 3, 3, dtype="uint8"), "zw": np.arange(100, 106).astype(np.uint8)}),
        "zero points per channel",
        "WeightSymmetric",
    ),
    "channels": (
        lambda: bad({"sx": np.full(6, 0.1, np.float32), "zx": np.zeros(6, np.int8)}),
        "6 scales",
        "per tensor",
    ),
    "blocks": (lambda: bad({}, block_size=3), "scales per block", "per tensor or per channel"),
    "int64": (lambda: bad({"zx": np.array(0, np.int64)}), "it quantises to int64", "QInt8"),
    "scale": (lambda: bad({"sx": scale(0)}), "its scale is 0.0", ""),
    "another": (another, "another scale or zero point", "same parameters"),
    "two scales": (lambda: scaled_by(np.ones(2, np.float32)), "its scales have 2 and 6 elements", ""),
    "huge scales": (lambda: scaled_by(scale(3e38), sw=scale(10), zw=np.int8(0)), "its scale is inf", ""),
    "no output": (without_output, "its first output has no name", ""),
    "dynamic": (dynamic, "quantises its input anew", "quantize_static"),
    "scale at run time": (computed_scale, "its scale is computed at run time", "quantize_static"),
    "integers": (of_integers, "computes with the integers", "QDQ"),
    "QONNX": (
        lambda: model([node("Quant", "x", "y", "qonnx.custom_op.general")], {"x": ("float32", [2])}),
        "qonnx",
        "QCDQ",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_the_way_out(name: str) -> None:
    build, message, hint = REFUSED[name]
    with pytest.raises((UnsupportedError, ModelError), match=message) as caught:
        load(build())
    assert hint in (caught.value.hint or "")


def test_int4_weights_are_read_and_int4_activations_refused() -> None:
    from onnx import TensorProto, helper

    made = bad({})
    for each in list(made.graph.initializer):
        if each.name in {"w", "zw"}:
            made.graph.initializer.remove(each)
    narrow = np.random.default_rng(0).integers(-8, 8, 6 * 6 * 9)
    made.graph.initializer.append(helper.make_tensor("w", TensorProto.INT4, (6, 6, 3, 3), narrow))
    made.graph.initializer.append(helper.make_tensor("zw", TensorProto.INT4, (6,), np.zeros(6, np.int8)))
    assert rules(load(made), LayerType.CONV_2D) == [Rounding.ONNX]
    made.graph.initializer.remove(next(each for each in made.graph.initializer if each.name == "zy"))
    made.graph.initializer.append(helper.make_tensor("zy", TensorProto.INT4, (), [0]))
    with pytest.raises(UnsupportedError, match="less than 8 bits"):
        load(made)


def small_network() -> Any:  # noqa: ANN401
    """Return a float32 network with a residual connection."""
    generator = np.random.default_rng(2)

    def normal(*shape: int) -> Array:
        return (generator.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)

    return model(
        [
            node("Conv", "x w0 b0", "c0", pads=[1, 1, 1, 1]),
            node("Relu", "c0", "r0"),
            node("Conv", "r0 w1 b1", "c1", group=6, pads=[1, 1, 1, 1]),
            node("Clip", "c1 low high", "r1"),
            node("Add", "r0 r1", "a"),
            node("MaxPool", "a", "m", kernel_shape=[2, 2], strides=[2, 2]),
            node("Concat", "m m", "j", axis=1),
            node("Flatten", "j", "f"),
            node("Gemm", "f w2 b2", "g", transB=1),
            node("Sigmoid", "g", "y"),
        ],
        {"x": ("float32", [1, 3, 8, 8])},
        ["y"],
        {
            "w0": normal(6, 3, 3, 3),
            "b0": normal(6, 1).reshape(-1),
            "w1": normal(6, 1, 3, 3),
            "b1": normal(6, 1).reshape(-1),
            "w2": normal(10, 192),
            "b2": normal(10, 1).reshape(-1),
            "low": scale(0),
            "high": scale(6),
        },
    )


@pytest.mark.parametrize("dtype", ["QInt8", "QUInt8"])
@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
def test_networks_of_quantize_static(form: str, dtype: str, tmp_path: Path) -> None:
    """The form QDQ with int8 leaves some layers float32 in onnxruntime: their sums round in another order."""
    require_module("onnxruntime", "pip install 'ferrule[oracle]'")
    import onnx
    from onnxruntime import quantization

    class Reader(quantization.CalibrationDataReader):  # type: ignore[misc]
        samples = iter([drawn((1, 3, 8, 8), seed) for seed in range(4)])

        def get_next(self) -> dict[str, Array] | None:
            return next(self.samples, None)

    kind = quantization.QuantType[dtype]
    quantization.quantize_static(
        onnx.shape_inference.infer_shapes(small_network()),
        tmp_path / "model.onnx",
        Reader(),
        quant_format=quantization.QuantFormat[form],
        activation_type=kind,
        weight_type=quantization.QuantType.QInt8,
        per_channel=True,
    )
    network = agrees(onnx.load(tmp_path / "model.onnx"), drawn((1, 3, 8, 8), 9), exact=True)
    assert count(network, LayerType.QUANTIZE) + count(network, LayerType.DEQUANTIZE) <= 4
    assert set(rules(network, LayerType.CONV_2D)) == {Rounding.ONNX}
