# SPDX-License-Identifier: Apache-2.0
"""The rules by which layers convert exact results to stored integers."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Self


class Rounding(StrEnum):
    """How a layer rounds its result to the output's scale; `fixed_point` computes the rules.

    A rule is part of what a layer means, as its descriptor is: every backend that runs the layer must compute it.
    """

    _value_: str
    code: int
    """The value in `enum ferrule_rounding` of include/ferrule/layers.h."""
    phrase: str
    """The rule's name in sentences."""

    def __new__(cls, name: str, code: int, phrase: str) -> Self:
        """Create a member that compares equal to its name."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.code = code
        member.phrase = phrase
        return member

    TFLM = "tflm", 0, "TensorFlow Lite Micro's rule"
    """Two roundings, those of TensorFlow Lite Micro's reference kernels."""
    SINGLE = "single", 1, "the rule of one rounding"
    """One rounding of the product with a multiplier of 31 bits, halves up."""
    ONNX = "onnx", 2, "ONNX's rule"
    """One rounding, halves to even, of the float32 product with a float32 multiplier, as in onnxruntime."""
    ONNX_UINT8 = "onnx-uint8", 3, "ONNX's rule for uint8 tensors"
    """The same where the model has uint8 tensors, which are stored as int8, less 128.

    It differs from `ONNX` in layers that add the output's zero point before they round: the zero point is the model's.
    """
    ONNX_FLOAT = "onnx-float", 4, "ONNX's rule for operators in float32"
    """Each step as the file has it: real values, the operator in float32, and QuantizeLinear.

    It differs from `ONNX` in the layers that onnxruntime fuses with the conversions round them: ADD, MUL,
    AVERAGE_POOL_2D, MEAN and SOFTMAX.
    """
    ONNX_COLUMNS = "onnx-columns", 5, "ONNX's rule for averages in float32, columns first"
    """The same for AVERAGE_POOL_2D, where each column of a window is added up for itself."""


ALL_ROUNDINGS = frozenset(Rounding)
"""Every rule."""
FLOAT_ROUNDINGS = frozenset({Rounding.ONNX_FLOAT, Rounding.ONNX_COLUMNS})
"""ONNX's rule for operators in float32."""
ONNX_ROUNDINGS = frozenset({Rounding.ONNX, Rounding.ONNX_UINT8, Rounding.ONNX_FLOAT})
"""ONNX's rule, for tensors of either type, and for operators in float32."""


def roundings(names: Iterable[str]) -> frozenset[Rounding]:
    """Return the rules of these names; ValueError for an unknown one."""
    by_name = {rule.value: rule for rule in Rounding}
    try:
        return frozenset(by_name[name] for name in names)
    except KeyError as error:
        raise ValueError(f"there is no rule {error}, expected {', '.join(by_name)}") from None
