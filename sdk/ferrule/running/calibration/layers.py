# SPDX-License-Identifier: Apache-2.0
"""The layers of a calibration: a small network with the kernels that most of a model's time goes to."""

from __future__ import annotations

from functools import partial

import numpy as np

from ferrule.graph import DataType, Quantization, TensorInfo
from ferrule.network import Network

_SCALE = Quantization.of(0.05, 3)
_WEIGHTS = Quantization.of(0.02)
_SEED = 32
"""Any number, which stays: the firmware is the same on each machine."""


def calibration_network() -> Network:
    """Return an int8 network of about 0.3 million multiply-accumulates, in which each layer has another kernel."""
    generator = np.random.default_rng(_SEED)

    def weights(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int8]]:
        return generator.integers(-127, 128, shape, dtype=np.int8)

    def bias(size: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int32]]:
        return generator.integers(-300, 300, size, dtype=np.int32)

    network = Network("calibration")
    network.add_input(TensorInfo("image", (1, 12, 12, 3), DataType.INT8, quantization=_SCALE))
    convolution = partial(network.add_conv2d_layer, weights_quantization=_WEIGHTS, quantization=_SCALE)
    dense = partial(network.add_fully_connected_layer, weights_quantization=_WEIGHTS, quantization=_SCALE)
    convolution("image", weights(8, 3, 3, 3), bias(8), padding="same", name="convolution")
    network.add_depthwise_conv2d_layer(
        "convolution",
        weights(1, 3, 3, 8),
        bias(8),
        padding="same",
        weights_quantization=_WEIGHTS,
        quantization=_SCALE,
        name="depthwise",
    )
    convolution("depthwise", weights(16, 1, 1, 8), bias(16), name="pointwise")
    convolution("pointwise", weights(16, 3, 3, 16), bias(16), padding="same", strides=(2, 2), name="strided")
    convolution("strided", weights(16, 1, 1, 16), bias(16), name="branch")
    network.add_add_layer("strided", "branch", quantization=_SCALE, name="sum")
    network.add_max_pool2d_layer("sum", (2, 2), strides=(2, 2), name="largest")
    network.add_average_pool2d_layer("largest", (3, 3), strides=(3, 3), name="mean")
    network.add_reshape_layer("mean", (1, 16), name="flat")
    dense("flat", weights(128, 16), bias(128), name="wide")
    dense("wide", weights(12, 128), bias(12), name="dense")
    network.add_softmax_layer("dense", name="classes")
    network.set_outputs(["classes"])
    return network
