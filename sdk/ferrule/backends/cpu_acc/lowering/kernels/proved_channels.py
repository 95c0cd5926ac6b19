# SPDX-License-Identifier: Apache-2.0
"""Proved constants for kernels that begin each sum with the bias."""

from __future__ import annotations

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernels.int8_channels import Channels, extreme_channel_sums, has_full_range
from ferrule.backends.cpu_acc.lowering.proofs.requantization import proved_channels
from ferrule.graph import Array, Rounding

_SUM_SHIFTS = (8, 7)
"""Weights are widened to 2**8 times their value, or 2**7 times if the bias would not fit into 32 bits otherwise."""


def proved_scales(channels: Channels) -> tuple[Array, Array] | None:
    """Return multiplier and bias of each channel, as the C has them, and which channels have them.

    None if they do not suffice for any channel, or not for all by TFLM's rule.
    """
    if not has_full_range(channels.layer):
        return None
    low, high = extreme_channel_sums(channels)
    zero_point, rule = channels.layer.output.zero_point, channels.rounding
    found, proved = np.zeros((len(low), 2), np.int64), np.zeros(len(low), bool)
    left, count = np.arange(len(low)), 1  # few at first: without one of them, the others need no search
    while left.size:
        some, left = left[:count], left[count:]
        for shift in _SUM_SHIFTS:
            factors = [channels.factors[index] for index in some]
            words, has_one = proved_channels(low[some], high[some], factors, zero_point, rule, sum_shift=shift)
            multipliers, biases = words.astype(np.int64).T
            has_one &= (channels.reach[some] << shift) + np.abs(biases) < 1 << 31
            # the multiplier's highest bit tells the kernel that sums are multiplied by 128, not by 256
            halved = 0 if shift == _SUM_SHIFTS[0] else 1 << 31
            scales = np.stack([multipliers - halved, biases + (channels.bias[some] << shift)], axis=1)
            found[some[has_one]], proved[some[has_one]] = scales[has_one], True
            some = some[~has_one]
        if some.size and rule is Rounding.TFLM:
            return None
        count *= 4
    return found.astype(np.int32), proved
