# SPDX-License-Identifier: Apache-2.0
"""Rows of layers that compute each element by itself, and of SOFTMAX and the conversions of types."""

from __future__ import annotations

from ferrule.codegen.acl.rows import (
    FLOATS,
    Add,
    LayerParts,
    LayerView,
    Row,
    activation_of,
)
from ferrule.codegen.acl.targets import acl_name
from ferrule.dom import Expression, Float
from ferrule.graph import DataType, LayerType
from ferrule.operators.activation import Activation
from ferrule.operators.binary import BinaryDescriptor
from ferrule.operators.rectify import LeakyReluDescriptor
from ferrule.operators.softmax import SoftmaxDescriptor

_SATURATE = acl_name("ConvertPolicy", "SATURATE")


def _binary(kind: str, *arguments: Expression) -> Row:
    """Return the row of a layer with two inputs; they are broadcast as the network does it."""

    def add(part: LayerParts) -> None:
        about = part.layer.descriptor
        activation = about.activation if isinstance(about, BinaryDescriptor) else Activation.NONE
        result = part.before_activation(activation)
        operands = [part.aligned(index) for index in range(2)]
        part.function(kind, *(operand.pointer for operand in operands), result.pointer, *arguments)
        if result is not part.output(0):
            part.activate(result, part.output(0), activation)

    return Row(add=add, check=_binary_check)


def _binary_check(part: LayerView) -> str:
    if all(part.is_constant(index) for index in range(2)):
        return "both of its inputs are constants"
    return ""


def _activation(function: str, *parameters: float) -> Add:
    def add(part: LayerParts) -> None:
        info = activation_of(function, *parameters)
        part.function("ActivationLayer", part.input(0).pointer, part.output(0).pointer, info)

    return add


def _leaky_relu(part: LayerParts) -> None:
    about = part.descriptor(LeakyReluDescriptor)
    info = activation_of("LEAKY_RELU", about.alpha)
    part.function("ActivationLayer", part.input(0).pointer, part.output(0).pointer, info)


def _prelu(part: LayerParts) -> None:
    part.function("PReluLayer", part.input(0).pointer, part.aligned(1).pointer, part.output(0).pointer)


def _softmax(part: LayerParts) -> None:
    """Add the function on a matrix, since its axis has another type in each version and is the first by default."""
    about = part.descriptor(SoftmaxDescriptor)
    shape = part.info(0).shape
    depth = shape[-1] if shape else 1
    matrix = (part.info(0).elements // depth, depth)
    result = part.result(matrix)
    part.function("SoftmaxLayer", part.input(0, matrix).pointer, result.pointer, Float(about.beta))
    part.finish(result)


def _unary(kind: str) -> Add:
    def add(part: LayerParts) -> None:
        part.function(kind, part.input(0).pointer, part.output(0).pointer)

    return add


def _leaky_relu_check(part: LayerView) -> str:
    if part.info(0).dtype is DataType.INT8 and part.options.version == "20.08":
        return "version 20.08 has no int8 kernel for it"
    return _not_constant(part)


def _softmax_check(part: LayerView) -> str:
    shape = part.info(0).shape
    if part.info(0).dtype is DataType.INT8 and shape and shape[-1] >= _VECTOR:
        return f"the library is up to 6 steps off for int8 and {_VECTOR} or more values ('{part.info(0).name}')"
    return _not_constant(part)


def _not_constant(part: LayerView) -> str:
    return "its input is a constant" if part.is_constant(0) else ""


_TO_ZERO = acl_name("RoundingPolicy", "TO_ZERO")
_VECTOR = 16
"""From this number of int8 values on, the library computes SOFTMAX in vectors (measured, 20.08 and 24.11)."""
_CONVERSIONS = FLOATS | {DataType.INT8}
ROWS = {
    LayerType.ADD: _binary("ArithmeticAddition", _SATURATE),
    LayerType.SUB: _binary("ArithmeticSubtraction", _SATURATE),
    LayerType.MUL: _binary("PixelWiseMultiplication", Float(1.0), _SATURATE, _TO_ZERO),
    LayerType.MAXIMUM: _binary("ElementwiseMax"),
    LayerType.MINIMUM: _binary("ElementwiseMin"),
    LayerType.RELU: Row(add=_activation("RELU"), check=_not_constant),
    LayerType.RELU6: Row(add=_activation("LU_BOUNDED_RELU", 6.0, 0.0), check=_not_constant),
    LayerType.RELU_N1_TO_1: Row(add=_activation("LU_BOUNDED_RELU", 1.0, -1.0), check=_not_constant),
    LayerType.LEAKY_RELU: Row(add=_leaky_relu, check=_leaky_relu_check),
    LayerType.PRELU: Row(add=_prelu, check=_not_constant),
    LayerType.LOGISTIC: Row(add=_activation("LOGISTIC"), check=_not_constant),
    LayerType.TANH: Row(add=_activation("TANH", 1.0, 1.0), check=_not_constant),
    LayerType.HARD_SWISH: Row(add=_activation("HARD_SWISH"), check=_not_constant),
    LayerType.SOFTMAX: Row(add=_softmax, check=_softmax_check),
    LayerType.NEG: Row(add=_unary("NegLayer"), check=_not_constant, types=FLOATS),
    LayerType.FLOOR: Row(add=_unary("Floor"), check=_not_constant, types=FLOATS),
    LayerType.QUANTIZE: Row(add=_unary("QuantizationLayer"), check=_not_constant, types=_CONVERSIONS),
    LayerType.DEQUANTIZE: Row(add=_unary("DequantizationLayer"), check=_not_constant, types=_CONVERSIONS),
}
_UNTRIED = "its function of the library has not been tried"
REASONS = {
    LayerType.ABS: _UNTRIED,
    LayerType.ADD_N: "the library has no function for it",
    LayerType.CAST: "the class has tensors of floats and int8 only",
    LayerType.COS: "the library has no function for it",
    LayerType.DIV: _UNTRIED,
    LayerType.ELU: _UNTRIED,
    LayerType.EQUAL: "the class has tensors of floats and int8 only",
    LayerType.EXP: _UNTRIED,
    LayerType.FLOOR_DIV: "the library has no function for it",
    LayerType.FLOOR_MOD: "the library has no function for it",
    LayerType.GREATER: "the class has tensors of floats and int8 only",
    LayerType.GREATER_EQUAL: "the class has tensors of floats and int8 only",
    LayerType.L2_NORMALIZATION: _UNTRIED,
    LayerType.LESS: "the class has tensors of floats and int8 only",
    LayerType.LESS_EQUAL: "the class has tensors of floats and int8 only",
    LayerType.LOG: _UNTRIED,
    LayerType.LOGICAL_AND: "the class has tensors of floats and int8 only",
    LayerType.LOGICAL_NOT: "the class has tensors of floats and int8 only",
    LayerType.LOGICAL_OR: "the class has tensors of floats and int8 only",
    LayerType.LOG_SOFTMAX: _UNTRIED,
    LayerType.NOT_EQUAL: "the class has tensors of floats and int8 only",
    LayerType.ROUND: _UNTRIED,
    LayerType.RSQRT: _UNTRIED,
    LayerType.SELECT_V2: "the class has tensors of floats and int8 only",
    LayerType.SIN: _UNTRIED,
    LayerType.SQRT: _UNTRIED,
    LayerType.SQUARE: _UNTRIED,
    LayerType.SQUARED_DIFFERENCE: _UNTRIED,
}
"""Why types of elementwise layers have no row."""
