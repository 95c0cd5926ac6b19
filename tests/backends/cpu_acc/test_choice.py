# SPDX-License-Identifier: Apache-2.0
"""The kernel that a goal prefers, by the kernels' costs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from ferrule.backends.cpu_acc.lowering.kernels.choice import SMALL_SCRATCH, Candidate, Row, explain
from ferrule.backends.target import Goal
from ferrule.graph import Rounding

SPARE = 100


def row(name: str, instructions: int, scratch_bytes: int, *, grows: bool = False) -> Row:
    """Return the row of a kernel with such costs for any layer."""
    candidate = Candidate(
        kernel=name,
        instructions=instructions,
        weight_bytes=10,
        scratch_bytes=scratch_bytes,
        grows=grows,
        call=lambda: pytest.fail("nothing is lowered"),
    )
    return Row(kernel=name, candidate=lambda _: candidate)


def preferred(goal: Goal, *rows: Row) -> str:
    context = SimpleNamespace(
        target=SimpleNamespace(goal=goal, core=None), layer=SimpleNamespace(rounding=Rounding.TFLM), spare_bytes=SPARE
    )
    (name,) = (each.stated.kernel for each in explain(cast("Any", context), rows) if each.stated.chosen)
    return name


@pytest.mark.parametrize(
    ("instructions", "scratch_bytes", "grows", "is_preferred"),
    [
        (999, SPARE + SMALL_SCRATCH, False, True),
        (999, SPARE + SMALL_SCRATCH + 1, False, False),
        (333, SPARE + 2 * SMALL_SCRATCH, False, True),
        (334, SPARE + 2 * SMALL_SCRATCH, False, False),
        (333, SPARE + 2 * SMALL_SCRATCH + 1, False, False),
        (1, SPARE, True, False),
    ],
)
def test_scratch_that_balanced_spends(instructions: int, scratch_bytes: int, grows: bool, is_preferred: bool) -> None:
    plain, quick = row("plain", 1000, 0), row("quick", instructions, scratch_bytes, grows=grows)
    assert (preferred(Goal.BALANCED, plain, quick) == "quick") is is_preferred
    assert preferred(Goal.SPEED, plain, quick) == "quick"


def test_more_scratch_goes_to_the_fastest() -> None:
    rows = [row(f"{size}", 10_000 - size, SPARE + size) for size in (SMALL_SCRATCH, SMALL_SCRATCH + 64)]
    slow, fast = row("slow", 100_000, 0), row("fast", 300, SPARE + SMALL_SCRATCH + 128)
    assert preferred(Goal.BALANCED, slow, *rows) == "2048"
    assert preferred(Goal.BALANCED, slow, rows[1], fast) == "fast"


def test_memory_takes_the_least_scratch_that_is_not_much_slower() -> None:
    small, large = row("small", 1100, SPARE), row("large", 1000, SPARE + SMALL_SCRATCH)
    assert preferred(Goal.MEMORY, small, large) == "small"
    assert preferred(Goal.MEMORY, row("slow", 1200, SPARE), large) == "large"
