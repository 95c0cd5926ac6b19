# SPDX-License-Identifier: Apache-2.0
"""Small ONNX models, with the transpositions that remain."""

from __future__ import annotations

import numpy as np
from onnx_models import agrees, count, load, model, node

from ferrule.graph import LayerType

GENERATOR = np.random.default_rng(1)


def weights(*shape: int) -> np.ndarray:
    """Return random weights."""
    return GENERATOR.normal(size=shape).astype(np.float32)


def test_a_small_network_has_no_transposition() -> None:
    made = model(
        [
            node("Conv", "x w0 b0", "c0", pads=[1, 1, 1, 1]),
            node("Relu", "c0", "r0"),
            node("Conv", "r0 w1", "c1", pads=[1, 1, 1, 1]),
            node("Add", "c1 r0", "a"),
            node("MaxPool", "a", "p", kernel_shape=[2, 2], strides=[2, 2]),
            node("Conv", "p w2 b2", "d", group=6, strides=[2, 1], auto_pad="SAME_UPPER"),
            node("Flatten", "d", "f"),
            node("Gemm", "f g h", "l", transB=1),
            node("MatMul", "l m", "n"),
            node("Softmax", "n", "y"),
        ],
        {"x": ("float32", ["batch", 1, 8, 10])},
        ["y"],
        {
            "w0": weights(6, 1, 3, 3),
            "b0": weights(6),
            "w1": weights(6, 6, 3, 3),
            "w2": weights(6, 1, 3, 3),
            "b2": weights(6),
            "g": weights(7, 60),
            "h": weights(7),
            "m": weights(7, 4),
        },
    )
    network = agrees(made)
    assert count(network, LayerType.TRANSPOSE) == 0


def test_pooled_features_need_no_transposition() -> None:
    made = model(
        [
            node("Conv", "x w", "c"),
            node("GlobalAveragePool", "c", "g"),
            node("Reshape", "g s", "r"),
            node("Gemm", "r m", "y", alpha=0.5),
        ],
        {"x": ("float32", [1, 1, 8, 8])},
        ["y"],
        {"w": weights(4, 1, 3, 3), "s": np.array([0, -1]), "m": weights(4, 3)},
    )
    assert count(agrees(made), LayerType.TRANSPOSE) == 0


SQUEEZE = [
    node("Conv", "x w0", "c0"),
    node("BatchNormalization", "c0 scale offset mean variance", "n0"),
    node("HardSwish", "n0", "h"),
    node("GlobalAveragePool", "h", "g"),
    node("Conv", "g w1", "s"),
    node("Sigmoid", "s", "gate"),
    node("Mul", "h gate", "m"),
    node("Conv", "m w2", "c2"),
    node("Add", "c2 m", "a"),
    node("Concat", "a h", "joined", axis=1),
    node("Pad", "joined pads", "padded"),
    node("Softmax", "padded", "soft", axis=1),
    node("ReduceMean", "soft axes", "y", keepdims=0),
]


def test_what_works_on_channels_needs_no_transposition() -> None:
    constants = {
        "w0": weights(4, 3, 3, 3),
        "w1": weights(4, 4, 1, 1),
        "w2": weights(4, 4, 1, 1),
        "scale": weights(4),
        "offset": weights(4),
        "mean": weights(4),
        "variance": np.abs(weights(4)) + 0.5,
        "pads": np.array([0, 0, 1, 2, 0, 0, 0, 1]),
        "axes": np.array([2, 3]),
    }
    network = agrees(model(SQUEEZE, {"x": ("float32", [1, 3, 7, 6])}, ["y"], constants))
    (first,) = [layer for layer in network.layers if layer.type is LayerType.TRANSPOSE]
    assert first.inputs == ("x",)
    assert count(network, LayerType.RESHAPE) == 0
    assert count(network, LayerType.MUL, LayerType.ADD) == 2, "the batch normalisation is in the weights"


def test_inputs_and_outputs_keep_the_order_of_the_model() -> None:
    made = model(
        [node("Conv", "x w", "y0"), node("Relu", "y0", "y1")],
        {"x": ("float32", ["N", 3, 5, 6])},
        ["y0", "y1"],
        {"w": weights(2, 3, 2, 2)},
    )
    network = agrees(made)
    assert [info.shape for info in (*network.inputs, *network.outputs)] == [(1, 3, 5, 6), (1, 2, 4, 5), (1, 2, 4, 5)]
    assert count(network, LayerType.TRANSPOSE) == 3


