# SPDX-License-Identifier: Apache-2.0
"""Compares the outputs of a run with the reference."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from ferrule.graph import Array
from ferrule.report.document import Verdict
from ferrule.report.evidence import evidence_of

RELATIVE = 1e-5
"""Relative tolerance of a float32 value between two evaluations of a network."""
FLOOR = 1e-6
"""Absolute tolerance, multiplied by the largest magnitude in the tensor or by 1, whichever is larger."""


def compare(outputs: Sequence[Array], expected: Sequence[Array]) -> tuple[Verdict, float | None]:
    """Return the verdict over all outputs of one inference and the largest difference of any element.

    The difference is None if it is undefined: shapes differ, or only one side has a NaN or an infinity. Integers are
    compared bit for bit. A float32 value is within tolerance if
    `|x - reference| <= RELATIVE * |reference| + FLOOR * max(1, largest |reference| of the tensor)`.
    """
    pairs = list(zip(outputs, expected, strict=True))
    differences = [_difference(output, reference) for output, reference in pairs]
    largest = max([0.0, *differences])
    verdict = worst(_verdict(output, reference) for output, reference in pairs)
    if verdict.agrees and not evidence_of(outputs, expected):
        verdict = Verdict.NOTHING_COMPARED
    return verdict, largest if np.isfinite(largest) else None


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst verdict of those that have compared something; NOTHING_COMPARED if none has."""
    ranking = list(Verdict)
    compared = [verdict for verdict in verdicts if verdict is not Verdict.NOTHING_COMPARED]
    return max(compared, key=ranking.index, default=Verdict.NOTHING_COMPARED)


def _verdict(output: Array, reference: Array) -> Verdict:
    if output.shape != reference.shape or output.dtype != reference.dtype:
        return Verdict.DIFFERENT
    if output.tobytes() == reference.tobytes():
        return Verdict.EXACT
    if output.dtype != np.float32:
        return Verdict.DIFFERENT
    wide, truth = output.astype(np.float64), reference.astype(np.float64)
    finite = np.isfinite(truth)
    scale = max(1.0, float(np.abs(truth[finite]).max(initial=0.0)))
    with np.errstate(invalid="ignore"):
        near = np.abs(wide - truth) <= RELATIVE * np.abs(truth) + FLOOR * scale
    same = (wide == truth) | (np.isnan(wide) & np.isnan(truth))
    return Verdict.WITHIN_TOLERANCE if bool(np.where(finite, near, same).all()) else Verdict.DIFFERENT


def _difference(output: Array, reference: Array) -> float:
    """Return the largest difference; infinity if it is undefined."""
    if output.shape != reference.shape:
        return math.inf
    differ = output != reference
    if not output.dtype.kind == reference.dtype.kind == "f":
        exact = object if output.dtype.itemsize > 4 else np.float64
        return float(np.abs(output[differ].astype(exact) - reference[differ].astype(exact)).max(initial=0.0))
    differ &= ~(np.isnan(output) & np.isnan(reference))
    gaps = np.abs(output[differ].astype(np.float64) - reference[differ].astype(np.float64))
    return math.inf if np.isnan(gaps).any() else float(gaps.max(initial=0.0))
