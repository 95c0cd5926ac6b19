# SPDX-License-Identifier: Apache-2.0
"""Confidence intervals against published values, their defining equations and a bootstrap without vectors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.errors import FerruleError
from ferrule.evaluation import intervals
from ferrule.evaluation.intervals import Confidence, bootstrap, wilson
from ferrule.graph import Array


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        (5, 10, 0.2366, 0.7634),
        (0, 10, 0.0, 0.2775),
        (1, 10, 0.0179, 0.4042),
        (81, 263, 0.2553, 0.3662),  # Newcombe, Statistics in Medicine 17, 1998, table I, method 3
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_gives_published_intervals(successes: int, trials: int, low: float, high: float) -> None:
    found = wilson(successes, trials)
    assert (found.low, found.high) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))
    assert found.method == "Wilson"


@given(st.integers(1, 100_000), st.data(), st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_the_score_at_the_ends_of_wilsons_interval_is_the_quantile(
    trials: int, data: st.DataObject, level: float
) -> None:
    successes = data.draw(st.integers(0, trials))
    low, high, _ = wilson(successes, trials, Confidence(level=level))
    quantile = {0.5: 0.674490, 0.9: 1.644854, 0.95: 1.959964, 0.999: 3.290527}[level]
    share = successes / trials
    assert low is not None
    assert high is not None
    assert 0.0 <= low <= share <= high <= 1.0
    for end, limit in ((low, 0), (high, trials)):
        if successes != limit:
            assert abs(share - end) / math.sqrt(end * (1 - end) / trials) == pytest.approx(quantile, rel=1e-4)


def test_no_trials_have_no_interval() -> None:
    assert wilson(0, 0)[:2] == (None, None)
    assert bootstrap(lambda counts: counts[:, 0], 0)[:2] == (None, None)


def _weighted_mean(values: Array) -> intervals.Statistic:
    return lambda counts: counts @ values / len(values)


def test_the_bootstrap_equals_one_that_draws_samples() -> None:
    values = np.random.default_rng(3).normal(size=37)
    random = np.random.default_rng(11)
    means = [values[random.integers(0, 37, 37)].mean() for _ in range(200)]
    found = bootstrap(_weighted_mean(values), 37, Confidence(level=0.9, seed=11), resamples=200)
    assert found.low == pytest.approx(np.quantile(means, 0.05))
    assert found.high == pytest.approx(np.quantile(means, 0.95))
    assert found.method == "bootstrap, 200 resamples, seed 11"


def test_batches_do_not_change_a_bootstrap(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(4).normal(size=50)
    whole = bootstrap(_weighted_mean(values), 50)
    monkeypatch.setattr(intervals, "_CELLS", 7 * 50)
    assert bootstrap(_weighted_mean(values), 50) == pytest.approx(whole)


def test_the_bootstrap_of_a_mean_is_near_the_normal_interval() -> None:
    values = np.random.default_rng(5).normal(2.0, 3.0, size=2000)
    found = bootstrap(_weighted_mean(values), 2000)
    error = values.std(ddof=1) / math.sqrt(2000)
    assert found.low == pytest.approx(values.mean() - 1.96 * error, abs=0.2 * error)
    assert found.high == pytest.approx(values.mean() + 1.96 * error, abs=0.2 * error)


def test_undefined_resamples_are_left_out_and_counted() -> None:
    def first(counts: Array) -> Array:
        return np.where(counts[:, 0] > 0, 1.0, np.nan)

    found = bootstrap(first, 3, resamples=100)
    assert (found.low, found.high) == (1.0, 1.0)
    assert "of them undefined" in found.method
    assert bootstrap(lambda counts: np.full(len(counts), np.nan), 3)[:2] == (None, None)


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0, float("nan")])
def test_a_level_that_is_no_probability(level: float) -> None:
    with pytest.raises(FerruleError, match=r"expected one between 0 and 1, such as 0\.95"):
        Confidence(level=level)
