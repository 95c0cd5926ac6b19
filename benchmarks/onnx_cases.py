# SPDX-License-Identifier: Apache-2.0
"""Random quantised ONNX models of one operator, in the forms of onnxruntime's quantize_static, for `onnx_oracle.py`.

QDQ models have float inputs and outputs, as exporters write them. QLinear models have 8-bit inputs and outputs. Types
(int8, uint8), zero points and scales are random; every third model has scales that are powers of two, so that results
lie on ties, and another third has scales next to powers of two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from onnx import ModelProto, NodeProto, helper, numpy_helper

from ferrule.graph import Array

CONTRIBUTED = "com.microsoft"
STANDARD = {"QLinearConv", "QLinearMatMul", "QuantizeLinear"}
"""The quantised operators of the standard; others whose names begin with Q are onnxruntime's own."""
OPSET = 21

Triple = list[str]
"""The names of a stored tensor, its scale and its zero point."""
Attributes = dict[str, int | float | str | Sequence[int]]


class Case:
    """The nodes and constants of one random model."""

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random
        self.dtype = np.dtype(random.choice(["int8", "uint8"]))
        self.ties = int(random.integers(3))
        self.constants: dict[str, Array] = {}
        self.inputs: dict[str, tuple[np.dtype[np.generic], Sequence[int]]] = {}
        self.nodes: list[NodeProto] = []
        self.output: np.dtype[np.generic] = np.dtype(np.float32)

    def scale(self, about: float = 0.03) -> float:
        """Return a scale within a factor of 2 of the wanted one."""
        power = 2.0 ** float(np.round(np.log2(about)))
        near = 1 + int(self.random.integers(-6, 7)) * 2.0 ** -int(self.random.integers(18, 23))
        return float(np.float32((about * self.random.uniform(0.5, 2), power, power * near)[self.ties]))

    def parameters(self, name: str, scale: float, zero_point: int | None = None) -> list[str]:
        """Add a scale and a zero point (default: one near the middle) and return their names."""
        chosen = self.lowest() + int(self.random.integers(80, 176)) if zero_point is None else zero_point
        self.constants[f"{name}_scale"] = np.asarray(scale, np.float32)
        self.constants[f"{name}_zero"] = np.asarray(chosen, self.dtype)
        return [f"{name}_scale", f"{name}_zero"]

    def node(self, operator: str, inputs: Sequence[str], output: str, **attributes: object) -> str:
        """Add a node and return its output's name."""
        domain = CONTRIBUTED if operator.startswith("Q") and operator not in STANDARD else ""
        self.nodes.append(helper.make_node(operator, list(inputs), [output], domain=domain, **attributes))  # type: ignore[arg-type]
        return output

    def source(self, name: str, shape: Sequence[int], about: float = 0.03) -> Triple:
        """Add an 8-bit graph input."""
        self.inputs[name] = (self.dtype, shape)
        return [name, *self.parameters(name, self.scale(about))]

    def real(self, name: str, shape: Sequence[int], about: float = 0.03) -> str:
        """Add a float graph input, quantise and dequantise it, and return the dequantised tensor's name."""
        parameters = self.parameters(name, self.scale(about))
        self.inputs[name] = (np.dtype(np.float32), shape)
        stored = self.node("QuantizeLinear", [name, *parameters], f"{name}_stored")
        return self.node("DequantizeLinear", [stored, *parameters], f"{name}_real")

    def quantised(self, name: str, about: float, zero_point: int | None = None) -> None:
        """Quantise and dequantise the model's float result."""
        parameters = self.parameters("output", self.scale(about), zero_point)
        stored = self.node("QuantizeLinear", [name, *parameters], "output_stored")
        self.node("DequantizeLinear", [stored, *parameters], "output")

    def lowest(self) -> int:
        """Return the lowest value of the model's type."""
        return int(np.iinfo(str(self.dtype)).min)

    def weights(self, shape: Sequence[int], axis: int, channels: int, data: float) -> tuple[Triple, str, float]:
        """Add int8 weights and a bias; return the weights, the bias and about the size of the results.

        Scales are per channel of `axis`, or per tensor; `data` is the scale of the layer's input.
        """
        per_channel = bool(self.random.integers(2))
        scales = np.array([self.scale(0.01) for _ in range(channels if per_channel else 1)], np.float32)
        products = int(np.prod(shape)) // channels
        bias = self.random.normal(0, 4000 * np.sqrt(products), channels).astype(np.int32)
        self.constants["weights"] = self.random.integers(-127, 128, tuple(shape)).astype(np.int8)
        self.constants["weights_scale"] = scales if per_channel else scales[0]
        self.constants["weights_zero"] = np.zeros(scales.shape if per_channel else (), np.int8)
        self.constants["bias"] = bias
        self.constants["bias_scale"] = np.float32(data) * self.constants["weights_scale"]
        self.constants["bias_zero"] = np.zeros(self.constants["bias_scale"].shape, np.int32)
        size = data * float(scales.mean()) * 7000 * float(np.sqrt(products)) / 60
        return ["weights", "weights_scale", "weights_zero"], "bias", size

    def model(self) -> ModelProto:
        """Return the finished model."""
        inputs = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), shape)
            for name, (dtype, shape) in self.inputs.items()
        ]
        output = helper.make_tensor_value_info("output", helper.np_dtype_to_tensor_dtype(self.output), None)
        used = {name for node in self.nodes for name in node.input}
        constants = [numpy_helper.from_array(array, name) for name, array in self.constants.items() if name in used]
        graph = helper.make_graph(self.nodes, "case", inputs, [output], constants)
        imports = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIBUTED, 1)]
        return helper.make_model(graph, opset_imports=imports, ir_version=10)


