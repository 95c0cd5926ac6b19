# SPDX-License-Identifier: Apache-2.0
"""Operators that name the scales of their tensors, as the operators on real numbers that they stand for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.onnx.encoding import STATIC
from ferrule.formats.onnx.node import MICROSOFT, Node
from ferrule.graph import Array
from ferrule.graph.real_values import ieee_floats


class Expansion:
    """The nodes that replace one node: DequantizeLinear, the operator, and QuantizeLinear."""

    def __init__(self, node: Node, constants: dict[str, Array]) -> None:
        self.node = node
        self._constants = constants
        self.nodes: list[Node] = []
        self.types: dict[str, str] = {}
        """The type of the integers of the operator's result, by the name of its real values."""

    def real(self, position: int, axis: int = 1) -> str:
        """Return the real values of the input at a position, with the scale and zero point behind it."""
        names = self.node.inputs[position], *self.node.inputs[position + 1 : position + 3]
        return self._dequantised(names, position, axis)

    def bias(self, position: int, factor: float = 1.0) -> str:
        """Return the real values of a bias, whose scale is the product of those of data and weights; "" if absent."""
        if not self.node.has_input(position):
            return ""
        product = np.array(factor, np.float32)
        for scale in (self._constants.get(self.node.inputs[each]) for each in (1, 4)):
            if scale is None or scale.dtype != np.float32:
                raise UnsupportedError("one of its scales is no constant of float32, expected one", hint=STATIC)
            if scale.ndim > 1 or (product.size != 1 and scale.size != 1):
                raise ModelError(f"its scales have {product.size} and {scale.size} elements, expected one for the data")
            with ieee_floats():
                product = product * scale
        scale_name = self.constant(np.asarray(product, np.float32), "bias_scale")
        return self._dequantised((self.node.inputs[position], scale_name, ""), position, 0)

    def constant(self, data: Array, role: str) -> str:
        """Add a constant and return its name."""
        name = f"{self.node.output}_{role}"
        if name in self._constants:
            raise ModelError(f"tensor '{name}' exists already")
        self._constants[name] = data
        return name

    def finish(self, op: str, inputs: Sequence[str], position: int) -> None:
        """Add the operator, and QuantizeLinear with the scale and the zero point at a position."""
        node = self.node
        if node.attributes.get("channels_last", 0):
            raise UnsupportedError(
                "its attribute 'channels_last' is 1, expected 0",
                hint="take the model before onnxruntime's optimiser changed it (ORT_ENABLE_BASIC)",
            )
        real = f"{node.output}_real"
        kept = {name: value for name, value in node.attributes.items() if name not in {"channels_last", "opset"}}
        parameters = node.inputs[position : position + 2]
        if not parameters or not parameters[0]:
            raise UnsupportedError("it has no scale of its output, expected one", hint="quantise its output, too")
        point = self._constants.get(parameters[-1]) if len(parameters) > 1 else None
        self.types[real] = "uint8" if point is None else str(point.dtype)
        self.nodes.append(replace(node.made(op, inputs, real), attributes=kept))
        self.nodes.append(node.made("QuantizeLinear", (real, *parameters), node.output, axis=1))

    def _dequantised(self, names: Sequence[str], position: int, axis: int) -> str:
        real = f"{self.node.output}_input_{position}"
        self.nodes.append(self.node.made("DequantizeLinear", names, real, axis=axis))
        return real


def _conv(call: Expansion) -> None:
    bias = call.bias(8)
    call.finish("Conv", (call.real(0), call.real(3, axis=0), bias), 6)


def _gemm(call: Expansion) -> None:
    node = call.node
    bias = call.bias(6, node.number("alpha", 1.0))
    call.finish("Gemm", (call.real(0), call.real(3, axis=0 if node.flag("transB") else 1), bias), 7)


def _plain(op: str, count: int = 1) -> Callable[[Expansion], None]:
    """Return the expansion of an operator that has only tensors as inputs, each with its scale and zero point."""
    return lambda call: call.finish(op, [call.real(3 * index) for index in range(count)], 3 * count)


def _softmax(call: Expansion) -> None:
    node = call.node
    if node.integer("opset", 13) < 13:
        raise UnsupportedError(
            f"its attribute 'opset' is {node.integer('opset')}, expected 13 or more",
            hint="convert the model before it is quantised: onnx.version_converter.convert_version(model, 13)",
        )
    _plain("Softmax")(call)


def _reduce_mean(call: Expansion) -> None:
    node = call.node
    axes = np.array(node.integers("axes", ()), np.int64)
    names = (call.real(0), call.constant(axes, "axes")) if axes.size else (call.real(0),)
    call.finish("ReduceMean", names, 3)


def _concat(call: Expansion) -> None:
    count = len(call.node.inputs) - 2
    if count < 3 or count % 3:
        raise ModelError(f"it has {count + 2} inputs, expected 2 and 3 for each tensor")
    call.finish("Concat", [call.real(position) for position in range(2, count + 2, 3)], 0)


def _where(call: Expansion) -> None:
    call.finish("Where", (call.node.source, call.real(1), call.real(4)), 7)


EXPANSIONS: Mapping[str, Callable[[Expansion], None]] = {
    "QLinearConv": _conv,
    "QLinearMatMul": _plain("MatMul", 2),
    f"{MICROSOFT}::QGemm": _gemm,
    f"{MICROSOFT}::QLinearAdd": _plain("Add", 2),
    f"{MICROSOFT}::QLinearAveragePool": _plain("AveragePool"),
    f"{MICROSOFT}::QLinearConcat": _concat,
    f"{MICROSOFT}::QLinearConv": _conv,
    f"{MICROSOFT}::QLinearGlobalAveragePool": _plain("GlobalAveragePool"),
    f"{MICROSOFT}::QLinearLeakyRelu": _plain("LeakyRelu"),
    f"{MICROSOFT}::QLinearMul": _plain("Mul", 2),
    f"{MICROSOFT}::QLinearReduceMean": _reduce_mean,
    f"{MICROSOFT}::QLinearSigmoid": _plain("Sigmoid"),
    f"{MICROSOFT}::QLinearSoftmax": _softmax,
    f"{MICROSOFT}::QLinearWhere": _where,
}
"""The operators that name scales, by `Node.key`."""


def expanded(node: Node, constants: dict[str, Array]) -> Expansion:
    """Return the nodes on real numbers that replace a node; the node itself if it names no scales."""
    expand = EXPANSIONS.get(node.key)
    call = Expansion(node, constants)
    if expand is None:
        call.nodes.append(node)
        return call
    try:
        expand(call)
    except IndexError as error:
        raise ModelError(f"it has {len(node.inputs)} inputs, which are too few") from error
    return call
