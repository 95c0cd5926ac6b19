# SPDX-License-Identifier: Apache-2.0
"""A confusion matrix as rows with shares, and its largest mistakes."""

from __future__ import annotations

from dataclasses import dataclass

from ferrule.errors import FerruleError
from ferrule.report.evaluation_document import ConfusionPart

MOST_LABELS = 32
"""Labels of a matrix that is shown as a whole."""
_LISTED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """How often one label was predicted for another one."""

    count: int
    share: float
    """Of the samples with the expected label, 0 to 1."""
    right: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """Two labels of which one was predicted for the other."""

    expected: str
    predicted: str
    count: int
    share: float


def matrix_rows(part: ConfusionPart) -> tuple[tuple[str, tuple[Cell, ...]], ...]:
    """Return a matrix's rows, none if it has more than `MOST_LABELS` labels; FerruleError if it is no square."""
    _check_square(part)
    if len(part.labels) > MOST_LABELS:
        return ()
    return tuple(
        (
            label,
            tuple(
                Cell(count=count, share=count / (sum(row) or 1), right=column == index)
                for column, count in enumerate(row)
            ),
        )
        for index, (label, row) in enumerate(zip(part.labels, part.counts, strict=True))
    )


def worst_confusions(part: ConfusionPart) -> tuple[Mistake, ...]:
    """Return the most frequent mistakes; FerruleError if the matrix is no square."""
    _check_square(part)
    found = [
        Mistake(expected=part.labels[index], predicted=part.labels[column], count=count, share=count / (sum(row) or 1))
        for index, row in enumerate(part.counts)
        for column, count in enumerate(row)
        if count and column != index
    ]
    return tuple(sorted(found, key=lambda each: -each.count)[:_LISTED])


def _check_square(part: ConfusionPart) -> None:
    lengths = [len(part.counts), *map(len, part.counts)]
    wrong = next((length for length in lengths if length != len(part.labels)), None)
    if wrong is not None:
        raise FerruleError(
            f"the document's confusion matrix has {len(part.labels)} labels, and {wrong} rows or columns of counts",
            hint="evaluate it again, and write the document again",
        )
