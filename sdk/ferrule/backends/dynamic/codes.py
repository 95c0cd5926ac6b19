# SPDX-License-Identifier: Apache-2.0
"""The numbers that stand for layer types, element types and activations in the C interface.

They are part of it: a number is never given to something else, new ones are added behind the last.
"""

from __future__ import annotations

from collections.abc import Mapping

from ferrule.graph import DataType, LayerType
from ferrule.operators.activation import Activation

LAYER_CODES: Mapping[LayerType, int] = {
    LayerType.ADD: 1,
    LayerType.AVERAGE_POOL_2D: 2,
    LayerType.CONCATENATION: 3,
    LayerType.CONV_2D: 4,
    LayerType.DEPTHWISE_CONV_2D: 5,
    LayerType.DEQUANTIZE: 6,
    LayerType.EXPAND_DIMS: 7,
    LayerType.FULLY_CONNECTED: 8,
    LayerType.HARD_SWISH: 9,
    LayerType.LEAKY_RELU: 10,
    LayerType.LOGISTIC: 11,
    LayerType.MAXIMUM: 12,
    LayerType.MAX_POOL_2D: 13,
    LayerType.MEAN: 14,
    LayerType.MINIMUM: 15,
    LayerType.MUL: 16,
    LayerType.PAD: 17,
    LayerType.PADV2: 18,
    LayerType.PRELU: 19,
    LayerType.QUANTIZE: 20,
    LayerType.RELU: 21,
    LayerType.RELU6: 22,
    LayerType.RELU_N1_TO_1: 23,
    LayerType.RESHAPE: 24,
    LayerType.SLICE: 25,
    LayerType.SOFTMAX: 26,
    LayerType.SPLIT: 27,
    LayerType.SQUEEZE: 28,
    LayerType.STRIDED_SLICE: 29,
    LayerType.SUB: 30,
    LayerType.SUM: 31,
    LayerType.TANH: 32,
    LayerType.TRANSPOSE: 33,
    LayerType.CONVERT_FP16_TO_FP32: 1001,
    LayerType.CONVERT_FP32_TO_FP16: 1002,
    LayerType.DEBUG: 1003,
    LayerType.MEM_COPY: 1004,
    LayerType.MEM_IMPORT: 1005,
    LayerType.PRE_COMPILED: 1006,
}

TYPE_CODES: Mapping[DataType, int] = {
    DataType.FLOAT32: 1,
    DataType.FLOAT16: 2,
    DataType.INT8: 3,
    DataType.INT16: 4,
    DataType.INT32: 5,
    DataType.INT64: 6,
    DataType.UINT8: 7,
    DataType.BOOL: 8,
}

ACTIVATION_CODES: Mapping[Activation, int] = {
    Activation.NONE: 0,
    Activation.RELU: 1,
    Activation.RELU6: 2,
    Activation.RELU_N1_TO_1: 3,
}
