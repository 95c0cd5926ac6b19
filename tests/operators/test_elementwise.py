# SPDX-License-Identifier: Apache-2.0
"""Elementwise operators compared bit by bit with independent kernels, float32 included: each result rounds once."""

from __future__ import annotations

import numpy as np
import pytest
from elementwise_cases import ARITHMETIC, ELEMENTWISE, EXTREMA, RECTIFIERS, STORED, defined, has_tflm_kernel, info
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from layer_case import layer_network
from numpy.testing import assert_array_equal
from oracle import edge_inputs, litert_reference, tflm

from ferrule.errors import ModelError, UnsupportedError
from ferrule.graph import Array, DataType, LayerType, Quantization
from ferrule.network import Network
from ferrule.operators.activation import Activation
from ferrule.operators.elementwise.binary import BinaryDescriptor
from ferrule.operators.elementwise.cast import CastDescriptor
from ferrule.operators.elementwise.functions import ElementwiseUnaryDescriptor
from ferrule.operators.elementwise.functions_of_two import ExtremumDescriptor
from ferrule.operators.elementwise.rectify import LeakyReluDescriptor, PreluDescriptor, ReluDescriptor
from ferrule.testing.backends.comparison import random_inputs

Q = Quantization.of(0.5, 3)


def inputs_of(network: Network, which: str) -> list[Array]:
    return defined(network, random_inputs(network) if which == "random" else edge_inputs(network)[which])


@pytest.mark.parametrize("type_", ELEMENTWISE)
@settings(max_examples=13, suppress_health_check=list(HealthCheck))
@given(data=st.data(), which=st.sampled_from(["random", "random", "random", "lowest", "highest", "zero point"]))
def test_the_result_is_the_oracles(type_: LayerType, data: st.DataObject, which: str) -> None:
    network = data.draw(ELEMENTWISE[type_])
    inputs = inputs_of(network, which)
    oracle = tflm if has_tflm_kernel(network) else litert_reference
    (got,), (wanted,) = network.run(inputs), oracle(network, inputs)
    assert got.dtype == wanted.dtype
    assert_array_equal(got, wanted.reshape(got.shape))


@pytest.mark.parametrize("type_", [*ARITHMETIC, LayerType.PRELU])
def test_all_pairs_of_int8_are_exact(type_: LayerType) -> None:
    every = np.arange(-128, 128, dtype=np.int8)
    is_prelu = type_ is LayerType.PRELU
    inputs = [every.repeat(256 if is_prelu else 1).reshape(256, -1), every[np.newaxis]]
    infos = [
        info("a", inputs[0].shape, DataType.INT8, Quantization.of(0.031, -7)),
        info("b", inputs[1].shape, DataType.INT8, Quantization.of(0.054, 11)),
    ]
    descriptor = PreluDescriptor() if is_prelu else BinaryDescriptor()
    network = layer_network(type_, descriptor, infos, Quantization.of(0.07, 5))
    assert_array_equal(network.run(inputs)[0], tflm(network, inputs)[0])


@pytest.mark.parametrize("zero_points", [(3, -4, 1), (0, 0, 0)])
@pytest.mark.parametrize("scales", [(0.05, 0.05, 0.05), (0.5, 0.01, 0.01), (0.001, 1.0, 0.01)])
def test_all_quotients_of_int8_are_exact(scales: tuple[float, ...], zero_points: tuple[int, ...]) -> None:
    """Some of these quotients need a shift by more than 31 bits."""
    every = np.arange(-128, 128, dtype=np.int8)
    quantizations = [Quantization.of(*pair) for pair in zip(scales, zero_points, strict=True)]
    divisors = every[every != zero_points[1]]
    infos = [
        info("a", (256, 1), DataType.INT8, quantizations[0]),
        info("b", divisors.shape, DataType.INT8, quantizations[1]),
    ]
    network = layer_network(LayerType.DIV, BinaryDescriptor(), infos, quantizations[2])
    inputs = [every[:, np.newaxis], divisors]
    assert_array_equal(network.run(inputs)[0], tflm(network, inputs)[0])


