# SPDX-License-Identifier: Apache-2.0
"""MobileNetV2 in int8, with random weights that are scaled so that no activation saturates."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ferrule import DataType, Network, Quantization, TensorInfo
from ferrule.graph import Array
from ferrule.operators.activation import Activation

BLOCKS = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Expansion, output channels, repeats and stride of the first repeat, as in table 2 of the paper (arXiv 1801.04381)."""
_CLAMPED = Quantization.of(6 / 255, -128)
Kind = Literal["conv", "depthwise"]


def mobilenet_v2(side: int = 224, alpha: float = 1.0, *, classes: int = 1000, blocks: int = 99) -> Network:
    """Return MobileNetV2 for images of side x side x 3, with at most so many blocks."""
    made = _Builder(side)
    at = made.layer("conv", "image", _channels(32, alpha), kernel=3, stride=2)
    plan = [
        (expansion, _channels(channels, alpha), stride if repeat == 0 else 1)
        for expansion, channels, repeats, stride in BLOCKS
        for repeat in range(repeats)
    ]
    for expansion, channels, stride in plan[:blocks]:
        at = made.block(at, expansion, channels, stride)
    at = made.layer("conv", at, _channels(1280, max(alpha, 1.0)) if blocks >= len(plan) else 64, kernel=1)
    return made.finish(at, classes)


def _channels(channels: int, alpha: float) -> int:
    """Return the scaled number of channels: a multiple of 8, not more than a tenth less."""
    scaled = channels * alpha
    rounded = max(8, int(scaled + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * scaled else rounded


@dataclass
class _Builder:
    """A network under construction, with the real values of a sample for each tensor."""

    side: int
    network: Network = field(default_factory=lambda: Network("mobilenet_v2"))
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(2018))
    values: dict[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        quantization = Quantization.of(1 / 128)
        info = TensorInfo("image", (1, self.side, self.side, 3), DataType.INT8, quantization=quantization)
        self.network.add_input(info)
        self.values["image"] = self.random.uniform(-1, 1, info.shape).astype(np.float32)

    def block(self, source: str, expansion: int, channels: int, stride: int) -> str:
        """Add an inverted residual block."""
        inside = self.network.info(source).shape[3]
        at = source if expansion == 1 else self.layer("conv", source, inside * expansion, kernel=1)
        at = self.layer("depthwise", at, inside * expansion, kernel=3, stride=stride)
        at = self.layer("conv", at, channels, kernel=1, linear=True)
        if stride != 1 or channels != inside:
            return at
        total = self.values[source] + self.values[at]
        name = self.network.add_add_layer(source, at, quantization=_symmetric(total))
        self.values[name] = total
        return name

    def layer(
        self, kind: Kind, source: str, channels: int, *, kernel: int, stride: int = 1, linear: bool = False
    ) -> str:
        """Add a convolution, with ReLU6 unless `linear`; its real outputs have a standard deviation of about 1.5."""
        inside = self.network.info(source).shape[3]
        shape = (channels, kernel, kernel, inside) if kind == "conv" else (1, kernel, kernel, channels)
        weights = self.random.normal(0, 1, shape).astype(np.float32)
        deviation = float(self._real(kind, source, weights, stride).std())
        weights *= np.float32(1.5 / max(deviation, 1e-6))
        bias = self.random.normal(0.3, 0.3, channels).astype(np.float32)
        real = self._real(kind, source, weights, stride) + bias
        axes = (1, 2, 3) if kind == "conv" else (0, 1, 2)
        scales = np.maximum(np.abs(weights).max(axis=axes), 1e-6) / 127
        along = scales.reshape((-1, 1, 1, 1) if kind == "conv" else (1, 1, 1, -1))
        source_scale = self.network.info(source).scale
        add = self.network.add_conv2d_layer if kind == "conv" else self.network.add_depthwise_conv2d_layer
        name = add(
            source,
            np.round(weights / along).astype(np.int8),
            np.round(bias / (scales * source_scale)).astype(np.int32),
            strides=(stride, stride),
            padding="same",
            activation=Activation.NONE if linear else Activation.RELU6,
            weights_quantization=Quantization(
                scales=tuple(map(float, scales)), zero_points=(0,) * channels, axis=0 if kind == "conv" else 3
            ),
            quantization=_symmetric(real) if linear else _CLAMPED,
        )
        self.values[name] = real if linear else real.clip(0, 6)
        return name

    def _real(self, kind: Kind, source: str, weights: Array, stride: int) -> Array:
        """Return the real outputs of a convolution without bias and activation."""
        values = self.values[source]
        network = Network("real")
        network.add_input(TensorInfo("x", values.shape, DataType.FLOAT32))
        add = network.add_conv2d_layer if kind == "conv" else network.add_depthwise_conv2d_layer
        network.set_outputs([add("x", weights, strides=(stride, stride), padding="same")])
        return network.run([values])[0]

    def finish(self, source: str, classes: int) -> Network:
        """Add the global average pool and the classifier."""
        _, height, width, channels = self.network.info(source).shape
        pooled = self.network.add_average_pool2d_layer(source, (height, width))
        flat = self.network.add_reshape_layer(pooled, (1, channels))
        weights = self.random.integers(-127, 128, (classes, channels), dtype=np.int8)
        logits = self.network.add_fully_connected_layer(
            flat,
            weights,
            np.zeros(classes, np.int32),
            weights_quantization=Quantization.of(0.002),
            quantization=Quantization.of(0.1),
        )
        self.network.set_outputs([self.network.add_softmax_layer(logits)])
        return self.network


def _symmetric(values: Array) -> Quantization:
    """Return the quantisation of a linear output by its largest magnitude."""
    return Quantization.of(float(np.abs(values).max()) / 127, 0)
