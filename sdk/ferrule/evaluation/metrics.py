# SPDX-License-Identifier: Apache-2.0
"""The metrics of `ferrule evaluate`, with their confidence intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ferrule._frozen import frozen
from ferrule.budget import Resource, afford
from ferrule.errors import FerruleError, InputError, unknown_name
from ferrule.evaluation.intervals import Confidence, Interval, Statistic, bootstrap, wilson
from ferrule.graph import Array
from ferrule.report.evaluation_document import BETTER, ConfusionPart, LabelPart, MetricPart

THRESHOLD = 0.5
"""The least value of a model's only output that predicts label 1."""
TOP = 5
_CELL_BYTES = 32
"""What a cell of a confusion matrix takes: as a number, in two lists and in the document."""
CONFUSION = "confusion"
"""The name of the metric that is a table."""


@frozen
class Scored:
    """What a model answered for all samples, in real units, and the right answers."""

    scores: Array
    """float32, a row per sample."""
    labels: Array
    """Indices of classes, or the real values that the model should have answered."""
    names: tuple[str, ...] = ()
    """A name per sample for messages; empty if they have none."""

    @property
    def samples(self) -> int:
        """Number of samples."""
        return len(self.scores)

    @property
    def classes(self) -> int:
        """Number of labels among which the model chooses; a model with one output value chooses between two."""
        return max(2, int(self.scores.shape[1]))

    @property
    def are_classes(self) -> bool:
        """Whether the labels are indices of classes."""
        return self.labels.ndim == 1 and self.labels.dtype.kind in "iu"

    def expected(self) -> Array:
        """Return the labels as indices of classes.

        Raises:
            InputError: they are real values, or one is no class of the model.
        """
        if not self.are_classes:
            raise InputError(
                f"the labels are {self.labels.dtype}{list(self.labels.shape)}, expected one whole number per sample",
                hint="class numbers are integers: labels.astype(int), or labels.argmax(axis=1) if they are one-hot; "
                "for real values, the metrics are mae and mse",
            )
        outside = np.flatnonzero((self.labels < 0) | (self.labels >= self.classes))
        if outside.size:
            first = int(outside[0])
            raise InputError(
                f"sample '{name_of(first, self.names)}' has label {int(self.labels[first])}, expected 0 to "
                f"{self.classes - 1}, since the model's output has {self.scores.shape[1]} value(s)"
            )
        return self.labels.astype(np.int64)

    def predicted(self) -> Array:
        """Return the predicted class of each sample: that of the largest score, the first of equal ones.

        With one score per sample, that is class 1 from 0.5 on, and else class 0.
        """
        if self.scores.shape[1] == 1:
            return (self.scores[:, 0] >= THRESHOLD).astype(np.int64)
        chosen: Array = self.scores.argmax(axis=1)
        return chosen

    def targets(self) -> Array:
        """Return the right answers as real values, of the shape of the scores.

        Raises:
            InputError: they have another number of values.
        """
        wanted = self.scores.shape[1]
        values = self.labels.reshape(self.samples, -1)
        if values.shape[1] != wanted:
            raise InputError(
                f"the labels have {values.shape[1]} value(s) per sample, expected {wanted}, as the model's output",
                hint="class numbers are integers: labels.astype(int); the metrics are accuracy, top5 and auc then"
                if wanted > 1
                else None,
            )
        return values.astype(np.float64)


Compute = Callable[[Scored, Confidence], MetricPart]


def accuracy(scored: Scored, confidence: Confidence) -> MetricPart:
    """Return the share of samples whose predicted class is the label."""
    right = scored.predicted() == scored.expected()
    return _unordered("accuracy", scored) or share("accuracy", right, confidence)


