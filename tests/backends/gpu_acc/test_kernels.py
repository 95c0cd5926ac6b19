# SPDX-License-Identifier: Apache-2.0
"""The OpenCL kernels compared bit by bit with the numpy kernels."""

from __future__ import annotations

import numpy as np
import pytest
from elementwise_cases import ELEMENTWISE
from gpu_face import GpuGraph, require_opencl
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from layer_case import layer_network, tensor
from numpy.testing import assert_array_equal
from unary_cases import (
    Case,
    dequantize_cases,
    hard_swish_cases,
    quantize_cases,
    quantize_float_cases,
    sigmoidal_cases,
    softmax_cases,
)
from weighted_cases import FAMILY

from ferrule.backends.device import BackendId
from ferrule.backends.gpu_acc import GpuAcc
from ferrule.backends.gpu_acc.workloads.elementwise import binary, unary
from ferrule.backends.gpu_acc.workloads.factory import WORKLOADS, Make
from ferrule.backends.target import default_target
from ferrule.graph import Array, DataType, LayerType, Quantization
from ferrule.network import Network
from ferrule.operators.elementwise.quantize import QuantizeDescriptor
from ferrule.operators.movement.reshape import ExpandDimsDescriptor, ReshapeDescriptor, SqueezeDescriptor
from ferrule.testing.backends.comparison import random_inputs
from ferrule.testing.backends.layer_cases import layer_case

TARGET = default_target(BackendId("GpuAcc"))

MODERATE = settings(max_examples=20, suppress_health_check=list(HealthCheck))
ELEMENTWISE_TYPES = (
    *(LayerType.ADD, LayerType.SUB, LayerType.MUL, LayerType.MAXIMUM, LayerType.MINIMUM),
    *(LayerType.RELU, LayerType.RELU6, LayerType.RELU_N1_TO_1, LayerType.LEAKY_RELU),
)
CASES: dict[str, st.SearchStrategy[Case]] = {
    "softmax": softmax_cases((DataType.INT8, DataType.INT8)),
    "logistic": sigmoidal_cases(LayerType.LOGISTIC, DataType.INT8),
    "tanh": sigmoidal_cases(LayerType.TANH, DataType.INT8),
    "hard_swish": hard_swish_cases(),
    "quantize": quantize_cases((DataType.INT8, DataType.INT8)),
    "quantize_float": quantize_float_cases(DataType.INT8),
    "dequantize": dequantize_cases(DataType.INT8),
}


@pytest.fixture(autouse=True)
def _opencl() -> None:
    require_opencl()


def check(network: Network, inputs: list[Array]) -> None:
    """Compare GpuAcc, which must support every layer, with the numpy kernels."""
    support = GpuAcc().layer_support()
    for layer in network.layers:
        assert support.supports(network, layer, TARGET).reason == ""
    for got, wanted in zip(GpuGraph(network).run(inputs), network.run(inputs), strict=True):
        assert got.dtype == wanted.dtype
        assert got.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("family", sorted(set(FAMILY) - {"batch_matmul"}))
@given(data=st.data(), seed=st.integers(0, 1 << 16))
@MODERATE
def test_weighted_layers_and_pools(family: str, data: st.DataObject, seed: int) -> None:
    network = data.draw(FAMILY[family](DataType.INT8))
    check(network, random_inputs(network, seed))


@pytest.mark.parametrize("type_", ELEMENTWISE_TYPES)
@given(data=st.data(), seed=st.integers(0, 1 << 16))
@MODERATE
def test_elementwise_layers(type_: LayerType, data: st.DataObject, seed: int) -> None:
    network = data.draw(ELEMENTWISE[type_])
    assume(network.outputs[0].dtype is DataType.INT8)
    check(network, random_inputs(network, seed))


@pytest.mark.parametrize("name", sorted(CASES))
@given(data=st.data())
@MODERATE
def test_layers_with_one_input(name: str, data: st.DataObject) -> None:
    network, values = data.draw(CASES[name])
    check(network, [values])


@pytest.mark.parametrize("dtype", [DataType.INT8, DataType.FLOAT32, DataType.INT64])
def test_copies_in_another_shape(dtype: DataType) -> None:
    scale = None if dtype.is_float else 0.5
    source = tensor("x", (2, 1, 3), dtype, scale)
    for type_, descriptor in (
        (LayerType.RESHAPE, ReshapeDescriptor(shape=(3, -1))),
        (LayerType.SQUEEZE, SqueezeDescriptor()),
        (LayerType.EXPAND_DIMS, ExpandDimsDescriptor(axis=0)),
    ):
        network = layer_network(type_, descriptor, [source], source.quantization)
        check(network, [np.arange(6).reshape(2, 1, 3).astype(dtype.numpy)])