def _dequantised(case: Case, triple: Triple, axis: int) -> str:
    attributes: Attributes = {"axis": axis} if case.constants[triple[1]].shape else {}
    return case.node("DequantizeLinear", triple, f"{triple[0]}_real", **attributes)


def _convolution(operator: str, after: str | None = None, groups: int = 1) -> Callable[[Case], None]:
    """Return the builder of Conv, ConvTranspose or QLinearConv; `after` is fused to it."""
    transposed, stored = operator == "ConvTranspose", operator == "QLinearConv"
    channels = 24 if groups == 1 else groups
    image, axis = (1, 16, 9, 8), 1 if transposed else 0
    shape = (16, channels, 3, 3) if transposed else (channels, 16 // groups, 3, 3)

    def build(case: Case) -> None:
        attributes = {"group": groups, "strides": [2, 2] if case.random.integers(2) else [1, 1]}
        first = case.source("x", image) if stored else [case.real("x", image)]
        triple, bias, size = case.weights(shape, axis, channels, float(case.constants["x_scale"]))
        if stored:
            case.output = case.dtype
            output = case.parameters("output", case.scale(size))
            case.node(operator, [*first, *triple, *output, bias], "output", **attributes)
            return
        names = [_dequantised(case, triple, axis), _dequantised(case, [bias, "bias_scale", "bias_zero"], 0)]
        result = case.node(operator, [*first, *names], "exact", **attributes)
        zero_point = None
        if after == "Relu":
            result, zero_point = case.node("Relu", [result], "clamped"), case.lowest()
        elif after == "Clip":
            case.constants |= {"low": np.asarray(0, np.float32), "high": np.asarray(size * 60, np.float32)}
            result = case.node("Clip", [result, "low", "high"], "clamped")
        case.quantised(result, size, zero_point)

    return build


def _product(operator: str, constant: bool) -> Callable[[Case], None]:
    """Return the builder of Gemm, MatMul, QGemm or QLinearMatMul."""

    def build(case: Case) -> None:
        rows, depth, columns = 6, 40, 24
        stored = operator.startswith("Q")
        first = case.source("x", (rows, depth)) if stored else [case.real("x", (rows, depth))]
        data = float(case.constants["x_scale"])
        bias: list[str] = []
        if constant:
            triple, name, size = case.weights((depth, columns), 1, columns, data)
            second = triple if stored else [_dequantised(case, triple, 1)]
            if operator in {"Gemm", "QGemm"}:
                bias = [name] if stored else [_dequantised(case, [name, "bias_scale", "bias_zero"], 0)]
        else:
            second = case.source("w", (depth, columns), 0.01) if stored else [case.real("w", (depth, columns), 0.01)]
            size = data * float(case.constants["w_scale"]) * 7000 * float(np.sqrt(depth)) / 60
        if stored:
            case.output = case.dtype
            output = case.parameters("output", case.scale(size))
            case.node(operator, [*first, *second, *bias, *output], "output")
        else:
            case.quantised(case.node(operator, [*first, *second, *bias], "exact"), size)

    return build


def _pair(operator: str, about: float) -> Callable[[Case], None]:
    """Return the builder of an operator on two tensors; one may broadcast."""

    def build(case: Case) -> None:
        shape: Sequence[int] = (1, 16, 12, 10)
        other: Sequence[int] = [shape, (1, 16, 1, 1), (10,)][int(case.random.integers(3))]
        if case.random.integers(2):
            shape, other = other, shape
        if operator.startswith("QLinear"):
            case.output = case.dtype
            first, second = case.source("x", shape), case.source("w", other)
            case.node(operator, [*first, *second, *case.parameters("output", case.scale(about))], "output")
        else:
            result = case.node(operator, [case.real("x", shape), case.real("w", other)], "exact")
            case.quantised(result, about)

    return build


def _single(
    operator: str, about: float, extra: Sequence[Array | None] = (), **attributes: object
) -> Callable[[Case], None]:
    """Return the builder of an operator on one tensor; `extra` are further constant inputs."""

    def build(case: Case) -> None:
        shape = (1, 16, 8, 8)
        bounded = operator in {"Sigmoid", "Softmax", "QLinearSigmoid", "QLinearSoftmax"}
        zero_point = case.lowest() if bounded else None
        names = []
        for index, array in enumerate(extra):
            names.append(f"extra_{index}" if array is not None else "")
            if array is not None:
                case.constants[names[-1]] = array
        if operator.startswith("QLinear"):
            case.output = case.dtype
            output = case.parameters("output", case.scale(about), zero_point)
            case.node(operator, [*case.source("x", shape), *output], "output", **attributes)
        else:
            case.quantised(
                case.node(operator, [case.real("x", shape), *names], "exact", **attributes), about, zero_point
            )

    return build


def _concatenation(case: Case) -> None:
    names = [case.real("x", (1, 8, 6, 6)), case.real("w", (1, 4, 6, 6), 0.05)]
    case.quantised(case.node("Concat", names, "exact", axis=1), 0.05)


def _stored_concatenation(case: Case) -> None:
    case.output = case.dtype
    sources = [*case.source("x", (1, 8, 6, 6)), *case.source("w", (1, 4, 6, 6), 0.05)]
    output = case.parameters("output", case.scale(0.05))
    case.node("QLinearConcat", [*output, *sources], "output", axis=1)


def _requantisation(case: Case) -> None:
    """Build two conversions; the input has 8 bits, since onnxruntime makes one of two behind a QuantizeLinear."""
    case.quantised(case.node("DequantizeLinear", case.source("x", (1, 16, 8, 8)), "x_real"), 0.05)


_RESIZED = (None, np.array([1, 1, 2, 1.5], np.float32))
OPERATORS: dict[str, Callable[[Case], None]] = {
    "Conv": _convolution("Conv"),
    "Conv, Relu": _convolution("Conv", after="Relu"),
    "Conv, Clip": _convolution("Conv", after="Clip"),
    "Conv, groups": _convolution("Conv", groups=16),
    "QLinearConv": _convolution("QLinearConv"),
    "QLinearConv, groups": _convolution("QLinearConv", groups=16),
    "ConvTranspose": _convolution("ConvTranspose"),
    "Gemm": _product("Gemm", constant=True),
    "QGemm": _product("QGemm", constant=True),
    "MatMul": _product("MatMul", constant=True),
    "MatMul, inputs": _product("MatMul", constant=False),
    "QLinearMatMul": _product("QLinearMatMul", constant=True),
    "QLinearMatMul, inputs": _product("QLinearMatMul", constant=False),
    "Add": _pair("Add", 0.05),
    "QLinearAdd": _pair("QLinearAdd", 0.05),
    "Sub": _pair("Sub", 0.05),
    "Mul": _pair("Mul", 0.06),
    "QLinearMul": _pair("QLinearMul", 0.06),
    "Div": _pair("Div", 0.06),
    "AveragePool": _single("AveragePool", 0.02, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]),
    "QLinearAveragePool": _single("QLinearAveragePool", 0.02, kernel_shape=[2, 2], strides=[2, 2]),
    "GlobalAveragePool": _single("GlobalAveragePool", 0.01),
    "QLinearGlobalAveragePool": _single("QLinearGlobalAveragePool", 0.01),
    "ReduceMean": _single("ReduceMean", 0.01, (np.array([2, 3]),)),
    "MaxPool": _single("MaxPool", 0.03, kernel_shape=[2, 2], strides=[2, 2]),
    "Resize": _single("Resize", 0.03, _RESIZED, mode="linear"),
    "Concat": _concatenation,
    "QLinearConcat": _stored_concatenation,
    "DequantizeLinear, QuantizeLinear": _requantisation,
    "Relu": _single("Relu", 0.02),
    "Clip": _single("Clip", 0.02, (np.asarray(0, np.float32), np.asarray(3, np.float32))),
    "LeakyRelu": _single("LeakyRelu", 0.02, alpha=0.1),
    "QLinearLeakyRelu": _single("QLinearLeakyRelu", 0.02, alpha=0.1),
    "PRelu": _single("PRelu", 0.02, (np.full((16, 1, 1), 0.2, np.float32),)),
    "Sigmoid": _single("Sigmoid", 1 / 256),
    "QLinearSigmoid": _single("QLinearSigmoid", 1 / 256),
    "HardSigmoid": _single("HardSigmoid", 1 / 256),
    "Tanh": _single("Tanh", 1 / 128),
    "HardSwish": _single("HardSwish", 0.02),
    "Gelu": _single("Gelu", 0.02, approximate="tanh"),
    "Elu": _single("Elu", 0.02),
    "Softmax": _single("Softmax", 1 / 256, axis=1),
    "QLinearSoftmax": _single("QLinearSoftmax", 1 / 256, axis=-1, opset=13),
}
"""What builds a random model, by the name of the operator and its variant."""


def case_of(name: str, random: np.random.Generator) -> ModelProto:
    """Return a random model of an operator of `OPERATORS`."""
    case = Case(random)
    OPERATORS[name](case)
    return case.model()
