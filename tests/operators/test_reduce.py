# SPDX-License-Identifier: Apache-2.0
"""MEAN, SUM and CUMSUM in numpy, compared with TensorFlow Lite Micro's, and CUMSUM in C."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layer_case import layer_network, tensor
from lowered_call import run_lowered, run_overlapping
from numpy.testing import assert_allclose, assert_array_equal
from oracle import tflm
from unary_cases import network_of, reduce_cases, reductions

from ferrule.errors import ModelError, UnsupportedError
from ferrule.graph import Array, DataType, LayerType, Quantization, TensorInfo
from ferrule.memory.request import Overlap
from ferrule.network import Network
from ferrule.operators.operator import Operands
from ferrule.operators.reductions.cumsum import CUMSUM, CumsumDescriptor, cumsum_factor
from ferrule.operators.reductions.reduce import MEAN, SUM, ReduceDescriptor
from ferrule.testing.backends.comparison import graph_difference

TYPES = [LayerType.MEAN, LayerType.SUM]


@pytest.mark.parametrize("dtype", [DataType.INT8, DataType.INT16])
@pytest.mark.parametrize("type_", TYPES)
@given(drawn=st.data())
@settings(max_examples=50)
def test_integers_equal_tflm(type_: LayerType, dtype: DataType, drawn: st.DataObject) -> None:
    network, values = drawn.draw(reduce_cases(type_, dtype))
    assert np.array_equal(network.run([values])[0], tflm(network, [values])[0])


@pytest.mark.parametrize("type_", TYPES)
def test_sums_wrap_as_tflms(type_: LayerType) -> None:
    source = ((1, 300, 300, 1), DataType.INT16, Quantization.of(0.01, 32767))
    descriptor = ReduceDescriptor(axes=(1, 2))
    network = network_of(type_, descriptor, source, DataType.INT16, Quantization.of(100.0))
    values = np.full(source[0], -32768, np.int16)
    assert np.array_equal(network.run([values])[0], tflm(network, [values])[0])


@pytest.mark.parametrize("type_", TYPES)
@given(drawn=st.data())
@settings(max_examples=40)
def test_floats_are_within_bounds_of_float64(type_: LayerType, drawn: st.DataObject) -> None:
    shape, descriptor = drawn.draw(reductions())
    network = network_of(type_, descriptor, (shape, DataType.FLOAT32, None), DataType.FLOAT32, None)
    values = np.random.default_rng(drawn.draw(st.integers(0, 1000))).normal(1, 3, shape).astype(np.float32)
    reduce = np.mean if type_ is LayerType.MEAN else np.sum
    wanted = reduce(values.astype(np.float64), axis=descriptor.axes, keepdims=descriptor.keep_dims)
    assert_allclose(network.run([values])[0], wanted, rtol=1e-6)
    assert not graph_difference(network, [values], [tflm(network, [values])[0].reshape(network.outputs[0].shape)])


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
        SUM.check(ReduceDescriptor(axes=(0,)), Operands((source,), (output,)))


@st.composite
def cumsums(draw: st.DrawFn, dtype: DataType) -> tuple[Network, Array]:
    """Draw a CUMSUM; sums of int8 often exceed 32 bits, and those of float32 the largest finite number."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    axis = draw(st.integers(0, len(shape) - 1))
    shape = (*shape[:axis], draw(st.integers(1, 40)), *shape[axis + 1 :])
    descriptor = CumsumDescriptor(axis=axis, exclusive=draw(st.booleans()), reverse=draw(st.booleans()))
    random = np.random.default_rng(draw(st.integers(0, 999)))
    if dtype.is_float:
        values = random.normal(0, draw(st.sampled_from([1.0, 5e37])), shape).astype(np.float32)
        return layer_network(LayerType.CUMSUM, descriptor, [tensor("x", shape, dtype)]), values
    source = tensor("x", shape, dtype, 0.5, draw(st.sampled_from([-128, -3, 0, 127])))
    scale = draw(st.sampled_from([0.25, 0.5, 0.7, 9.3, 40.0]))
    output = Quantization.of(float(np.float32(scale)), draw(st.sampled_from([-128, 5, 127])))
    low = draw(st.sampled_from([-128, 100]))
    values = random.integers(low, 128, shape).astype(np.int8)
    return layer_network(LayerType.CUMSUM, descriptor, [source], output), values


@pytest.mark.cc
@pytest.mark.parametrize("dtype", [DataType.INT8, DataType.FLOAT32])
@settings(max_examples=60)
@given(drawn=st.data())
def test_sums_along_an_axis_equal_tflm_and_c(dtype: DataType, drawn: st.DataObject) -> None:
    network, values = drawn.draw(cumsums(dtype))
    (wanted,) = network.run([values])
    assert_array_equal(wanted, tflm(network, [values])[0])
    assert_array_equal(run_lowered(network, [values])[0], wanted)
    overlap = Overlap(input="x", output=network.outputs[0].name, distance_bytes=0)
    assert_array_equal(run_overlapping(network, [values], overlap, 0), wanted)


@pytest.mark.parametrize(
    ("source", "output", "message"),
    [
        ((DataType.INT16, 1), (DataType.INT16, 1), "int16 to int16"),
        ((DataType.INT8, 1), (DataType.INT8,), "without quantisation"),
        ((DataType.INT8, 1), (DataType.INT8, 2.0**-19), "below 2.19"),
    ],
)
def test_refuses_sums_along_an_axis(source: tuple[Any, ...], output: tuple[Any, ...], message: str) -> None:
    operands = Operands((tensor("x", (2,), *source),), (tensor("y", (2,), *output),))
    with pytest.raises(UnsupportedError, match=message):
        CUMSUM.check(CumsumDescriptor(axis=0), operands)


def test_accepts_factors_up_to_one() -> None:
    factor = cumsum_factor(
        Operands((tensor("x", (2,), DataType.INT8, 1),), (tensor("y", (2,), DataType.INT8, 2.0**-18.5),))
    )
    assert factor.shift == 0


@pytest.mark.parametrize("axis", [-1, 2])
def test_refuses_an_axis_that_does_not_exist(axis: int) -> None:
    with pytest.raises(ModelError, match="expected one from 0 to 1"):
        CUMSUM.infer(CumsumDescriptor(axis=axis), [tensor("x", (2, 3), DataType.INT8, 1)])
