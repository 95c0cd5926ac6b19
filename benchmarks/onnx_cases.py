# SPDX-License-Identifier: Apache-2.0
"""Random quantised ONNX models of one operator, in the forms of onnxruntime's quantize_static, for `onnx_oracle.py`.

QDQ models have the inputs and outputs of an `Edges`: float32, as exporters write them, or 8 bits, as after a cut at
QuantizeLinear and DequantizeLinear. QLinear models have 8-bit inputs and outputs. Types (int8, uint8), zero points and
scales are random; every third model has scales that are powers of two, so that results lie on ties, and another third
has scales next to powers of two. Of the models whose results are as large as the first input, half have one scale.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum

import numpy as np
from onnx import ModelProto, NodeProto, helper, numpy_helper

from ferrule.graph import Array

CONTRIBUTED = "com.microsoft"
STANDARD = {"QLinearConv", "QLinearMatMul", "QuantizeLinear"}
"""The quantised operators of the standard; others whose names begin with Q are onnxruntime's own."""
OPSETS = (17, 21)
"""onnxruntime has two kernels of AveragePool in float32, one until opset 18."""


class Edges(StrEnum):
    """The types of the inputs and outputs of a QDQ model."""

    FLOAT = "float32 to float32"
    INTEGER_INPUT = "8 bits to float32"
    INTEGER_OUTPUT = "float32 to 8 bits"
    INTEGER = "8 bits to 8 bits"
    BOTH_OUTPUTS = "float32 to both"
    """The 8-bit result is an output, and so is what DequantizeLinear makes of it."""

    @property
    def has_integer_inputs(self) -> bool:
        """Whether the inputs have 8 bits."""
        return self in {Edges.INTEGER_INPUT, Edges.INTEGER}


Triple = list[str]
"""The names of a stored tensor, its scale and its zero point."""
Attributes = dict[str, int | float | str | Sequence[int]]


class Case:
    """The nodes and constants of one random model."""

    def __init__(self, random: np.random.Generator, edges: Edges = Edges.FLOAT, dtype: str | None = None) -> None:
        self.random = random
        self.edges = edges
        self.dtype = np.dtype(dtype or random.choice(["int8", "uint8"]))
        self.ties = int(random.integers(3))
        self.opset = int(random.choice(OPSETS))
        self._keeps_scale = bool(random.integers(2))
        self.constants: dict[str, Array] = {}
        self.inputs: dict[str, tuple[np.dtype[np.generic], Sequence[int]]] = {}
        self.nodes: list[NodeProto] = []
        self.output: np.dtype[np.generic] = np.dtype(np.float32)
        self.both = False

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
        if self.edges.has_integer_inputs:
            self.inputs[name] = (self.dtype, shape)
            return self.node("DequantizeLinear", [name, *parameters], f"{name}_real")
        self.inputs[name] = (np.dtype(np.float32), shape)
        stored = self.node("QuantizeLinear", [name, *parameters], f"{name}_stored")
        return self.node("DequantizeLinear", [stored, *parameters], f"{name}_real")

    def quantised(self, name: str, about: float, zero_point: int | None = None) -> None:
        """Quantise the model's float result, and dequantise it if the output is float."""
        first = float(self.constants["x_scale"])
        scale = first if self._keeps_scale and about / 4 < first < about * 4 else self.scale(about)
        parameters = self.parameters("output", scale, zero_point)
        if self.edges in {Edges.INTEGER_OUTPUT, Edges.INTEGER}:
            self.output = self.dtype
            self.node("QuantizeLinear", [name, *parameters], "output")
            return
        self.both = self.edges is Edges.BOTH_OUTPUTS
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
        outputs = {"output": self.output} | ({"output_stored": self.dtype} if self.both else {})
        used = {name for node in self.nodes for name in node.input}
        constants = [numpy_helper.from_array(array, name) for name, array in self.constants.items() if name in used]
        results = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), None)
            for name, dtype in outputs.items()
        ]
        graph = helper.make_graph(self.nodes, "case", inputs, results, constants)
        imports = [helper.make_opsetid("", self.opset), helper.make_opsetid(CONTRIBUTED, 1)]
        return helper.make_model(graph, opset_imports=imports, ir_version=10)


def _dequantised(case: Case, triple: Triple, axis: int) -> str:
    attributes: Attributes = {"axis": axis} if case.constants[triple[1]].shape else {}
    return case.node("DequantizeLinear", triple, f"{triple[0]}_real", **attributes)


def _convolution(
    operator: str, after: str | None = None, groups: int = 1, *, real: bool = False
) -> Callable[[Case], None]:
    """Return the builder of Conv, ConvTranspose or QLinearConv; `after` is fused to it.

    `real` weights and biases are float32.
    """
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
        names = _real_weights(case, triple, bias, axis) if real else []
        names = names or [_dequantised(case, triple, axis), _dequantised(case, [bias, "bias_scale", "bias_zero"], 0)]
        result = case.node(operator, [*first, *names], "exact", **attributes)
        zero_point = None
        if after == "Relu":
            result, zero_point = case.node("Relu", [result], "clamped"), case.lowest()
        elif after == "Clip":
            case.constants |= {"low": np.asarray(0, np.float32), "high": np.asarray(size * 60, np.float32)}
            result = case.node("Clip", [result, "low", "high"], "clamped")
        case.quantised(result, size, zero_point)

    return build


