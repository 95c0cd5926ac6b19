# SPDX-License-Identifier: Apache-2.0
"""The instructions that a layer takes at least."""

from __future__ import annotations

import numpy as np
import pytest

import ferrule
from ferrule.graph import DataType, Quantization, TensorInfo
from ferrule.network import Network
from ferrule.operators.activation import Activation

BOARD = "mps2-an386"


def convolution(inputs: int, outputs: int, window: int, stride: int) -> Network:
    network = Network("convolution")
    source = TensorInfo(name="x", shape=(1, 10, 10, inputs), dtype=DataType.INT8, quantization=Quantization.of(0.02))
    weights = np.resize(np.arange(-60, 61, dtype=np.int8), (outputs, window, window, inputs))
    output = network.add_conv2d_layer(
        network.add_input(source),
        weights,
        np.zeros(outputs, np.int32),
        strides=(stride, stride),
        padding="same",
        activation=Activation.RELU,
        weights_quantization=Quantization.of(0.01),
        quantization=Quantization.of(0.5, -128),
    )
    network.set_outputs([output])
    return network


@pytest.mark.parametrize(
    ("inputs", "outputs", "window", "stride"),
    [(256, 16, 1, 1), (32, 16, 3, 2), (12, 32, 5, 1), (16, 16, 3, 1)],
)
def test_the_best_kernel_is_not_costly(inputs: int, outputs: int, window: int, stride: int) -> None:
    report = ferrule.inspect(convolution(inputs, outputs, window, stride), board=BOARD, goal="speed", kernels=True)
    assert report.kernels is not None
    (layer,) = report.kernels
    assert layer.bound is not None
    assert layer.advice == ""
