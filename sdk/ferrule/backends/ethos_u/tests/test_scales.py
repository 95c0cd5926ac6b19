# SPDX-License-Identifier: Apache-2.0
"""The scale stream: limits of each field, and a stream that is too short."""

from __future__ import annotations

import numpy as np
import pytest

from ferrule.backends.ethos_u.weights import SCALE_BYTES, scales
from ferrule.errors import FerruleError

ROWS = [(0, 0, 0), ((1 << 39) - 1, (1 << 32) - 1, 63), (-(1 << 39), 0x8000_0001, 31), (-1, 1, 1), (12345, 1 << 30, 38)]


def stream() -> bytes:
    return b"".join(
        bias.to_bytes(5, "little", signed=True) + scale.to_bytes(4, "little") + bytes([shift | 0xC0])
        for bias, scale, shift in ROWS
    )


def test_fields_and_their_limits() -> None:
    found = scales(stream(), len(ROWS))
    assert list(zip(*(column.tolist() for column in found), strict=True)) == ROWS
    assert {column.dtype for column in found} == {np.dtype(np.int64)}


def test_what_follows_is_not_read() -> None:
    found = scales(np.frombuffer(stream() + b"more", np.uint8), 2)
    assert found.bias.tolist() == [0, (1 << 39) - 1]


def test_a_short_stream_is_refused() -> None:
    with pytest.raises(FerruleError, match=f"has 49 bytes, and 5 channels need {SCALE_BYTES} each"):
        scales(stream()[:-1], len(ROWS))