def test_transpositions_of_the_model_cancel() -> None:
    made = model(
        [
            node("Transpose", "x", "channels_first", perm=[0, 3, 1, 2]),
            node("Conv", "channels_first w", "c"),
            node("Transpose", "c", "channels_last", perm=[0, 2, 3, 1]),
            node("Add", "channels_last bias", "y"),
        ],
        {"x": ("float32", [1, 5, 6, 3])},
        ["y"],
        {"w": weights(2, 3, 2, 2), "bias": weights(1, 1, 1, 2)},
    )
    assert [layer.type for layer in agrees(made).layers] == [LayerType.CONV_2D]


def test_rows_of_samples_need_no_transposition() -> None:
    made = model(
        [
            node("Conv", "x w0", "c0", pads=[1, 1]),
            node("Transpose", "c0", "last", perm=[0, 2, 1]),
            node("Add", "last bias", "shifted"),
            node("Transpose", "shifted", "first", perm=[0, 2, 1]),
            node("LeakyRelu", "first", "r"),
            node("MaxPool", "r", "p", kernel_shape=[2], strides=[2]),
            node("ReduceMean", "p axes", "y", keepdims=0),
        ],
        {"x": ("float32", [1, 1, 12])},
        ["y"],
        {"w0": weights(4, 1, 3), "bias": weights(4), "axes": np.array([2])},
    )
    network = agrees(made)
    assert count(network, LayerType.TRANSPOSE, LayerType.ADD) == 0


def test_channels_are_shuffled_by_one_transposition() -> None:
    made = model(
        [
            node("Conv", "x w", "c"),
            node("Reshape", "c split", "s"),
            node("Transpose", "s", "t", perm=[0, 2, 1, 3, 4]),
            node("Reshape", "t joined", "j"),
            node("Conv", "j w", "k"),
            node("GlobalAveragePool", "k", "g"),
            node("Flatten", "g", "y"),
        ],
        {"x": ("float32", [1, 6, 4, 5])},
        ["y"],
        {"w": weights(6, 6, 1, 1), "split": np.array([0, 2, 3, 4, 5]), "joined": np.array([0, 6, 4, 5])},
    )
    assert count(agrees(made), LayerType.TRANSPOSE) == 2, "of the input, and the shuffle"


def test_shapes_are_computed() -> None:
    made = model(
        [
            node("Shape", "x", "shape"),
            node("Gather", "shape zero", "batch"),
            node("Unsqueeze", "batch axes", "first"),
            node("Concat", "first rest", "wanted", axis=0),
            node("Reshape", "x wanted", "flat"),
            node("Slice", "shape one three", "extents"),
            node("ReduceProd", "extents", "product", keepdims=0),
            node("Cast", "product", "number", to=1),
            node("Div", "flat number", "scaled"),
            node("Identity", "scaled", "y"),
        ],
        {"x": ("float32", ["batch", 4, 5])},
        ["y"],
        {
            "zero": np.array(0),
            "axes": np.array([0]),
            "rest": np.array([-1]),
            "one": np.array([1]),
            "three": np.array([3]),
        },
    )
    assert {layer.type for layer in agrees(made).layers} <= {LayerType.RESHAPE, LayerType.DIV}


def test_an_initialiser_may_be_an_input_too() -> None:
    inputs = {"x": ("float32", [2, 3]), "k": ("float32", [3])}
    made = model([node("Mul", "x k", "y")], inputs, ["y"], {"k": weights(3)})
    network = load(made)
    assert [info.name for info in network.inputs] == ["x"]


def test_outputs_may_be_inputs_constants_or_twice_the_same() -> None:
    nodes = [node("Identity", "x", "same"), node("Relu", "x", "r"), node("Add", "k k", "sum")]
    agrees(model(nodes, {"x": ("float32", [2, 3])}, ["same", "r", "sum"], {"k": weights(3)}))


def test_a_constant_is_limited_when_the_model_is_read() -> None:
    """Brevitas writes weights of fewer bits so."""
    nodes = [node("Clip", "k low high", "a"), node("Clip", "k - high", "b"), node("Add", "a b", "c")]
    limits = {"low": np.float32(-0.5), "high": np.float32(0.25)}
    made = model([*nodes, node("Mul", "x c", "y")], {"x": ("float32", [2, 3])}, ["y"], {"k": weights(3), **limits})
    assert [layer.type for layer in agrees(made).layers] == [LayerType.MUL]
