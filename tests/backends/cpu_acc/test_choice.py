# SPDX-License-Identifier: Apache-2.0
"""The kernel that a goal prefers, by the kernels' costs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Row, explain
from ferrule.backends.target import PRICES, Goal, Price
from ferrule.graph import Rounding

SPARE = 100
PLAIN = 1000


def kernel(name: str, instructions: int, scratch_bytes: int = 0, weight_bytes: int = 10, code: str = "") -> Candidate:
    return Candidate(
        kernel=name,
        code=code or "code",
        instructions=instructions,
        weight_bytes=weight_bytes,
        scratch_bytes=scratch_bytes,
        call=lambda: pytest.fail("nothing is lowered"),
    )


def preferred(price: Price, *candidates: Candidate, codes: tuple[str, ...] = ("code",)) -> str:
    """Return the kernel that the price prefers among those of one row each, which is also that among all of one row."""
    found = []
    for rows in (
        [Row(kernel=each.kernel, candidate=lambda _, each=each: each) for each in candidates],
        [Row(kernel="every", candidate=lambda _: candidates)],
    ):
        context = SimpleNamespace(
            target=SimpleNamespace(price=price, aim="it", core=None),
            layer=SimpleNamespace(rounding=Rounding.TFLM),
            spare_bytes=SPARE,
            codes=frozenset(codes),
            memo={},
        )
        (name,) = (each.stated.kernel for each in explain(cast("Any", context), rows) if each.stated.chosen)
        found.append(name)
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize(
    ("instructions", "scratch_bytes", "weight_bytes", "is_preferred"),
    [
        (PLAIN - 1, SPARE, 10, True),
        (PLAIN - 3 * 7 - 1, SPARE + 7, 10, True),
        (PLAIN - 3 * 7 + 1, SPARE + 7, 10, False),
        (PLAIN - 2 * 5 - 1, 0, 15, True),
        (PLAIN - 2 * 5 + 1, 0, 15, False),
        (PLAIN + 1, 0, 9, True),
    ],
)
def test_bytes_have_a_price(instructions: int, scratch_bytes: int, weight_bytes: int, is_preferred: bool) -> None:
    plain, quick = kernel("plain", PLAIN), kernel("quick", instructions, scratch_bytes, weight_bytes)
    assert (preferred(Price(ram=3, flash=2), plain, quick) == "quick") is is_preferred
    assert (preferred(Price(), plain, quick) == "quick") is (instructions < PLAIN)


def test_code_that_no_other_layer_needs_has_a_price() -> None:
    plain, quick = kernel("plain", PLAIN), kernel("quick", 1, code="other")
    assert preferred(Price(flash=1), plain, quick) == "plain"
    assert preferred(Price(flash=1), plain, quick, codes=("code", "other")) == "quick"


def test_goals_differ_in_what_bytes_are_worth() -> None:
    quick, small, tight = kernel("quick", 500, 1000, 100), kernel("small", 9000, 0, 1), kernel("tight", 9000, 0, 2)
    usual = kernel("usual", 700, SPARE, 10)
    chosen = {goal: preferred(price, quick, small, tight, usual) for goal, price in PRICES.items()}
    assert chosen == {Goal.SPEED: "quick", Goal.BALANCED: "usual", Goal.SIZE: "small", Goal.MEMORY: "usual"}
