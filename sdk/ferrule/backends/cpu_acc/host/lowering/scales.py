# SPDX-License-Identifier: Apache-2.0
"""What turns sums into stored values, per output channel: biases and the factors of ferrule_requantize."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ferrule.backends.cpu_acc.host.instruction_set import InstructionSet
from ferrule.backends.firmware import LoweringContext
from ferrule.graph import Array
from ferrule.operators.fixed_point import wrap_int32
from ferrule.operators.weighted import Factor

_UNSIGNED_OFFSET = 128


def int8_scales(
    context: LoweringContext, matrix: Array, channel_factors: Sequence[Factor], instructions: InstructionSet
) -> Array:
    """Return bias, multiplier, left and right shift as int32 [4, channels]; `matrix` is [channels, products]."""
    bias = np.zeros(len(matrix), np.int64)
    given = context.constant(2)
    if given is not None:
        bias += given.reshape(-1)
    if instructions.unsigned:
        # Sums are over x + 128 where they should be over x - zero point; they are exact modulo 2**32.
        bias -= (context.input(0).zero_point + _UNSIGNED_OFFSET) * matrix.sum(axis=1, dtype=np.int64)
    shifts = np.array([factor.shift for factor in channel_factors], np.int64)
    rows = (
        wrap_int32(bias),
        np.array([factor.multiplier for factor in channel_factors], np.int64),
        np.maximum(shifts, 0),
        np.maximum(-shifts, 0),
    )
    return np.stack(rows).astype(np.int32)


def float_bias(context: LoweringContext, channels: int) -> Array:
    """Return the bias as float32 [1, channels]."""
    given = context.constant(2)
    return np.zeros((1, channels), np.float32) if given is None else given.reshape(1, -1).astype(np.float32)
