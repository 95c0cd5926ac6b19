# SPDX-License-Identifier: Apache-2.0
"""The bounds of floats: they hold, they belong to their element, and they are not far above the errors."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ferrule import Network
from ferrule.graph import Array, DataType, Graph, LayerType, TensorInfo
from ferrule.network.bounds import outside, run_bounded
from ferrule.network.execution import run_graph
from ferrule.operators.arithmetic import running_error
from ferrule.operators.arithmetic.running_error import Bounded
from ferrule.operators.operator import OTHER_CODE, OWN_CODE
from ferrule.testing.backends.comparison import random_inputs
from ferrule.testing.backends.layer_cases import LAYER_TYPES
from ferrule.testing.backends.layers import shared_case


def cases(dtype: DataType) -> list[Graph]:
    """Return a graph of one layer for each operator that takes a float type, and each seed."""
    drawn = [shared_case(type_, dtype, seed) for type_ in LAYER_TYPES for seed in range(6)]
    return [graph for graph, refusal in drawn if not refusal]


FLOATS = cases(DataType.FLOAT32)
HALVES = cases(DataType.FLOAT16)


def moved(array: Array, error: Array, generator: np.random.Generator) -> Array:
    """Return an array with each element somewhere in its interval, often at an end."""
    share = np.clip(generator.uniform(-2, 2, array.shape), -1, 1)
    found = (array + share * error).astype(array.dtype)
    return np.where(np.abs(found.astype(np.float64) - array) <= error, found, array)


@pytest.mark.parametrize("type_", sorted({graph.layers[0].type for graph in FLOATS}), ids=str)
def test_results_of_moved_inputs_are_inside(type_: LayerType) -> None:
    for graph in (graph for graph in (*FLOATS, *HALVES) if graph.layers[0].type is type_):
        check_moved(graph)


def check_moved(graph: Graph) -> None:
    """Compare results for inputs inside intervals with the bounds for these intervals."""
    generator = np.random.default_rng(5)
    inputs = random_inputs(graph, 3)
    errors = [
        np.where(generator.random(array.shape) < 0.7, generator.choice([1e-6, 1e-3, 0.1]), 0.0) * np.abs(array)
        if array.dtype.kind == "f"
        else None
        for array in inputs
    ]
    pairs = zip(graph.inputs, inputs, errors, strict=True)
    sources = {info.name: Bounded(array, error) for info, array, error in pairs}
    wanted = running_error.execute(graph, sources, OTHER_CODE)
    for _ in range(8):
        given = zip(inputs, errors, strict=True)
        others = [array if error is None else moved(array, error, generator) for array, error in given]
        for found, bounded in zip(run_graph(graph, others), wanted, strict=True):
            known = np.isfinite(np.zeros(found.shape) if bounded.error is None else bounded.error)
            assert not (outside(found, bounded) & known).any(), graph.name


def test_every_operator_of_floats_knows_a_bound_for_equal_inputs() -> None:
    for graph in (*FLOATS, *HALVES):
        for bounded in run_bounded(graph, random_inputs(graph, 3), arithmetic=OWN_CODE):
            known = True if bounded.error is None else np.isfinite(bounded.error)
            assert np.all(known | ~np.isfinite(bounded.values)), graph.name


def test_what_moves_values_has_no_error() -> None:
    moving = (LayerType.RESHAPE, LayerType.TRANSPOSE, LayerType.MAX_POOL_2D, LayerType.RELU, LayerType.CONCATENATION)
    for graph in (graph for graph in FLOATS if graph.layers[0].type in moving):
        for bounded in run_bounded(graph, random_inputs(graph, 3), arithmetic=OTHER_CODE):
            assert bounded.error is None, graph.name


def product(weights: Array) -> Network:
    network = Network("product")
    dtype = DataType(weights.dtype.name)
    given = network.add_input(TensorInfo("x", (1, weights.shape[1]), dtype))
    network.set_outputs([network.add_fully_connected_layer(given, weights, name="y")])
    return network


def test_a_bound_does_not_depend_on_other_elements() -> None:
    generator = np.random.default_rng(1)
    weights = generator.standard_normal((4, 4)).astype(np.float32)
    given = [generator.standard_normal((1, 4)).astype(np.float32)]
    (plain,) = run_bounded(product(weights), given, arithmetic=OWN_CODE)
    weights[0] *= 1e8
    (beside,) = run_bounded(product(weights), given, arithmetic=OWN_CODE)
    assert plain.error is not None
    assert beside.error is not None
    assert_array_equal(beside.error[0, 1:], plain.error[0, 1:])
    assert beside.error[0, 0] > 1e7 * plain.error[0, 0]


def test_a_sum_is_bound_by_its_magnitudes_and_terms() -> None:
    weights, given = np.array([[1, -1, 0.5]], np.float32), np.array([[3, 3, 2]], np.float32)
    (found,) = run_bounded(product(weights), [given], arithmetic=OWN_CODE)
    assert found.error is not None
    assert 3 * 7 * 2.0**-24 <= found.error[0, 0] <= 7 * 7 * 2.0**-24  # three terms, of magnitude 7 together


@pytest.mark.parametrize("kind", ["mean", "average_pool_2d"])
def test_a_mean_has_no_bound_where_its_sum_overflows(kind: str) -> None:
    network = Network("mean")
    source = network.add_input(TensorInfo("x", (1, 1, 2, 2), DataType.FLOAT32))
    output = (
        network.add_mean_layer(source, (1, 2)) if kind == "mean" else network.add_average_pool2d_layer(source, (1, 2))
    )
    network.set_outputs([output])
    largest = np.finfo(np.float32).max
    given = np.array([0.75, 0.3, 0.75, -0.3], np.float32).reshape(1, 1, 2, 2) * largest
    (found,) = run_bounded(network, [given], arithmetic=OWN_CODE)
    assert found.error is not None
    overflowing, fitting = found.error.reshape(2)
    assert overflowing == np.inf
    assert fitting < 1e-5 * largest


def test_a_sum_of_float16_is_bound_by_its_rounding_to_float16() -> None:
    """The sum 1 + 2**-11 + 2**-30 is rounded to 1 by way of float32, and to 1 + 2**-10 at once."""
    weights, given = np.ones((1, 3), np.float16), np.array([[1, 2.0**-11, 2.0**-15]], np.float16)
    weights[0, 2] = 2.0**-15
    (found,) = run_bounded(product(weights), [given], arithmetic=OWN_CODE)
    assert found.values.tolist() == [[1]]
    assert not outside(np.array([[1 + 2.0**-10]], np.float16), found).any()
    assert outside(np.array([[1 + 2.0**-8]], np.float16), found).all()


def test_infinite_and_unknown_bounds_ask_for_equality() -> None:
    values = np.array([1, np.nan, np.inf, 2], np.float32)
    wanted = Bounded(values, np.array([np.inf, np.inf, 1, 0.5]))
    assert outside(values, wanted).tolist() == [False] * 4
    found = np.array([1.5, 1, 3, 2.25], np.float32)
    assert outside(found, wanted).tolist() == [True, True, True, False]
