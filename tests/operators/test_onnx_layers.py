# SPDX-License-Identifier: Apache-2.0
"""The numpy kernels by ONNX's rule, compared with the rule written out for one element."""

from __future__ import annotations

import random

import pytest
from layer_case import layer_network, tensor
from numpy.testing import assert_array_equal
from onnx_layers import CASES

from ferrule.errors import UnsupportedError
from ferrule.graph import DataType, LayerType, Quantization, Rounding
from ferrule.operators.elementwise.nonlinear import LogisticDescriptor
from ferrule.operators.elementwise.quantize import QuantizeDescriptor


@pytest.mark.parametrize("name", CASES)
def test_the_numpy_kernel_computes_the_rule(name: str) -> None:
    dice = random.Random(name)
    for _ in range(3):
        case = CASES[name](dice)
        assert_array_equal(case.network.run(case.inputs)[0], case.wanted, strict=True)


def test_types_without_a_kernel_are_refused() -> None:
    network = layer_network(
        LayerType.LOGISTIC, LogisticDescriptor(), [tensor("x", (2,), DataType.FLOAT32)], rounding=Rounding.ONNX
    )
    with pytest.raises(UnsupportedError, match=r"tensor 'output_0' is float32, ONNX's rule \('onnx'\) is for 8 bits"):
        network.validate()
    wide = layer_network(
        LayerType.QUANTIZE,
        QuantizeDescriptor(),
        [tensor("x", (2,), DataType.INT32, 0.1)],
        Quantization.of(0.1),
        output_dtype=DataType.INT8,
        rounding=Rounding.ONNX,
    )
    with pytest.raises(UnsupportedError, match="'x' is int32, QUANTIZE by ONNX's rule takes float32, int8, uint8"):
        wide.validate()
