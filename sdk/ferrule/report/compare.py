# SPDX-License-Identifier: Apache-2.0
"""How the outputs of a run compare with the reference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ferrule.graph import Array
from ferrule.report.document import Verdict

RELATIVE = 1e-5
"""Of a float32 value, between two evaluations of a network."""
FLOOR = 1e-6
"""Absolute, times the largest magnitude of the tensor or 1, whichever is larger."""


def compare(outputs: Sequence[Array], expected: Sequence[Array]) -> tuple[Verdict, float]:
    """Return the verdict over all outputs of one inference and the largest difference of an element.

    Integers are compared bit for bit. A float32 is within tolerance where
    |x - reference| <= RELATIVE * |reference| + FLOOR * max(1, largest |reference| of the tensor).
    """
    verdicts, differences = [], [0.0]
    for output, reference in zip(outputs, expected, strict=True):
        verdicts.append(_verdict(output, reference))
        differences.append(_difference(output, reference))
    return worst(verdicts), max(differences)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst of some verdicts; EXACT of none."""
    ranking = list(Verdict)
    return max(verdicts, key=ranking.index, default=Verdict.EXACT)


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
    if output.shape != reference.shape or not output.size:
        return float("inf") if output.shape != reference.shape else 0.0
    gap = np.abs(output.astype(np.float64) - reference.astype(np.float64))
    return float(np.nanmax(np.where(output == reference, 0.0, gap)))