def top5(scored: Scored, confidence: Confidence) -> MetricPart:
    """Return the share of samples whose label is among the five classes of largest score, the first of equal ones."""
    expected = scored.expected()
    if scored.scores.shape[1] <= TOP:
        return MetricPart(name="top5", value=None, note=f"the model has only {scored.classes} classes")
    if (undefined := _unordered("top5", scored)) is not None:
        return undefined
    own = scored.scores[np.arange(scored.samples), expected][:, None]
    earlier = np.arange(scored.scores.shape[1]) < expected[:, None]
    before = (scored.scores > own) | ((scored.scores == own) & earlier)
    return share("top5", before.sum(axis=1) < TOP, confidence)


def _unordered(name: str, scored: Scored) -> MetricPart | None:
    """Return the metric as undefined if scores cannot be ordered, since a sample has one that is NaN; else None."""
    bad = np.flatnonzero(np.isnan(scored.scores).any(axis=1))
    if not bad.size:
        return None
    first = name_of(int(bad[0]), scored.names)
    note = f"{bad.size:,} of {scored.samples:,} samples have a score that is not a number (NaN), the first is '{first}'"
    return MetricPart(name=name, value=None, note=note)


def share(name: str, right: Array, confidence: Confidence) -> MetricPart:
    """Return the share of samples that are right, with Wilson's interval."""
    hits = int(np.count_nonzero(right))
    return _part(name, hits / len(right), wilson(hits, len(right), confidence), confidence)


def auc(scored: Scored, confidence: Confidence) -> MetricPart:
    """Return the area under the ROC curve; with more than two classes, the mean of one class against the rest.

    With two classes, the score is that of class 1. Classes without samples are left out of the mean.
    """
    expected = scored.expected()
    if (undefined := _unordered("auc", scored)) is not None:
        return undefined
    columns = scored.scores.shape[1]
    classes = range(columns) if columns > 2 else (1,)
    rankings = []
    left_out = 0
    for index in classes:
        positive = expected == index
        if positive.all() or not positive.any():
            left_out += 1
            continue
        rankings.append(ranking(scored.scores[:, min(index, columns - 1)], positive))
    if not rankings:
        return MetricPart(name="auc", value=None, note="all samples have the same label")

    def statistic(counts: Array) -> Array:
        areas = np.stack([areas_of(counts) for areas_of in rankings])
        known = ~np.isnan(areas)  # a resample that lacks a class is the mean of the others, as the value is
        number = known.sum(axis=0)
        means: Array = np.where(known, areas, 0.0).sum(axis=0) / np.where(number, number, np.nan)
        return means

    value = float(statistic(np.ones((1, scored.samples)))[0])
    interval = bootstrap(statistic, scored.samples, confidence)
    notes = ["mean over classes, one against the rest"] if columns > 2 else []
    if left_out:
        notes.append(f"{left_out} class(es) without samples left out")
    return _part("auc", value, interval, confidence, note=", ".join(notes))


def ranking(scores: Array, positive: Array) -> Statistic:
    """Return the area under the ROC curve of positive and negative samples, as a statistic of counts per sample.

    It is the share of pairs of a positive and a negative sample in which the positive one has the larger score; equal
    scores count as a half (Hanley and McNeil, Radiology 143, 1982). It is NaN for counts that have no positive or no
    negative sample.
    """
    distinct, ranks = np.unique(scores, return_inverse=True)
    keys, size = 2 * ranks.reshape(-1) + positive, 2 * len(distinct)

    def statistic(counts: Array) -> Array:
        areas = np.full(len(counts), np.nan)
        for row, each in enumerate(counts):
            table = np.bincount(keys, weights=each, minlength=size).reshape(-1, 2)
            negative, positive = table[:, 0], table[:, 1]
            pairs = negative.sum() * positive.sum()
            if pairs:
                areas[row] = positive @ (np.cumsum(negative) - negative / 2.0) / pairs
        return areas

    return statistic


def _of_errors(name: str, measure: Callable[[Array], Array]) -> Compute:
    def compute(scored: Scored, confidence: Confidence) -> MetricPart:
        errors = measure(scored.scores.astype(np.float64) - scored.targets())
        return mean(name, errors.mean(axis=1), confidence, better="lower")

    return compute


