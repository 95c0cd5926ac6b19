# SPDX-License-Identifier: Apache-2.0
"""The corpus: one network of many independent layers, each with a shape that public models have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ferrule import Network
from ferrule.graph import Array, DataType, Quantization, Shape, TensorInfo
from ferrule.operators.activation import Activation

KINDS = {"int8": DataType.INT8, "int16": DataType.INT16, "f32": DataType.FLOAT32}
_RELU, _NONE = Activation.RELU, Activation.NONE
_IMAGE = 24


@dataclass
class _Builder:
    """Adds layers of one kind to a network; layers with inputs of the same shape share them."""

    kind: str
    network: Network = field(default_factory=lambda: Network("corpus"))
    ends: list[str] = field(default_factory=list)
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))

    @property
    def is_float(self) -> bool:
        return self.kind == "f32"

    @property
    def is_wide(self) -> bool:
        return self.kind == "int16"

    @property
    def input_quantization(self) -> Quantization | None:
        if self.is_float:
            return None
        return Quantization.of(1e-4, 0) if self.is_wide else Quantization.of(0.02, -128)

    def output_quantization(self, products: int) -> Quantization | None:
        """Return one that suits sums of so many products."""
        if self.is_float:
            return None
        scale = 0.05 * max(1, products) ** 0.5 * (4e-3 if self.is_wide else 1)
        return Quantization.of(scale, 0 if self.is_wide else -128)

    def input(self, *shape: int) -> str:
        name = "x" + "_".join(map(str, shape))
        if not any(info.name == name for info in self.network.sources):
            info = TensorInfo(name=name, shape=shape, dtype=KINDS[self.kind], quantization=self.input_quantization)
            return self.network.add_input(info)
        return name

    def weights(self, *shape: int) -> Array:
        if self.is_float:
            return self.random.standard_normal(shape).astype(np.float32)
        return self.random.integers(-127, 128, shape, np.int8)

    def bias(self, count: int) -> Array:
        if self.is_float:
            return self.random.standard_normal(count).astype(np.float32)
        return self.random.integers(-2000, 2000, count).astype(np.int64 if self.is_wide else np.int32)

    def scales(self, count: int, axis: int) -> Quantization | None:
        if self.is_float:
            return None
        values = tuple(float(np.float32(value)) for value in self.random.uniform(0.004, 0.012, count))
        return Quantization(scales=values, zero_points=(0,) * count, axis=axis if count > 1 else 0)

    def scale(self, value: float = 0.008) -> Quantization | None:
        return None if self.is_float else Quantization.of(value, 0)

    def conv(
        self,
        name: str,
        image: tuple[int, int],
        channels: tuple[int, int],
        window: tuple[int, int],
        *,
        strides: tuple[int, int] = (1, 1),
        dilations: tuple[int, int] = (1, 1),
        activation: Activation = _RELU,
        groups: int = 1,
    ) -> str:
        inputs, outputs = channels
        return self.network.add_conv2d_layer(
            self.input(1, *image, inputs),
            self.weights(outputs, *window, inputs // groups),
            self.bias(outputs),
            strides=strides,
            dilations=dilations,
            padding="same",
            activation=activation,
            weights_quantization=self.scales(outputs, 0),
            quantization=self.output_quantization(window[0] * window[1] * inputs // groups),
            name=name,
        )

    def depthwise(
        self,
        name: str,
        image: tuple[int, int],
        channels: int,
        window: tuple[int, int],
        *,
        multiplier: int = 1,
        strides: tuple[int, int] = (1, 1),
        dilations: tuple[int, int] = (1, 1),
        padding: str = "same",
        activation: Activation = _RELU,
    ) -> str:
        outputs = channels * multiplier
        return self.network.add_depthwise_conv2d_layer(
            self.input(1, *image, channels),
            self.weights(1, *window, outputs),
            self.bias(outputs),
            strides=strides,
            dilations=dilations,
            padding=padding,  # type: ignore[arg-type]
            activation=activation,
            weights_quantization=self.scales(outputs, 3),
            quantization=self.output_quantization(window[0] * window[1]),
            name=name,
        )

    def fully_connected(
        self, name: str, inputs: int, outputs: int, *, rows: int = 1, activation: Activation = _RELU
    ) -> str:
        return self.network.add_fully_connected_layer(
            self.input(rows, inputs),
            self.weights(outputs, inputs),
            self.bias(outputs),
            weights_quantization=self.scale(),
            activation=activation,
            quantization=self.output_quantization(inputs),
            name=name,
        )

    def transposed(self, name: str, image: int, channels: int, window: int, stride: int) -> str:
        return self.network.add_transpose_conv_layer(
            self.input(1, image, image, channels),
            self.weights(channels, window, window, channels),
            self.bias(channels),
            size=(image * stride, image * stride),
            strides=(stride, stride),
            padding="same",
            weights_quantization=self.scales(channels, 0),
            quantization=self.output_quantization(window * window * channels // stride**2),
            name=name,
        )

    def matmul(self, name: str, rows: int, depth: int, columns: int, *, adjoint: bool) -> str:
        right = self.input(4, columns, depth) if adjoint else self.input(4, depth, columns)
        return self.network.add_batch_matmul_layer(
            self.input(4, rows, depth), right, adj_y=adjoint, quantization=self.output_quantization(depth), name=name
        )

    def unary(self, name: str, method: str, *arguments: object, shape: Shape | None = None, **options: object) -> str:
        if options.pop("same", False):
            options["quantization"] = self.input_quantization
        source = self.input(*(shape or (1, _IMAGE, _IMAGE, 16)))
        added: str = getattr(self.network, f"add_{method}_layer")(source, *arguments, name=name, **options)
        return added

    def relu(self, name: str) -> str:
        source, quantization = self.input(1, _IMAGE, _IMAGE, 16), self.input_quantization
        halved = None if quantization is None else replace(quantization, scales=(quantization.scale / 2,))
        return self.network.add_relu_layer(source, quantization=halved, name=name)

    def binary(self, name: str, method: str, left: Shape | None = None, right: Shape | None = None) -> str:
        image = (1, _IMAGE, _IMAGE, 16)
        one = self.input(*(left or image))
        if right is None:
            two = self.network.add_relu_layer(one, quantization=self.input_quantization, name=f"{name}_pre")
        else:
            two = self.input(*right)
        added: str = getattr(self.network, f"add_{method}_layer")(
            one, two, quantization=self.output_quantization(1), name=name
        )
        return added

    def joined(self, name: str) -> str:
        source = self.input(1, _IMAGE, _IMAGE, 16)
        return self.network.add_concatenation_layer([source, source], 3, name=name)

    def lstm(self, name: str, steps: int, inputs: int, units: int) -> str:
        scales = None if self.is_float else [Quantization.of(0.005, 0)] * 4
        biases = [self.bias(units) for _ in range(4)]
        return self.network.add_lstm_layer(
            self.input(1, steps, inputs),
            [self.weights(units, inputs) for _ in range(4)],
            [self.weights(units, units) for _ in range(4)],
            biases if self.is_float or self.is_wide else [bias.astype(np.int32) for bias in biases],
            weights_quantizations=scales,
            recurrent_quantizations=scales,
            cell_quantization=self.scale(2.0**-11),
            quantization=self.scale(1 / 32768 if self.is_wide else 1 / 128),
            name=name,
        )


_B, _S = _Builder, (_IMAGE, _IMAGE)
_Case = tuple[str, Callable[..., str], tuple[object, ...], dict[str, object]]


def _case(name: str, method: Callable[..., str], *arguments: object, **options: object) -> _Case:
    return name, method, arguments, options


CASES: tuple[_Case, ...] = (
    _case("c3x3_16_32", _B.conv, _S, (16, 32), (3, 3)),
    _case("c3x3_32_32_s2", _B.conv, _S, (32, 32), (3, 3), strides=(2, 2)),
    _case("c3x3_linear", _B.conv, _S, (16, 16), (3, 3), activation=_NONE),
    _case("c3x3_3ch_s2", _B.conv, _S, (3, 16), (3, 3), strides=(2, 2)),
    _case("c3x3_1ch", _B.conv, _S, (1, 16), (3, 3)),
    _case("c5x5_16_16", _B.conv, _S, (16, 16), (5, 5)),
    _case("c3x3_dil2", _B.conv, _S, (16, 16), (3, 3), dilations=(2, 2)),
    _case("c3x3_group4", _B.conv, _S, (16, 16), (3, 3), groups=4),
    _case("c1x1_16_64", _B.conv, _S, (16, 64), (1, 1)),
    _case("c1x1_64_16", _B.conv, _S, (64, 16), (1, 1)),
    _case("c1x1_linear_64_24", _B.conv, _S, (64, 24), (1, 1), activation=_NONE),
    _case("c1x1_odd_15_21", _B.conv, _S, (15, 21), (1, 1)),
    _case("c1x1_s2", _B.conv, _S, (32, 32), (1, 1), strides=(2, 2)),
    _case("c1d_k5_40_40", _B.conv, (1, 64), (40, 40), (1, 5)),
    _case("c1d_k9_dil4_16", _B.conv, (1, 96), (16, 16), (1, 9), dilations=(1, 4)),
    _case("c10x4_1ch_s2", _B.conv, (49, 10), (1, 64), (10, 4), strides=(2, 2)),
    _case("c_1out_3x3", _B.conv, _S, (16, 1), (3, 3), activation=_NONE),
    _case("dw3x3_s1_32", _B.depthwise, _S, 32, (3, 3)),
    _case("dw3x3_s2_32", _B.depthwise, _S, 32, (3, 3), strides=(2, 2)),
    _case("dw3x3_linear_32", _B.depthwise, _S, 32, (3, 3), activation=_NONE),
    _case("dw5x5_s1_32", _B.depthwise, _S, 32, (5, 5)),
    _case("dw5x5_s2_32", _B.depthwise, _S, 32, (5, 5), strides=(2, 2)),
    _case("dw7x7_s1_32", _B.depthwise, _S, 32, (7, 7)),
    _case("dw3x3_dil2_32", _B.depthwise, _S, 32, (3, 3), dilations=(2, 2)),
    _case("dw3x3_odd_c17", _B.depthwise, _S, 17, (3, 3)),
    _case("dw_1xk9_64", _B.depthwise, (1, 64), 64, (1, 9)),
    _case("dw_kx1_21_40", _B.depthwise, (21, 1), 40, (21, 1), padding="valid"),
    _case("dw3x3_mult2", _B.depthwise, _S, 16, (3, 3), multiplier=2),
    _case("dw10x8_1to8_s2", _B.depthwise, (49, 40), 1, (10, 8), multiplier=8, strides=(2, 2)),
    _case("fc_256_128", _B.fully_connected, 256, 128),
    _case("fc_1024_10", _B.fully_connected, 1024, 10, activation=_NONE),
    _case("fc_b8_64_64", _B.fully_connected, 64, 64, rows=8),
    _case("fc_odd_77_33", _B.fully_connected, 77, 33),
    _case("tconv_2x2_s2_16_16", _B.transposed, 12, 16, 2, 2),
    _case("tconv_3x3_s2_16_16", _B.transposed, 12, 16, 3, 2),
    _case("bmm_4x32x16_qkT", _B.matmul, 32, 16, 32, adjoint=True),
    _case("bmm_4x32x32_av", _B.matmul, 32, 32, 16, adjoint=False),
    _case("avgpool_2x2", _B.unary, "average_pool2d", (2, 2), strides=(2, 2)),
    _case("avgpool_3x3_s1", _B.unary, "average_pool2d", (3, 3), padding="same"),
    _case("maxpool_2x2", _B.unary, "max_pool2d", (2, 2), strides=(2, 2)),
    _case("maxpool_3x3_s2", _B.unary, "max_pool2d", (3, 3), strides=(2, 2)),
    _case("mean_hw", _B.unary, "mean", (1, 2), keep_dims=True, same=True),
    _case("mean_last", _B.unary, "mean", (2,), keep_dims=True, same=True, shape=(4, 32, 32)),
    _case("softmax_32rows", _B.unary, "softmax", shape=(4, 32, 32)),
    _case("logistic", _B.unary, "logistic"),
    _case("tanh", _B.unary, "tanh"),
    _case("hswish", _B.unary, "hard_swish"),
    _case("leaky", _B.unary, "leaky_relu", 0.1),
    _case("relu", _B.relu),
    _case("resize_nn_x2", _B.unary, "resize_nearest_neighbor", (2 * _IMAGE, 2 * _IMAGE)),
    _case("resize_bl_x2", _B.unary, "resize_bilinear", (2 * _IMAGE, 2 * _IMAGE), half_pixel_centers=True),
    _case("transpose_0213", _B.unary, "transpose", (0, 2, 1, 3), shape=(1, 32, 4, 16)),
    _case("transpose_0312", _B.unary, "transpose", (0, 3, 1, 2)),
    _case("pad_1", _B.unary, "pad", ((0, 0), (1, 1), (1, 1), (0, 0))),
    _case("add", _B.binary, "add"),
    _case("mul", _B.binary, "mul"),
    _case("sub", _B.binary, "sub"),
    _case("mul_bcast_c", _B.binary, "mul", None, (1, 1, 1, 16)),
    _case("add_bcast_row", _B.binary, "add", (4, 32, 32), (4, 32, 1)),
    _case("concat_c", _B.joined),
    _case("l2norm", _B.unary, "l2_normalization", shape=(4, 32, 32)),
    _case("lstm_t8_16_32", _B.lstm, 8, 16, 32),
    _case("c1x1_group8", _B.conv, _S, (32, 32), (1, 1), groups=8),
    _case("dw1x1_mult2", _B.depthwise, _S, 16, (1, 1), multiplier=2),
    _case("bmm_4x24x64_qkT", _B.matmul, 24, 64, 24, adjoint=True),
    _case("c3x3_group7", _B.conv, _S, (14, 14), (3, 3), groups=7),
    _case("c1d_k3_dil4_3_8", _B.conv, (1, 194), (3, 8), (1, 3), dilations=(1, 4)),
    _case("tconv_4x4_s2_3_3", _B.transposed, 12, 3, 4, 2),
)
"""The layers, by name; a new one comes last, since the data of each depends on its place."""
_INT8 = {"c3x3_group7", "c1d_k3_dil4_3_8", "tconv_4x4_s2_3_3"}
WITHOUT = {
    "int16": {"hswish", "resize_bl_x2", "l2norm"} | _INT8,
    "int8": set(),
    "f32": {"c1x1_group8", "dw1x1_mult2"} | _INT8,
}
"""The layers whose operator has no such kind, or whose shape is there for the kernels of integers."""


def corpus(kind: str, words: Sequence[str] = ()) -> Network:
    """Return the layers of a kind whose names contain one of the words, all without words, as one network.

    Each layer reads inputs of the network, and is an output.
    """
    builder = _Builder(kind=kind)
    for number, (name, method, arguments, options) in enumerate(CASES):
        builder.random = np.random.default_rng(number)  # the same data, whatever other layers there are
        if name not in WITHOUT[kind] and (not words or any(word in name for word in words)):
            builder.ends.append(method(builder, name, *arguments, **options))
    builder.network.set_outputs(builder.ends)
    return builder.network
