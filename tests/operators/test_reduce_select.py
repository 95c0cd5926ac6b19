# SPDX-License-Identifier: Apache-2.0
"""Reductions that select an element or its index: numpy against independent kernels, and C against numpy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layer_case import layer_network, tensor
from lowered_call import run_lowered, run_overlapping
from oracle import litert_reference, tflm
from unary_cases import reductions

from ferrule.errors import ModelError, UnsupportedError
from ferrule.graph import Array, DataType, Descriptor, LayerType, Quantization, Shape, TensorInfo
from ferrule.memory.request import Overlap
from ferrule.network import Network
from ferrule.operators.operator import Operands
from ferrule.operators.reductions.arg_select import ArgSelectDescriptor
from ferrule.operators.reductions.reduce import ReduceDescriptor
from ferrule.operators.table import OPERATORS

NUMBERS = (DataType.INT8, DataType.FLOAT32)
ARGS = (LayerType.ARG_MAX, LayerType.ARG_MIN)
CASES = [(type_, dtype) for type_ in (LayerType.REDUCE_MAX, LayerType.REDUCE_MIN, *ARGS) for dtype in NUMBERS]
CASES += [(LayerType.REDUCE_ANY, DataType.BOOL), (LayerType.REDUCE_ALL, DataType.BOOL)]
SPECIAL = np.array([0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan, 3.4028235e38, -3.4028235e38], np.float32)

each_case = pytest.mark.parametrize(("type_", "dtype"), CASES)


def network_of(type_: LayerType, dtype: DataType, shape: Shape, descriptor: Descriptor) -> Network:
    scale = 0.25 if dtype is DataType.INT8 else None
    infos = [tensor("x", shape, dtype, scale, -3 if scale else 0)]
    if type_ in ARGS:
        return layer_network(type_, descriptor, infos, output_dtype=DataType.INT32)
    return layer_network(type_, descriptor, infos, infos[0].quantization)


@st.composite
def cases(draw: st.DrawFn, type_: LayerType, dtype: DataType) -> tuple[Network, Array]:
    """Draw a layer, and data with few values, so that many are equal."""
    shape, descriptor = draw(reductions())
    generator = np.random.default_rng(draw(st.integers(0, 999)))
    chosen: Descriptor = descriptor
    if type_ in ARGS:
        chosen = ArgSelectDescriptor(axis=draw(st.integers(0, len(shape) - 1)))
    values: Array
    if dtype is DataType.BOOL:
        values = generator.random(shape) < draw(st.sampled_from([0.1, 0.9]))
    elif dtype.is_float:
        values = generator.choice(SPECIAL[: draw(st.integers(2, len(SPECIAL)))], shape)
    else:
        values = generator.integers(-128, draw(st.sampled_from([-127, 127])), shape, dtype=np.int8, endpoint=True)
    return network_of(type_, dtype, shape, chosen), values


def assert_bits(got: Array, wanted: Array) -> None:
    assert got.dtype == wanted.dtype
    assert got.tobytes() == wanted.tobytes(), f"{got} is not {wanted}"


@each_case
@settings(max_examples=30)
@given(drawn=st.data())
def test_numpy_equals_the_oracle(type_: LayerType, dtype: DataType, drawn: st.DataObject) -> None:
    network, values = drawn.draw(cases(type_, dtype))
    oracle: Callable[..., list[Array]] = litert_reference if type_ is LayerType.REDUCE_ANY else tflm
    assert_bits(network.run([values])[0], oracle(network, [values])[0].reshape(network.outputs[0].shape))


@pytest.mark.cc
@each_case
@settings(max_examples=16)
@given(drawn=st.data())
def test_c_equals_numpy(type_: LayerType, dtype: DataType, drawn: st.DataObject) -> None:
    network, values = drawn.draw(cases(type_, dtype))
    assert_bits(run_lowered(network, [values])[0], network.run([values])[0])


@pytest.mark.cc
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 2)])
def test_the_output_may_lie_over_the_input(axes: tuple[int, ...]) -> None:
    network = network_of(LayerType.REDUCE_MAX, DataType.INT8, (3, 4, 5), ReduceDescriptor(axes=axes))
    values = np.random.default_rng(0).integers(-128, 128, (3, 4, 5), dtype=np.int8)
    overlap = Overlap(input="x", output=network.outputs[0].name, distance_bytes=0)
    assert_bits(run_overlapping(network, [values], overlap, 0), network.run([values])[0])


def test_eight_dimensions() -> None:
    shape = (2, 1, 3, 2, 1, 2, 2, 3)
    network = network_of(LayerType.REDUCE_MIN, DataType.INT8, shape, ReduceDescriptor(axes=(0, 3, 7)))
    values = np.random.default_rng(0).integers(-128, 128, shape, dtype=np.int8)
    assert_bits(network.run([values])[0], values.min(axis=(0, 3, 7)))


@pytest.mark.parametrize(
    ("type_", "source", "output", "message"),
    [
        (
            LayerType.REDUCE_MAX,
            tensor("x", (2,), DataType.INT16, 1),
            tensor("y", (), DataType.INT16, 1),
            "expected the same type of float32, int8",
        ),
        (
            LayerType.REDUCE_MAX,
            tensor("x", (2,), DataType.INT8, 1),
            tensor("y", (), DataType.INT8, 2),
            "differ in quantisation",
        ),
        (
            LayerType.REDUCE_MIN,
            tensor("x", (2,), DataType.INT8),
            tensor("y", (), DataType.INT8, 2),
            "without quantisation",
        ),
        (
            LayerType.REDUCE_ALL,
            tensor("x", (2,) * 9, DataType.BOOL),
            tensor("y", (2,) * 8, DataType.BOOL),
            "at most 8",
        ),
        (
            LayerType.ARG_MAX,
            tensor("x", (2,), DataType.INT16, 1),
            tensor("y", (), DataType.INT32),
            "ARG_MAX of int16 to int32 has no reference kernel",
        ),
        (
            LayerType.ARG_MIN,
            tensor("x", (2,), DataType.INT8, 1),
            tensor("y", (), DataType.INT64),
            "expected float32 or int8 to int32",
        ),
    ],
)
def test_refuses(type_: LayerType, source: TensorInfo, output: TensorInfo, message: str) -> None:
    descriptor = ArgSelectDescriptor(axis=0) if type_ in ARGS else ReduceDescriptor(axes=(0,))
    with pytest.raises(UnsupportedError, match=message):
        OPERATORS[type_].check(descriptor, Operands((source,), (output,)))


@pytest.mark.parametrize("axis", [-1, 2])
def test_refuses_an_axis_that_does_not_exist(axis: int) -> None:
    with pytest.raises(ModelError, match=f"has no axis {axis}, expected 0 to 1"):
        network_of(LayerType.ARG_MAX, DataType.INT8, (2, 3), ArgSelectDescriptor(axis=axis))


def test_the_quantisation_of_an_index_does_not_matter() -> None:
    output = TensorInfo("y", (), DataType.INT32, quantization=Quantization.of(0.5))
    operands = Operands((tensor("x", (2,), DataType.INT8, 1),), (output,))
    OPERATORS[LayerType.ARG_MAX].check(ArgSelectDescriptor(axis=0), operands)
