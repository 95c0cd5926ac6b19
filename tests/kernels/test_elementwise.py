# SPDX-License-Identifier: Apache-2.0
"""The C of the elementwise operators, compared with the numpy kernels."""

from __future__ import annotations

import numpy as np
import pytest
from elementwise_cases import ARITHMETIC, ELEMENTWISE, EXTREMA, SCALES, info
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from layer_case import layer_network
from lowered_call import lower, run_lowered, run_overlapping
from numpy.testing import assert_array_equal
from oracle import edge_inputs

from ferrule.backends.cpu_acc.lowering.operators.binary import TABLE_MIN_ELEMENTS
from ferrule.backends.cpu_acc.lowering.proofs.scaled_sum import scaled_sum, sum_tables
from ferrule.backends.target import CoreFeatures
from ferrule.graph import Array, DataType, LayerType, Quantization
from ferrule.network import Network
from ferrule.operators.activation import Activation
from ferrule.operators.elementwise.binary import BinaryDescriptor
from ferrule.operators.elementwise.functions_of_two import ExtremumDescriptor
from ferrule.operators.elementwise.stored_binary import int8_results, sum_of
from ferrule.operators.operator import Operands
from ferrule.testing.backends.comparison import random_inputs

pytestmark = pytest.mark.cc
WITHOUT_DSP = CoreFeatures(name="cortex-m3")


def check(network: Network, inputs: list[Array]) -> None:
    (got,), (wanted,) = run_lowered(network, inputs), network.run(inputs)
    assert_array_equal(got, wanted, strict=True)


@pytest.mark.parametrize("type_", ELEMENTWISE)
@settings(max_examples=9, suppress_health_check=list(HealthCheck))
@given(data=st.data(), which=st.sampled_from(["random", "random", "lowest", "highest", "zero point"]))
def test_the_result_is_the_numpy_kernels(type_: LayerType, data: st.DataObject, which: str) -> None:
    network = data.draw(ELEMENTWISE[type_])
    check(network, random_inputs(network) if which == "random" else edge_inputs(network)[which])


def _pairs(type_: LayerType, scales: tuple[float, float, float], zero_points: tuple[int, int, int]) -> Network:
    infos = [
        info(name, shape, DataType.INT8, Quantization.of(scale, zero_point))
        for name, shape, scale, zero_point in zip("ab", ((256, 1), (1, 256)), scales[:2], zero_points[:2], strict=True)
    ]
    return layer_network(type_, BinaryDescriptor(), infos, Quantization.of(scales[2], zero_points[2]))


@pytest.mark.parametrize("type_", ARITHMETIC)
@pytest.mark.parametrize(
    ("scales", "kernel"),
    [((0.0312, 0.0547, 0.0731), "sum_s8"), ((0.5, 0.5, 1.0), "sum_s8"), ((0.05, 0.06, 0.06), "rescaled_sum_s8")],
)
def test_all_pairs_of_int8_are_exact(type_: LayerType, scales: tuple[float, float, float], kernel: str) -> None:
    network = _pairs(type_, scales, (-7, 11, 5))
    if type_ is LayerType.MUL:
        kernel = "product_s8"
    assert lower(network).kernel == kernel
    every = np.arange(-128, 128, dtype=np.int8)
    check(network, [every.reshape(256, 1), every.reshape(1, 256)])


@pytest.mark.parametrize("elements", [TABLE_MIN_ELEMENTS, TABLE_MIN_ELEMENTS + 3])
def test_large_sums_of_one_shape_use_tables(elements: int) -> None:
    infos = [info(name, (elements,), DataType.INT8, Quantization.of(0.1, 4)) for name in "ab"]
    descriptor = BinaryDescriptor(activation=Activation.RELU)
    network = layer_network(LayerType.ADD, descriptor, infos, Quantization.of(0.15, -128))
    op = lower(network, WITHOUT_DSP)
    assert op.kernel == "sum_table_s8"
    assert {overlap.input for overlap in op.overlaps} == {"a", "b"}
    inputs = random_inputs(network)
    (got,), (wanted,) = run_lowered(network, inputs, op=op), network.run(inputs)
    assert_array_equal(got, wanted, strict=True)


