# SPDX-License-Identifier: Apache-2.0
"""The element types that a tensor can have."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import numpy as np


class DataType(StrEnum):
    """An element type; its value is the name of the numpy dtype."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT8 = "uint8"
    UINT32 = "uint32"
    UINT64 = "uint64"
    BOOL = "bool"

    @property
    def numpy(self) -> np.dtype[Any]:
        """The corresponding numpy dtype."""
        return np.dtype(self.value)

    @property
    def size_bytes(self) -> int:
        """Size of one element, in bytes."""
        return int(self.numpy.itemsize)

    @property
    def is_float(self) -> bool:
        """Whether the values are floating point."""
        return self in {DataType.FLOAT32, DataType.FLOAT16}

    @property
    def is_quantizable(self) -> bool:
        """Whether the values can represent real numbers through a scale and a zero point."""
        return self in {DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64, DataType.UINT8}
