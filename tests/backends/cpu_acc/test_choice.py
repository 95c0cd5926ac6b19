# SPDX-License-Identifier: Apache-2.0
"""The kernel that a goal prefers, by the kernels' costs."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ferrule.backends import BackendId
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Row, explain
from ferrule.backends.target import PRICES, Face, Goal, Price, default_target
from ferrule.graph import Rounding
from ferrule.timing.planned import KernelTimings, Pace

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


def preferred(
    price: Price, *candidates: Candidate, codes: tuple[str, ...] = ("code",), pace: Pace | None = None
) -> str:
    """Return the kernel that the price prefers among those of one row each, which is also that among all of one row."""
    found = []
    for rows in (
        [Row(kernel=each.kernel, candidate=lambda _, each=each: each) for each in candidates],
        [Row(kernel="every", candidate=lambda _: candidates)],
    ):
        context = SimpleNamespace(
            target=SimpleNamespace(price=price, aim="it", core=None, clocked=pace),
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
    assert chosen == {
        Goal.SPEED: "quick",
        Goal.BALANCED: "usual",
        Goal.SIZE: "small",
        Goal.MEMORY: "usual",
        Goal.TIME: "quick",
    }


def test_cycles_stand_for_instructions_where_time_is_minimised() -> None:
    many, few = kernel("many", 1000), kernel("few", 800)
    timings = KernelTimings(
        core="made up", per_instruction={"many": 1.1, "few": 1.5}, per_element={"any": 1.0}, per_mac=1.0, per_output=1.0
    )
    assert preferred(Price(), many, few) == "few"
    assert preferred(Price(), many, few, pace=Pace(timings=timings)) == "many"
    assert preferred(Price(), many, kernel("few", 720), pace=Pace(timings=timings)) == "few", (
        "they are as good as equal"
    )
    assert preferred(Price(ram=1), many, kernel("tight", 700, SPARE + 600), pace=Pace(timings=timings)) == "many"


def test_a_target_has_cycles_only_where_time_is_minimised() -> None:
    timings = KernelTimings(
        core="made up", per_instruction={"many": 1.1}, per_element={"any": 1.0}, per_mac=1.0, per_output=1.0
    )
    target = replace(default_target(BackendId("CpuAcc"), Face.FIRMWARE), pace=Pace(timings=timings))
    assert [goal for goal in Goal if replace(target, goal=goal).clocked is not None] == [Goal.TIME]
