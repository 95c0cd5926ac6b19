# SPDX-License-Identifier: Apache-2.0
"""The C kernels of layers with one input, called through the lowering and compared with the numpy kernels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layer_case import layer_network, tensor
from lowered_call import lowering_of, run_lowered
from numpy.testing import assert_allclose
from unary_cases import (
    QUANTIZE_PAIRS,
    SIGMOIDAL,
    SOFTMAX_OUTPUTS,
    Case,
    dequantize_cases,
    hard_swish_cases,
    network_of,
    quantize_cases,
    quantize_float_cases,
    reduce_cases,
    reductions,
    sigmoidal_cases,
    softmax_cases,
)

from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall
from ferrule.errors import UnsupportedError
from ferrule.graph import DataType, LayerType, Quantization, Shape
from ferrule.operators.elementwise.nonlinear import HardSwishDescriptor, LogisticDescriptor, TanhDescriptor
from ferrule.operators.elementwise.quantize import QuantizeDescriptor
from ferrule.operators.operator import OWN_CODE
from ferrule.operators.reductions.reduce import ReduceDescriptor
from ferrule.operators.reductions.softmax import SoftmaxDescriptor
from ferrule.testing.backends.comparison import graph_difference
from ferrule.testing.backends.layer_cases import layer_case

pytestmark = pytest.mark.cc

INTEGERS = [DataType.INT8, DataType.INT16]
REDUCTIONS = [LayerType.MEAN, LayerType.SUM]


def assert_exact(case: Case) -> None:
    network, values = case
    result = run_lowered(network, [values])[0]
    assert result.tobytes() == network.run([values])[0].tobytes()


@pytest.mark.parametrize("types", SOFTMAX_OUTPUTS, ids=lambda types: f"{types[0]}-{types[1]}")
@given(drawn=st.data())
@settings(max_examples=50)
def test_softmax(types: tuple[DataType, DataType], drawn: st.DataObject) -> None:
    assert_exact(drawn.draw(softmax_cases(types)))


@pytest.mark.parametrize("types", SOFTMAX_OUTPUTS, ids=lambda types: f"{types[0]}-{types[1]}")
@pytest.mark.parametrize("value", [-100, 127])
@pytest.mark.parametrize("depth", [512, 4096, 8191, 65536])
def test_softmax_of_long_equal_rows(types: tuple[DataType, DataType], value: int, depth: int) -> None:
    source, output = types
    shape = (1, depth if source is DataType.INT16 else min(depth, 8191))
    network = network_of(
        LayerType.SOFTMAX,
        SoftmaxDescriptor(),
        (shape, source, Quantization.of(0.1)),
        output,
        SOFTMAX_OUTPUTS[types],
    )
    assert_exact((network, np.full(shape, value, source.numpy)))


@pytest.mark.parametrize("cell", SIGMOIDAL, ids=lambda cell: f"{cell[0]}-{cell[1]}")
@given(drawn=st.data())
@settings(max_examples=30)
def test_sigmoidal(cell: tuple[LayerType, DataType], drawn: st.DataObject) -> None:
    assert_exact(drawn.draw(sigmoidal_cases(*cell)))


@given(case=hard_swish_cases())
@settings(max_examples=30)
def test_hard_swish(case: Case) -> None:
    assert_exact(case)


@pytest.mark.parametrize("types", QUANTIZE_PAIRS, ids=lambda types: f"{types[0]}-{types[1]}")
@given(drawn=st.data())
@settings(max_examples=25)
def test_quantize_integers(types: tuple[DataType, DataType], drawn: st.DataObject) -> None:
    assert_exact(drawn.draw(quantize_cases(types)))


@pytest.mark.parametrize("dtype", INTEGERS)
@given(drawn=st.data())
@settings(max_examples=40)
def test_quantize_floats(dtype: DataType, drawn: st.DataObject) -> None:
    assert_exact(drawn.draw(quantize_float_cases(dtype)))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("zero_point", [-128, 0, 127])
def test_quantize_special_floats(dtype: DataType, zero_point: int) -> None:
    values = np.array([1e38, -1e38, 3e9, -3e9, 2**24 + 2, np.inf, -np.inf, np.nan, -0.0, 0.5, -0.5, 1e-45], np.float32)
    for scale in (1.0, 1e-38, 1e38):
        network = layer_network(
            LayerType.QUANTIZE,
            QuantizeDescriptor(),
            [tensor("x", values.shape, DataType.FLOAT32)],
            Quantization.of(scale, zero_point),
            output_dtype=dtype,
        )
        assert_exact((network, values))


@pytest.mark.parametrize("dtype", [*INTEGERS, DataType.UINT8])
@given(drawn=st.data())
@settings(max_examples=25)
def test_dequantize(dtype: DataType, drawn: st.DataObject) -> None:
    assert_exact(drawn.draw(dequantize_cases(dtype)))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("type_", REDUCTIONS)
@given(drawn=st.data())
@settings(max_examples=40)
def test_reduce_integers(type_: LayerType, dtype: DataType, drawn: st.DataObject) -> None:
    assert_exact(drawn.draw(reduce_cases(type_, dtype)))


@pytest.mark.parametrize("type_", REDUCTIONS)
@pytest.mark.parametrize("axes", [(0, 2, 4, 6), (1, 3, 5, 7), (), tuple(range(8)), (1, 2, 5)])
def test_reduce_eight_dimensions(type_: LayerType, axes: tuple[int, ...]) -> None:
    shape = (2, 3, 2, 3, 2, 3, 2, 3)
    source, output = Quantization.of(0.1, 5), Quantization.of(0.1, -7)
    network = network_of(type_, ReduceDescriptor(axes=axes), (shape, DataType.INT8, source), DataType.INT8, output)
    assert_exact((network, np.random.default_rng(0).integers(-128, 128, shape, dtype=np.int8)))


def test_reduce_wraps() -> None:
    source = ((1, 300, 300, 1), DataType.INT16, Quantization.of(0.01, 32767))
    network = network_of(LayerType.MEAN, ReduceDescriptor(axes=(1, 2)), source, DataType.INT16, Quantization.of(100.0))
    assert_exact((network, np.full(source[0], -32768, np.int16)))


@pytest.mark.parametrize("shape", [(4100, 4100), (4100, 4100, 2)], ids=["adjacent", "channels"])
def test_reduce_int8_wraps(shape: Shape) -> None:
    source = (shape, DataType.INT8, Quantization.of(0.01, 5))
    network = network_of(LayerType.SUM, ReduceDescriptor(axes=(0, 1)), source, DataType.INT8, Quantization.of(1e6))
    assert_exact((network, np.full(shape, -128, np.int8)))


@pytest.mark.parametrize("type_", REDUCTIONS)
@given(drawn=st.data())
@settings(max_examples=40)
def test_reduce_floats(type_: LayerType, drawn: st.DataObject) -> None:
    shape, descriptor = drawn.draw(reductions(least_axes=0))
    network = network_of(type_, descriptor, (shape, DataType.FLOAT32, None), DataType.FLOAT32, None)
    values = np.random.default_rng(drawn.draw(st.integers(0, 1000))).normal(0, 3, shape).astype(np.float32)
    assert not graph_difference(network, [values], run_lowered(network, [values]), OWN_CODE)


def test_sum_of_many_floats_keeps_its_digits() -> None:
    values = np.full((1, 200_000), 0.1, np.float32)
    network = network_of(
        LayerType.SUM, ReduceDescriptor(axes=(1,)), (values.shape, DataType.FLOAT32, None), DataType.FLOAT32, None
    )
    assert_allclose(run_lowered(network, [values])[0], network.run([values])[0], rtol=1.2e-7)


def test_sum_of_infinities() -> None:
    values = np.array([[1, np.inf, 2], [np.inf, -np.inf, 0], [3e38, 3e38, 0]], np.float32)
    network = network_of(
        LayerType.SUM, ReduceDescriptor(axes=(1,)), (values.shape, DataType.FLOAT32, None), DataType.FLOAT32, None
    )
    assert np.array_equal(run_lowered(network, [values])[0], np.array([np.inf, np.nan, np.inf]), equal_nan=True)


@pytest.mark.parametrize(
    ("type_", "descriptor"),
    [
        (LayerType.LOGISTIC, LogisticDescriptor()),
        (LayerType.TANH, TanhDescriptor()),
        (LayerType.HARD_SWISH, HardSwishDescriptor()),
        (LayerType.SOFTMAX, SoftmaxDescriptor(beta=1.5)),
    ],
)
def test_floats(type_: LayerType, descriptor) -> None:  # noqa: ANN001
    generator = np.random.default_rng(0)
    rows = [generator.normal(0, spread, 1000) for spread in (1e-6, 0.1, 1, 5, 30)]
    values = np.array(rows, np.float32)
    network = layer_network(type_, descriptor, [tensor("x", values.shape, DataType.FLOAT32)])
    assert not graph_difference(network, [values], run_lowered(network, [values]), OWN_CODE)


@pytest.mark.parametrize(
    ("type_", "descriptor", "wanted"),
    [
        (LayerType.LOGISTIC, LogisticDescriptor(), [1, 0, np.nan, 0.5, 0.5, 1, 0]),
        (LayerType.TANH, TanhDescriptor(), [1, -1, np.nan, 0.0, -0.0, 1, -1]),
        (LayerType.HARD_SWISH, HardSwishDescriptor(), [np.inf, np.nan, np.nan, 0.0, -0.0, 3e38, -0.0]),
    ],
)
def test_special_floats(type_: LayerType, descriptor, wanted: list[float]) -> None:  # noqa: ANN001
    values = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 3e38, -3e38], np.float32)
    network = layer_network(type_, descriptor, [tensor("x", values.shape, DataType.FLOAT32)])
    for result in (run_lowered(network, [values])[0], network.run([values])[0]):
        assert_allclose(result, np.array(wanted, np.float32), rtol=1e-6)
        assert np.array_equal(np.signbit(result[[3, 4]]), np.signbit(np.array(wanted)[[3, 4]]))


def test_softmax_of_huge_floats_and_nan() -> None:
    values = np.array([[3e38, 3e38, -3e38], [np.nan, 1, 2], [1, 2, np.nan], [-np.inf, 0, 0]], np.float32)
    network = layer_network(LayerType.SOFTMAX, SoftmaxDescriptor(), [tensor("x", values.shape, DataType.FLOAT32)])
    wanted = [[0.5, 0.5, 0], [np.nan] * 3, [np.nan] * 3, [0, 0.5, 0.5]]
    for result in (run_lowered(network, [values])[0], network.run([values])[0]):
        assert np.array_equal(result, np.array(wanted, np.float32), equal_nan=True)


def test_a_call_without_a_kernel_is_refused_by_name() -> None:
    context = lowering_of(layer_case(LayerType.RELU, DataType.INT8, 0))
    with pytest.raises(UnsupportedError, match=f"'{context.layer.name}': there is no kernel cast_u64_f16"):
        KernelCall("cast_u64_f16", "ferrule/kernels/cast.h", {}).lowered(context)
