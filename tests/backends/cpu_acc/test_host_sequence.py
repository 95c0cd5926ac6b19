# SPDX-License-Identifier: Apache-2.0
"""Layers that CpuAcc runs by one native call, and the float32 rule of requantisation."""

from __future__ import annotations

import numpy as np
import pytest
from compare import assert_arrays_equal
from merged import merged
from numpy.testing import assert_array_equal
from small_networks import two_by_two

from ferrule.backends.cpu_acc.host.lowering.rounding import float_rule
from ferrule.graph import Array, DataType, LayerType, Quantization, Rounding, TensorInfo
from ferrule.network import Network
from ferrule.operators.arithmetic.fixed_point import Factor, rescale
from ferrule.optimizer import OptimizerOptions, optimize
from ferrule.runtime import Runtime
from ferrule.testing.backends.comparison import random_inputs
from ferrule.testing.backends.layer_cases import layer_case

pytestmark = pytest.mark.cc


def inputs_of(network: Network, seed: int) -> list[Array]:
    random = np.random.default_rng(seed)
    return [random.integers(-128, 128, info.shape, np.int8) for info in network.inputs]


@pytest.mark.parametrize("imported", [False, True])
def test_runs_follow_arrays_that_move(imported: bool) -> None:
    network = two_by_two()
    options = OptimizerOptions(import_enabled=imported, export_enabled=imported)
    with Runtime() as runtime:
        number = runtime.load_network(optimize(network, ["CpuAcc"], runtime.registry, options))
        for seed in range(4):
            given = inputs_of(network, seed)
            found = runtime.enqueue_workload(number, given)
            assert_arrays_equal(found, network.run(given))


def test_views_are_part_of_a_sequence() -> None:
    network = Network("views")
    scale = Quantization.of(0.1, 3)
    name = network.add_input(TensorInfo("x", (1, 4, 6), DataType.INT8, quantization=scale))
    name = network.add_reshape_layer(name, (1, 24))
    name = network.add_relu_layer(name)
    name = network.add_reshape_layer(name, (2, 12))
    network.set_outputs([name])
    with Runtime() as runtime:
        number = runtime.load_network(optimize(network, ["CpuAcc"], runtime.registry, OptimizerOptions(simplify=False)))
        given = inputs_of(network, 1)
        assert_array_equal(runtime.enqueue_workload(number, given)[0], network.run(given)[0])


def test_the_call_with_the_most_arguments_is_part_of_a_sequence() -> None:
    lstm = layer_case(LayerType.UNIDIRECTIONAL_SEQUENCE_LSTM, DataType.INT8, 0)
    network = merged([lstm, layer_case(LayerType.RELU, DataType.INT8, 0)])
    with Runtime() as runtime:
        number = runtime.load_network(optimize(network, ["CpuAcc"], runtime.registry))
        given = random_inputs(network, 1)
        assert_arrays_equal(runtime.enqueue_workload(number, given), network.run(given))


@pytest.mark.parametrize("zero_point", [-128, 3, 127])
@pytest.mark.parametrize("low", [-128, -7])
@pytest.mark.parametrize("rounding", [Rounding.TFLM, Rounding.SINGLE], ids=str)
def test_a_proved_rule_is_the_integer_rule_for_every_sum(zero_point: int, low: int, rounding: Rounding) -> None:
    random = np.random.default_rng(300 + zero_point + low)
    factors = [Factor(multiplier=int(random.integers(1 << 30, (1 << 31) - 1)), shift=-shift) for shift in range(1, 13)]
    reach = np.full(len(factors), 200_000)
    rule = float_rule(factors, reach, zero_point, low, 127, rounding)
    assert rule.proved.sum() >= 6
    sums = np.arange(-200_000, 200_001)
    for channel in np.flatnonzero(rule.proved):
        factor = factors[channel]
        exact = rescale(sums, factor.multiplier, factor.shift, rounding) + zero_point
        scale, offset, drop = rule.rows[:, channel]
        wide = (sums + rule.shift[channel]) * np.float64(scale) + np.float64(offset)
        value = wide.astype(np.float32)
        value = np.where(value < zero_point, value - drop, value)
        assert_array_equal(np.clip(np.rint(value), low, 127), np.clip(exact, low, 127))


def test_a_channel_whose_sums_float32_cannot_hold_is_not_proved() -> None:
    factor = Factor(multiplier=1 << 30, shift=-9)
    assert float_rule([factor, factor], np.array([1 << 25, 1 << 20]), 0, -128, 127).proved.tolist() == [False, True]


def test_a_constant_channel_is_proved() -> None:
    rule = float_rule([Factor(multiplier=1 << 30, shift=-31)], np.array([1 << 29]), 5, -128, 127)
    assert rule.proved.tolist() == [True]
    assert rule.rows[:, 0].tolist() == [0, 5, 0]
