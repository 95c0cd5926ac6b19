# SPDX-License-Identifier: Apache-2.0
"""A layer: one operator applied to named tensors."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class LayerType(StrEnum):
    """The operators, by their TensorFlow Lite names, and the layers that only the optimizer adds."""

    ADD = "ADD"
    AVERAGE_POOL_2D = "AVERAGE_POOL_2D"
    CONCATENATION = "CONCATENATION"
    CONV_2D = "CONV_2D"
    DEPTHWISE_CONV_2D = "DEPTHWISE_CONV_2D"
    DEQUANTIZE = "DEQUANTIZE"
    EXPAND_DIMS = "EXPAND_DIMS"
    FULLY_CONNECTED = "FULLY_CONNECTED"
    HARD_SWISH = "HARD_SWISH"
    LEAKY_RELU = "LEAKY_RELU"
    LOGISTIC = "LOGISTIC"
    MAXIMUM = "MAXIMUM"
    MAX_POOL_2D = "MAX_POOL_2D"
    MEAN = "MEAN"
    MINIMUM = "MINIMUM"
    MUL = "MUL"
    PAD = "PAD"
    PADV2 = "PADV2"
    PRELU = "PRELU"
    QUANTIZE = "QUANTIZE"
    RELU = "RELU"
    RELU6 = "RELU6"
    RELU_N1_TO_1 = "RELU_N1_TO_1"
    RESHAPE = "RESHAPE"
    SLICE = "SLICE"
    SOFTMAX = "SOFTMAX"
    SPLIT = "SPLIT"
    SQUEEZE = "SQUEEZE"
    STRIDED_SLICE = "STRIDED_SLICE"
    SUB = "SUB"
    SUM = "SUM"
    TANH = "TANH"
    TRANSPOSE = "TRANSPOSE"

    # not of TensorFlow Lite: what the optimizer puts in
    CONVERT_FP16_TO_FP32 = "CONVERT_FP16_TO_FP32"
    CONVERT_FP32_TO_FP16 = "CONVERT_FP32_TO_FP16"
    DEBUG = "DEBUG"
    MEM_COPY = "MEM_COPY"
    MEM_IMPORT = "MEM_IMPORT"
    PRE_COMPILED = "PRE_COMPILED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptor:
    """The parameters of an operator; each operator has a frozen subclass (see `ferrule.operators`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One operator applied to tensors of its graph, by name."""

    name: str
    type: LayerType
    descriptor: Descriptor
    inputs: tuple[str | None, ...]
    """None stands for an optional input that is absent (a missing bias)."""
    outputs: tuple[str, ...]

    @property
    def present_inputs(self) -> tuple[str, ...]:
        """The inputs without the absent ones."""
        return tuple(name for name in self.inputs if name is not None)
