# SPDX-License-Identifier: Apache-2.0
"""Turns a model's outputs into what metrics compare with labels, and finds the worst samples."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from ferrule.budget import Resource, afford
from ferrule.errors import InputError, unknown_name
from ferrule.evaluation.metrics import Scored, name_of
from ferrule.graph import Array, TensorInfo
from ferrule.report.evaluation_document import FlipPart, WorstPart

_SCORE_BYTES = 12
"""What a score takes, twice as float32 and compared with others."""


class Score(StrEnum):
    """What of a model's answer is scored."""

    OUTPUT = "output"
    """The values of one output."""
    RECONSTRUCTION = "reconstruction"
    """The mean squared difference of the output from the input, which a model of normal samples makes large for others;
    as in MLPerf Tiny's anomaly detection."""


def output_index(outputs: Sequence[TensorInfo], name: str | None) -> int:
    """Return the place of the output that is scored: the first one, unless another is named."""
    if name is None:
        return 0
    names = [info.name for info in outputs]
    if name not in names:
        raise unknown_name("output", name, names, where="of the model")
    return names.index(name)


def is_numbered(info: TensorInfo) -> bool:
    """Return whether an output is the number of a class: one integer without a quantisation."""
    return info.quantization is None and info.dtype.numpy.kind in "iu" and info.elements == 1


def scores_of(info: TensorInfo, stored: Array, samples: int) -> Array:
    """Return the real values of an output, float32, a row per sample.

    For an output that is the number of a class, the row is 1 there and 0 elsewhere.
    """
    rows = stored.reshape(samples, -1)
    if is_numbered(info):
        numbers = rows[:, 0].astype(np.int64)
        if numbers.min() < 0:
            raise InputError(f"output '{info.name}' answers {numbers.min()}, expected the number of a class")
        table = _table_of_scores(samples, max(2, int(numbers.max()) + 1))
        table[np.arange(samples), numbers] = 1.0
        return table
    real = info.dequantize(stored)
    return real.astype(np.float32).reshape(samples, -1)


def widened(scores: Array, info: TensorInfo, labels: Array) -> Array:
    """Return the scores of an output that numbers classes with columns for all labels, too."""
    if not is_numbered(info) or labels.dtype.kind not in "iu":
        return scores
    wide = _table_of_scores(len(scores), max(int(labels.max()) + 1, scores.shape[1]))
    wide[:, : scores.shape[1]] = scores
    return wide


def _table_of_scores(samples: int, classes: int) -> Array:
    afford(Resource.BYTES, _SCORE_BYTES * samples * classes, f"a score for each of {classes:,} classes and samples")
    return np.zeros((samples, classes), np.float32)


def check_reconstruction(inputs: Sequence[TensorInfo], output: TensorInfo) -> None:
    """Raise InputError unless a model's output has as many values as its only input."""
    if len(inputs) != 1 or inputs[0].elements != output.elements:
        sizes = ", ".join(f"'{info.name}' {info.elements:,}" for info in inputs)
        raise InputError(
            f"output '{output.name}' has {output.elements:,} values and the inputs have {sizes}: the score "
            '"reconstruction" is for models with one input and an output of the same size'
        )


def reconstruction_errors(source: TensorInfo, inputs: Array, result: TensorInfo, outputs: Array, samples: int) -> Array:
    """Return each sample's mean squared difference between input and output in real units, float64."""
    before = source.dequantize(inputs).astype(np.float64).reshape(samples, -1)
    after = result.dequantize(outputs).astype(np.float64).reshape(samples, -1)
    errors: Array = np.square(before - after).mean(axis=1)
    return errors


def by_sequence(scored: Scored, sequences: Array) -> Scored:
    """Return the mean score of each sequence with its label, in the order of the sequences.

    Raises:
        InputError: the samples of a sequence have different labels.
    """
    numbers, firsts, places, counts = np.unique(sequences, return_index=True, return_inverse=True, return_counts=True)
    means = np.stack(
        [np.bincount(places, weights=column) / counts for column in scored.scores.T.astype(np.float64)], axis=1
    )
    labels = scored.labels[firsts]
    if not np.array_equal(labels[places], scored.labels):
        bad = int(np.flatnonzero((labels[places] != scored.labels).reshape(len(places), -1).any(axis=1))[0])
        raise InputError(
            f"the samples of sequence {int(sequences[bad])} have different labels, expected one per sequence"
        )
    return Scored(scores=means, labels=labels, names=tuple(f"sequence {number}" for number in numbers))


