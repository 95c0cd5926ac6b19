# SPDX-License-Identifier: Apache-2.0
"""QUANTIZE and DEQUANTIZE in numpy, compared with TensorFlow Lite Micro's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layer_case import layer_network, tensor
from oracle import tflm
from unary_cases import QUANTIZE_PAIRS, dequantize_cases, quantize_cases, quantize_float_cases

from ferrule.errors import UnsupportedError
from ferrule.graph import DataType, LayerType, Quantization, TensorInfo
from ferrule.operators.elementwise.quantize import DEQUANTIZE, QUANTIZE, DequantizeDescriptor, QuantizeDescriptor
from ferrule.operators.operator import Operands
from ferrule.testing.backends.layer_cases import layer_case


@pytest.mark.parametrize("types", QUANTIZE_PAIRS, ids=lambda types: f"{types[0]}-{types[1]}")
@given(drawn=st.data())
@settings(max_examples=40)
def test_integers_equal_tflm(types: tuple[DataType, DataType], drawn: st.DataObject) -> None:
    network, values = drawn.draw(quantize_cases(types))
    assert np.array_equal(network.run([values])[0], tflm(network, [values])[0])


@pytest.mark.parametrize("dtype", [DataType.INT8, DataType.INT16])
@given(drawn=st.data())
@settings(max_examples=60)
def test_floats_equal_tflm(dtype: DataType, drawn: st.DataObject) -> None:
    network, values = drawn.draw(quantize_float_cases(dtype))
    assert np.array_equal(network.run([values])[0], tflm(network, [values])[0])


@pytest.mark.parametrize("dtype", [DataType.INT8, DataType.INT16, DataType.UINT8])
@given(drawn=st.data())
@settings(max_examples=40)
def test_dequantize_gives_tflms_bits(dtype: DataType, drawn: st.DataObject) -> None:
    network, values = drawn.draw(dequantize_cases(dtype))
    assert network.run([values])[0].tobytes() == tflm(network, [values])[0].tobytes()


def test_floats_beyond_int32_saturate_and_nan_is_zero() -> None:
    # TensorFlow Lite Micro's conversion is undefined for these values
    network = layer_network(
        LayerType.QUANTIZE,
        QuantizeDescriptor(),
        [tensor("x", (6,), DataType.FLOAT32)],
        Quantization.of(1e-3, 5),
        output_dtype=DataType.INT8,
    )
    values = np.array([1e30, -1e30, np.inf, -np.inf, np.nan, 0.0], np.float32)
    assert network.run([values])[0].tolist() == [127, -128, 127, -128, 5, 5]


@pytest.mark.parametrize(
    ("source", "output", "message"),
    [
        ((DataType.UINT8, 1), (DataType.INT16, 1), "uint8 to int16"),
        ((DataType.FLOAT32,), (DataType.UINT8, 1), "float32 to uint8"),
        ((DataType.FLOAT32,), (DataType.INT32, 1), "float32 to int32"),
        ((DataType.FLOAT32,), (DataType.INT8,), "'y' is int8 without"),
        ((DataType.INT32,), (DataType.INT8, 1), "'x' is int32 without"),
        ((DataType.INT8, 1e5), (DataType.INT8, 1e-5), "below 2.30"),
    ],
)
def test_quantize_refuses(source: tuple[Any, ...], output: tuple[Any, ...], message: str) -> None:
    operands = Operands((tensor("x", (2,), *source),), (tensor("y", (2,), *output),))
    with pytest.raises(UnsupportedError, match=message):
        QUANTIZE.check(QuantizeDescriptor(), operands)


@pytest.mark.parametrize(
    ("dtype", "scales", "message"),
    [(DataType.INT8, (0.5, 0.25), "'x' has 2 scales"), (DataType.INT32, (1.0,), "int32 to float32")],
)
def test_dequantize_refuses(dtype: DataType, scales: tuple[float, ...], message: str) -> None:
    source = TensorInfo("x", (2,), dtype, Quantization(scales=scales, zero_points=(0,) * len(scales)))
    with pytest.raises(UnsupportedError, match=message):
        DEQUANTIZE.check(DequantizeDescriptor(), Operands((source,), (tensor("y", (2,), DataType.FLOAT32),)))


@pytest.mark.parametrize(("dtype", "quantization"), [(DataType.INT32, Quantization.of(0.5)), (DataType.FLOAT32, None)])
def test_inputs_that_are_drawn_have_the_scale_that_they_need(
    dtype: DataType, quantization: Quantization | None
) -> None:
    drawn = {layer_case(LayerType.QUANTIZE, dtype, seed).inputs[0].quantization for seed in range(4)}
    assert drawn == {quantization}