@pytest.mark.parametrize("type_", STORED)
@pytest.mark.parametrize("scale", [0.5, 0.01, 0.0123])
def test_functions_of_every_stored_value_are_exact(type_: LayerType, scale: float) -> None:
    for dtype in STORED[type_]:
        limits = np.iinfo(dtype.numpy)
        zero_point = -3 if dtype is DataType.INT8 else 0
        first = zero_point if type_ is LayerType.RSQRT else limits.min
        values = np.arange(first, limits.max + 1).astype(dtype.numpy)
        own = info("x", values.shape, dtype, Quantization.of(scale, zero_point))
        network = layer_network(type_, ElementwiseUnaryDescriptor(), [own], Quantization.of(0.03, zero_point))
        assert_array_equal(network.run([values])[0], tflm(network, [values])[0])


@pytest.mark.parametrize("output", [DataType.INT8, DataType.INT16, DataType.INT32, DataType.BOOL])
def test_floats_beyond_an_integer_type_saturate(output: DataType) -> None:
    values = [0.5, -0.5, 1.9, -1.9, 127.9, 128, -129, 40000, -40000, 3e9, -3e9, 1e20, np.inf, -np.inf, np.nan, -0.0]
    own = info("x", (len(values),), DataType.FLOAT32, None)
    network = layer_network(LayerType.CAST, CastDescriptor(), [own], output_dtype=output)
    inputs = [np.array(values, np.float32)]
    assert_array_equal(network.run(inputs)[0], tflm(network, inputs)[0], strict=True)


@pytest.mark.parametrize("other", [DataType.FLOAT32, DataType.INT8, DataType.INT32, DataType.UINT8, DataType.BOOL])
def test_int64_is_cast_as_elsewhere(other: DataType) -> None:
    values = np.array([0, 1, -1, 300, -70000, 2**31, -(2**40), 2**62 + 1], np.int64)
    for pair in ((DataType.INT64, other), (other, DataType.INT64)):
        own = info("x", values.shape, pair[0], None)
        network = layer_network(LayerType.CAST, CastDescriptor(), [own], output_dtype=pair[1])
        inputs = [values.astype(pair[0].numpy)]
        assert_array_equal(network.run(inputs)[0], litert_reference(network, inputs)[0], strict=True)


@pytest.mark.parametrize("type_", EXTREMA)
def test_not_a_number_gives_way_to_the_second_input(type_: LayerType) -> None:
    nan = np.float32(np.nan)
    infos = [info(name, (3,), DataType.FLOAT32, None) for name in "ab"]
    network = layer_network(type_, ExtremumDescriptor(), infos)
    inputs = [np.array([nan, 1, nan], np.float32), np.array([2, nan, nan], np.float32)]
    (result,) = network.run(inputs)
    assert_array_equal(result, inputs[1])
    assert_array_equal(result, tflm(network, inputs)[0])


def test_overflowing_floats_become_the_largest_as_in_the_reference() -> None:
    infos = [info(name, (2,), DataType.FLOAT32, None) for name in "ab"]
    network = layer_network(LayerType.MUL, BinaryDescriptor(), infos)
    inputs = [np.array([3e38, -3e38], np.float32)] * 2
    (result,) = network.run(inputs)
    assert_array_equal(result, tflm(network, inputs)[0])


@pytest.mark.parametrize(
    ("first", "second", "output", "message"),
    [
        (Q, None, Q, "'b' is int8 without quantisation"),
        (Q, Quantization.of(1e-30), Quantization.of(1e-30), "factor of"),
        (Q, Q, Quantization.of(1e-20), "tensor 'output_0' has scale 1e-20"),
    ],
)
def test_scales_that_the_reference_refuses_are_refused(
    first: Quantization, second: Quantization | None, output: Quantization, message: str
) -> None:
    infos = [info("a", (2,), DataType.INT8, first), info("b", (2,), DataType.INT8, second)]
    network = layer_network(LayerType.ADD, BinaryDescriptor(), infos, output)
    with pytest.raises(UnsupportedError, match=message):
        network.validate()


def test_what_does_not_broadcast_is_refused() -> None:
    infos = [info("a", (2, 3), DataType.INT8, Q), info("b", (2,), DataType.INT8, Q)]
    with pytest.raises(ModelError, match=r"'b' of shape \[2\] does not broadcast with 'a'"):
        layer_network(LayerType.ADD, BinaryDescriptor(), infos, Q)
    with pytest.raises(ModelError, match=r"'b' of shape \[2\] does not broadcast to 'a'"):
        layer_network(LayerType.PRELU, PreluDescriptor(), infos, Q)