def worst_samples(scored: Scored, classes: Sequence[str], names: Sequence[str], count: int) -> tuple[WorstPart, ...]:
    """Return the samples with the worst results, the worst one first.

    With classes, they are those with a wrong prediction, by the margin of its score over that of the label. With one
    score, they are by its distance from 0.5 on the wrong side. With real targets, they are by the mean absolute error.
    """
    if count <= 0:
        return ()
    if scored.are_classes:
        expected, predicted = scored.expected(), scored.predicted()
        scores = _margins(scored, expected, predicted)
        unordered = np.asarray(np.isnan(scored.scores).any(axis=1))
        wrong = np.flatnonzero((expected != predicted) | unordered)
        order = wrong[_worst_first(scores[wrong])]

        def texts(index: int) -> tuple[str, str]:
            found = "none (NaN)" if unordered[index] else name_of(int(predicted[index]), classes)
            return name_of(int(expected[index]), classes), found
    else:
        targets = scored.targets()
        scores = np.abs(scored.scores.astype(np.float64) - targets).mean(axis=1)
        order = _worst_first(scores)

        def texts(index: int) -> tuple[str, str]:
            return _values(targets[index]), _values(scored.scores[index])

    parts = []
    for index in order[:count].tolist():
        wanted, found = texts(index)
        score = float(scores[index]) if np.isfinite(scores[index]) else None
        parts.append(WorstPart(index=index, name=names[index], expected=wanted, predicted=found, score=score))
    return tuple(parts)


def flipped_samples(
    mine: Scored, its: Scored, expected: Array | None, classes: Sequence[str], names: Sequence[str]
) -> list[FlipPart]:
    """Return the samples whose predicted class differs between two models, by the margin of the second, largest first.

    Samples with a NaN in a score of either have no class. `expected` has the classes of the labels; None without.
    """
    own, other = mine.predicted(), its.predicted()
    ordered = ~(np.isnan(mine.scores).any(axis=1) | np.isnan(its.scores).any(axis=1))
    places = np.flatnonzero((own != other) & ordered)
    margins = _margins(its, own, other), _margins(mine, other, own)
    return [
        FlipPart(
            index=index,
            name=names[index],
            expected="" if expected is None else name_of(int(expected[index]), classes),
            float_label=name_of(int(other[index]), classes),
            label=name_of(int(own[index]), classes),
            float_margin=float(margins[0][index]),
            margin=float(margins[1][index]),
        )
        for index in places[_worst_first(margins[0][places])].tolist()
    ]


def _worst_first(values: Array) -> Array:
    """Return the places of values from the largest to the smallest; those that are not finite come first."""
    order: Array = np.argsort(-np.where(np.isfinite(values), values, np.inf), kind="stable")
    return order


def _margins(scored: Scored, expected: Array, predicted: Array) -> Array:
    if scored.scores.shape[1] == 1:
        distances: Array = np.abs(scored.scores[:, 0].astype(np.float64) - 0.5)
        return distances
    rows = np.arange(scored.samples)
    margins: Array = (scored.scores[rows, predicted] - scored.scores[rows, expected]).astype(np.float64)
    return margins


def worst_reconstructed(scored: Scored, count: int) -> tuple[WorstPart, ...]:
    """Return the normal samples (label 0) with the largest scores and the others with the smallest ones.

    They are ordered by how many samples of the other kind they are on the wrong side of.
    """
    expected, scores = scored.expected(), scored.scores[:, 0]
    normal, other = np.sort(scores[expected == 0]), np.sort(scores[expected != 0])
    passed = np.where(
        expected == 0,
        np.searchsorted(other, scores, side="left"),
        len(normal) - np.searchsorted(normal, scores, side="right"),
    )
    order = [index for index in np.argsort(-passed, kind="stable")[:count] if passed[index]]
    return tuple(
        WorstPart(
            index=int(index),
            name=name_of(int(index), scored.names),
            expected=str(int(expected[index])),
            predicted=f"score {scores[index]:.4g}",
            score=float(passed[index]),
        )
        for index in order
    )


def _values(row: Array) -> str:
    listed = ", ".join(f"{value:.4g}" for value in row[:4])
    return listed if len(row) <= 4 else f"{listed}, ... ({len(row)} values)"
