# SPDX-License-Identifier: Apache-2.0
"""The scale stream of an operation: 10 bytes for each output channel."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ferrule.errors import FerruleError

SCALE_BYTES = 10
"""Bytes of one output channel: 40 bits of bias, 32 of scale, 6 of shift, and 2 that are not used."""
Int64 = npt.NDArray[np.int64]


class Scales(NamedTuple):
    """Bias, scale and shift per output channel."""

    bias: Int64
    """Signed, of 40 bits."""
    scale: Int64
    """Unsigned, of 32 bits."""
    shift: Int64
    """0 to 63, to the right."""


def scales(data: bytes | npt.NDArray[np.uint8], channels: int) -> Scales:
    """Return the scales of the first `channels` output channels of a stream; FerruleError if it is too short."""
    if len(data) < SCALE_BYTES * channels:
        raise FerruleError(f"the scale stream has {len(data)} bytes, and {channels} channels need {SCALE_BYTES} each")
    rows = np.frombuffer(data, np.uint8, SCALE_BYTES * channels).reshape(channels, SCALE_BYTES).astype(np.int64)
    bias = (rows[:, :5] << (8 * np.arange(5))).sum(axis=1)
    bias -= (bias >> 39) << 40
    return Scales(bias, (rows[:, 5:9] << (8 * np.arange(4))).sum(axis=1), rows[:, 9] & 63)
