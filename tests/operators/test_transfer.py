# SPDX-License-Identifier: Apache-2.0
"""Layers that move a tensor between backends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ferrule.errors import UnsupportedError
from ferrule.graph import DataType, Quantization, TensorInfo
from ferrule.operators.operator import Operands
from ferrule.operators.transfer import MEM_COPY, MemCopyDescriptor

X = TensorInfo("x", (2,), DataType.INT8, quantization=Quantization.of(0.5))


def test_a_copy_keeps_type_and_quantisation() -> None:
    MEM_COPY.check(MemCopyDescriptor(), Operands((X,), (replace(X, name="y"),)))
    for changes, message in (
        ({"dtype": DataType.UINT8}, "'y' is uint8, expected int8 as 'x'"),
        ({"quantization": Quantization.of(0.25)}, "'y' has another quantisation than 'x'"),
    ):
        with pytest.raises(UnsupportedError, match=message):
            MEM_COPY.check(MemCopyDescriptor(), Operands((X,), (replace(X, name="y", **changes),)))