mae = _of_errors("mae", np.abs)
"""The mean absolute error over all values of all samples."""
mse = _of_errors("mse", np.square)
"""The mean squared error over all values of all samples."""


def mean(name: str, values: Array, confidence: Confidence, *, better: str) -> MetricPart:
    """Return the mean of one value per sample, with a bootstrap interval."""
    values = values.astype(np.float64)
    if not np.isfinite(values).all():
        return MetricPart(name=name, value=None, better=better, note="a sample's value is not finite")
    interval = bootstrap(lambda counts: counts @ values / len(values), len(values), confidence)
    return _part(name, float(values.mean()), interval, confidence, better=better)


def _part(
    name: str, value: float, interval: Interval, confidence: Confidence, *, better: str = "higher", note: str = ""
) -> MetricPart:
    return MetricPart(
        name=name, value=value, **interval._asdict(), confidence=confidence.level, better=better, note=note
    )


METRICS: Mapping[str, Compute] = {"accuracy": accuracy, "top5": top5, "auc": auc, "mae": mae, "mse": mse}
"""By name; "confusion" is a table besides."""
LOWER = frozenset(name for name, better in BETTER.items() if better == "lower")
"""The metrics that compare real values; less is better."""
OF_CLASSES = frozenset({"accuracy", "top5", "auc", CONFUSION})
"""The metrics for labels that are classes."""


def check_metric(name: str) -> None:
    """Raise FerruleError unless a metric is known; "FILE:function" is checked where it is read."""
    if ":" not in name and name != CONFUSION and name not in METRICS:
        error = unknown_name("metric", name, (*METRICS, CONFUSION))
        error.hint = f"{error.hint}; one's own is FILE.py:function"
        raise error


def default_metrics(scored: Scored) -> tuple[str, ...]:
    """Return the metrics for labels of this kind."""
    return ("accuracy",) if scored.are_classes else ("mae", "mse")


def label_parts(scored: Scored, names: Sequence[str]) -> tuple[LabelPart, ...]:
    """Return the recall and the precision of each label that occurs or was predicted."""
    expected, predicted = scored.expected(), scored.predicted()
    right = np.bincount(expected[expected == predicted], minlength=scored.classes)
    wanted = np.bincount(expected, minlength=scored.classes)
    given = np.bincount(predicted, minlength=scored.classes)
    return tuple(
        LabelPart(
            label=name_of(index, names),
            samples=int(wanted[index]),
            recall=float(right[index] / wanted[index]) if wanted[index] else None,
            precision=float(right[index] / given[index]) if given[index] else None,
        )
        for index in range(scored.classes)
        if wanted[index] or given[index]
    )


def confusion(scored: Scored, names: Sequence[str]) -> ConfusionPart:
    """Return how often each label was predicted for each, without labels that neither occur nor were predicted."""
    seen, places = np.unique(np.stack([scored.expected(), scored.predicted()]), return_inverse=True)
    wanted, given = places.reshape(2, -1)
    size = len(seen)
    afford(Resource.BYTES, _CELL_BYTES * size * size, f"the confusion matrix of {size:,} labels")
    table = np.bincount(wanted * size + given, minlength=size * size).reshape(size, size)
    return ConfusionPart(
        labels=tuple(name_of(int(index), names) for index in seen),
        counts=tuple(tuple(row) for row in table.tolist()),
    )


def name_of(index: int, names: Sequence[str]) -> str:
    """Return the name of a class, which is its number if the data names none."""
    return names[index] if index < len(names) else str(index)


def parse_limit(option: str, text: str) -> tuple[str, float]:
    """Return the metric and the limit of "METRIC=NUMBER"; FerruleError if it is malformed."""
    name, separator, number = text.partition("=")
    try:
        limit = float(number)
    except ValueError:
        limit = float("nan")
    if not separator or not name or not np.isfinite(limit):
        raise FerruleError(f"{option} {text}: expected METRIC=NUMBER, such as accuracy=0.9")
    return name, limit
