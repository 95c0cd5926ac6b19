# SPDX-License-Identifier: Apache-2.0
"""A layer: one operator applied to named tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self

from ferrule._frozen import frozen, positional
from ferrule.graph.names import check_name
from ferrule.graph.rounding import Rounding

if TYPE_CHECKING:
    from ferrule.graph.graph import Graph


class LayerType(StrEnum):
    """The operators, by their TensorFlow Lite names, and the layer types that only the optimizer adds.

    Each type has a number, which identifies it in the C interface of backends. A number is never reused for another
    type; a new type gets the next free number.
    """

    _value_: str
    code: int
    """The value in `enum ferrule_layer_type` of include/ferrule/layers.h."""

    def __new__(cls, name: str, code: int) -> Self:
        """Create a member that compares equal to its name."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.code = code
        return member

    ADD = "ADD", 1
    AVERAGE_POOL_2D = "AVERAGE_POOL_2D", 2
    CONCATENATION = "CONCATENATION", 3
    CONV_2D = "CONV_2D", 4
    DEPTHWISE_CONV_2D = "DEPTHWISE_CONV_2D", 5
    DEQUANTIZE = "DEQUANTIZE", 6
    EXPAND_DIMS = "EXPAND_DIMS", 7
    FULLY_CONNECTED = "FULLY_CONNECTED", 8
    HARD_SWISH = "HARD_SWISH", 9
    LEAKY_RELU = "LEAKY_RELU", 10
    LOGISTIC = "LOGISTIC", 11
    MAXIMUM = "MAXIMUM", 12
    MAX_POOL_2D = "MAX_POOL_2D", 13
    MEAN = "MEAN", 14
    MINIMUM = "MINIMUM", 15
    MUL = "MUL", 16
    PAD = "PAD", 17
    PADV2 = "PADV2", 18
    PRELU = "PRELU", 19
    QUANTIZE = "QUANTIZE", 20
    RELU = "RELU", 21
    RELU6 = "RELU6", 22
    RELU_N1_TO_1 = "RELU_N1_TO_1", 23
    RESHAPE = "RESHAPE", 24
    SLICE = "SLICE", 25
    SOFTMAX = "SOFTMAX", 26
    SPLIT = "SPLIT", 27
    SQUEEZE = "SQUEEZE", 28
    STRIDED_SLICE = "STRIDED_SLICE", 29
    SUB = "SUB", 30
    SUM = "SUM", 31
    TANH = "TANH", 32
    TRANSPOSE = "TRANSPOSE", 33
    NEG = "NEG", 34
    FLOOR = "FLOOR", 35
    CEIL = "CEIL", 36
    ABS = "ABS", 37
    ROUND = "ROUND", 38
    SQRT = "SQRT", 39
    RSQRT = "RSQRT", 40
    SQUARE = "SQUARE", 41
    EXP = "EXP", 42
    LOG = "LOG", 43
    SIN = "SIN", 44
    COS = "COS", 45
    ELU = "ELU", 46
    DIV = "DIV", 47
    FLOOR_DIV = "FLOOR_DIV", 48
    FLOOR_MOD = "FLOOR_MOD", 49
    SQUARED_DIFFERENCE = "SQUARED_DIFFERENCE", 50
    EQUAL = "EQUAL", 51
    NOT_EQUAL = "NOT_EQUAL", 52
    GREATER = "GREATER", 53
    GREATER_EQUAL = "GREATER_EQUAL", 54
    LESS = "LESS", 55
    LESS_EQUAL = "LESS_EQUAL", 56
    LOGICAL_AND = "LOGICAL_AND", 57
    LOGICAL_OR = "LOGICAL_OR", 58
    LOGICAL_NOT = "LOGICAL_NOT", 59
    SELECT_V2 = "SELECT_V2", 60
    CAST = "CAST", 61
    ADD_N = "ADD_N", 62
    LOG_SOFTMAX = "LOG_SOFTMAX", 63
    L2_NORMALIZATION = "L2_NORMALIZATION", 64
    PACK = "PACK", 65
    UNPACK = "UNPACK", 66
    SPLIT_V = "SPLIT_V", 67
    GATHER = "GATHER", 68
    GATHER_ND = "GATHER_ND", 69
    TILE = "TILE", 70
    BROADCAST_TO = "BROADCAST_TO", 71
    FILL = "FILL", 73
    ZEROS_LIKE = "ZEROS_LIKE", 74
    REVERSE_V2 = "REVERSE_V2", 76
    MIRROR_PAD = "MIRROR_PAD", 77
    SPACE_TO_DEPTH = "SPACE_TO_DEPTH", 78
    DEPTH_TO_SPACE = "DEPTH_TO_SPACE", 79
    SPACE_TO_BATCH_ND = "SPACE_TO_BATCH_ND", 80
    BATCH_TO_SPACE_ND = "BATCH_TO_SPACE_ND", 81
    EMBEDDING_LOOKUP = "EMBEDDING_LOOKUP", 82
    DYNAMIC_UPDATE_SLICE = "DYNAMIC_UPDATE_SLICE", 83
    RESIZE_BILINEAR = "RESIZE_BILINEAR", 84
    RESIZE_NEAREST_NEIGHBOR = "RESIZE_NEAREST_NEIGHBOR", 85
    REDUCE_MAX = "REDUCE_MAX", 86
    REDUCE_MIN = "REDUCE_MIN", 87
    REDUCE_ANY = "REDUCE_ANY", 88
    REDUCE_ALL = "REDUCE_ALL", 89
    ARG_MAX = "ARG_MAX", 90
    ARG_MIN = "ARG_MIN", 91
    CUMSUM = "CUMSUM", 92
    L2_POOL_2D = "L2_POOL_2D", 93
    TRANSPOSE_CONV = "TRANSPOSE_CONV", 94
    BATCH_MATMUL = "BATCH_MATMUL", 95
    SVDF = "SVDF", 96
    UNIDIRECTIONAL_SEQUENCE_LSTM = "UNIDIRECTIONAL_SEQUENCE_LSTM", 97
    IF = "IF", 98
    WHILE = "WHILE", 99
    CIRCULAR_BUFFER = "CIRCULAR_BUFFER", 100
    SIGNAL_DELAY = "SIGNAL_DELAY", 103
    SIGNAL_ENERGY = "SIGNAL_ENERGY", 104
    SIGNAL_FFT_AUTO_SCALE = "SIGNAL_FFT_AUTO_SCALE", 105
    SIGNAL_FILTER_BANK = "SIGNAL_FILTER_BANK", 106
    SIGNAL_FILTER_BANK_LOG = "SIGNAL_FILTER_BANK_LOG", 107
    SIGNAL_FILTER_BANK_SPECTRAL_SUBTRACTION = "SIGNAL_FILTER_BANK_SPECTRAL_SUBTRACTION", 108
    SIGNAL_FILTER_BANK_SQUARE_ROOT = "SIGNAL_FILTER_BANK_SQUARE_ROOT", 109
    SIGNAL_FRAMER = "SIGNAL_FRAMER", 110
    SIGNAL_IRFFT = "SIGNAL_IRFFT", 111
    SIGNAL_OVERLAP_ADD = "SIGNAL_OVERLAP_ADD", 112
    SIGNAL_PCAN = "SIGNAL_PCAN", 113
    SIGNAL_RFFT = "SIGNAL_RFFT", 114
    SIGNAL_STACKER = "SIGNAL_STACKER", 115
    SIGNAL_WINDOW = "SIGNAL_WINDOW", 116
    SIGN = "SIGN", 117
    BITWISE_XOR = "BITWISE_XOR", 118
    RIGHT_SHIFT = "RIGHT_SHIFT", 119
    DETECTION_POSTPROCESS = "DETECTION_POSTPROCESS", 102

    # not in TensorFlow Lite: layers that the optimizer inserts, or that ONNX has
    CONVERT_FP16_TO_FP32 = "CONVERT_FP16_TO_FP32", 1001
    CONVERT_FP32_TO_FP16 = "CONVERT_FP32_TO_FP16", 1002
    DEBUG = "DEBUG", 1003
    MEM_COPY = "MEM_COPY", 1004
    MEM_IMPORT = "MEM_IMPORT", 1005
    PRE_COMPILED = "PRE_COMPILED", 1006
    FALLBACK_IMPORT = "FALLBACK_IMPORT", 1007
    LOOKUP = "LOOKUP", 1008
    LAYER_NORMALIZATION = "LAYER_NORMALIZATION", 1009


@frozen
class Descriptor:
    """The parameters of an operator; each operator has its own frozen subclass (see `ferrule.operators`)."""

    @property
    def graphs(self) -> Mapping[str, Graph]:
        """The graphs that the layer runs, by the names of the fields that have them; usually none."""
        return {}

    def with_graphs(self, graphs: Mapping[str, Graph]) -> Self:
        """Return a descriptor with other graphs."""
        changes: dict[str, Any] = dict(graphs)
        return replace(self, **changes)


@positional
class Layer:
    """One operator applied to tensors of its graph, by name."""

    name: str
    type: LayerType
    descriptor: Descriptor
    inputs: tuple[str | None, ...]
    """Tensor names; None stands for an absent optional input, such as a missing bias."""
    outputs: tuple[str, ...]
    rounding: Rounding = Rounding.TFLM
    """The rule by which the layer requantises; TFLM if it does not."""

    def __post_init__(self) -> None:
        check_name(self.name, "layer")

    @property
    def present_inputs(self) -> tuple[str, ...]:
        """The inputs without the absent ones."""
        if None not in self.inputs:
            return self.inputs  # type: ignore[return-value] # each is present
        return tuple(name for name in self.inputs if name is not None)
