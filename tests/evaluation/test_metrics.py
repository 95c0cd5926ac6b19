# SPDX-License-Identifier: Apache-2.0
"""Metrics against definitions that are written out: pairs of samples, sorted scores, loops."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.errors import FerruleError, InputError
from ferrule.evaluation.intervals import PLAIN
from ferrule.evaluation.metrics import (
    METRICS,
    Scored,
    auc,
    check_metric,
    confusion,
    default_metrics,
    label_parts,
    parse_limit,
    ranking,
)
from ferrule.evaluation.scoring import worst_samples
from ferrule.graph import Array


def scored(scores: object, labels: object) -> Scored:
    return Scored(scores=np.asarray(scores, np.float32), labels=np.asarray(labels))


def drawn(seed: int, samples: int = 60, classes: int = 7) -> Scored:
    """Return scores of few distinct values, so that many are equal."""
    random = np.random.default_rng(seed)
    return scored(random.integers(0, 6, (samples, classes)) / 4, random.integers(0, classes, samples))


def by_pairs(scores: Array, positive: Array) -> float:
    pairs = list(itertools.product(scores[positive], scores[~positive]))
    return sum(1.0 if one > other else 0.5 if one == other else 0.0 for one, other in pairs) / len(pairs)


@given(st.integers(0, 1000))
def test_the_area_is_the_share_of_pairs_in_order(seed: int) -> None:
    given_ = drawn(seed)
    positive = given_.labels == 2
    if positive.any() and not positive.all():
        counts = np.random.default_rng(seed).integers(0, 3, (2, 60))
        counts[0] = 1
        counts[1, np.flatnonzero(positive)[0]] = counts[1, np.flatnonzero(~positive)[0]] = 1
        found = ranking(given_.scores[:, 2], positive)(counts)
        for row, area in zip(counts, found, strict=True):
            repeated = np.repeat(np.arange(60), row)
            assert area == pytest.approx(by_pairs(given_.scores[repeated, 2], positive[repeated]))


def test_the_area_of_known_scores() -> None:
    # the example of scikit-learn's documentation of roc_auc_score's function roc_curve
    found = auc(scored([[0.1], [0.4], [0.35], [0.8]], [0, 0, 1, 1]), PLAIN)
    assert found.value == 0.75
    assert found.low is not None
    assert found.high is not None
    assert found.low <= 0.75 <= found.high == 1.0
    assert found.note == ""


def test_the_area_of_two_columns_is_that_of_class_1() -> None:
    column = np.random.default_rng(0).random(30)
    labels = np.arange(30) % 2
    one = auc(scored(column[:, None], labels), PLAIN)
    for other in (1 - column, np.zeros(30)):
        two = auc(scored(np.stack([other, column], axis=1), labels), PLAIN)
        assert (two.value, two.note) == (one.value, "")


def test_the_area_of_many_classes_is_the_mean_of_each_against_the_rest() -> None:
    given_ = drawn(1)
    areas = [by_pairs(given_.scores[:, index], given_.labels == index) for index in range(7)]
    found = auc(given_, PLAIN)
    assert found.value == pytest.approx(np.mean(areas))
    assert found.note == "mean over classes, one against the rest"


def test_classes_without_samples_are_left_out_of_the_area() -> None:
    given_ = drawn(2)
    few = scored(given_.scores, given_.labels % 3)
    areas = [by_pairs(few.scores[:, index], few.labels == index) for index in range(3)]
    found = auc(few, PLAIN)
    assert found.value == pytest.approx(np.mean(areas))
    assert found.note.endswith("4 class(es) without samples left out")
    single = auc(scored(given_.scores, np.zeros(60, int)), PLAIN)
    assert (single.value, single.note) == (None, "all samples have the same label")


@pytest.mark.parametrize("name", ["accuracy", "top5", "auc"])
def test_scores_that_are_not_numbers_have_no_order(name: str) -> None:
    given_ = drawn(3)
    given_.scores[7, 2] = np.nan
    found = METRICS[name](given_, PLAIN)
    assert (found.value, found.low) == (None, None)
    assert found.note == "1 of 60 samples have a score that is not a number (NaN), the first is '7'"


def test_the_worst_samples_are_those_without_finite_scores() -> None:
    labels = np.array([[1.0], [1.0], [1.0]], np.float32)
    found = worst_samples(scored([[3.0], [np.nan], [1.5]], labels), (), "abc", 3)
    assert [(part.name, part.score) for part in found] == [("b", None), ("a", 2.0), ("c", 0.5)]
    found = worst_samples(scored([[3.0, 1.0], [0.0, np.inf], [1.0, 3.0]], [1, 0, 0]), (), "abc", 3)
    assert [(part.name, part.score) for part in found] == [("b", None), ("a", 2.0), ("c", 2.0)]


def test_resamples_that_lack_a_rare_class_count_the_others() -> None:
    """A third of all resamples lack class 2, and the interval must not be of the others alone."""
    random = np.random.default_rng(0)
    labels = np.array([*([0, 1] * 20), 2])
    scores = random.random((41, 3))
    found = auc(scored(scores, labels), PLAIN)
    assert found.method == "bootstrap, 1,000 resamples, seed 0"
    areas = []
    random = np.random.default_rng(0)
    for _ in range(1000):
        drawn_ = random.integers(0, 41, 41)
        known = [by_pairs(scores[drawn_, index], labels[drawn_] == index) for index in set(labels[drawn_])]
        areas.append(np.mean(known))
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(areas, (0.025, 0.975))))


@given(st.integers(0, 1000))
def test_accuracy_and_top5_count_sorted_scores(seed: int) -> None:
    given_ = drawn(seed)
    ranked = [sorted(range(7), key=lambda index: (-row[index], index)) for row in given_.scores]
    for name, size in (("accuracy", 1), ("top5", 5)):
        hits = sum(label in order[:size] for order, label in zip(ranked, given_.labels, strict=True))
        assert METRICS[name](given_, PLAIN).value == hits / 60


def test_top5_needs_more_than_five_classes() -> None:
    few, enough = (METRICS["top5"](scored(np.zeros((2, count)), [4, count - 1]), PLAIN) for count in (5, 6))
    assert (few.value, few.note) == (None, "the model has only 5 classes")
    assert (enough.value, enough.note) == (0.5, "")


def test_one_score_chooses_between_two_classes() -> None:
    given_ = scored([[0.49], [0.5], [0.9], [0.1]], [0, 1, 0, 0])
    assert given_.predicted().tolist() == [0, 1, 1, 0]
    assert METRICS["accuracy"](given_, PLAIN).value == 0.75
    few = METRICS["top5"](given_, PLAIN)
    assert (few.value, few.note) == (None, "the model has only 2 classes")


def test_errors_of_real_values() -> None:
    given_ = scored([[1.0, 2.0], [3.0, -4.0]], [[1.5, 2.0], [1.0, -4.0]])
    absolute, squared = METRICS["mae"](given_, PLAIN), METRICS["mse"](given_, PLAIN)
    assert (absolute.value, squared.value) == (0.625, 1.0625)
    assert (absolute.better, squared.better) == ("lower", "lower")
    assert (absolute.low, absolute.high) == (0.25, 1.0)  # the means of a sample drawn twice
    assert default_metrics(given_) == ("mae", "mse")
    infinite = METRICS["mse"](scored([[np.inf]], [[1.0]]), PLAIN)
    assert (infinite.value, infinite.note) == (None, "a sample's value is not finite")


def test_recall_precision_and_confusion() -> None:
    given_ = scored(np.eye(4)[[0, 0, 1, 1, 3]], [0, 1, 1, 1, 0])
    labels = label_parts(given_, ("cat", "dog"))
    assert [(each.label, each.samples, each.recall, each.precision) for each in labels] == [
        ("cat", 2, 0.5, 0.5),
        ("dog", 3, pytest.approx(2 / 3), 1.0),
        ("3", 0, None, 0.0),
    ]
    table = confusion(given_, ("cat", "dog"))
    assert table.labels == ("cat", "dog", "3")
    assert table.counts == ((1, 0, 1), (1, 2, 0), (0, 0, 0))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 7, 1], "sample 'b' has label 7, expected 0 to 2"),
        ([2, 3, 1], "sample 'b' has label 3, expected 0 to 2"),
        ([0, -1, 1], "sample 'b' has label -1, expected 0 to 2"),
        ([0.5, 1.0, 2.0], r"the labels are float64\[3\], expected one whole number per sample"),
    ],
)
def test_labels_that_are_no_classes(labels: list[float], message: str) -> None:
    given_ = Scored(scores=np.zeros((3, 3), np.float32), labels=np.asarray(labels), names=("a", "b", "c"))
    with pytest.raises(InputError, match=message):
        METRICS["accuracy"](given_, PLAIN)


def test_targets_of_another_size() -> None:
    with pytest.raises(InputError, match=r"the labels have 1 value\(s\) per sample, expected 3") as caught:
        METRICS["mae"](scored(np.zeros((3, 3)), [1.0, 2.0, 3.0]), PLAIN)
    assert (
        caught.value.hint
        == "class numbers are integers: labels.astype(int); the metrics are accuracy, top5 and auc then"
    )


def test_targets_of_one_value_are_no_classes() -> None:
    with pytest.raises(InputError, match=r"the labels have 2 value\(s\) per sample, expected 1") as caught:
        METRICS["mae"](scored([[0.5]], [[1.0, 2.0]]), PLAIN)
    assert caught.value.hint is None


@pytest.mark.parametrize("name", ["accuracy", "confusion", "own.py:function"])
def test_metrics_that_exist_or_are_the_users(name: str) -> None:
    check_metric(name)


def test_unknown_metrics_and_malformed_limits() -> None:
    with pytest.raises(FerruleError, match="there is no metric 'acuracy'") as caught:
        check_metric("acuracy")
    assert caught.value.hint == "did you mean accuracy, auc?; one's own is FILE.py:function"
    assert parse_limit("--fail-below", "accuracy=0.9") == ("accuracy", 0.9)
    for text in ("accuracy", "accuracy=", "=0.9", "accuracy=nan", "accuracy=90%"):
        with pytest.raises(FerruleError, match=r"expected METRIC=NUMBER, such as accuracy=0\.9"):
            parse_limit("--fail-below", text)
