# SPDX-License-Identifier: Apache-2.0
"""Weights in forms that the reader unpacks: float16, int4 and 8-bit constants before DEQUANTIZE."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from flatbuffer_tree import Table, one_operator_model, operator, quantization, table, tensor, write

from ferrule import formats
from ferrule.errors import ModelError, UnsupportedError
from ferrule.graph import Array, DataType, LayerType

RANDOM = np.random.default_rng(5)
OPTIONS = {
    "CONV_2D": table("Conv2DOptions", StrideW=1, StrideH=1, DilationWFactor=1, DilationHFactor=1),
    "DEPTHWISE_CONV_2D": table(
        "DepthwiseConv2DOptions", StrideW=1, StrideH=1, DepthMultiplier=1, DilationWFactor=1, DilationHFactor=1
    ),
    "FULLY_CONNECTED": table("FullyConnectedOptions"),
}
SHAPES = {
    "CONV_2D": ((1, 5, 5, 3), (5, 3, 3, 3), (1, 5, 5, 5)),
    "DEPTHWISE_CONV_2D": ((1, 5, 5, 3), (1, 3, 3, 3), (1, 5, 5, 3)),
    "FULLY_CONNECTED": ((1, 9), (3, 9), (1, 3)),
}


def halves(values: Array) -> bytes:
    """Return int4 elements, two in a byte, the first in the low half."""
    flat = np.append(values.reshape(-1), [0] * (values.size % 2)).astype(np.uint8) & 15
    return bytes(flat[0::2] | flat[1::2] << 4)


def with_weights(type_: str, weights: Array, *, stored: str = "INT8", data: bytes | None = None) -> bytes:
    """Return an int8 model of one layer whose weights are stored in a type and as bytes."""
    image, _, output = SHAPES[type_]
    scales = [0.5] if type_ == "FULLY_CONNECTED" else [0.5 + 0.1 * index for index in range(output[-1])]
    axis = 3 if type_ == "DEPTHWISE_CONV_2D" else 0
    bias = np.arange(output[-1], dtype=np.int32) * 40 - 60
    tensors = [
        tensor("x", image, "INT8", 0, quantization([0.5], [3])),
        tensor("weights", weights.shape, stored, 1, quantization(scales, [0] * len(scales), axis)),
        tensor("bias", bias.shape, "INT32", 2, quantization([0.5 * s for s in scales], [0] * len(scales))),
        tensor("y", output, "INT8", 0, quantization([4.0], [-7])),
    ]
    buffers = (weights.tobytes() if data is None else data, bias.tobytes())
    return write(one_operator_model(type_, tensors, [0, 1, 2], [3], OPTIONS[type_], buffers=buffers))


@pytest.mark.parametrize("type_", list(OPTIONS))
def test_int4_weights_are_int8(type_: str) -> None:
    weights = RANDOM.integers(-8, 8, SHAPES[type_][1]).astype(np.int8)
    packed = with_weights(type_, weights, stored="INT4", data=halves(weights))
    network, same = formats.load(packed, name="m"), formats.load(with_weights(type_, weights), name="m")
    assert network.tensor("weights").info == same.tensor("weights").info
    np.testing.assert_array_equal(network.tensor("weights").data, weights)
    inputs = oracle.random_inputs(network)
    np.testing.assert_array_equal(network.run(inputs)[0], oracle.tflm(packed, inputs)[0])


def test_int4_weights_of_another_size_are_refused() -> None:
    weights = np.zeros((3, 9), np.int8)
    with pytest.raises(ModelError, match=r"tensor 'weights'.* 13 bytes, expected 14 for int4\[3, 9\]"):
        formats.load(with_weights("FULLY_CONNECTED", weights, stored="INT4", data=halves(weights)[1:]), name="m")


def dequantize_before(model: Table, *pairs: tuple[int, int]) -> bytes:
    """Return the file of a model with a DEQUANTIZE of each pair of tensors (input, output) before its operator."""
    import tflite

    model["OperatorCodes"].append(table("OperatorCode", DeprecatedBuiltinCode=tflite.BuiltinOperator.DEQUANTIZE))
    operators = model["Subgraphs"][0]["Operators"]
    operators[:0] = [operator([source], [target], code=1) for source, target in pairs]
    return write(model)


def test_float16_weights_are_float32() -> None:
    weights, bias = RANDOM.normal(size=(3, 4)).astype(np.float16), np.array([1, -2, 65504], np.float16)
    tensors = [
        tensor("x", (1, 4)),
        tensor("half", (3, 4), "FLOAT16", 1),
        tensor("half_bias", (3,), "FLOAT16", 2),
        tensor("weights", (3, 4)),
        tensor("bias", (3,)),
        tensor("y", (1, 3)),
    ]
    buffers = (weights.tobytes(), bias.tobytes())
    layer = one_operator_model("FULLY_CONNECTED", tensors, [0, 3, 4], [5], OPTIONS["FULLY_CONNECTED"], buffers=buffers)
    model = dequantize_before(layer, (1, 3), (2, 4))
    network = formats.load(model, name="m")
    assert [layer.type for layer in network.layers] == [LayerType.FULLY_CONNECTED]
    stored = network.tensor("weights")
    assert stored.info.dtype is DataType.FLOAT32
    np.testing.assert_array_equal(stored.data, weights.astype(np.float32))
    inputs = oracle.random_inputs(network)
    np.testing.assert_allclose(network.run(inputs)[0], oracle.litert_reference(model, inputs)[0], rtol=1e-5)


def test_a_computed_float16_tensor_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"tensor 'x'.* float16 and computed at run time"):
        formats.load(write(one_operator_model("RELU", [tensor("x", (1, 4), "FLOAT16"), tensor("y", (1, 4))], [0], [1])))


@pytest.mark.parametrize("scales", [[0.3], [0.3, 0.7, 1e-30]], ids=["one scale", "channels"])
def test_8_bit_constants_are_dequantised(scales: list[float]) -> None:
    stored = RANDOM.integers(-128, 128, (3, 4)).astype(np.int8)
    zero_points = [5] if len(scales) == 1 else [0, 0, 0]
    tensors = [
        tensor("x", (3, 4)),
        tensor("w", (3, 4), "INT8", 1, quantization(scales, zero_points)),
        tensor("f", (3, 4)),
        tensor("y", (3, 4)),
    ]
    layer = one_operator_model("ADD", tensors, [0, 2], [3], table("AddOptions"), buffers=(stored.tobytes(),))
    data = dequantize_before(layer, (1, 2))
    network = formats.load(data, name="m")
    assert [layer.type for layer in network.layers] == [LayerType.ADD]
    zeros = [np.zeros((3, 4), np.float32)]
    assert network.run(zeros)[0].tobytes() == oracle.litert_reference(data, zeros)[0].tobytes()


def test_sparse_weights_are_refused_with_the_way_out() -> None:
    model = write(one_operator_model("DENSIFY", [tensor("x", (1, 4)), tensor("y", (1, 4))], [0], [1]))
    with pytest.raises(UnsupportedError, match="sparse weights") as caught:
        formats.load(model, name="m")
    assert "EXPERIMENTAL_SPARSITY" in str(caught.value.hint)
