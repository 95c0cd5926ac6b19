# SPDX-License-Identifier: Apache-2.0
"""The numbers of element types and activations in the C interface; `LayerType` has its own.

The numbers are part of the interface: none is ever reused, and new ones are added after the last.
"""

from __future__ import annotations

from collections.abc import Mapping

from ferrule.graph import DataType
from ferrule.operators.activation import Activation

TYPE_CODES: Mapping[DataType, int] = {
    DataType.FLOAT32: 1,
    DataType.FLOAT16: 2,
    DataType.INT8: 3,
    DataType.INT16: 4,
    DataType.INT32: 5,
    DataType.INT64: 6,
    DataType.UINT8: 7,
    DataType.BOOL: 8,
    DataType.UINT32: 9,
    DataType.UINT64: 10,
}

ACTIVATION_CODES: Mapping[Activation, int] = {
    Activation.NONE: 0,
    Activation.RELU: 1,
    Activation.RELU6: 2,
    Activation.RELU_N1_TO_1: 3,
}
