# SPDX-License-Identifier: Apache-2.0
"""ONNX's rule of rounding in numpy, compared with onnxruntime on ties, near ties and powers of two."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from needs import require_module
from oracle import onnxruntime_outputs

from ferrule.graph import Array, DataType, LayerType, Quantization, Rounding, TensorInfo
from ferrule.network import Network

DOMAIN = "com.microsoft"
QUANTISED = ["source", "source_scale", "source_zero"]
WEIGHTS = ["weights", "weights_scale", "weights_zero"]
OUTPUT = ["output_scale", "output_zero"]

both_types = pytest.mark.parametrize("dtype", [np.int8, np.uint8], ids=["int8", "uint8"])
seeds = pytest.mark.parametrize("seed", range(6))


class Case:
    """A layer and the same operator as ONNX nodes, with random scales that favour ties."""

    def __init__(self, seed: int, dtype: type[np.integer[Any]]) -> None:
        require_module("onnx", "pip install onnx")
        self.random = np.random.default_rng(seed)
        self.ties = seed % 3
        self.dtype = np.dtype(dtype)
        self.offset = 128 if dtype is np.uint8 else 0
        self.network = Network("case")
        self.stored: list[Array] = []
        self.feeds: dict[str, Array] = {}
        self.constants: dict[str, Array] = {}

    def scale(self) -> float:
        """Return any scale, a power of two, or one next to it, depending on the seed."""
        power = 2.0 ** -int(self.random.integers(3, 6))
        near = 1 + int(self.random.integers(-6, 7)) * 2.0 ** -int(self.random.integers(18, 23))
        return float(np.float32((self.random.uniform(0.005, 0.1), power, power * near)[self.ties]))

    def quantization(self, name: str, scale: float) -> Quantization:
        """Return a quantisation, whose zero point and scale the ONNX nodes read as constants."""
        zero_point = int(self.random.integers(-128, 128))
        self.constants[f"{name}_scale"] = np.float32(scale)
        self.constants[f"{name}_zero"] = np.asarray(zero_point + self.offset, self.dtype)
        return Quantization.of(float(np.float32(scale)), zero_point)

    def input(self, name: str, data: Array, scale: float) -> str:
        """Add an input of stored values."""
        info = TensorInfo(name, data.shape, DataType.INT8, quantization=self.quantization(name, scale))
        self.stored.append(data)
        self.feeds[name] = (data.astype(np.int64) + self.offset).astype(self.dtype)
        return self.network.add_input(info)

    def values(self, *shape: int) -> Array:
        return self.random.integers(-128, 128, shape).astype(np.int8)

    def ours(self, output: str, rule: Rounding | None = None) -> Array:
        """Return the model's values of the layer's output by ONNX's rule, or by another one."""
        self.network.set_outputs([output])
        (layer,) = self.network.layers
        ruled = Network("ruled")
        for tensor in self.network.tensors:
            if tensor.data is not None:
                ruled.add_constant(tensor.info, tensor.data)
        for info in self.network.inputs:
            ruled.add_input(info)
        adds_first = layer.type in {LayerType.ADD, LayerType.MUL}
        rule = rule or (Rounding.ONNX_UINT8 if adds_first and self.offset else Rounding.ONNX)
        ruled.add_layer(replace(layer, rounding=rule), self.network.output_infos(layer))
        ruled.set_outputs([output])
        return ruled.run(self.stored)[0].astype(np.int64) + self.offset

    def theirs(self, *nodes: object, fused: bool = True) -> Array:
        """Return what onnxruntime computes, optimised or not; the last node's output is `output`."""
        from onnx import helper, numpy_helper

        inputs = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in self.feeds.items()
        ]
        output = helper.make_tensor_value_info("output", helper.np_dtype_to_tensor_dtype(self.dtype), None)
        constants = [numpy_helper.from_array(np.asarray(array), name) for name, array in self.constants.items()]
        graph = helper.make_graph(nodes, "case", inputs, [output], constants)
        imports = [helper.make_opsetid("", 21), helper.make_opsetid(DOMAIN, 1)]
        model = helper.make_model(graph, opset_imports=imports, ir_version=10)
        return onnxruntime_outputs(model, self.feeds, fused=fused)[0].astype(np.int64)


