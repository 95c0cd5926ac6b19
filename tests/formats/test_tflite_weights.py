# SPDX-License-Identifier: Apache-2.0
"""Weights in forms that the reader unpacks: float16, int4 and 8-bit constants before DEQUANTIZE."""

from __future__ import annotations

import math

import numpy as np
import oracle
import pytest
import tflite
from flatbuffer_tree import one_operator_model, quantization, table, tensor, write
from numpy.testing import assert_array_equal
from stored_weights import OPTIONS, SHAPES, dequantize_before, halves, with_weights

from ferrule import formats
from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats import to_tflite
from ferrule.graph import DataType, LayerType, Quantization
from ferrule.testing.backends.comparison import graph_difference, random_inputs

RANDOM = np.random.default_rng(5)


@pytest.mark.parametrize("type_", list(OPTIONS))
def test_int4_weights_are_int8(type_: str) -> None:
    weights = RANDOM.integers(-8, 8, SHAPES[type_][1]).astype(np.int8)
    packed = with_weights(type_, weights, stored="INT4", data=halves(weights))
    network, same = formats.load(packed, name="m"), formats.load(with_weights(type_, weights), name="m")
    assert network.tensor("weights").info == same.tensor("weights").info
    assert_array_equal(network.tensor("weights").data, weights)
    inputs = random_inputs(network)
    assert_array_equal(network.run(inputs)[0], oracle.tflm(packed, inputs)[0])


def test_int4_weights_of_fully_connected_with_a_scale_per_channel_have_the_results_of_int8() -> None:
    """TFLM refuses the file, and confirms the results for the same weights stored as int8 alone."""
    weights = RANDOM.integers(-8, 8, SHAPES["FULLY_CONNECTED"][1]).astype(np.int8)
    scales = [0.5, 0.25, 0.125]
    packed = with_weights("FULLY_CONNECTED", weights, stored="INT4", data=halves(weights), scales=scales)
    network = formats.load(packed, name="m")
    assert network.tensor("weights").info.quantization == Quantization(scales=tuple(scales), zero_points=(0, 0, 0))
    inputs = random_inputs(network)
    wide = with_weights("FULLY_CONNECTED", weights, scales=scales)
    assert_array_equal(network.run(inputs)[0], oracle.tflm(wide, inputs)[0])
    with pytest.raises(RuntimeError):
        oracle.tflm(packed, inputs)


def test_int4_weights_of_another_size_are_refused() -> None:
    weights = np.zeros((3, 9), np.int8)
    with pytest.raises(ModelError, match=r"tensor 'weights'.* 13 bytes, expected 14 for int4\[3, 9\]"):
        formats.load(with_weights("FULLY_CONNECTED", weights, stored="INT4", data=halves(weights)[1:]), name="m")


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
    assert_array_equal(stored.data, weights.astype(np.float32))
    inputs = random_inputs(network)
    assert not graph_difference(network, inputs, oracle.litert_reference(model, inputs))


def test_a_computed_float16_tensor_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"tensor 'x'.* float16 and computed at run time"):
        formats.load(write(one_operator_model("RELU", [tensor("x", (1, 4), "FLOAT16"), tensor("y", (1, 4))], [0], [1])))


@pytest.mark.parametrize("scales", [[0.3], [0.0], [0.3, 0.0, 1e-30]], ids=["one scale", "a scale of zero", "channels"])
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


@pytest.mark.parametrize("type_", ["MUL", "CONV_2D"])
def test_a_constant_with_scale_zero_is_zero(type_: str) -> None:
    """Converters give this scale to constants of zeros, such as the first state of an unrolled LSTM."""
    image, weights, output = ((1, 2), (1, 2), (1, 2)) if type_ == "MUL" else ((1, 1, 1, 2), (2, 1, 1, 2), (1, 1, 1, 2))
    scales = [0.0] if type_ == "MUL" else [0.5, 0.0]
    bias_scales = quantization([0.25 * scale for scale in scales], [0] * len(scales))
    tensors = [
        tensor("x", image, "INT8", 0, quantization([0.5], [3])),
        tensor("w", weights, "INT8", 1, quantization(scales, [0] * len(scales))),
        tensor("bias", (2,), "INT32", 2, bias_scales),
        tensor("y", output, "INT8", 0, quantization([0.25], [-4])),
    ]
    options = table("Conv2DOptions", StrideH=1, StrideW=1) if type_ == "CONV_2D" else table("MulOptions")
    buffers = (
        np.array([5, -7, 100, 90][: math.prod(weights)], np.int8).tobytes(),
        np.array([9, 80], np.int32).tobytes(),
    )
    inputs = [0, 1, 2] if type_ == "CONV_2D" else [0, 1]
    data = write(one_operator_model(type_, tensors, inputs, [3], options, buffers=buffers))
    network = formats.load(data)
    x = [np.array([[90, -100]], np.int8).reshape(image)]
    wanted = oracle.tflm(data, x)[0]
    assert_array_equal(network.run(x)[0], wanted)
    assert_array_equal(formats.load(to_tflite(network)).run(x)[0], wanted)


def test_sparse_weights_are_refused_with_the_way_out() -> None:
    model = write(one_operator_model("DENSIFY", [tensor("x", (1, 4)), tensor("y", (1, 4))], [0], [1]))
    with pytest.raises(UnsupportedError, match="sparse weights") as caught:
        formats.load(model, name="m")
    assert "EXPERIMENTAL_SPARSITY" in str(caught.value.hint)


@pytest.mark.parametrize("type_", ["CONV_2D", "FULLY_CONNECTED"])
def test_int16_sums_of_32_bits_get_a_bias(type_: str) -> None:
    """TFLM rounds these sums as those with an int32 bias; without one, a network's sums have 64 bits."""
    image, weights, output = SHAPES[type_]
    tensors = [
        tensor("x", image, "INT16", 0, quantization([0.5], [0])),
        tensor("weights", weights, "INT8", 1, quantization([0.5], [0])),
        tensor("y", output, "INT16", 0, quantization([4.0], [0])),
    ]
    data = RANDOM.integers(-127, 128, weights).astype(np.int8).tobytes()

    def model(bias_type: str) -> bytes:
        fields = OPTIONS[type_].fields | {"QuantizedBiasType": getattr(tflite.TensorType, bias_type)}
        options = table(OPTIONS[type_].name, **fields)
        return write(one_operator_model(type_, tensors, [0, 1], [2], options, buffers=(data,)))

    results = {}
    for bias_type in ("INT64", "INT32"):
        network = formats.load(model(bias_type), name="m")
        inputs = [np.arange(-1800, 1800, 3600 / np.prod(image)).astype(np.int16).reshape(image)]
        (results[bias_type],) = network.run(inputs)
        assert_array_equal(results[bias_type], oracle.tflm(model(bias_type), inputs)[0])
        assert_array_equal(results[bias_type], oracle.tflm(network, inputs)[0])
