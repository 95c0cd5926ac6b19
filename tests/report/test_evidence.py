# SPDX-License-Identifier: Apache-2.0
"""The counts on which verdicts rest."""

from __future__ import annotations

import numpy as np
import pytest

from ferrule.report.evidence import NO_EVIDENCE, Evidence, evidence_of


def floats(*values: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.array(values, np.float32)


NAN = float("nan")


@pytest.mark.parametrize(
    ("outputs", "expected", "elements", "numbers"),
    [
        ([floats(1, NAN)], [floats(1, NAN)], 2, 1),
        ([floats(NAN, NAN)], [floats(NAN, NAN)], 2, 0),
        ([floats(1, 2)], [floats(NAN, NAN)], 2, 2),
        ([floats(NAN, NAN)], [floats(1, 2)], 2, 2),
        ([floats(NAN), np.zeros(3, np.int8)], [floats(NAN), np.zeros(3, np.int8)], 4, 3),
        ([np.zeros((0, 3), np.int8)], [np.zeros((0, 3), np.int8)], 0, 0),
        ([floats(NAN)], [floats(NAN, NAN)], 2, 2),
        ([np.zeros(2, np.int8)], [floats(NAN, NAN)], 2, 2),
    ],
)
def test_elements_that_are_nan_on_both_sides_show_nothing(
    outputs: list[np.ndarray], expected: list[np.ndarray], elements: int, numbers: int
) -> None:
    assert evidence_of(outputs, expected) == Evidence(samples=1, elements=elements, numbers=numbers)


def test_evidence_is_summed_and_said() -> None:
    one = Evidence(samples=1, elements=1_000, numbers=1_000)
    assert (one + one).text == "2 samples, 2,000 elements"
    mixed = one + Evidence(elements=1, layers=1, runs=3)
    assert mixed.text == "3 runs, 1 sample, 1,001 elements, 1,000 of them numbers, 1 layer"
    assert Evidence(samples=1, elements=4).text == "1 sample, 4 elements, none of them numbers"
    assert NO_EVIDENCE.text == "nothing recorded"


def test_only_numbers_are_evidence() -> None:
    assert not NO_EVIDENCE
    assert not Evidence(samples=3, elements=12, layers=4, runs=1)
    assert Evidence(numbers=1)
