# SPDX-License-Identifier: Apache-2.0
"""The bounds at their limits: a difference that passes, and one just above it that does not."""

from __future__ import annotations

import numpy as np
import pytest

from ferrule import Network
from ferrule.errors import InputError
from ferrule.graph import DataType, Quantization, TensorInfo
from ferrule.testing.backends.comparison import graph_difference, reference


def network_of(dtype: DataType, *, doubled: bool) -> Network:
    """Return a network that doubles three elements, or clips them, which rounds nothing."""
    network = Network("three")
    quantization = Quantization(scales=(1.0,), zero_points=(0,)) if dtype is DataType.INT8 else None
    source = network.add_input(TensorInfo("x", (1, 3), dtype, quantization=quantization))
    output = network.add_add_layer(source, source, name="y") if doubled else network.add_relu_layer(source, name="y")
    network.set_outputs([output])
    return network


def clipped(dtype: DataType) -> Network:
    """Return a network of one RELU over three elements."""
    return network_of(dtype, doubled=False)


@pytest.mark.parametrize("dtype", [DataType.FLOAT16, DataType.FLOAT32, DataType.INT8], ids=str)
def test_what_rounds_nothing_must_be_equal(dtype: DataType) -> None:
    given = np.full((1, 3), 5, dtype.numpy)
    assert graph_difference(clipped(dtype), [given], [given]) == ""
    wrong = given.copy()
    wrong[0, 1] = 6 if dtype is DataType.INT8 else np.nextafter(given[0, 1], dtype.numpy.type(6))
    said = graph_difference(clipped(dtype), [given], [wrong])
    assert said == f"output 'y' differs in 1 of 3 elements: at [0, 1] it is {wrong[0, 1]}, expected {given[0, 1]}"


def test_what_rounds_is_inside_the_bound_of_its_element() -> None:
    network = network_of(DataType.FLOAT32, doubled=True)
    given = np.array([[1.0, 1e6, 0.5]], np.float32)

    def said(units: int) -> str:
        found = 2 * given
        found[0, 0] += units * 2.0**-22
        return graph_difference(network, [given], [found])

    assert said(8) == ""
    assert said(9).startswith(
        "output 'y' differs in 1 of 3 elements: at [0, 0] it is 2.000002145767212, expected 2.0 within "
    )


def test_nan_and_infinity_equal_themselves_only() -> None:
    network = clipped(DataType.FLOAT32)
    given = np.array([[np.inf, np.nan, 0.0]], np.float32)
    (wanted,) = network.run([given])
    assert graph_difference(network, [given], [wanted]) == ""
    assert graph_difference(network, [given], [np.nan_to_num(wanted)]) != ""


def test_the_reference_of_a_frozen_graph_is_computed_once_for_each_inputs() -> None:
    network, given = clipped(DataType.INT8), np.array([[-1, 0, 1]], np.int8)
    assert reference(network, [given])[0] is not reference(network, [given])[0]
    network.freeze()
    wanted = reference(network, [given])[0]
    assert reference(network, [given.copy()])[0] is wanted
    assert not np.array_equal(reference(network, [given + np.int8(1)])[0].values, wanted.values)
    with pytest.raises(InputError, match="shape"):
        reference(network, [given.reshape(3, 1)])  # the same bytes
