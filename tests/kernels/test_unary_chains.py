# SPDX-License-Identifier: Apache-2.0
"""Chains of layers with one input in generated C, where the plan lets outputs overlap inputs."""

from __future__ import annotations

import numpy as np
import pytest
from ckernels import NativeNetwork
from oracle import tflm

from ferrule.graph import Array, DataType, Quantization, TensorInfo
from ferrule.network import Network
from ferrule.operators.operator import OWN_CODE
from ferrule.testing.backends.comparison import graph_difference

pytestmark = pytest.mark.cc

SHAPE = (2, 6, 5, 8)


def floats(shape: tuple[int, ...] = SHAPE) -> Array:
    return np.random.default_rng(3).normal(0, 3, shape).astype(np.float32)


def start(name: str) -> tuple[Network, str]:
    network = Network(name)
    return network, network.add_input(TensorInfo("x", SHAPE, DataType.FLOAT32))


def int8_chain() -> Network:
    network, x = start("int8_chain")
    x = network.add_quantize_layer(x, DataType.INT8, Quantization.of(0.05, -3))
    x = network.add_hard_swish_layer(x, quantization=Quantization.of(0.04, 7))
    x = network.add_tanh_layer(x)
    x = network.add_quantize_layer(x, DataType.INT8, Quantization.of(0.02, 100))
    x = network.add_logistic_layer(x)
    x = network.add_mean_layer(x, [1, 2], quantization=Quantization.of(0.004, -128))
    x = network.add_softmax_layer(x)
    network.set_outputs([network.add_dequantize_layer(x)])
    return network


def int16_chain() -> Network:
    network, x = start("int16_chain")
    x = network.add_quantize_layer(x, DataType.INT16, Quantization.of(0.001))
    x = network.add_tanh_layer(x)
    x = network.add_quantize_layer(x, DataType.INT16, Quantization.of(0.0002))
    x = network.add_logistic_layer(x)
    x = network.add_sum_layer(x, [2], keep_dims=True, quantization=Quantization.of(0.001))
    x = network.add_softmax_layer(x)
    x = network.add_quantize_layer(x, DataType.INT8, Quantization.of(0.01, -128))
    x = network.add_quantize_layer(x, DataType.INT16, Quantization.of(0.0001))
    network.set_outputs([network.add_dequantize_layer(x)])
    return network


def int32_chain() -> Network:
    network, x = start("int32_chain")
    x = network.add_quantize_layer(x, DataType.INT8, Quantization.of(0.05, -3))
    x = network.add_quantize_layer(x, DataType.INT32, Quantization.of(1e-6))
    x = network.add_quantize_layer(x, DataType.INT16, Quantization.of(0.001))
    x = network.add_quantize_layer(x, DataType.INT32, Quantization.of(1e-5))
    x = network.add_quantize_layer(x, DataType.INT8, Quantization.of(0.05, 4))
    network.set_outputs([x])
    return network


@pytest.mark.parametrize("build", [int8_chain, int16_chain, int32_chain])
def test_integer_chain_is_exact(build) -> None:  # noqa: ANN001
    network = build()
    values = floats()
    wanted = network.run([values])[0]
    assert NativeNetwork(network).run([values])[0].tobytes() == wanted.tobytes()
    assert tflm(network, [values])[0].tobytes() == wanted.tobytes()


def test_float_chain_is_within_bounds() -> None:
    network, x = start("float_chain")
    x = network.add_tanh_layer(network.add_hard_swish_layer(x))
    x = network.add_mean_layer(network.add_logistic_layer(x), [1])
    x = network.add_softmax_layer(network.add_sum_layer(x, [1]), beta=0.5)
    network.set_outputs([x])
    values = floats()
    assert not graph_difference(network, [values], NativeNetwork(network).run([values]), OWN_CODE)


def test_constant_inputs() -> None:
    network = Network("constants")
    shape = (2, 30)
    x = network.add_input(TensorInfo("x", shape, DataType.INT8, quantization=Quantization.of(0.1)))
    stored = np.random.default_rng(5).integers(-128, 128, shape, dtype=np.int8)
    constant = network.add_constant_array("stored", stored, Quantization.of(0.03, 5))
    outputs = [
        network.add_softmax_layer(x),
        network.add_softmax_layer(constant),
        network.add_logistic_layer(constant),
        network.add_dequantize_layer(constant),
        network.add_sum_layer(constant, [1], quantization=Quantization.of(1.0)),
    ]
    network.set_outputs(outputs)
    for ours, wanted in zip(NativeNetwork(network).run([stored]), network.run([stored]), strict=True):
        assert ours.tobytes() == wanted.tobytes()
