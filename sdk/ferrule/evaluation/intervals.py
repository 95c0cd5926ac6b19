# SPDX-License-Identifier: Apache-2.0
"""Confidence intervals of metrics."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import FerruleError
from ferrule.graph import Array

RESAMPLES = 1000
"""Resamples of a bootstrap."""
_CELLS = 1 << 22
"""The most counts of one batch of resamples: 32 MiB."""

Statistic = Callable[[Array], Array]
"""From counts, a row per resample and a column per sample, to one value per resample; NaN where it is undefined."""


class Interval(NamedTuple):
    """A confidence interval; the ends are None if there is none."""

    low: float | None
    high: float | None
    method: str


@frozen
class Confidence:
    """How confidence intervals are computed; FerruleError unless the level lies between 0 and 1."""

    level: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0.0 < self.level < 1.0:
            raise FerruleError(f"the confidence level is {self.level:g}, expected one between 0 and 1, such as 0.95")


PLAIN = Confidence()
"""The usual level and seed."""


def wilson(successes: int, trials: int, confidence: Confidence = PLAIN) -> Interval:
    """Return the score interval of a share of successes (E. B. Wilson, JASA 22, 1927); no ends without trials."""
    if not trials:
        return Interval(None, None, "Wilson")
    z = NormalDist().inv_cdf((1.0 + confidence.level) / 2.0)
    share, weight = successes / trials, z * z / trials
    middle = share + weight / 2.0
    spread = z * math.sqrt(share * (1.0 - share) / trials + weight / (4.0 * trials))
    low = 0.0 if successes == 0 else (middle - spread) / (1.0 + weight)
    high = 1.0 if successes == trials else (middle + spread) / (1.0 + weight)
    return Interval(low, high, "Wilson")


def bootstrap(
    statistic: Statistic, samples: int, confidence: Confidence = PLAIN, *, resamples: int = RESAMPLES
) -> Interval:
    """Return the percentile interval of a statistic over resamples with replacement (B. Efron, 1979).

    The same seed gives the same interval on every machine. Resamples for which the statistic is undefined are left
    out, and the method states their number.
    """
    method = f"bootstrap, {resamples:,} resamples, seed {confidence.seed}"
    if not samples:
        return Interval(None, None, method)
    values = np.concatenate([statistic(counts) for counts in _resampled(samples, resamples, confidence.seed)])
    known = values[~np.isnan(values)]
    if known.size < resamples:
        method = f"{method}, {resamples - known.size:,} of them undefined"
    if not known.size:
        return Interval(None, None, method)
    low, high = np.quantile(known, ((1.0 - confidence.level) / 2.0, (1.0 + confidence.level) / 2.0))
    return Interval(float(low), float(high), method)


def _resampled(samples: int, resamples: int, seed: int) -> Iterator[Array]:
    """Yield how often each sample occurs in each resample, in batches of limited size."""
    random = np.random.default_rng(seed)
    batch = max(1, _CELLS // samples)
    for start in range(0, resamples, batch):
        rows = min(batch, resamples - start)
        counts = np.empty((rows, samples))
        for row in range(rows):  # row by row, so that the batches' size does not change the draws
            counts[row] = np.bincount(random.integers(0, samples, samples), minlength=samples)
        yield counts
