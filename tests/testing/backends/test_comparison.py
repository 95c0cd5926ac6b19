# SPDX-License-Identifier: Apache-2.0
"""The tolerances at their limits: a difference that passes, and one just above it that does not."""

from __future__ import annotations

import numpy as np
import pytest

from ferrule import Network
from ferrule.graph import DataType, Quantization, TensorInfo
from ferrule.testing.backends.comparison import layer_difference, network_difference

STEP = 2.0**-24  # between the float16 values around zero


def clipped(dtype: DataType) -> Network:
    """Return a network of one RELU over three elements."""
    network = Network("clipped")
    quantization = Quantization(scales=(1.0,), zero_points=(0,)) if dtype is DataType.INT8 else None
    source = network.add_input(TensorInfo(name="x", shape=(1, 3), dtype=dtype, quantization=quantization))
    network.set_outputs([network.add_relu_layer(source, name="y")])
    return network


@pytest.mark.parametrize(
    ("dtype", "value", "passes", "differs"),
    [
        (DataType.FLOAT16, 0.0, STEP, 2 * STEP),
        (DataType.FLOAT16, 1.0, 2.0**-10, 2.0**-9),
        (DataType.FLOAT32, 0.0, 0.9e-6, 1.1e-6),
        (DataType.FLOAT32, 1.0, 1.0e-5, 1.2e-5),
        (DataType.INT8, 5, 0, 1),
    ],
)
def test_a_layer(dtype: DataType, value: float, passes: float, differs: float) -> None:
    network = clipped(dtype)
    given = np.full((1, 3), value, dtype.numpy)
    assert layer_difference(network, [given], [(given + dtype.numpy.type(passes))]) == ""
    wrong = given.copy()
    wrong[0, 1] += dtype.numpy.type(differs)
    said = layer_difference(network, [given], [wrong])
    assert said == f"output 'y' differs in 1 of 3 elements: at [0, 1] it is {wrong[0, 1]}, expected {given[0, 1]}"


def test_a_network_relative_to_its_largest_value() -> None:
    network = clipped(DataType.FLOAT32)
    given = np.array([[0.0, 2.0, 0.5]], np.float32)

    def said(difference: float) -> str:
        return network_difference(network, [given], [given + np.array([difference, 0, 0], np.float32)])

    assert said(1.9e-4) == ""
    assert "differs in 1 of 3 elements: at [0, 0]" in said(2.1e-4)


def test_nan_and_infinity_equal_themselves_only() -> None:
    network = clipped(DataType.FLOAT32)
    given = np.array([[np.inf, np.nan, 0.0]], np.float32)
    (wanted,) = network.run([given])
    assert layer_difference(network, [given], [wanted]) == ""
    assert layer_difference(network, [given], [np.nan_to_num(wanted)]) != ""
