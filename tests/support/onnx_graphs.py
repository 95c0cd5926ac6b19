# SPDX-License-Identifier: Apache-2.0
"""Float32 graphs of the kinds that run on microcontrollers, made by onnx.helper with random weights.

Like `onnx_storage`, without Ferrule and pytest. The tests use small sizes, tests/exporters/from_onnxruntime.py those of
real models.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx_storage import Array, Sample

OPSET = 21


class Nodes:
    """A graph under construction; each method adds a node and returns the name of its output."""

    def __init__(self, name: str, shape: Sequence[int], *, opset: int = OPSET) -> None:
        self._name = name
        self._shape = tuple(shape)
        self._opset = opset
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, Array] = {}
        self._random = np.random.default_rng(len(name) + sum(name.encode()))

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:  # noqa: ANN401
        """Add any node with one output."""
        name = f"{operator.lower()}{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, list(inputs), [name], name=name, **attributes))
        return name

    def constant(self, value: Array) -> str:
        """Add an initialiser."""
        name = f"constant{len(self._constants)}"
        self._constants[name] = value
        return name

    @property
    def has_functions(self) -> bool:
        """Whether the opset has LayerNormalization and Gelu, which PyTorch writes as single operators otherwise."""
        return self._opset >= 20

    def mean(self, source: str, axis: int, **attributes: Any) -> str:  # noqa: ANN401
        """Add a mean over an axis, which is an input since opset 18."""
        if self._opset < 18:
            return self.node("ReduceMean", source, axes=[axis], **attributes)
        return self.node("ReduceMean", source, self.constant(np.array([axis], np.int64)), **attributes)

    def number(self, value: float) -> str:
        """Add a number as an initialiser."""
        return self.constant(np.array(value, np.float32))

    def weights(self, *shape: int, fan_in: int) -> str:
        """Add random weights of a layer each of whose sums has so many terms."""
        return self.constant(self._random.normal(0, math.sqrt(2 / fan_in), shape).astype(np.float32))

    def bias(self, channels: int) -> str:
        """Add a random bias."""
        return self.constant(self._random.normal(0, 0.2, channels).astype(np.float32))

    def conv(
        self,
        source: str,
        channels: tuple[int, int],
        kernel: Sequence[int],
        *,
        strides: Sequence[int] | None = None,
        group: int = 1,
        dilations: Sequence[int] | None = None,
    ) -> str:
        """Add a Conv that pads as SAME does for odd kernels and stride 1; `channels` are input's and output's."""
        dilation = list(dilations or [1] * len(kernel))
        reach = [step * (size - 1) for step, size in zip(dilation, kernel, strict=True)]
        fan_in = channels[0] // group * math.prod(kernel)
        return self.node(
            "Conv",
            source,
            self.weights(channels[1], channels[0] // group, *kernel, fan_in=fan_in),
            self.bias(channels[1]),
            kernel_shape=list(kernel),
            strides=list(strides or [1] * len(kernel)),
            dilations=dilation,
            group=group,
            pads=[each // 2 for each in reach] + [each - each // 2 for each in reach],
        )

    def gemm(self, source: str, inputs: int, outputs: int, *, transposed: int = 1) -> str:
        """Add a Gemm, by default with transposed weights as torch writes them."""
        shape = (outputs, inputs) if transposed else (inputs, outputs)
        return self.node("Gemm", source, self.weights(*shape, fan_in=inputs), self.bias(outputs), transB=transposed)

    def normalised(self, source: str, channels: int) -> str:
        """Add a BatchNormalization."""
        values = [self._random.uniform(low, high, channels) for low, high in ((0.5, 1.5), (-1, 1), (-1, 1), (0.5, 2))]
        return self.node("BatchNormalization", source, *(self.constant(each.astype(np.float32)) for each in values))

    def reshaped(self, source: str, *shape: int) -> str:
        """Add a Reshape to a constant shape."""
        return self.node("Reshape", source, self.constant(np.array(shape, np.int64)))

    def model(self, *outputs: str) -> onnx.ModelProto:
        """Return the model, with the shapes of all tensors."""
        graph = helper.make_graph(
            self._nodes,
            self._name,
            [helper.make_tensor_value_info("input", TensorProto.FLOAT, self._shape)],
            [helper.make_tensor_value_info(each, TensorProto.FLOAT, None) for each in outputs],
            [numpy_helper.from_array(value, name) for name, value in self._constants.items()],
        )
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self._opset)], ir_version=10)
        return onnx.shape_inference.infer_shapes(made, check_type=True, strict_mode=True)


def small_cnn(side: int = 12, *, clip: bool = False, opset: int = OPSET, pool: str = "AveragePool") -> onnx.ModelProto:
    """Conv, depthwise Conv and Gemm, each pair with a pool between; Clip (ReLU6) or Relu."""
    made = Nodes("small_cnn", (1, 3, side, side), opset=opset)

    def active(source: str) -> str:
        if not clip:
            return made.node("Relu", source)
        return made.node("Clip", source, *(made.constant(np.array(limit, np.float32)) for limit in (0, 6)))

    at = active(made.conv("input", (3, 8), (3, 3)))
    at = made.node("MaxPool", at, kernel_shape=[2, 2], strides=[2, 2])
    at = active(made.conv(at, (8, 8), (3, 3), group=8))
    at = active(made.conv(at, (8, 16), (1, 1)))
    at = made.node(pool, at, kernel_shape=[2, 2], strides=[2, 2])
    pixels = (side // 4) ** 2
    return made.model(made.gemm(made.node("Flatten", at), 16 * pixels, 10))


def ds_cnn(channels: int = 64, blocks: int = 4, size: tuple[int, int] = (49, 10)) -> onnx.ModelProto:
    """The DS-CNN for keywords of MLPerf Tiny, with batch normalisation as in training."""
    made = Nodes("ds_cnn", (1, 1, *size))
    at = made.conv("input", (1, channels), (10, 4), strides=(2, 2))
    at = made.node("Relu", made.normalised(at, channels))
    for _ in range(blocks):
        at = made.conv(at, (channels, channels), (3, 3), group=channels)
        at = made.node("Relu", made.normalised(at, channels))
        at = made.conv(at, (channels, channels), (1, 1))
        at = made.node("Relu", made.normalised(at, channels))
    at = made.node("Flatten", made.node("GlobalAveragePool", at))
    return made.model(made.node("Softmax", made.gemm(at, channels, 12), axis=-1))


def residual(side: int = 32, channels: Sequence[int] = (16, 32, 64)) -> onnx.ModelProto:
    """A residual network like the one of MLPerf Tiny, with additions of unlike scales."""
    made = Nodes("residual", (1, 3, side, side))
    at = made.node("Relu", made.conv("input", (3, channels[0]), (3, 3)))
    before = channels[0]
    for index, width in enumerate(channels):
        stride = (1, 1) if index == 0 else (2, 2)
        inner = made.node("Relu", made.conv(at, (before, width), (3, 3), strides=stride))
        inner = made.conv(inner, (width, width), (3, 3))
        short = at if width == before else made.conv(at, (before, width), (1, 1), strides=stride)
        at = made.node("Relu", made.node("Add", inner, short))
        before = width
    at = made.node("Flatten", made.node("GlobalAveragePool", at))
    return made.model(made.node("Softmax", made.gemm(at, before, 10)))


def autoencoder(width: int = 640, hidden: int = 128, code: int = 8) -> onnx.ModelProto:
    """The autoencoder of MLPerf Tiny: an MLP, half of it as MatMul and Add, as Keras writes layers."""
    made = Nodes("autoencoder", (1, width))
    at, before = "input", width
    for index, outputs in enumerate((hidden, hidden, hidden, code, hidden, hidden, hidden)):
        if index % 2:
            at = made.node("MatMul", at, made.weights(before, outputs, fan_in=before))
            at = made.node("Add", at, made.bias(outputs))
        else:
            at = made.gemm(at, before, outputs, transposed=index % 4 // 2)
        at, before = made.node("Relu", at), outputs
    return made.model(made.gemm(at, before, width))


def squeeze_and_excitation(side: int = 16, channels: int = 16) -> onnx.ModelProto:
    """Two blocks like those of MobileNetV3: HardSwish, squeeze and excitation by Sigmoid and by HardSigmoid."""
    made = Nodes("squeeze", (1, 3, side, side))
    at = made.node("HardSwish", made.conv("input", (3, channels), (3, 3), strides=(2, 2)))
    for index, gate in enumerate(("Sigmoid", "HardSigmoid")):
        inner = made.node("HardSwish", made.conv(at, (channels, channels), (5, 5), group=channels))
        squeezed = made.node("GlobalAveragePool", inner)
        squeezed = made.node("Relu", made.conv(squeezed, (channels, channels // 4), (1, 1)))
        attributes = {"alpha": 1 / 6, "beta": 0.5} if index else {}
        excited = made.node(gate, made.conv(squeezed, (channels // 4, channels), (1, 1)), **attributes)
        at = made.node("Add", at, made.conv(made.node("Mul", inner, excited), (channels, channels), (1, 1)))
    at = made.node("ReduceMean", at, made.constant(np.array([2, 3], np.int64)), keepdims=0)
    return made.model(made.gemm(at, channels, 5))


def u_net(side: int = 32, channels: int = 8) -> onnx.ModelProto:
    """Encoder and decoder with skip connections: Resize by nearest and by linear, ConvTranspose, Concat, Sigmoid."""
    made = Nodes("u_net", (1, 1, side, side))
    first = made.node("Relu", made.conv("input", (1, channels), (3, 3)))
    at = made.node("MaxPool", first, kernel_shape=[2, 2], strides=[2, 2])
    second = made.node("Relu", made.conv(at, (channels, 2 * channels), (3, 3)))
    at = made.node("MaxPool", second, kernel_shape=[2, 2], strides=[2, 2])
    at = made.node("Relu", made.conv(at, (2 * channels, 4 * channels), (3, 3)))
    scales = made.constant(np.array([1, 1, 2, 2], np.float32))
    upwards = made.node("Resize", at, "", scales, mode="nearest", coordinate_transformation_mode="asymmetric",
                        nearest_mode="floor")  # fmt: skip
    at = made.node("Concat", upwards, second, axis=1)
    at = made.node("Relu", made.conv(at, (6 * channels, 2 * channels), (3, 3)))
    weights = made.weights(2 * channels, channels, 2, 2, fan_in=2 * channels)
    at = made.node("ConvTranspose", at, weights, made.bias(channels), kernel_shape=[2, 2], strides=[2, 2])
    at = made.node("Concat", at, first, axis=1)
    at = made.node("Relu", made.conv(at, (2 * channels, channels), (3, 3)))
    mask = made.node("Sigmoid", made.conv(at, (channels, 1), (1, 1)))
    larger = made.node("Resize", mask, "", scales, mode="linear", coordinate_transformation_mode="half_pixel")
    return made.model(mask, larger)


def sound(samples: int = 512, channels: int = 16) -> onnx.ModelProto:
    """A network for blocks of sound: Conv, MaxPool and a dilated depthwise Conv, all in one dimension."""
    made = Nodes("sound", (1, 1, samples))
    at = made.node("Relu", made.conv("input", (1, channels), (9,), strides=(4,)))
    at = made.node("MaxPool", at, kernel_shape=[2], strides=[2])
    for dilation in (1, 2, 4):
        at = made.node("Relu", made.conv(at, (channels, channels), (3,), group=channels, dilations=(dilation,)))
        at = made.node("LeakyRelu", made.conv(at, (channels, channels), (1,)), alpha=0.1)
    at = made.node("Tanh", made.conv(made.node("GlobalAveragePool", at), (channels, 8), (1,)))
    return made.model(made.node("Flatten", at))


def _projected(made: Nodes, source: str, inputs: int, outputs: int) -> str:
    product = made.node("MatMul", source, made.weights(inputs, outputs, fan_in=2 * inputs))
    return made.node("Add", product, made.bias(outputs))


def _layer_normalised(made: Nodes, source: str, width: int) -> str:
    scale = made.constant(np.linspace(0.8, 1.2, width, dtype=np.float32))
    if made.has_functions:
        return made.node("LayerNormalization", source, scale, made.bias(width), axis=-1)
    centred = made.node("Sub", source, made.mean(source, -1))
    variance = made.mean(made.node("Pow", centred, made.number(2)), -1)
    deviation = made.node("Sqrt", made.node("Add", variance, made.number(1e-5)))
    return made.node("Add", made.node("Mul", made.node("Div", centred, deviation), scale), made.bias(width))


def _gelu(made: Nodes, source: str) -> str:
    if made.has_functions:
        return made.node("Gelu", source)
    above = made.node("Add", made.node("Erf", made.node("Div", source, made.number(2**0.5))), made.number(1))
    return made.node("Mul", made.node("Mul", source, above), made.number(0.5))


def _block(made: Nodes, source: str, words: int, width: int, heads: int) -> str:
    """Add a block of a transformer: attention, LayerNormalization, Gelu and residuals."""

    def of_heads(order: Sequence[int]) -> str:
        at = _projected(made, source, width, width)
        return made.node("Transpose", made.reshaped(at, 1, words, heads, width // heads), perm=list(order))

    query, key, value = (of_heads(order) for order in ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3)))
    scores = made.node(
        "Mul", made.node("MatMul", query, key), made.constant(np.array((width / heads) ** -0.5, np.float32))
    )
    mixed = made.node("MatMul", made.node("Softmax", scores, axis=-1), value)
    mixed = made.reshaped(made.node("Transpose", mixed, perm=[0, 2, 1, 3]), 1, words, width)
    at = _layer_normalised(made, made.node("Add", source, _projected(made, mixed, width, width)), width)
    inner = _gelu(made, _projected(made, at, width, 2 * width))
    return _layer_normalised(made, made.node("Add", at, _projected(made, inner, 2 * width, width)), width)


def transformer(words: int = 16, width: int = 32, heads: int = 4) -> onnx.ModelProto:
    """A block of a transformer without dynamic shapes."""
    made = Nodes("transformer", (1, words, width))
    at = _block(made, "input", words, width, heads)
    return made.model(made.gemm(made.node("Flatten", at), words * width, 6))


def keyword_transformer(
    words: int = 26, features: int = 40, width: int = 64, blocks: int = 2, *, opset: int = OPSET
) -> onnx.ModelProto:
    """A keyword transformer (arXiv 2104.00769) of one head: frames of a spectrum are words; their mean is read."""
    made = Nodes("keyword_transformer", (1, words, features), opset=opset)
    places = made.constant(np.linspace(-0.5, 0.5, words * width, dtype=np.float32).reshape(1, words, width))
    at = made.node("Add", _projected(made, "input", features, width), places)
    for _ in range(blocks):
        at = _block(made, at, words, width, 1)
    return made.model(made.gemm(made.mean(at, 1, keepdims=0), width, 12))


def vision_transformer(side: int = 32, patch: int = 8, width: int = 32, blocks: int = 2) -> onnx.ModelProto:
    """A vision transformer (arXiv 2010.11929): patches of an image are words."""
    made, words = Nodes("vision_transformer", (1, 3, side, side)), (side // patch) ** 2
    weights = made.weights(width, 3, patch, patch, fan_in=3 * patch * patch)
    cut = made.node("Conv", "input", weights, made.bias(width), kernel_shape=[patch] * 2, strides=[patch] * 2)
    at = made.node("Transpose", made.reshaped(cut, 1, width, words), perm=[0, 2, 1])
    for _ in range(blocks):
        at = _block(made, at, words, width, 4)
    return made.model(made.gemm(made.mean(at, 1, keepdims=0), width, 10))


GRAPHS: dict[str, Callable[[], onnx.ModelProto]] = {
    "ds_cnn": ds_cnn,
    "residual": residual,
    "autoencoder": autoencoder,
    "squeeze": squeeze_and_excitation,
    "u_net": u_net,
    "sound": sound,
    "transformer": transformer,
    "keyword_transformer": keyword_transformer,
    "keyword_transformer_13": partial(keyword_transformer, opset=13),
    "vision_transformer": vision_transformer,
}
"""The graphs in the sizes of real models."""


def samples_of(model: onnx.ModelProto, count: int, *, seed: int = 0) -> list[Sample]:
    """Return random inputs of a model with one input."""
    source = model.graph.input[0]
    shape = [max(1, each.dim_value) for each in source.type.tensor_type.shape.dim]
    random = np.random.default_rng(seed)
    return [{source.name: random.normal(0, 1, shape).astype(np.float32)} for _ in range(count)]
