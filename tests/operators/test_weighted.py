# SPDX-License-Identifier: Apache-2.0
"""Convolutions, FULLY_CONNECTED and pools, compared with TensorFlow Lite Micro's kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from layer_case import layer_network
from numpy.testing import assert_array_equal
from oracle import edge_inputs, tflm
from weighted_cases import FAMILY, OF_FLOATS, within_bound

from ferrule import formats
from ferrule.graph import Array, DataType, LayerType, Quantization, TensorInfo
from ferrule.network import Network
from ferrule.operators.arithmetic.fixed_point import multiply_by_quantized_multiplier, quantize_multiplier
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor
from ferrule.testing.backends.comparison import random_inputs

INTEGERS = (DataType.INT8, DataType.INT16)
WHICH = st.sampled_from(["random", "random", "random", "lowest", "highest", "zero point"])


def inputs_of(network: Network, which: str) -> list[Array]:
    return random_inputs(network) if which == "random" else edge_inputs(network)[which]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("operator", FAMILY)
@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(data=st.data(), which=WHICH)
def test_integers_are_the_reference_kernels(operator: str, dtype: DataType, data: st.DataObject, which: str) -> None:
    network = data.draw(FAMILY[operator](dtype))
    inputs = inputs_of(network, which)
    (got,), (wanted,) = network.run(inputs), tflm(network, inputs)
    assert got.dtype == wanted.dtype
    assert_array_equal(got, wanted.reshape(got.shape))


@pytest.mark.parametrize("operator", OF_FLOATS)
@settings(max_examples=30, suppress_health_check=list(HealthCheck))
@given(data=st.data(), which=WHICH)
def test_float32_is_near_the_reference_kernels(operator: str, data: st.DataObject, which: str) -> None:
    network = data.draw(OF_FLOATS[operator](DataType.FLOAT32))
    inputs = inputs_of(network, which)
    (got,), (wanted,) = network.run(inputs), tflm(network, inputs)
    assert got.dtype == np.float32
    assert within_bound(network, inputs, wanted.reshape(got.shape))


@pytest.mark.parametrize("file", ["ad01_int8", "kws_ref_model", "vww_96_int8", "pretrainedResnet_quant"])
def test_trained_models_are_exact(models: Path, file: str) -> None:
    path = models / f"{file}.tflite"
    network = formats.load(path)
    for inputs in (random_inputs(network, seed=5), *edge_inputs(network).values()):
        for got, wanted in zip(network.run(inputs), tflm(path.read_bytes(), inputs), strict=True):
            assert_array_equal(got, wanted.reshape(got.shape))


def test_the_scale_of_fully_connected_is_computed_in_float64() -> None:
    # The sums give other outputs if the product of the scales is first rounded to float32.
    data_scale, weights_scale = 0.013107914477586746, 0.2152915745973587
    output_scale = float(np.float32(data_scale * weights_scale * 2.0**17))
    sums = np.arange(-(2**24), 2**24, 7)
    results = []
    for product in (data_scale * weights_scale, float(np.float32(data_scale * weights_scale))):
        multiplier, shift = quantize_multiplier(product / output_scale)
        results.append(multiply_by_quantized_multiplier(sums, multiplier, shift))
    differing = sums[(results[0] != results[1]) & (np.abs(results[0]) < 127)][:16]
    assert differing.size == 16
    network = layer_network(
        LayerType.FULLY_CONNECTED,
        FullyConnectedDescriptor(),
        [
            TensorInfo("data", (1, 4), DataType.INT8, quantization=Quantization.of(data_scale)),
            TensorInfo("weights", (16, 4), DataType.INT8, quantization=Quantization.of(weights_scale)),
            TensorInfo(
                "bias",
                (16,),
                DataType.INT32,
                quantization=Quantization.of(data_scale * weights_scale),
            ),
        ],
        Quantization.of(output_scale),
        {1: np.ones((16, 4), np.int8), 2: differing.astype(np.int32)},
    )
    inputs = [np.zeros((1, 4), np.int8)]
    assert_array_equal(network.run(inputs)[0], tflm(network, inputs)[0])
