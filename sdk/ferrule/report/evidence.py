# SPDX-License-Identifier: Apache-2.0
"""How much was compared: without it, a verdict says nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from ferrule._frozen import frozen
from ferrule.graph import Array
from ferrule.report.sections import joined, plural


@frozen
class Evidence:
    """The counts of what was compared; a count that does not apply is 0."""

    samples: int = 0
    elements: int = 0
    """Elements of the outputs, or values of documents."""
    numbers: int = 0
    """The elements that are not NaN on both sides: only these show anything."""
    layers: int = 0
    runs: int = 0

    def __bool__(self) -> bool:
        """Return whether anything was compared."""
        return self.numbers > 0

    def __add__(self, other: Evidence) -> Evidence:
        return Evidence(**{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)})

    @property
    def text(self) -> str:
        """The counts in words, such as "2 samples, 20 elements, 19 of them numbers"."""
        return self.of("element")

    def of(self, noun: str) -> str:
        """Return the counts in words, with a noun for what `elements` counts."""
        counts = ((self.runs, "run"), (self.samples, "sample"), (self.elements, noun))
        named = joined(*(plural(*each) for each in counts if each[0])) or "nothing recorded"
        numbers = f"{self.numbers:,}" if self.numbers else "none"
        missing = "" if self.numbers == self.elements else f"{numbers} of them numbers"
        return joined(named, missing, plural(self.layers, "layer") if self.layers else "")

    @property
    def nothing(self) -> str:
        """That nothing was compared, in words."""
        return f"nothing was compared: {self.text}"


NO_EVIDENCE = Evidence()


def evidence_of(outputs: Sequence[Array], expected: Sequence[Array]) -> Evidence:
    """Return the counts of one inference, whose outputs are compared with what is expected."""
    elements = sum(reference.size for reference in expected)
    empty = sum(
        int((np.isnan(output) & np.isnan(reference)).sum())
        for output, reference in zip(outputs, expected, strict=True)
        if output.dtype.kind == reference.dtype.kind == "f" and output.shape == reference.shape
    )
    return Evidence(samples=1, elements=elements, numbers=elements - empty)
