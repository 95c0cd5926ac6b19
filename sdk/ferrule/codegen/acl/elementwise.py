# SPDX-License-Identifier: Apache-2.0
"""Rows of layers that compute each element by itself, and of SOFTMAX and the conversions of types."""

from __future__ import annotations

from ferrule.codegen.acl.rows import (
    FLOATS,
    QUANTIZED,
    Accuracy,
    LayerParts,
    LayerView,
    Row,
    activation_of,
    not_constant,
)
from ferrule.codegen.acl.targets import acl_name
from ferrule.dom import Expression, Float, Integer
from ferrule.graph import DataType, LayerType
from ferrule.operators.activation import Activation
from ferrule.operators.elementwise.binary import BinaryDescriptor
from ferrule.operators.elementwise.comparison import ComparisonDescriptor
from ferrule.operators.elementwise.rectify import LeakyReluDescriptor
from ferrule.operators.reductions.l2_normalization import EPSILON
from ferrule.operators.reductions.softmax import SoftmaxDescriptor
from ferrule.operators.table import family

_SATURATE = acl_name("ConvertPolicy", "SATURATE")
_PLAIN = Accuracy()


def _binary(kind: str, *arguments: Expression, types: frozenset[DataType] = QUANTIZED) -> Row:
    """Return the row of a layer with two inputs; they are broadcast as the network does it."""

    def add(part: LayerParts) -> None:
        about = part.layer.descriptor
        activation = about.activation if isinstance(about, BinaryDescriptor) else Activation.NONE
        result = part.before_activation(activation)
        operands = [part.aligned(index) for index in range(2)]
        part.function(kind, *operands, result, *arguments)
        part.finish_activation(result, activation)

    return Row(add, check=_binary_check, types=types)


def _binary_check(part: LayerView) -> str:
    if all(part.is_constant(index) for index in range(2)):
        return "both of its inputs are constants"
    return ""


def _activation(
    function: str, *parameters: float, types: frozenset[DataType] = QUANTIZED, accuracy: Accuracy = _PLAIN
) -> Row:
    """Return the row of a function of each element that is one of the library's activations."""

    def add(part: LayerParts) -> None:
        _activate(part, activation_of(function, *parameters))

    return Row(add, check=not_constant, types=types, accuracy=accuracy)


def _activate(part: LayerParts, info: Expression) -> None:
    part.function("ActivationLayer", part.input(0), part.output(0), info)


def _leaky_relu(part: LayerParts) -> None:
    _activate(part, activation_of("LEAKY_RELU", part.descriptor(LeakyReluDescriptor).alpha))


def _prelu(part: LayerParts) -> None:
    part.function("PReluLayer", part.input(0), part.aligned(1), part.output(0))


def _softmax(part: LayerParts) -> None:
    _on_matrix(part, "SoftmaxLayer", Float(part.descriptor(SoftmaxDescriptor).beta))


def _log_softmax(part: LayerParts) -> None:
    _on_matrix(part, "LogSoftmaxLayer", Float(1.0))


def _l2_normalization(part: LayerParts) -> None:
    """Add the function with the square of the smallest divisor."""
    _on_matrix(part, "L2NormalizeLayer", Integer(0), Float(EPSILON * EPSILON))


