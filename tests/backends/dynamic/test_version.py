# SPDX-License-Identifier: Apache-2.0
"""The version rule: the table in Arm NN's guide, row by row."""

from __future__ import annotations

import pytest

from ferrule.backends.dynamic.abi import API_VERSION
from ferrule.backends.version import ApiVersion

GUIDE = [
    ((2, 4), (2, 4), True),
    ((2, 1), (2, 4), True),
    ((2, 5), (2, 4), False),
    ((2, 0), (1, 0), False),
    ((2, 0), (3, 0), False),
]
SUITE = [
    ((2, 3), (2, 4), True),
    ((1, 4), (2, 4), False),
    ((3, 4), (2, 4), False),
]


@pytest.mark.parametrize(("backend", "api", "taken"), GUIDE + SUITE)
def test_rule(backend: tuple[int, int], api: tuple[int, int], *, taken: bool) -> None:
    assert ApiVersion(*api).takes(ApiVersion(*backend)) is taken


@pytest.mark.parametrize("backend", [(0, 0), (0, 7), (1, 4), (2, 0)])
def test_versions_that_this_api_refuses(backend: tuple[int, int]) -> None:
    assert not ApiVersion(*API_VERSION).takes(ApiVersion(*backend))