def test_small_sums_take_no_tables() -> None:
    infos = [info(name, (TABLE_MIN_ELEMENTS - 1,), DataType.INT8, Quantization.of(0.1, 4)) for name in "ab"]
    network = layer_network(LayerType.ADD, BinaryDescriptor(), infos, Quantization.of(0.15, -128))
    assert lower(network, WITHOUT_DSP).kernel == "rescaled_sum_s8"


@settings(max_examples=25)
@given(
    scales=st.tuples(SCALES, SCALES),
    ratio=st.floats(0.3, 1.5),
    zero_points=st.tuples(*[st.integers(-128, 127)] * 3),
    subtract=st.booleans(),
)
def test_tables_and_factors_give_the_result_of_every_pair(
    scales: tuple[float, float], ratio: float, zero_points: tuple[int, int, int], subtract: bool
) -> None:
    network = _pairs(LayerType.ADD, (*scales, ratio * max(scales)), zero_points)
    operands = Operands(network.inputs, network.outputs)
    total = sum_of(operands, Activation.NONE, subtract=subtract)
    tables = sum_tables(total)
    if tables is not None:
        sums = tables[0].astype(np.int64)[:, np.newaxis] + tables[1]
        assert np.abs(sums).max() < 2**31
        assert_array_equal(np.clip(sums >> 20, -128, 127).reshape(-1), int8_results(total))
    scaled = scaled_sum(total)
    if scaled is not None:
        stored = np.arange(256, dtype=np.uint8).view(np.int8).astype(np.int64)
        sums = scaled.constant + (scaled.first * stored >> 8)[:, np.newaxis] + (scaled.second * stored >> 8)
        assert np.abs(sums).max() < 2**31
        assert_array_equal(np.clip(sums >> 20, -128, 127).reshape(-1), int8_results(total))


def test_typical_sums_have_two_factors() -> None:
    for type_ in (LayerType.ADD, LayerType.SUB):
        network = _pairs(type_, (0.0312, 0.0547, 0.0731), (-7, 11, 5))
        operands = Operands(network.inputs, network.outputs)
        assert scaled_sum(sum_of(operands, Activation.NONE, subtract=type_ is LayerType.SUB)) is not None


@pytest.mark.parametrize("constant", [0, 1])
@pytest.mark.parametrize("dtype", [DataType.INT8, DataType.INT16, DataType.INT32, DataType.FLOAT32])
def test_either_input_may_be_constant(dtype: DataType, constant: int) -> None:
    own = Quantization.of(0.5) if dtype in {DataType.INT8, DataType.INT16} else None
    infos = [info("a", (2, 3), dtype, own), info("b", (3,), dtype, own)]
    data = np.arange(infos[constant].elements).reshape(infos[constant].shape).astype(dtype.numpy)
    network = layer_network(LayerType.ADD, BinaryDescriptor(), infos, own, constants={constant: data})
    check(network, random_inputs(network))


@pytest.mark.parametrize("type_", EXTREMA)
def test_not_a_number_gives_way_to_the_second_input(type_: LayerType) -> None:
    nan = np.float32(np.nan)
    infos = [info(name, (3,), DataType.FLOAT32, None) for name in "ab"]
    network = layer_network(type_, ExtremumDescriptor(), infos)
    check(network, [np.array([nan, 1, nan], np.float32), np.array([2, nan, nan], np.float32)])


def test_values_of_another_shape_are_not_written_over() -> None:
    infos = [info("a", (4, 3), DataType.INT8, Quantization.of(0.5)), info("b", (3,), DataType.INT8, Quantization.of(1))]
    network = layer_network(LayerType.ADD, BinaryDescriptor(), infos, Quantization.of(2))
    assert [overlap.input for overlap in lower(network).overlaps] == ["a"]


@pytest.mark.parametrize("type_", ELEMENTWISE)
@settings(max_examples=15, suppress_health_check=list(HealthCheck))
@given(data=st.data(), further=st.integers(0, 5))
def test_the_output_may_lie_where_the_lowering_says(type_: LayerType, data: st.DataObject, further: int) -> None:
    network = data.draw(ELEMENTWISE[type_])
    inputs = random_inputs(network)
    (wanted,) = network.run(inputs)
    for overlap in lower(network).overlaps:
        step_bytes = max(wanted.itemsize, network.info(overlap.input).dtype.size_bytes)  # both stay aligned
        got = run_overlapping(network, inputs, overlap, overlap.distance_bytes + further * step_bytes)
        assert_array_equal(got, wanted, strict=True)