def node(operator: str, inputs: list[str], output: str = "output", **attributes: int | str) -> object:
    from onnx import helper

    return helper.make_node(operator, inputs, [output], **attributes)


def weights(case: Case, axis: int, sums: Array, output: float) -> tuple[Quantization, Array]:
    """Return the quantisation of weights and a bias that puts the first row of sums next to half a step."""
    channels = sums.shape[-1]
    mantissa = 1.0 if case.ties == 1 else case.random.uniform(0.5, 1)
    scales = np.ldexp(np.full(channels, mantissa, np.float32), -case.random.integers(6, 20, channels))
    factors = float(case.constants["source_scale"]) * scales.astype(np.float64) / output
    wanted = (case.random.integers(-120, 120, channels) + 0.5) / factors + case.random.integers(-1, 2, channels)
    bias = np.clip(wanted, -(2**30), 2**30).astype(np.int64) - sums.reshape(-1, channels)[0]
    case.constants |= {
        "weights_scale": scales,
        "weights_zero": np.zeros(channels, np.int8),
        "bias": bias.astype(np.int32),
    }
    zeros = (0,) * channels
    return Quantization(scales=tuple(scales.tolist()), zero_points=zeros, axis=axis), bias.astype(np.int32)


@both_types
@seeds
@pytest.mark.parametrize("type_", [LayerType.CONV_2D, LayerType.DEPTHWISE_CONV_2D], ids=str)
def test_convolutions_equal_qlinearconv(type_: LayerType, seed: int, dtype: type[np.integer[Any]]) -> None:
    case = Case(seed, dtype)
    image = case.values(1, 5, 4, 16)
    source = case.input("source", image, case.scale())
    output = case.quantization("output", case.scale())
    centred = image.astype(np.int64)[0] - case.network.info(source).zero_point
    deep = type_ is LayerType.CONV_2D
    kernel = case.values(40, 3, 3, 16) if deep else case.values(1, 3, 3, 16)
    equation = "ijc,oijc->o" if deep else "ijc,uijc->c"
    first = np.einsum(equation, centred[:3, :3], kernel.astype(np.int64))
    quantization, bias = weights(case, 0 if deep else 3, first, output.scale)
    add = case.network.add_conv2d_layer if deep else case.network.add_depthwise_conv2d_layer
    ours = case.ours(add(source, kernel, bias, weights_quantization=quantization, quantization=output))
    case.feeds["source"] = np.ascontiguousarray(case.feeds["source"].transpose(0, 3, 1, 2))
    case.constants["weights"] = kernel.transpose((0, 3, 1, 2) if deep else (3, 0, 1, 2))
    groups = 1 if deep else 16
    theirs = case.theirs(node("QLinearConv", [*QUANTISED, *WEIGHTS, *OUTPUT, "bias"], group=groups))
    assert np.array_equal(ours, theirs.transpose(0, 2, 3, 1))


@both_types
@seeds
def test_fully_connected_equals_qgemm(seed: int, dtype: type[np.integer[Any]]) -> None:
    case = Case(seed, dtype)
    data, kernel = case.values(6, 32), case.values(48, 32)
    source = case.input("source", data, case.scale())
    output = case.quantization("output", case.scale())
    centred = data.astype(np.int64) - case.network.info(source).zero_point
    quantization, bias = weights(case, 0, centred @ kernel.T.astype(np.int64), output.scale)
    layer = case.network.add_fully_connected_layer(
        source, kernel, bias, weights_quantization=quantization, quantization=output
    )
    ours = case.ours(layer)
    case.constants["weights"] = kernel.T
    assert np.array_equal(ours, case.theirs(node("QGemm", [*QUANTISED, *WEIGHTS, "bias", *OUTPUT], domain=DOMAIN)))