def _on_matrix(part: LayerParts, kind: str, *arguments: Expression) -> None:
    """Add a function of rows on a matrix: SOFTMAX's axis has another type in each version and is the first by default.

    A matrix keeps its rows, also if they have one element.
    """
    shape = part.info(0).shape
    depth = shape[-1] if shape else 1
    matrix = (part.info(0).elements // depth, depth)
    result = part.result(matrix)
    part.function(kind, part.input(0, matrix), result, *arguments)
    part.finish(result)


def _unary(*kinds: str, types: frozenset[DataType] = FLOATS, accuracy: Accuracy = _PLAIN) -> Row:
    """Return the row of functions that follow one another."""

    def add(part: LayerParts) -> None:
        source = part.input(0)
        for number, kind in enumerate(kinds, start=1):
            output = part.output(0)
            target = output if number == len(kinds) else part.builder.scratch(part.name("step"), output, output.shape)
            part.function(kind, source, target)
            source = target

    return Row(add, check=not_constant, types=types, accuracy=accuracy)


def _add_n(part: LayerParts) -> None:
    total, output = part.input(0), part.output(0)
    for index in range(1, len(part.layer.inputs)):
        last = index == len(part.layer.inputs) - 1
        target = output if last else part.builder.scratch(part.name("sum"), output, output.shape)
        part.function("ArithmeticAddition", total, part.input(index), target, _SATURATE)
        total = target


def _leaky_relu_check(part: LayerView) -> str:
    if part.info(0).dtype is DataType.INT8 and part.options.version == "20.08":
        return "version 20.08 has no int8 kernel for it"
    return not_constant(part)


def _softmax_check(part: LayerView) -> str:
    shape = part.info(0).shape
    if part.info(0).dtype is DataType.INT8 and shape and shape[-1] >= _VECTOR:
        return f"the library is up to 6 steps off for int8 and {_VECTOR} or more values ('{part.info(0).name}')"
    return not_constant(part)


def _sum_check(part: LayerView) -> str:
    return "all of its inputs are constants" if all(map(part.is_constant, range(len(part.layer.inputs)))) else ""


_TO_ZERO = acl_name("RoundingPolicy", "TO_ZERO")
_VECTOR = 16
"""From this number of int8 values on, the library computes SOFTMAX in vectors (measured, 20.08 and 24.11)."""
_BY_EXP = Accuracy(absolute=2.0**-22)
"""The library computes exp(x) and takes 1 off, which leaves an error of the size of 1."""
_SHIFTED = Accuracy(absolute=1e-12)
"""NEON adds 1e-24 before it takes the root."""
ROWS = {
    LayerType.ADD: _binary("ArithmeticAddition", _SATURATE),
    LayerType.SUB: _binary("ArithmeticSubtraction", _SATURATE),
    LayerType.MUL: _binary("PixelWiseMultiplication", Float(1.0), _SATURATE, _TO_ZERO),
    LayerType.MAXIMUM: _binary("ElementwiseMax"),
    LayerType.MINIMUM: _binary("ElementwiseMin"),
    LayerType.RELU: _activation("RELU"),
    LayerType.RELU6: _activation("LU_BOUNDED_RELU", 6.0, 0.0),
    LayerType.RELU_N1_TO_1: _activation("LU_BOUNDED_RELU", 1.0, -1.0),
    LayerType.LEAKY_RELU: Row(_leaky_relu, check=_leaky_relu_check),
    LayerType.PRELU: Row(_prelu, check=not_constant),
    LayerType.LOGISTIC: _activation("LOGISTIC"),
    LayerType.TANH: _activation("TANH", 1.0, 1.0, accuracy=_BY_EXP),
    LayerType.HARD_SWISH: _activation("HARD_SWISH"),
    LayerType.SOFTMAX: Row(_softmax, check=_softmax_check),
    LayerType.NEG: _unary("NegLayer"),
    LayerType.FLOOR: _unary("Floor"),
    LayerType.CEIL: _unary("NegLayer", "Floor", "NegLayer"),
    LayerType.ABS: _activation("ABS", types=FLOATS),
    LayerType.SQUARE: _activation("SQUARE", types=FLOATS),
    LayerType.SQRT: _activation("SQRT", types=FLOATS, accuracy=_SHIFTED),
    LayerType.ELU: _activation("ELU", 1.0, types=FLOATS, accuracy=_BY_EXP),
    LayerType.EXP: _unary("ExpLayer"),
    LayerType.ROUND: _unary("RoundLayer"),
    LayerType.RSQRT: _unary("RsqrtLayer"),
    LayerType.SIN: _unary("SinLayer", accuracy=Accuracy(absolute=4e-6)),
    LayerType.DIV: _binary("ArithmeticDivision", types=FLOATS),
    LayerType.SQUARED_DIFFERENCE: _binary("ElementwiseSquaredDiff"),
    LayerType.ADD_N: Row(_add_n, check=_sum_check, types=FLOATS),
    LayerType.LOG_SOFTMAX: Row(_log_softmax, check=not_constant, types=FLOATS),
    LayerType.L2_NORMALIZATION: Row(_l2_normalization, check=not_constant, types=FLOATS),
    LayerType.QUANTIZE: _unary("QuantizationLayer", types=QUANTIZED),
    LayerType.DEQUANTIZE: _unary("DequantizationLayer", types=QUANTIZED),
}
_NO_TYPE = "the class has tensors of floats and int8 only"
REASONS = {
    **dict.fromkeys(family(ComparisonDescriptor), _NO_TYPE),
    LayerType.BITWISE_XOR: _NO_TYPE,
    LayerType.CAST: _NO_TYPE,
    LayerType.LOG: "the library's logarithm of a negative number is a number",
    LayerType.LOGICAL_AND: _NO_TYPE,
    LayerType.LOGICAL_NOT: _NO_TYPE,
    LayerType.LOGICAL_OR: _NO_TYPE,
    LayerType.SELECT_V2: _NO_TYPE,
}
"""Why types of elementwise layers have no row; without a reason, the library has no function for them."""
