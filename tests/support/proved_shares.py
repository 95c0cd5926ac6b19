# SPDX-License-Identifier: Apache-2.0
"""The share of factors for which one multiplication is proved equal to a rule of rounding for every sum."""

from __future__ import annotations

import math

import numpy as np

from ferrule.backends.cpu_acc.lowering.proofs.requantization import proved_words
from ferrule.graph import Rounding
from ferrule.operators.arithmetic.fixed_point import Factor

CHANNELS, LAYERS = 16, 10
LARGEST = 512
"""The largest magnitude of a sum, in stored values."""


def share(exponent: int, rule: Rounding, zero_point: int) -> tuple[float, float]:
    """Return the share of channels and of layers, for random float32 factors from 2**(exponent - 1) to 2**exponent."""
    random = np.random.default_rng(exponent + 100)
    proved = np.zeros((LAYERS, CHANNELS), bool)
    for index in np.ndindex(*proved.shape):
        factor = Factor(multiplier=int(random.integers(1 << 23, 1 << 24)) << 7, shift=exponent)
        reach = np.array([round(LARGEST * 2.0**31 / math.ldexp(factor.multiplier, exponent))])
        proved[index] = proved_words(-reach, reach, [factor], zero_point, rule) is not None
    return float(proved.mean()), float(proved.all(axis=1).mean())
