# SPDX-License-Identifier: Apache-2.0
"""The tensors of a class beside the reference: each element is judged by its own bound. The library is not needed."""

from __future__ import annotations

import numpy as np
import pytest

from ferrule import DataType, Network, Quantization, TensorInfo
from ferrule.acl.comparison import TensorComparison, bounded_reference, compare_tensors, overall
from ferrule.codegen.acl import AclArtifact, AclOptions, generate_class
from ferrule.graph import Array
from ferrule.report.document import Verdict

WEIGHTS = np.array([[1e8, 1, 1], [0.25, -0.5, 0.125]], np.float32)
X = np.array([[3, 0.5, -0.25]], np.float32)
INT8 = Quantization.of(0.05, 3)


def dense() -> Network:
    """Return two products: one as large as 3e8, and one below 1."""
    network = Network("dense")
    network.add_input(TensorInfo("x", dtype=DataType.FLOAT32, shape=(1, 3)))
    network.set_outputs([network.add_fully_connected_layer("x", WEIGHTS, name="sums")])
    return network


def made(network: Network, *, float16: bool = False) -> AclArtifact:
    return generate_class(network, target="arm-cpu-c++", name="Net", options=AclOptions(float16=float16))


def judged(
    network: Network, artifact: AclArtifact, inputs: dict[str, Array], found: dict[str, Array], *, stepwise: bool = True
) -> tuple[TensorComparison, ...]:
    expected = bounded_reference(network, artifact.record, inputs, stepwise=stepwise)
    return compare_tensors(network, artifact.record, found, expected)


def off(by: float) -> Verdict:
    (wanted,) = dense().run([X])
    found = wanted.copy()
    found[0, 1] += np.float32(by)
    (each,) = judged(dense(), made(dense()), {"x": X}, {"sums": found})
    assert each.elements == 2
    assert each.outside == (each.verdict is Verdict.DIFFERENT)
    return each.verdict


@pytest.mark.parametrize(
    ("by", "verdict"),
    [(0, Verdict.EXACT), (2e-7, Verdict.WITHIN_BOUND), (3e-6, Verdict.DIFFERENT), (-0.7, Verdict.DIFFERENT)],
)
def test_a_small_element_beside_a_large_one_is_judged_alone(by: float, verdict: Verdict) -> None:
    """All are far below a part of the largest element, which is 3e8."""
    assert off(by) is verdict


def test_chained_bounds_include_what_came_before() -> None:
    network = dense()
    network.set_outputs([network.add_mul_layer("sums", "sums", name="squares")])
    artifact = made(network)
    reference = bounded_reference(network, artifact.record, {"x": X})
    squares = reference["squares"].values.copy()
    squares[0, 1] *= np.float32(1 + 4e-6)
    found = {"sums": reference["sums"].values, "squares": squares}
    assert overall(judged(network, artifact, {"x": X}, found)) is Verdict.DIFFERENT
    assert overall(judged(network, artifact, {"x": X}, found, stepwise=False)) is Verdict.WITHIN_BOUND


@pytest.mark.parametrize(("by", "verdict"), [(2.0**-10, Verdict.WITHIN_BOUND), (2.0**-3, Verdict.DIFFERENT)])
def test_float16_has_its_own_unit(by: float, verdict: Verdict) -> None:
    network = Network("half")
    network.add_input(TensorInfo("x", dtype=DataType.FLOAT32, shape=(1, 3)))
    network.set_outputs([network.add_mul_layer("x", "x", name="y")])
    artifact = made(network, float16=True)
    expected = bounded_reference(network, artifact.record, {"x": X})
    found = (expected["y"].values * np.float32(1 + by)).astype(np.float16)
    (each,) = compare_tensors(network, artifact.record, {"y": found}, expected)
    assert each.verdict is verdict


def int8_network(*, moves: bool) -> Network:
    network = Network("int8")
    network.add_input(TensorInfo("x", dtype=DataType.INT8, shape=(1, 4), quantization=INT8))
    if moves:
        network.set_outputs([network.add_reshape_layer("x", (2, 2), name="y")])
    else:
        network.set_outputs([network.add_add_layer("x", "x", quantization=Quantization.of(0.1), name="y")])
    return network


@pytest.mark.parametrize(
    ("moves", "steps", "verdict"),
    [
        (False, 1, Verdict.WITHIN_BOUND),
        (False, 2, Verdict.DIFFERENT),
        (True, 0, Verdict.EXACT),
        (True, 1, Verdict.DIFFERENT),
    ],
)
def test_an_int8_element_may_be_one_step_off_where_something_is_rounded(
    moves: bool, steps: int, verdict: Verdict
) -> None:
    network = int8_network(moves=moves)
    x = np.array([[-100, 5, 17, 99]], np.int8)
    found = network.run([x])[0].copy()
    found.ravel()[2] += steps
    (each,) = judged(network, made(network), {"x": x}, {"y": found})
    assert each.verdict is verdict
    assert each.difference == steps


def test_nan_on_both_sides_compares_nothing() -> None:
    nan = np.full((1, 3), np.nan, np.float32)
    network = dense()
    found = network.run([nan])[0]
    (each,) = judged(network, made(network), {"x": nan}, {"sums": found})
    assert each.verdict is Verdict.NOTHING_COMPARED
    (each,) = judged(network, made(network), {"x": nan}, {"sums": np.zeros_like(found)})
    assert each.verdict is Verdict.DIFFERENT
    assert each.difference is None


@pytest.mark.parametrize("odd", [np.inf, -np.inf])
def test_a_difference_without_a_number_has_none(odd: float) -> None:
    (each,) = judged(dense(), made(dense()), {"x": X}, {"sums": np.array([[3e8, odd]], np.float32)})
    assert (each.verdict, each.difference) == (Verdict.DIFFERENT, None)


@pytest.mark.parametrize(
    ("size", "aligned", "steps"),
    [
        ((6, 8), False, 1),  # twice as large: the scale has 10 bits
        ((14, 4), True, 2),  # 2/13 is 158/1024, and the last place is 0.0059 pixels away
        ((14, 14), True, 3),  # 3/13 is 236/1024: 0.0039 pixels on the other axis
    ],
)
def test_bilinear_places_of_ten_bits(size: tuple[int, int], aligned: bool, steps: int) -> None:
    """255 times the distances of both axes, and one for the two roundings."""
    network = Network("resized")
    network.add_input(TensorInfo("x", dtype=DataType.INT8, shape=(1, 3, 4, 1), quantization=INT8))
    network.set_outputs([network.add_resize_bilinear_layer("x", size, align_corners=aligned, name="y")])
    x = np.full((1, 3, 4, 1), 5, np.int8)
    for by, verdict in ((steps, Verdict.WITHIN_BOUND), (steps + 1, Verdict.DIFFERENT)):
        found = np.full((1, *size, 1), 5 + by, np.int8)
        (each,) = judged(network, made(network), {"x": x}, {"y": found})
        assert each.verdict is verdict
