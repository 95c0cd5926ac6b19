# SPDX-License-Identifier: Apache-2.0
"""Turns the trained network into an int8 one: post-training quantisation as TensorFlow Lite specifies it.

Activations have one scale per tensor, from their range on the training images. Weights are symmetric, with one scale
per output channel. Biases are int32, with the product of both scales (TensorFlow Lite 8-bit quantization
specification).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from training import Activations, Floats, Parameters, forward

from ferrule import DataType, Network, Quantization, TensorInfo
from ferrule.operators import Activation

Int8 = NDArray[np.int8]


def activation_quantization(values: Floats) -> Quantization:
    """Return scale and zero point so that int8 spans the values' range and zero is exact."""
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    scale = (high - low) / 255
    return Quantization.of(scale, round(-128 - low / scale))


def _weights(values: Floats) -> tuple[Int8, Quantization]:
    """Return weights in int8 with one scale per output channel, which is axis 0; -128 is not used."""
    largest = np.abs(values.reshape(len(values), -1)).max(axis=1)
    scales = (np.maximum(largest, 1e-6) / 127).astype(np.float32)
    spread = scales.reshape(-1, *[1] * (values.ndim - 1))
    stored = np.clip(np.rint(values / spread), -127, 127).astype(np.int8)
    quantization = Quantization(scales=tuple(map(float, scales)), zero_points=(0,) * len(scales), axis=0)
    return stored, quantization


def _bias(values: Floats, source: Quantization, weights: Quantization) -> NDArray[np.int32]:
    return np.rint(values / (np.array(weights.scales) * source.scale)).astype(np.int32)


def quantized_network(parameters: Parameters, images: Floats) -> Network:
    """Return the int8 network; the ranges of the activations come from `images`."""
    seen: Activations = forward(parameters, images)
    ranges = [activation_quantization(values) for values in (images, seen.relu1, seen.relu2, seen.logits)]
    network = Network("digits")
    source = network.add_input(
        TensorInfo(name="image", shape=(1, 8, 8, 1), dtype=DataType.INT8, quantization=ranges[0])
    )
    layers = ((parameters.conv1, parameters.bias1), (parameters.conv2, parameters.bias2))
    for number, (kernel, bias) in enumerate(layers, start=1):
        stored, quantization = _weights(kernel)
        convolved = network.add_conv2d_layer(
            source,
            stored,
            _bias(bias, ranges[number - 1], quantization),
            padding="same",
            activation=Activation.RELU,
            weights_quantization=quantization,
            quantization=ranges[number],
            name=f"conv{number}",
        )
        source = network.add_max_pool2d_layer(convolved, (2, 2), strides=(2, 2), name=f"pool{number}")
    flat = network.add_reshape_layer(source, (1, 64), name="flat")
    # one scale for all outputs: every int8 kernel library supports this form of FULLY_CONNECTED
    scale = Quantization.of(float(np.abs(parameters.dense).max()) / 127)
    stored = np.clip(np.rint(parameters.dense / np.float32(scale.scale)), -127, 127).astype(np.int8)
    logits = network.add_fully_connected_layer(
        flat,
        stored,
        _bias(parameters.bias3, ranges[2], scale),
        weights_quantization=scale,
        quantization=ranges[3],
        name="logits",
    )
    network.set_outputs([network.add_softmax_layer(logits, name="probabilities")])
    return network
