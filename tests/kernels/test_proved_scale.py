# SPDX-License-Identifier: Apache-2.0
"""Requantisation by proved constants has the reference's result for every sum that a channel can have."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ferrule.backends.cpu_acc.lowering.paired import Channels
from ferrule.backends.cpu_acc.lowering.proved_scale import least_sums, proved_scales
from ferrule.graph import DataType, Quantization, TensorInfo
from ferrule.operators.activation import Activation
from ferrule.operators.fixed_point import multiply_by_quantized_multiplier, quantize_multiplier
from ferrule.operators.weighted import Factor

OUTPUT = TensorInfo(name="output", shape=(1,), dtype=DataType.INT8, quantization=Quantization.of(1.0, -128))


def channel(weights: list[int], bias: int, scale: float) -> Channels:
    multiplier, shift = quantize_multiplier(scale)
    return Channels(
        matrix=np.array([weights], np.int8),
        bias=np.array([bias], np.int64),
        factors=[Factor(multiplier=multiplier, shift=shift)],
        dead=np.zeros(1, bool),
        fixed=np.zeros(1, np.int8),
    )


@given(
    weights=st.lists(st.integers(-128, 127), min_size=1, max_size=9),
    bias=st.integers(-20000, 20000),
    exponent=st.floats(-12, -4.2),
)
def test_every_sum(weights: list[int], bias: int, exponent: float) -> None:
    given_channel = channel(weights, bias, 2.0**exponent)
    scales = proved_scales(given_channel, OUTPUT, Activation.NONE)
    if scales is None:
        return
    reach = int(given_channel.reach[0])
    products = np.arange(-reach, reach + 1, dtype=np.int64)
    low = sum(127 * weight if weight < 0 else -128 * weight for weight in weights)
    high = sum(-128 * weight if weight < 0 else 127 * weight for weight in weights)
    products = products[(products >= low) & (products <= high)]
    (factor,) = given_channel.factors
    wanted = np.clip(
        multiply_by_quantized_multiplier(products + bias, factor.multiplier, factor.shift) - 128, -128, 127
    )
    accumulators = (products << 8) + int(scales.bias[0])
    assert np.abs(accumulators).max() < 2**31
    got = np.clip(((accumulators * int(scales.multiplier[0])) >> 32) >> 11, -128, 127)
    np.testing.assert_array_equal(got, wanted)


def test_typical_channels_have_constants() -> None:
    random = np.random.default_rng(1)
    for _ in range(50):
        one = channel(
            random.integers(-127, 128, 9).tolist(), int(random.integers(-9000, 9000)), random.uniform(0.003, 0.03)
        )
        assert proved_scales(one, OUTPUT, Activation.RELU) is not None


def test_other_outputs_have_none() -> None:
    one = channel([1, 2, 3], 0, 0.01)
    wide = TensorInfo(name="output", shape=(1,), dtype=DataType.INT8, quantization=Quantization.of(6 / 255, -128))
    assert proved_scales(one, wide, Activation.RELU6) is not None
    narrow = TensorInfo(name="output", shape=(1,), dtype=DataType.INT8, quantization=Quantization.of(0.1, -128))
    assert proved_scales(one, narrow, Activation.RELU6) is None
    linear = TensorInfo(name="output", shape=(1,), dtype=DataType.INT8, quantization=Quantization.of(0.1, 3))
    assert proved_scales(one, linear, Activation.NONE) is None


@given(st.floats(2.0**-14, 0.9))
def test_the_least_sums_are_where_the_reference_changes(scale: float) -> None:
    multiplier, shift = quantize_multiplier(scale)
    sums = least_sums(multiplier, shift)
    at = multiply_by_quantized_multiplier(sums, multiplier, shift)
    below = multiply_by_quantized_multiplier(sums - 1, multiplier, shift)
    assert (at >= np.arange(1, 256)).all()
    assert (below < np.arange(1, 256)).all()
