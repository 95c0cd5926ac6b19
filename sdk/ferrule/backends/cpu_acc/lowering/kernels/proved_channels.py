# SPDX-License-Identifier: Apache-2.0
"""Proved constants for kernels that begin each sum with the bias."""

from __future__ import annotations

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernels.int8_channels import Channels, extreme_channel_sums, has_full_range
from ferrule.backends.cpu_acc.lowering.proofs.requantization import proved_words
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
    found, proved = np.zeros((len(low), 2), np.int64), np.ones(len(low), bool)
    for index, factor in enumerate(channels.factors):
        one = slice(index, index + 1)
        for shift in _SUM_SHIFTS:
            zero_point, rule = channels.layer.output.zero_point, channels.rounding
            words = proved_words(low[one], high[one], [factor], zero_point, rule, sum_shift=shift)
            if words is not None and (int(channels.reach[index]) << shift) + abs(int(words[0, 1])) < 1 << 31:
                # the multiplier's highest bit tells the kernel that sums are multiplied by 128, not by 256
                halved = 0 if shift == _SUM_SHIFTS[0] else 1 << 31
                found[index] = int(words[0, 0]) - halved, int(words[0, 1]) + (int(channels.bias[index]) << shift)
                break
        else:
            if channels.rounding is Rounding.TFLM:
                return None
            proved[index] = False
    return found.astype(np.int32), proved