@pytest.mark.parametrize(
    ("type_", "dtype", "output", "message"),
    [
        (LayerType.MAXIMUM, DataType.INT8, Quantization.of(0.25), "has another quantisation"),
        (LayerType.MINIMUM, DataType.INT64, None, "int64"),
        (LayerType.ADD, DataType.UINT8, Q, "uint8"),
        (LayerType.MUL, DataType.INT32, Q, "int32 with a quantisation"),
    ],
)
def test_cells_without_an_oracle_are_refused_by_name(
    type_: LayerType, dtype: DataType, output: Quantization | None, message: str
) -> None:
    own = Q if dtype in {DataType.INT8, DataType.UINT8} else None
    infos = [info(name, (2,), dtype, own) for name in "ab"]
    descriptor = ExtremumDescriptor() if type_ in EXTREMA else BinaryDescriptor()
    with pytest.raises(UnsupportedError, match=message):
        layer_network(type_, descriptor, infos, output).validate()


def test_int32_has_no_fused_activation() -> None:
    infos = [info(name, (2,), DataType.INT32, None) for name in "ab"]
    network = layer_network(LayerType.ADD, BinaryDescriptor(activation=Activation.RELU), infos)
    with pytest.raises(UnsupportedError, match="activation RELU"):
        network.validate()


@pytest.mark.parametrize(
    ("type_", "dtype", "output", "message"),
    [
        (LayerType.RELU6, DataType.INT8, Quantization.of(0.25), "has another quantisation"),
        (LayerType.RELU_N1_TO_1, DataType.INT16, Quantization.of(0.5), "int16"),
        (LayerType.RELU, DataType.INT8, Quantization.of(1e-12), "below 2"),
        (LayerType.RELU, DataType.INT8, None, "without quantisation"),
    ],
)
def test_rectifiers_refuse_what_the_reference_kernels_cannot(
    type_: LayerType, dtype: DataType, output: Quantization | None, message: str
) -> None:
    own = Q if dtype is DataType.INT8 else Quantization.of(0.5)
    network = layer_network(type_, ReluDescriptor(), [info("a", (2,), dtype, own)], output)
    with pytest.raises(UnsupportedError, match=message):
        network.validate()


def test_prelu_of_int16_has_int8_factors() -> None:
    infos = [info(name, (2,), DataType.INT16, Quantization.of(0.5)) for name in "ab"]
    network = layer_network(LayerType.PRELU, PreluDescriptor(), infos, Quantization.of(0.5))
    with pytest.raises(UnsupportedError, match="'b' is int16, expected int8"):
        network.validate()


def test_scales_per_channel_are_refused() -> None:
    per_channel = Quantization(scales=(0.5, 0.25), zero_points=(0, 0), axis=0)
    infos = [info(name, (2,), DataType.INT8, per_channel) for name in "ab"]
    for type_, descriptor in ((LayerType.MAXIMUM, ExtremumDescriptor()), (LayerType.ADD, BinaryDescriptor())):
        with pytest.raises(UnsupportedError, match="has 2 scales, expected one"):
            layer_network(type_, descriptor, infos, per_channel).validate()


def test_infinite_and_undefined_floats_pass_without_a_warning() -> None:
    values = np.array([np.inf, -np.inf, np.nan, -0.0, 1e-45], np.float32)
    own = info("a", values.shape, DataType.FLOAT32, None)
    for type_ in RECTIFIERS:
        if type_ is not LayerType.RELU_N1_TO_1:
            descriptor = LeakyReluDescriptor(alpha=0.0) if type_ is LayerType.LEAKY_RELU else ReluDescriptor()
            network = layer_network(type_, descriptor, [own])
            assert_array_equal(network.run([values])[0], tflm(network, [values])[0])


def test_a_slope_may_be_negative() -> None:
    network = layer_network(
        LayerType.LEAKY_RELU, LeakyReluDescriptor(alpha=-0.5), [info("a", (4,), DataType.INT8, Q)], Q
    )
    inputs = [np.array([-128, 2, 3, 4], np.int8)]
    assert_array_equal(network.run(inputs)[0], tflm(network, inputs)[0])