def test_quantize_of_what_is_no_number() -> None:
    values = np.array([[np.nan, np.inf, -np.inf, 3.4e38, -3.4e38, 0.0, -0.0, 0.5, -0.5, 1e-40]], np.float32)
    network = layer_network(
        LayerType.QUANTIZE,
        QuantizeDescriptor(),
        [tensor("x", values.shape, DataType.FLOAT32)],
        Quantization.of(1.0, 7),
        output_dtype=DataType.INT8,
    )
    check(network, [values])


def layers_of(make: Make, dtype: DataType) -> list[LayerType]:
    """Return the layer types for which a function makes launches, for one element type."""
    return [type_ for type_, rows in WORKLOADS.items() if rows.get((dtype, dtype)) is make]


@pytest.mark.parametrize("type_", layers_of(unary, DataType.FLOAT32))
def test_functions_of_floats(type_: LayerType) -> None:
    """Special values and those of all magnitudes are within one step between adjacent float32 values."""
    special = [np.nan, np.inf, -np.inf, 3.4e38, -3.4e38, 0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-40, 1e-30, 8388609.0]
    random = np.random.default_rng(5)
    many = random.normal(0, 1, 500) * 10.0 ** random.uniform(-20, 20, 500)
    values = np.concatenate([special, many]).astype(np.float32)
    case = layer_case(type_, DataType.FLOAT32, 0)
    network = layer_network(type_, case.layers[0].descriptor, [tensor("x", values.shape, DataType.FLOAT32)])
    (got,), (wanted,) = GpuGraph(network).run([values]), network.run([values])
    assert_array_equal(np.isnan(got), np.isnan(wanted))
    with np.errstate(invalid="ignore"):
        near = np.abs(got.astype(np.float64) - wanted) <= np.spacing(np.abs(wanted))
    assert (near | (got == wanted) | np.isnan(wanted)).all()


@pytest.mark.parametrize("dtype", [DataType.INT32, DataType.FLOAT32])
def test_functions_of_two_numbers(dtype: DataType) -> None:
    """Pairs of special values, where quotients do not exist and integers wrap, give the reference's bits."""
    numbers = [0.0, -0.0, 1, -1, 7, -3, 0.1, 3e38, -3e38, 1e-40, np.inf, -np.inf, np.nan]
    integers = [0, 1, -1, 7, -3, -(2**31), 2**31 - 1]
    every = np.array(integers, np.int32) if dtype is DataType.INT32 else np.array(numbers, np.float32)
    pair = [np.repeat(every, every.size), np.tile(every, every.size)]
    first, second = (tensor(name, pair[0].shape, dtype) for name in "xy")
    types = layers_of(binary, dtype)
    assert len(types) > 5
    for type_ in types:
        descriptor = layer_case(type_, DataType.INT32, 0).layers[0].descriptor
        network = layer_network(type_, descriptor, [first, second])
        (got,), (wanted,) = GpuGraph(network).run(pair), network.run(pair)
        assert_array_equal(got, wanted, err_msg=type_)


def test_every_row_is_taken() -> None:
    """The samples of the operators, from which the families of tests draw layers, reach every layer type."""
    support = GpuAcc().layer_support()
    cases = {type_: [layer_case(type_, dtype, seed) for dtype in DataType for seed in range(3)] for type_ in WORKLOADS}
    refused = [
        type_
        for type_, graphs in cases.items()
        if not any(support.supports(graph, graph.layers[0], TARGET) for graph in graphs)
    ]
    assert refused == []


@pytest.mark.parametrize("zero_point", [-128, 127])
@pytest.mark.parametrize("batch", [1, 3])
def test_chains_of_layers(zero_point: int, batch: int) -> None:
    random = np.random.default_rng(zero_point + 200)
    network = Network("chain")
    quantized = Quantization.of(2.0**-5, zero_point)
    network.add_input(tensor("x", (batch, 9, 7, 11), DataType.INT8, 2.0**-5, zero_point))
    scales = tuple(float(np.float32(2.0 ** random.uniform(-9, -6))) for _ in range(13))
    weights = Quantization(scales=scales, zero_points=(0,) * 13, axis=0)
    first = network.add_conv2d_layer(
        "x",
        weights=random.integers(-128, 128, (13, 3, 3, 11), dtype=np.int8),
        bias=random.integers(-5000, 5000, 13, dtype=np.int32),
        weights_quantization=weights,
        quantization=quantized,
        strides=(2, 1),
        padding="same",
    )
    second = network.add_average_pool2d_layer(first, (2, 2), padding="same")
    total = network.add_add_layer(second, second, quantization=quantized)
    network.set_outputs([total, second])
    check(network, random_inputs(network, 3))
