# SPDX-License-Identifier: Apache-2.0
"""SOFTMAX in numpy, LOG_SOFTMAX and L2_NORMALIZATION in numpy and C, compared with TensorFlow Lite Micro's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layer_case import layer_network, tensor
from lowered_call import run_lowered
from numpy.testing import assert_allclose
from oracle import tflm
from unary_cases import SOFTMAX_OUTPUTS, network_of, softmax_cases

from ferrule.errors import UnsupportedError
from ferrule.graph import DataType, LayerType, Quantization, Shape
from ferrule.operators.operator import OWN_CODE, Operands
from ferrule.operators.reductions.l2_normalization import L2NormalizationDescriptor
from ferrule.operators.reductions.log_softmax import LogSoftmaxDescriptor
from ferrule.operators.reductions.softmax import SOFTMAX, SoftmaxDescriptor, exponentials, int16_tables
from ferrule.testing.backends.comparison import graph_difference

DESCRIPTOR = SoftmaxDescriptor()


@pytest.mark.parametrize("types", SOFTMAX_OUTPUTS, ids=lambda types: f"{types[0]}-{types[1]}")
@given(drawn=st.data())
@settings(max_examples=60)
def test_equals_tflm(types: tuple[DataType, DataType], drawn: st.DataObject) -> None:
    network, values = drawn.draw(softmax_cases(types))
    assert np.array_equal(network.run([values])[0], tflm(network, [values])[0])


@pytest.mark.parametrize("depth", [4095, 4096, 8191])
def test_long_rows_of_equal_values_to_int16(depth: int) -> None:
    source, output = DataType.INT8, DataType.INT16
    network = network_of(
        LayerType.SOFTMAX,
        DESCRIPTOR,
        ((1, depth), source, Quantization.of(0.1)),
        output,
        SOFTMAX_OUTPUTS[source, output],
    )
    values = np.full((1, depth), -7, np.int8)
    assert np.array_equal(network.run([values])[0], tflm(network, [values])[0])


def test_long_rows_of_equal_values_to_int8_give_zero() -> None:
    network = layer_network(
        LayerType.SOFTMAX, DESCRIPTOR, [tensor("x", (1, 600), DataType.INT8, 0.1)], Quantization.of(1 / 256, -128)
    )
    # TensorFlow Lite Micro aborts here; 1/600 is less than half a step of 1/256
    assert (network.run([np.zeros((1, 600), np.int8)])[0] == -128).all()


@pytest.mark.parametrize("beta", [1.0, 0.25, -1.0])
def test_float_is_within_tolerance_of_float64(beta: float) -> None:
    network = layer_network(LayerType.SOFTMAX, SoftmaxDescriptor(beta=beta), [tensor("x", (8, 50), DataType.FLOAT32)])
    values = np.random.default_rng(0).normal(0, 5, (8, 50)).astype(np.float32)
    exponential = np.exp(values.astype(np.float64) * beta)
    wanted = exponential / exponential.sum(axis=-1, keepdims=True)
    ours, theirs = network.run([values])[0], tflm(network, [values])[0]
    assert_allclose(ours, wanted, rtol=1e-6, atol=1e-38)
    assert_allclose(theirs, wanted, rtol=2e-5, atol=1e-38)


def test_large_floats_do_not_overflow() -> None:
    network = layer_network(LayerType.SOFTMAX, DESCRIPTOR, [tensor("x", (1, 3), DataType.FLOAT32)])
    result = network.run([np.array([[3e38, 3e38, -3e38]], np.float32)])[0]
    assert result.tolist() == [[0.5, 0.5, 0.0]]


def test_tables_reach_both_ends() -> None:
    exp, inverse = int16_tables()
    assert (exp.size, inverse.size) == (513, 513)
    assert (exp[0], exp[-1]) == (2, 32767)
    assert (inverse[0], inverse[-1]) == (32767, 16384)
    assert exponentials(1.0, 1e-6).size == 256
    assert exponentials(1.0, 1000.0).tolist() == [2**31 - 1]


@pytest.mark.parametrize(
    ("shape", "source", "output", "message"),
    [
        ((2,), (DataType.UINT8, 0.1), (DataType.UINT8, 1 / 256), "uint8 to uint8"),
        ((2,), (DataType.INT8, 0.1), (DataType.INT8, 1 / 128, -128), "'y' has scale"),
        ((2,), (DataType.INT8, 0.1), (DataType.INT8, 1 / 256, 0), "zero point 0"),
        ((2,), (DataType.INT8,), (DataType.INT8, 1 / 256, -128), "without quantisation"),
        ((2,), (DataType.INT8, 1e-9), (DataType.INT8, 1 / 256, -128), "exceed"),
        ((9000,), (DataType.INT8, 1), (DataType.INT8, 1 / 256, -128), "at most 8191"),
        ((2,), (DataType.INT16, 0.1, 4), (DataType.INT16, 1 / 32768), "zero point 4"),
        ((2,), (DataType.INT16, 9), (DataType.INT16, 1 / 32768), "below 5"),
        ((), (DataType.FLOAT32,), (DataType.FLOAT32,), "scalar"),
    ],
)
def test_refuses(shape: Shape, source: tuple[Any, ...], output: tuple[Any, ...], message: str) -> None:
    operands = Operands((tensor("x", shape, *source),), (tensor("y", shape, *output),))
    with pytest.raises(UnsupportedError, match=message):
        SOFTMAX.check(DESCRIPTOR, operands)


ROWS = {
    LayerType.LOG_SOFTMAX: (LogSoftmaxDescriptor(), Quantization.of(1 / 16, 127)),
    LayerType.L2_NORMALIZATION: (L2NormalizationDescriptor(), Quantization.of(1 / 128)),
}
"""The other functions of rows: descriptor and prescribed output of int8."""


@pytest.mark.cc
@pytest.mark.parametrize("type_", ROWS)
@given(
    scale=st.sampled_from([0.5, 0.1, 0.0123, 2.0, 1e-4]),
    zero_point=st.sampled_from([-128, 0, 3, 127]),
    depth=st.sampled_from([1, 3, 10, 300]),
    spread=st.sampled_from([0, 3, 40, 255]),
    seed=st.integers(0, 1000),
)
@settings(max_examples=25, deadline=None)
def test_rows_of_int8_are_exact(
    type_: LayerType, scale: float, zero_point: int, depth: int, spread: int, seed: int
) -> None:
    descriptor, output = ROWS[type_]
    network = layer_network(type_, descriptor, [tensor("x", (7, depth), DataType.INT8, scale, zero_point)], output)
    values = np.random.default_rng(seed).integers(127 - spread, 128, (7, depth)).astype(np.int8)
    (got,) = network.run([values])
    assert np.array_equal(got, tflm(network, [values])[0])
    assert np.array_equal(got, run_lowered(network, [values])[0])


@pytest.mark.cc
@pytest.mark.parametrize("magnitude", [1e-30, 1e-5, 1.0, 30.0, 1e20])
@pytest.mark.parametrize("type_", ROWS)
def test_rows_of_float_are_within_bounds(type_: LayerType, magnitude: float) -> None:
    values = (np.random.default_rng(1).normal(0, 1, (6, 40)) * magnitude).astype(np.float32)
    network = layer_network(type_, ROWS[type_][0], [tensor("x", values.shape, DataType.FLOAT32)])
    assert not graph_difference(network, [values], run_lowered(network, [values]), OWN_CODE)
    if magnitude < 1e19:  # TensorFlow Lite Micro's squares overflow
        assert not graph_difference(network, [values], tflm(network, [values]))


@pytest.mark.parametrize("type_", ROWS)
def test_rows_are_refused_without_the_prescribed_output(type_: LayerType) -> None:
    infos = [tensor("x", (2, 3), DataType.INT8, 0.5)]
    with pytest.raises(UnsupportedError, match=f"{type_} to int8 needs"):
        layer_network(type_, ROWS[type_][0], infos, Quantization.of(0.5)).validate()
    long = [tensor("x", (1, 40000), DataType.INT8, 0.5)]
    with pytest.raises(UnsupportedError, match="rows of 40000"):
        layer_network(type_, ROWS[type_][0], long, ROWS[type_][1]).validate()
