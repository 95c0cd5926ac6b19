# SPDX-License-Identifier: Apache-2.0
"""Judges the outputs of a run: compares them with the reference and its bounds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Self

import numpy as np

from ferrule._frozen import frozen
from ferrule.graph import Array
from ferrule.network.bounds import outside
from ferrule.operators.arithmetic.running_error import Bounded
from ferrule.report.document import Verdict
from ferrule.report.evidence import evidence_of


@frozen(eq=False, kw_only=False)
class Expected:
    """What the outputs of one inference are compared with."""

    outputs: Sequence[Array]
    """Those of the numpy reference."""
    bounds: Sequence[Array | None] | None = None
    """By output, how far each element of other code's float32 may be away; None for a network without floats."""
    own: Sequence[Array] | None = None
    """The outputs of the firmware's own C on this machine; None if they are not known, or for a network without floats.
    """
    strict: bool = False
    """Whether only the bits of `own` will do; otherwise, `bounds` do, too."""

    @classmethod
    def of(cls, results: Sequence[Bounded]) -> Self:
        """Return the outputs of a run with bounds."""
        return cls([each.values for each in results], [each.error for each in results])

    @property
    def bounded(self) -> list[Bounded]:
        """The outputs of the numpy reference with their bounds."""
        bounds = [None] * len(self.outputs) if self.bounds is None else self.bounds
        return [Bounded(*each) for each in zip(self.outputs, bounds, strict=True)]

    def at(self, index: int) -> Self:
        """Return what one of the outputs is compared with."""
        return replace(
            self,
            outputs=[self.outputs[index]],
            bounds=None if self.bounds is None else [self.bounds[index]],
            own=None if self.own is None else [self.own[index]],
        )


def judge(outputs: Sequence[Array], expected: Expected) -> tuple[Verdict, float | None]:
    """Return the verdict over all outputs of one inference and the largest difference, as `compare` does."""
    if expected.own is not None:
        verdict, largest = compare(outputs, expected.own)
        if expected.strict or verdict is not Verdict.DIFFERENT:
            return verdict, largest
    return compare(outputs, expected.outputs, expected.bounds)


def compare(
    outputs: Sequence[Array], expected: Sequence[Array], bounds: Sequence[Array | None] | None = None
) -> tuple[Verdict, float | None]:
    """Return the verdict over all outputs of one inference and the largest difference of any element.

    The difference is None if it is undefined: shapes differ, or only one side has a NaN or an infinity. All types are
    compared bit for bit, except that a NaN equals a NaN. With `bounds`, one array or None for each output, a float32
    value may be as far from its reference as the bound of its own element says; without one it must be equal, whatever
    the sign of a zero.
    """
    exact = np.zeros((), np.float64)
    limits = [None] * len(expected) if bounds is None else [exact if bound is None else bound for bound in bounds]
    pairs = list(zip(outputs, expected, strict=True))
    differences = [_difference(output, reference) for output, reference in pairs]
    largest = max([0.0, *differences])
    verdict = worst(_verdict(*pair, bound) for pair, bound in zip(pairs, limits, strict=True))
    if verdict.agrees and not evidence_of(outputs, expected):
        verdict = Verdict.NOTHING_COMPARED
    return verdict, largest if np.isfinite(largest) else None


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst verdict of those that have compared something; NOTHING_COMPARED if none has."""
    ranking = list(Verdict)
    compared = [verdict for verdict in verdicts if verdict is not Verdict.NOTHING_COMPARED]
    return max(compared, key=ranking.index, default=Verdict.NOTHING_COMPARED)


def _verdict(output: Array, reference: Array, bound: Array | None) -> Verdict:
    if output.shape != reference.shape or output.dtype != reference.dtype:
        return Verdict.DIFFERENT
    if output.tobytes() == reference.tobytes():
        return Verdict.EXACT
    if output.dtype.kind != "f":
        return Verdict.DIFFERENT
    bits = f"u{output.dtype.itemsize}"
    if bool(((output.view(bits) == reference.view(bits)) | (np.isnan(output) & np.isnan(reference))).all()):
        return Verdict.EXACT
    if bound is None or outside(output, Bounded(reference, bound)).any():
        return Verdict.DIFFERENT
    return Verdict.WITHIN_BOUND


def _difference(output: Array, reference: Array) -> float:
    """Return the largest difference; infinity if it is undefined."""
    if output.shape != reference.shape:
        return math.inf
    differ, floats = output != reference, output.dtype.kind == reference.dtype.kind == "f"
    if floats:
        differ &= ~(np.isnan(output) & np.isnan(reference))
    # differences of 64-bit integers fit in no type of numpy
    exact = object if output.dtype.itemsize > 4 and not floats else np.float64
    gaps = np.abs(output[differ].astype(exact) - reference[differ].astype(exact))
    return math.inf if floats and np.isnan(gaps).any() else float(gaps.max(initial=0.0))
