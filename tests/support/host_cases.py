# SPDX-License-Identifier: Apache-2.0
"""Networks of one layer whose shapes fill, exceed or leave empty the tiles and vectors of the host's kernels."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ferrule.graph import DataType, Graph, GraphEditor, Quantization, Rounding, Shape, TensorInfo
from ferrule.network import Network
from ferrule.operators.activation import Activation

CHANNELS = st.sampled_from([1, 2, 3, 8, 15, 16, 17, 32, 33, 48, 50, 63, 64, 65, 100, 128])
EXTENTS = st.sampled_from([1, 2, 3, 5, 7, 8, 11, 13, 16, 25])
ACTIVATIONS = st.sampled_from([Activation.NONE, Activation.RELU, Activation.RELU6])
_BATCHES = st.sampled_from([1, 1, 3])
_STRIDES = st.tuples(st.integers(1, 3), st.integers(1, 3))
_DILATIONS = st.sampled_from([(1, 1), (1, 1), (1, 1), (2, 1), (1, 2)])
_SEEDS = st.integers(0, 1 << 32)


@dataclass(slots=True)
class Case:
    """A network of one layer under construction."""

    dtype: DataType
    shape: Shape
    seed: int
    portable: bool = False
    """Whether every host chooses the portable kernel."""
    network: Network = field(init=False)
    random: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.network = Network("case")
        self.network.add_input(TensorInfo("x", self.shape, self.dtype, quantization=self._activation(2.0**-6)))

    def weights(self, shape: Shape, axis: int, products: int) -> dict[str, Any]:
        """Return weights, bias and quantisations, scaled so that outputs use their range and some saturate."""
        channels = shape[axis]
        if self.dtype.is_float:
            return {
                "weights": self.random.normal(size=shape).astype(np.float32),
                "bias": self.random.normal(size=channels).astype(np.float32),
            }
        scales = tuple(float(np.float32(2.0 ** self.random.uniform(-12, -4))) for _ in range(channels))
        output = 2.0**-6 * 2.0 ** self.random.uniform(-6, -1) * np.sqrt(products)
        return {
            "weights": self.random.integers(-128, 128, shape, dtype=np.int8),
            "bias": self.random.integers(-20000, 20000, channels, dtype=np.int32),
            "weights_quantization": Quantization(scales=scales, zero_points=(0,) * channels, axis=axis),
            "quantization": self._activation(float(output)),
        }

    def finished(self) -> Case:
        """Set the last layer's output as the network's, validate, and return the case."""
        self.network.set_outputs([self.network.layers[-1].outputs[0]])
        self.network.validate()
        return self

    def _activation(self, scale: float) -> Quantization | None:
        if self.dtype.is_float:
            return None
        return Quantization.of(scale, int(self.random.choice([-128, -128, -5, 0, 31, 127])))


def _windowed(draw: st.DrawFn) -> dict[str, Any]:
    """Draw what layers with windows share."""
    return {
        "strides": draw(_STRIDES),
        "dilations": draw(_DILATIONS),
        "padding": "same",
        "activation": draw(ACTIVATIONS),
    }


@st.composite
def convolutions(draw: st.DrawFn, dtype: DataType) -> Case:
    """Draw a CONV_2D layer."""
    height, width, depth, channels = (draw(item) for item in (EXTENTS, EXTENTS, CHANNELS, CHANNELS))
    window = (min(draw(st.integers(1, 4)), height), min(draw(st.integers(1, 4)), width))
    case = Case(dtype, (draw(_BATCHES), height, width, depth), draw(_SEEDS))
    case.network.add_conv2d_layer(
        "x",
        **case.weights((channels, *window, depth), 0, window[0] * window[1] * depth),
        **_windowed(draw),
    )
    return case.finished()


@st.composite
def depthwise_convolutions(draw: st.DrawFn, dtype: DataType) -> Case:
    """Draw a DEPTHWISE_CONV_2D layer, sometimes with two outputs per channel."""
    height, width, depth = (draw(item) for item in (EXTENTS, EXTENTS, CHANNELS))
    window = (min(draw(st.integers(1, 5)), height), min(draw(st.integers(1, 5)), width))
    channels = depth * draw(st.sampled_from([1, 1, 1, 1, 2]))
    several = channels != depth and depth > 1
    case = Case(dtype, (draw(_BATCHES), height, width, depth), draw(_SEEDS), portable=several)
    case.network.add_depthwise_conv2d_layer(
        "x",
        **case.weights((1, *window, channels), 3, window[0] * window[1]),
        **_windowed(draw),
    )
    return case.finished()


@st.composite
def products(draw: st.DrawFn, dtype: DataType) -> Case:
    """Draw a FULLY_CONNECTED layer."""
    rows, depth, channels = draw(EXTENTS), draw(CHANNELS), draw(CHANNELS)
    case = Case(dtype, (rows, depth), draw(_SEEDS))
    case.network.add_fully_connected_layer(
        "x", **case.weights((channels, depth), 0, depth), activation=draw(ACTIVATIONS)
    )
    return case.finished()


@st.composite
def pools(draw: st.DrawFn, kind: str) -> Network:
    """Draw an int8 AVERAGE_POOL_2D ("average") or MAX_POOL_2D ("max") network."""
    batch, height, width, depth = (draw(item) for item in (_BATCHES, EXTENTS, EXTENTS, CHANNELS))
    network = Network("case")
    quantization = Quantization.of(0.05, draw(st.sampled_from([-128, 0, 77])))
    network.add_input(TensorInfo("x", (batch, height, width, depth), DataType.INT8, quantization=quantization))
    add = network.add_average_pool2d_layer if kind == "average" else network.add_max_pool2d_layer
    window = (draw(st.integers(1, height)), draw(st.integers(1, width)))
    last = add("x", window, strides=draw(_STRIDES), padding="same", activation=draw(ACTIVATIONS))
    network.set_outputs([last])
    return network


def halfway_sums() -> Network:
    """Return a fully connected layer whose channels divide by 2, 4, ... 256: many sums are halfway between results."""
    random = np.random.default_rng(5)
    network = Network("halfway")
    channels = 64
    quantization = Quantization.of(1.0)
    network.add_input(TensorInfo("x", (1, 16), DataType.INT8, quantization=quantization))
    scales = tuple(2.0 ** -(1 + channel % 8) for channel in range(channels))
    network.add_fully_connected_layer(
        "x",
        random.integers(-2, 3, (channels, 16), dtype=np.int8),
        random.integers(-64, 65, channels, dtype=np.int32),
        weights_quantization=Quantization(scales=scales, zero_points=(0,) * channels, axis=0),
        quantization=quantization,
    )
    network.set_outputs([network.layers[-1].outputs[0]])
    return network


def ruled(network: Network, rule: Rounding) -> Graph:
    """Return a network of one layer that rounds by a rule."""
    editor = GraphEditor(network)
    editor.replace_layer(replace(network.layers[0], rounding=rule))
    return editor.finish()


WEIGHTED = {"conv2d": convolutions, "depthwise_conv2d": depthwise_convolutions, "fully_connected": products}
