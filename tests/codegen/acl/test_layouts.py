# SPDX-License-Identifier: Apache-2.0
"""Where elements lie in the Arm Compute Library, simulated with numpy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ferrule.codegen.acl.layouts import (
    PIXELS_TO_PLANES,
    PLANES_TO_PIXELS,
    dimension_of,
    dimensions,
    is_moved,
    order,
    permutation,
    pixels,
    stored,
)

SHAPES = [(), (3,), (2, 3), (2, 3, 4), (2, 3, 4, 5), (1, 1, 4, 5), (2, 3, 4, 1), (2, 3, 4, 5, 6)]


def permuted(values: NDArray[Any], vector: tuple[int, ...]) -> NDArray[Any]:
    """Return what CLPermute makes: dimension i, counted from the innermost, is dimension `vector[i]` of the source."""
    rank = values.ndim
    complete = (*vector, *range(len(vector), rank))
    axes = [rank - 1 - complete[rank - 1 - axis] for axis in range(rank)]
    return np.ascontiguousarray(values.transpose(axes))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_stored_elements_have_the_described_dimensions(shape: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    there = stored(values)
    assert tuple(reversed(there.shape)) == dimensions(shape)
    assert is_moved(shape) == (not np.array_equal(there.ravel(), values.ravel()))
    for axis in range(len(shape)):
        assert dimensions(shape)[dimension_of(axis, len(shape))] == shape[axis]


@pytest.mark.parametrize("rank", [2, 3, 4])
def test_a_transpose_becomes_the_permutation_vector_with_the_same_effect(rank: int) -> None:
    source = np.arange(np.prod(range(2, 2 + rank))).reshape(tuple(range(2, 2 + rank)))
    for axes in itertools.permutations(range(rank)):
        wanted = stored(np.ascontiguousarray(source.transpose(axes)))
        assert np.array_equal(permuted(stored(source), permutation(axes)), wanted), axes


def test_planes_become_pixels_and_come_back() -> None:
    image = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    there = permuted(stored(image), PLANES_TO_PIXELS)
    assert np.array_equal(there.ravel(), image.ravel())
    assert tuple(reversed(there.shape)) == pixels(image.shape)
    assert np.array_equal(permuted(there, PIXELS_TO_PLANES), stored(image))


def test_an_order_names_every_axis_once() -> None:
    for rank in range(7):
        assert sorted(order(rank)) == list(range(rank))