@both_types
@seeds
def test_batch_matmul_equals_qlinearmatmul(seed: int, dtype: type[np.integer[Any]]) -> None:
    case = Case(seed, dtype)
    left = case.input("source", case.values(2, 16, 32), case.scale())
    right = case.input("weights", case.values(2, 32, 24), case.scale())
    output = case.quantization("output", 2.0 ** -int(case.random.integers(0, 5)) * 16)
    ours = case.ours(case.network.add_batch_matmul_layer(left, right, quantization=output))
    assert np.array_equal(ours, case.theirs(node("QLinearMatMul", [*QUANTISED, *WEIGHTS, *OUTPUT])))


def pairs(case: Case, output: float) -> tuple[str, str, Quantization]:
    """Add two inputs with every pair of stored values."""
    every = np.arange(-128, 128, dtype=np.int8)
    first, second = np.meshgrid(every, every)
    left, right = case.input("source", first, case.scale()), case.input("weights", second, case.scale())
    return left, right, case.quantization("output", output)


def unfused(operator: str) -> list[object]:
    """Return the nodes of an operator on two dequantised inputs."""
    return [
        node("DequantizeLinear", QUANTISED, "left"),
        node("DequantizeLinear", WEIGHTS, "right"),
        node(operator, ["left", "right"], "exact"),
        node("QuantizeLinear", ["exact", *OUTPUT]),
    ]


@both_types
@seeds
@pytest.mark.parametrize("operator", ["Add", "Mul", "Sub"])
def test_elementwise_layers_equal_theirs(operator: str, seed: int, dtype: type[np.integer[Any]]) -> None:
    case = Case(seed, dtype)
    reach = 2.0 ** -int(case.random.integers(1, 4)) if operator == "Mul" else case.scale() * 2
    left, right, output = pairs(case, reach)
    add = {
        "Add": case.network.add_add_layer,
        "Mul": case.network.add_mul_layer,
        "Sub": case.network.add_sub_layer,
    }[operator]
    layer = add(left, right, quantization=output)
    ours = case.ours(layer)
    theirs = case.theirs(*unfused(operator))
    assert np.array_equal(ours, theirs)
    in_float = ours if operator == "Sub" else case.ours(layer, Rounding.ONNX_FLOAT)
    assert np.array_equal(in_float, case.theirs(*unfused(operator), fused=False))
    if operator != "Sub":
        assert np.array_equal(
            ours, case.theirs(node(f"QLinear{operator}", [*QUANTISED, *WEIGHTS, *OUTPUT], domain=DOMAIN))
        )


@seeds
def test_quantize_equals_quantizelinear(seed: int) -> None:
    case = Case(seed, np.int8)
    scale = case.scale()
    output = case.quantization("output", scale)
    ties = ((case.random.integers(-200, 200, 5000) + 0.5) * scale).astype(np.float32)
    beside = [np.nextafter(ties, np.float32(limit)) for limit in (np.inf, -np.inf)]
    ends = np.array([np.inf, -np.inf, 1e30, -1e30, 0.0, -0.0], np.float32)
    data = np.concatenate([ties, *beside, ends])
    case.stored.append(data)
    case.feeds["real"] = data
    source = case.network.add_input(TensorInfo("real", data.shape, DataType.FLOAT32))
    ours = case.ours(case.network.add_quantize_layer(source, DataType.INT8, output))
    assert np.array_equal(ours, case.theirs(node("QuantizeLinear", ["real", *OUTPUT])))


@seeds
def test_requantisation_equals_two_nodes(seed: int) -> None:
    case = Case(seed, np.int8)
    source = case.input("source", np.arange(-128, 128, dtype=np.int8), case.scale())
    output = case.quantization("output", case.scale())
    ours = case.ours(case.network.add_quantize_layer(source, DataType.INT8, output))
    nodes = [node("DequantizeLinear", QUANTISED, "real"), node("QuantizeLinear", ["real", *OUTPUT])]
    assert np.array_equal(ours, case.theirs(*nodes))