def _real_weights(case: Case, triple: Triple, bias: str, axis: int) -> list[str]:
    """Add what weights and a bias stand for as float32 constants, and return their names."""
    data, scales = case.constants[triple[0]], case.constants[triple[1]]
    along = [-1 if index == axis else 1 for index in range(data.ndim)]
    case.constants["real_weights"] = data.astype(np.float32) * (scales.reshape(along) if scales.shape else scales)
    case.constants["real_bias"] = (case.constants[bias] * case.constants["bias_scale"]).astype(np.float32)
    return ["real_weights", "real_bias"]


def _product(operator: str, constant: bool, *, real: bool = False) -> Callable[[Case], None]:
    """Return the builder of Gemm, MatMul, QGemm or QLinearMatMul; `real` weights are float32."""

    def build(case: Case) -> None:
        rows, depth, columns = 6, 40, 24
        stored = operator.startswith("Q")
        first = case.source("x", (rows, depth)) if stored else [case.real("x", (rows, depth))]
        data = float(case.constants["x_scale"])
        bias: list[str] = []
        if constant:
            triple, name, size = case.weights((depth, columns), 1, columns, data)
            if real:
                second, bias = [], _real_weights(case, triple, name, 1)
            else:
                second = triple if stored else [_dequantised(case, triple, 1)]
            if operator in {"Gemm", "QGemm"} and not real:
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


def _same(operator: str, about: float) -> Callable[[Case], None]:
    """Return the builder of an operator on a tensor and itself."""

    def build(case: Case) -> None:
        name = case.real("x", (1, 16, 12, 10))
        case.quantised(case.node(operator, [name, name], "exact"), about)

    return build


def _with_constant(operator: str, about: float, *, first: bool) -> Callable[[Case], None]:
    """Return the builder of an operator on a tensor and a quantised constant, wide or narrow, before or behind it."""

    def build(case: Case) -> None:
        names = [case.real("x", (1, 16, 12, 10))]
        reach = int(case.random.choice([64, 128]))
        values = case.random.integers(-reach, reach, (16, 1, 1)) + (128 if case.dtype == np.uint8 else 0)
        case.constants["w"] = values.astype(case.dtype)
        names.insert(0 if first else 1, _dequantised(case, ["w", *case.parameters("w", case.scale(0.03))], 0))
        case.quantised(case.node(operator, names, "exact"), about)

    return build


def _reshaped_average(case: Case) -> None:
    """Build an average that is reshaped before it is quantised."""
    case.constants["shape"] = np.array([1, -1])
    mean = case.node("AveragePool", [case.real("x", (1, 16, 8, 8))], "mean", kernel_shape=[2, 2], strides=[2, 2])
    case.quantised(case.node("Reshape", [mean, "shape"], "exact"), 0.02)


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
    "Conv, float32 weights": _convolution("Conv", real=True),
    "QLinearConv": _convolution("QLinearConv"),
    "QLinearConv, groups": _convolution("QLinearConv", groups=16),
    "ConvTranspose": _convolution("ConvTranspose"),
    "Gemm": _product("Gemm", constant=True),
    "Gemm, float32 weights": _product("Gemm", constant=True, real=True),
    "QGemm": _product("QGemm", constant=True),
    "MatMul": _product("MatMul", constant=True),
    "MatMul, inputs": _product("MatMul", constant=False),
    "QLinearMatMul": _product("QLinearMatMul", constant=True),
    "QLinearMatMul, inputs": _product("QLinearMatMul", constant=False),
    "Add": _pair("Add", 0.05),
    "Add, itself": _same("Add", 0.05),
    "Add, constant": _with_constant("Add", 0.05, first=False),
    "Add, constant first": _with_constant("Add", 0.05, first=True),
    "QLinearAdd": _pair("QLinearAdd", 0.05),
    "Sub": _pair("Sub", 0.05),
    "Mul": _pair("Mul", 0.06),
    "Mul, itself": _same("Mul", 0.06),
    "Mul, constant": _with_constant("Mul", 0.06, first=False),
    "Mul, constant first": _with_constant("Mul", 0.06, first=True),
    "QLinearMul": _pair("QLinearMul", 0.06),
    "Div": _pair("Div", 0.06),
    "AveragePool": _single("AveragePool", 0.02, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]),
    "AveragePool, 2 x 2": _single("AveragePool", 0.02, kernel_shape=[2, 2], strides=[2, 2]),
    "AveragePool, 3 apart": _single("AveragePool", 0.02, kernel_shape=[2, 2], strides=[3, 3]),
    "AveragePool, whole": _single("AveragePool", 0.02, kernel_shape=[8, 8]),
    "AveragePool, whole, 2 apart": _single("AveragePool", 0.02, kernel_shape=[8, 8], strides=[2, 2]),
    "AveragePool, whole and padded": _single("AveragePool", 0.02, kernel_shape=[8, 8], pads=[1, 0, 0, 0]),
    "AveragePool, padding counted": _single(
        "AveragePool", 0.02, kernel_shape=[2, 2], pads=[1, 1, 1, 1], count_include_pad=1
    ),
    "AveragePool, Reshape": _reshaped_average,
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


def edges_of(name: str) -> tuple[Edges, ...]:
    """Return the edges that an operator of `OPERATORS` can have."""
    return (Edges.INTEGER,) if name.startswith("Q") or name == "DequantizeLinear, QuantizeLinear" else tuple(Edges)


def case_of(name: str, random: np.random.Generator, edges: Edges = Edges.FLOAT, dtype: str | None = None) -> ModelProto:
    """Return a random model of an operator of `OPERATORS`, by default of a random type."""
    case = Case(random, edges, dtype)
    if name in {"Gelu", "ReduceMean"}:
        case.opset = OPSETS[-1]
    OPERATORS[name](case)
    return case.model()
