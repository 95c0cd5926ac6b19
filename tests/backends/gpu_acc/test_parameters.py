# SPDX-License-Identifier: Apache-2.0
"""The structs of parameters.cl, filled without a device."""

from __future__ import annotations

import pytest

from ferrule.backends.gpu_acc.parameters import parameters


def test_members_are_at_their_places_within_32_bits_and_others_are_0() -> None:
    packed = parameters("gather_parameters", items=9, depth=1 << 40, extents=(1, 2, 3, 4, 5, -(1 << 40)))
    assert packed.tolist() == [9, 0, 0, 0, 0, (1 << 31) - 1, 1, 2, 3, 4, 5, -(1 << 31), *[0] * 6]
    with pytest.raises(AttributeError, match="dept"):
        parameters("gather_parameters", dept=1)
