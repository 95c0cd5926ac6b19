# SPDX-License-Identifier: Apache-2.0
"""Real numbers as tensors store them, compared with the operators' kernels and TensorFlow Lite Micro's."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layer_case import layer_network, tensor
from numpy.typing import ArrayLike
from oracle import tflm
from unary_cases import dequantize_cases, quantize_float_cases

from ferrule import DataType, Quantization, TensorInfo
from ferrule.errors import InputError, ModelError
from ferrule.graph import LayerType
from ferrule.operators.elementwise.quantize import QuantizeDescriptor


def info(dtype: DataType, quantization: Quantization | None = None, shape: tuple[int, ...] = (2,)) -> TensorInfo:
    return TensorInfo("x", shape, dtype, quantization=quantization)


@pytest.mark.parametrize("dtype", [DataType.INT8, DataType.INT16])
@given(drawn=st.data())
@settings(max_examples=15)
def test_quantize_gives_tflms_bits(dtype: DataType, drawn: st.DataObject) -> None:
    network, values = drawn.draw(quantize_float_cases(dtype))
    stored = network.outputs[0].quantize(values)
    assert np.array_equal(stored, tflm(network, [values])[0])
    assert stored.dtype == dtype.numpy


@pytest.mark.parametrize("dtype", [DataType.INT8, DataType.INT16, DataType.UINT8])
@given(drawn=st.data())
@settings(max_examples=10)
def test_dequantize_gives_tflms_bits(dtype: DataType, drawn: st.DataObject) -> None:
    network, values = drawn.draw(dequantize_cases(dtype))
    assert network.inputs[0].dequantize(values).tobytes() == tflm(network, [values])[0].tobytes()


def exact(real: float, scale: float, zero_point: int, dtype: DataType) -> int:
    """Return the stored value by exact arithmetic, after the only rounded step, the float32 quotient."""
    with np.errstate(over="ignore", under="ignore"):
        quotient = np.float32(real) / np.float32(scale)
    limits = np.iinfo(dtype.numpy)
    if np.isinf(quotient):
        return int(limits.max if quotient > 0 else limits.min)
    steps = Fraction(float(quotient))
    whole = int(abs(steps) + Fraction(1, 2)) * (1 if steps > 0 else -1)
    return int(min(max(whole + zero_point, limits.min), limits.max))


@given(
    dtype=st.sampled_from([DataType.INT8, DataType.INT16, DataType.UINT8, DataType.INT32]),
    bits=st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=50),
    scale=st.floats(2.0**-140, 2.0**120, width=32),
    zero=st.integers(0, 2**32 - 1),
)
@settings(max_examples=60)
def test_quantize_equals_exact_arithmetic_for_every_kind_of_float(
    dtype: DataType, bits: list[int], scale: float, zero: int
) -> None:
    limits = np.iinfo(dtype.numpy)
    zero_point = int(limits.min) + zero % (int(limits.max) - int(limits.min) + 1)
    values = np.array(bits, np.uint32).view(np.float32)
    values = values[~np.isnan(values)]
    stored = info(dtype, Quantization.of(scale, zero_point)).quantize(values)
    assert stored.tolist() == [exact(float(value), scale, zero_point, dtype) for value in values]


def test_halves_go_away_from_zero_and_what_is_too_large_saturates() -> None:
    x = info(DataType.INT8, Quantization.of(0.5, 1))
    values = [0.25, -0.25, 0.24, 0.75, 1e-45, 1e300, -1e300, np.inf, -np.inf]
    assert x.quantize(values).tolist() == [2, 0, 1, 3, 1, 127, -128, 127, -128]
    assert x.quantize(np.array([[0.5]], np.float16)).tolist() == [[2]]
    assert x.quantize(0.5).shape == ()
    assert x.quantize(np.zeros((0, 2), np.float32)).shape == (0, 2)


def test_scales_by_channel_belong_to_their_axis() -> None:
    x = info(DataType.INT8, Quantization(scales=(0.5, 0.25), zero_points=(0, 1), axis=1), (3, 2))
    stored = x.quantize(np.ones((3, 2)))
    assert stored.tolist() == [[2, 5]] * 3
    assert x.dequantize(stored).tolist() == [[1, 1]] * 3
    assert x.quantize(np.ones((6, 2))).shape == (6, 2)
    with pytest.raises(InputError, match=r"'x' got shape \[2, 3\], expected \[3, 2\], since it has 2 scales on axis 1"):
        x.quantize(np.ones((2, 3)))
    with pytest.raises(InputError, match="2 scales on axis 1"):
        x.dequantize(np.ones((2, 2, 2), np.int8))


def test_a_dequantised_value_is_rounded_once() -> None:
    # 3 * (2^24 + 1) / 2 needs 26 bits: float32(2^24 + 1) would lose the last one first
    x = info(DataType.INT32, Quantization.of(1.5))
    assert x.dequantize(np.array([2**24 + 1], np.int32)).tolist() == [float(np.float32(1.5 * (2**24 + 1)))]
    assert x.dequantize(np.array([-(2**31)], np.int32)).tolist() == [-1.5 * 2**31]


@pytest.mark.parametrize(
    ("dtype", "given_values", "wanted"),
    [
        (DataType.INT8, [-128.0, 127.0], [-128, 127]),
        (DataType.INT8, np.array([-5, 7], np.int64), [-5, 7]),
        (DataType.UINT64, np.array([2**64 - 1], np.uint64), [2**64 - 1]),
        (DataType.INT64, [-(2.0**63)], [-(2**63)]),
        (DataType.INT32, [True, False], [1, 0]),
        (DataType.BOOL, [1.0, 0.0], [True, False]),
        (DataType.FLOAT32, [0.1, np.inf], [float(np.float32(0.1)), np.inf]),
        (DataType.FLOAT16, [0.1], [float(np.float16(0.1))]),
    ],
)
def test_other_tensors_take_the_numbers_of_their_type(
    dtype: DataType, given_values: ArrayLike, wanted: list[float]
) -> None:
    stored = info(dtype).quantize(given_values)
    assert (stored.dtype, stored.tolist()) == (dtype.numpy, wanted)


def test_float_tensors_keep_nan_and_become_float32() -> None:
    assert np.isnan(info(DataType.FLOAT32).quantize([np.nan])).all()
    assert info(DataType.FLOAT16).dequantize(np.ones(2, np.float16)).dtype == np.float32
    labels = np.array([2**40], np.int64)
    assert info(DataType.INT64).dequantize(labels).tolist() == [2**40]


QUANTIZED = Quantization.of(0.5, 1)


@pytest.mark.parametrize(
    ("x", "given_values", "message"),
    [
        (info(DataType.INT8, QUANTIZED), np.zeros(2, np.uint8), "'x' got uint8, expected real numbers in floating"),
        (info(DataType.INT8, QUANTIZED), [1, 2], "'x' got int64"),
        (info(DataType.INT8, QUANTIZED), [True], "'x' got bool"),
        (info(DataType.INT8, QUANTIZED), ["1"], "'x' got <U1, expected real numbers"),
        (info(DataType.INT8, QUANTIZED), [1j], "'x' got complex128"),
        (info(DataType.INT8, QUANTIZED), [0.0, np.nan], "'x' got NaN"),
        (info(DataType.INT64, QUANTIZED), [0.0], "'x' is int64, expected at most 32 bits"),
        (info(DataType.FLOAT32), np.zeros(2, np.uint8), "'x' got uint8, expected real numbers in floating"),
        (info(DataType.FLOAT32), [1e39], "beyond the range of float32"),
        (info(DataType.FLOAT16), [65536.0], "beyond the range of float16"),
        (info(DataType.INT8), [0.0, 1.5], r"'x' got 1.5, expected whole numbers from -128 to 127"),
        (info(DataType.INT8), [np.nan], "'x' got nan, expected whole"),
        (info(DataType.INT8), [np.inf], "'x' got inf, expected whole"),
        (info(DataType.INT8), np.array([127, 128]), "'x' got 128, expected whole"),
        (info(DataType.INT64), [2.0**63], "expected whole"),
        (info(DataType.INT64), np.array([2**63], np.uint64), "expected whole"),
        (info(DataType.UINT64), np.array([-1], np.int8), "'x' got -1, expected whole"),
        (info(DataType.BOOL), [2], "'x' got 2, expected whole numbers from 0 to 1"),
    ],
)
def test_numbers_that_a_tensor_does_not_take(x: TensorInfo, given_values: ArrayLike, message: str) -> None:
    with pytest.raises(InputError, match=message):
        x.quantize(given_values)


@pytest.mark.parametrize("stored", [np.zeros(2, np.uint8), np.zeros(2, np.float32), [0, 1]])
def test_elements_of_another_type_are_refused(stored: ArrayLike) -> None:
    with pytest.raises(InputError, match=r"'x' got (uint8|float32|int64), expected its elements, int8"):
        info(DataType.INT8, QUANTIZED).dequantize(stored)


def test_uint8_rounds_as_the_other_types_do() -> None:
    # TensorFlow Lite Micro has no kernel from floats to uint8; int8's, 128 lower, is the same arithmetic
    values = np.linspace(-300, 300, 1001, dtype=np.float32)
    network = layer_network(
        LayerType.QUANTIZE,
        QuantizeDescriptor(),
        [tensor("x", values.shape, DataType.FLOAT32)],
        Quantization.of(0.75, 100 - 128),
        output_dtype=DataType.INT8,
    )
    stored = info(DataType.UINT8, Quantization.of(0.75, 100)).quantize(values)
    assert (stored.astype(np.int64) - 128).tolist() == tflm(network, [values])[0].tolist()


def test_limits_are_what_the_extreme_integers_stand_for() -> None:
    x = TensorInfo("x", (2,), DataType.INT8, Quantization.of(0.5, -28))
    assert x.limits == (-50.0, 77.5)
    assert tuple(x.dequantize(np.array([-128, 127], np.int8))) == x.limits
    with pytest.raises(ModelError, match="'x' is float32 without quantisation"):
        _ = TensorInfo("x", (2,), DataType.FLOAT32).limits
