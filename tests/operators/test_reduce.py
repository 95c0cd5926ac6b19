# SPDX-License-Identifier: Apache-2.0
"""MEAN and SUM in numpy, compared with TensorFlow Lite Micro's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layer_case import layer_network, tensor
from oracle import tflm
from unary_cases import network_of, reduce_cases, reductions

from ferrule.errors import ModelError, UnsupportedError
from ferrule.graph import DataType, LayerType, Quantization, TensorInfo
from ferrule.operators.operator import Operands
from ferrule.operators.reduce import MEAN, SUM, ReduceDescriptor

TYPES = [LayerType.MEAN, LayerType.SUM]


@pytest.mark.parametrize("dtype", [DataType.INT8, DataType.INT16])
@pytest.mark.parametrize("type_", TYPES)
@given(drawn=st.data())
@settings(max_examples=80)
def test_integers_equal_tflm(type_: LayerType, dtype: DataType, drawn: st.DataObject) -> None:
    network, values = drawn.draw(reduce_cases(type_, dtype))
    assert np.array_equal(network.run([values])[0], tflm(network, [values])[0])


@pytest.mark.parametrize("type_", TYPES)
def test_sums_wrap_as_tflms(type_: LayerType) -> None:
    source = ((1, 300, 300, 1), DataType.INT16, Quantization.of(0.01, 32767))
    descriptor = ReduceDescriptor(axes=(1, 2))
    network = network_of(type_, descriptor, source, DataType.INT16, Quantization.of(100.0, 0))
    values = np.full(source[0], -32768, np.int16)
    assert np.array_equal(network.run([values])[0], tflm(network, [values])[0])


@pytest.mark.parametrize("type_", TYPES)
@given(drawn=st.data())
@settings(max_examples=40)
def test_floats_are_within_tolerance_of_float64(type_: LayerType, drawn: st.DataObject) -> None:
    shape, descriptor = drawn.draw(reductions())
    network = network_of(type_, descriptor, (shape, DataType.FLOAT32, None), DataType.FLOAT32, None)
    values = np.random.default_rng(drawn.draw(st.integers(0, 1000))).normal(1, 3, shape).astype(np.float32)
    reduce = np.mean if type_ is LayerType.MEAN else np.sum
    wanted = reduce(values.astype(np.float64), axis=descriptor.axes, keepdims=descriptor.keep_dims)
    np.testing.assert_allclose(network.run([values])[0], wanted, rtol=1e-6)
    np.testing.assert_allclose(tflm(network, [values])[0], wanted, rtol=1e-5, atol=1e-4)


def test_no_axes_keep_everything() -> None:
    network = layer_network(LayerType.SUM, ReduceDescriptor(axes=()), [tensor("x", (2, 3), DataType.FLOAT32)])
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert np.array_equal(network.run([values])[0], values)


@pytest.mark.parametrize("axes", [(3,), (-1,), (1, 0), (0, 0)])
def test_refuses_axes_that_do_not_fit(axes: tuple[int, ...]) -> None:
    with pytest.raises(ModelError, match="expected ascending ones from 0 to 2"):
        MEAN.infer(ReduceDescriptor(axes=axes), [tensor("x", (2, 3, 4), DataType.FLOAT32)])


@pytest.mark.parametrize(
    ("source", "output", "message"),
    [
        (tensor("x", (2,), DataType.INT32, 1), tensor("y", (), DataType.INT32, 1), "int32 to int32"),
        (tensor("x", (2,), DataType.INT8, 1), tensor("y", (), DataType.FLOAT32), "int8 to float32"),
        (tensor("x", (2,) * 9, DataType.FLOAT32), tensor("y", (2,) * 8, DataType.FLOAT32), "at most 8"),
        (tensor("x", (2,), DataType.INT8, 1e5), tensor("y", (), DataType.INT8, 1e-5), "below 2.30"),
        (tensor("x", (2,), DataType.INT8), tensor("y", (), DataType.INT8, 1), "without quantisation"),
    ],
)
def test_refuses(source: TensorInfo, output: TensorInfo, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        SUM.check(ReduceDescriptor(axes=(0,)), Operands(inputs=(source,), outputs=(output,)))
