# SPDX-License-Identifier: Apache-2.0
"""The schedule in which devices are activated, opened, closed and deactivated."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.codegen.schedule import Activity, Call, Schedule, Use, schedule
from ferrule.memory import Lifetime
from ferrule.resources import root


def uses(text: str) -> list[Use | None]:
    """Return each operator's use: "a" or "b" runs on that device, "A" or "B" copies to it, "." uses no device."""
    return [None if c == "." else Use(device=c.lower(), call=Call.COPY_TO if c.isupper() else Call.RUN) for c in text]


def spelled(planned: Schedule) -> str:
    """Return the calls of each operator: + activate, ( open, letters as in `uses`, ) close, - deactivate."""
    signs = {Call.ACTIVATE: "+", Call.OPEN: "(", Call.CLOSE: ")", Call.DEACTIVATE: "-"}
    words = []
    for step in planned.steps:
        calls = (
            signs[c.call] + c.device if c.call in signs else (c.device if c.call is Call.RUN else c.device.upper())
            for c in step.calls
        )
        words.append("".join(calls) or ".")
    return " ".join(words)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        (".", "."),
        ("a", "+a(aa)a-a"),
        (".a.", ". +a(aa)a-a ."),
        ("aa", "+a(aa a)a-a"),
        ("Aaa", "+a(aA a a)a-a"),
        ("a.a", "+a(aa)a . (aa)a-a"),
        ("ab", "+a(aa)a-a +b(bb)b-b"),
        ("abab", "+a(aa)a +b(bb)b (aa)a-a (bb)b-b"),
    ],
)
def test_round_operators(text: str, expected: str) -> None:
    assert spelled(schedule(uses(text))) == expected


def test_an_operator_that_does_nothing_does_not_part_neighbours() -> None:
    assert spelled(schedule(uses("a.a"), idle=[1])) == "+a(aa . a)a-a"
    assert spelled(schedule(uses("a..a"), idle=[1])) == "+a(aa)a . . (aa)a-a"


@pytest.mark.parametrize(
    ("lead", "expected"),
    [
        (0, ". . . +b(bb)b-b ."),
        (1, ". . +b (bb)b-b ."),
        (3, "+b . . (bb)b-b ."),
        (9, "+b . . (bb)b-b ."),
    ],
)
def test_a_device_that_is_slow_to_start_is_activated_early(lead: int, expected: str) -> None:
    assert spelled(schedule(uses("...b."), activities={"b": Activity(lead=lead)})) == expected


def test_no_device_is_activated_while_another_one_is_open() -> None:
    activities = {"a": Activity(), "b": Activity(lead=1)}
    assert spelled(schedule(uses("aab"), activities=activities)) == "+a+b(aa a)a-a (bb)b-b"


@pytest.mark.parametrize(
    ("text", "held", "expected"),
    [
        ("AbA", {"a": (0, 2)}, "+a+b(a(bA b)b A)a-b-a"),
        (".AbA", {"a": (1, 3)}, ". +a+b(a(bA b)b A)a-b-a"),
        ("AbAb", {"a": (0, 2)}, "+a+b(a(bA b)b A)a-a (bb)b-b"),
        ("AbAb", {"a": (0, 2), "b": (1, 3)}, "+a+b(a(bA b A)a b)b-b-a"),
        ("AbbcAc", {"a": (0, 4), "c": (3, 5)}, "+a+b+c(a(b(cA b b)b c A)a c)c-c-b-a"),
        ("bAbA", {"a": (1, 3)}, "+b(bb)b +a(b(aA b)b A)a-a-b"),
        ("AbcbA", {"a": (0, 4)}, "+a+b+c(a(b(cA b c)c b)b A)a-c-b-a"),
        ("AAbb", {"a": (0, 1), "b": (2, 3)}, "+a(aA A)a-a +b(bb b)b-b"),
    ],
)
def test_devices_that_are_open_at_once_are_opened_together(
    text: str, held: dict[str, tuple[int, int]], expected: str
) -> None:
    lives = {device: (Lifetime(first=first, last=last),) for device, (first, last) in held.items()}
    activities = {
        device: Activity(held=lives.get(device, ())) for device in dict.fromkeys(text.lower()) if device != "."
    }
    assert spelled(schedule(uses(text), activities=activities)) == expected


def test_the_members_of_a_pool_are_activated_together() -> None:
    activities = {"a": Activity(pool=("a", "b", "c"))}
    assert spelled(schedule(uses("aa"), activities=activities)) == "+a+b+c(aa a)a-c-b-a"


def test_at_one_place_devices_come_in_their_order_and_go_in_reverse() -> None:
    activities = {"b": Activity(lead=9), "a": Activity(lead=9)}
    assert spelled(schedule(uses(".a.b"), activities=activities)) == "+b+a (aa)a-a . (bb)b-b"


@pytest.mark.parametrize(
    ("first", "last", "stays"), [(0, 2, True), (0, 3, True), (0, 1, False), (1, 2, False), (2, 2, False)]
)
def test_a_device_stays_open_while_its_memory_holds_a_tensor(first: int, last: int, stays: bool) -> None:
    activities = {"a": Activity(held=(Lifetime(first=first, last=last),))}
    expected = "+a(aa . a)a-a" if stays else "+a(aa)a . (aa)a-a"
    assert spelled(schedule(uses("a.a"), activities=activities)) == expected


def test_a_device_without_operators_is_left_alone() -> None:
    assert schedule(uses("a"), activities={"a": Activity(), "b": Activity(lead=2)}) == schedule(uses("a"))


USES = st.lists(st.sampled_from([None, *(Use(device=d, call=c) for d in "abc" for c in (Call.COPY_TO, Call.RUN))]))
ACTIVITIES = st.dictionaries(
    st.sampled_from("abc"),
    st.builds(
        Activity,
        lead=st.integers(0, 5),
        held=st.tuples(
            st.builds(lambda a, b: Lifetime(first=min(a, b), last=max(a, b)), st.integers(0, 9), st.integers(0, 9))
        ),
    ),
)


@given(USES, st.sets(st.integers(0, 9)), ACTIVITIES)
def test_every_schedule_keeps_to_the_state_machine(
    operators: Sequence[Use | None], idle: set[int], activities: dict[str, Activity]
) -> None:
    planned = schedule(operators, idle=[index for index in idle if index < len(operators)], activities=activities)
    active: set[str] = set()
    opened: set[str] = set()
    activations: dict[str, int] = {}
    for index, (step, use) in enumerate(zip(planned.steps, operators, strict=True)):
        before = frozenset(opened)
        for call in step.calls:
            assert call.operator == index
            match call.call:
                case Call.ACTIVATE:
                    assert call.device not in active
                    assert not opened, "an activation may wait"
                    active.add(call.device)
                    activations[call.device] = index
                case Call.OPEN:
                    assert call.device in active - opened
                    assert not before, "not opened as a set"
                    opened.add(call.device)
                case Call.CLOSE:
                    assert call.device in opened
                    opened.remove(call.device)
                case Call.DEACTIVATE:
                    assert call.device in active
                    assert not opened, "a deactivation may wait"
                    active.remove(call.device)
                case _:
                    assert use is not None
                    assert (call.device, call.call) == (use.device, use.call)
                    assert call.device in opened
        assert (step.own is None) == (use is None)
    assert active == opened == set()
    for device, activated in activations.items():
        first = next(index for index, use in enumerate(operators) if use is not None and use.device == device)
        wanted = max(first - activities.get(device, Activity()).lead, 0)
        moved = any(call.call is Call.OPEN for call in planned.steps[activated].calls)
        assert activated == wanted or (moved and activated < wanted)


def test_calls_have_the_numbers_of_c() -> None:
    header = (root() / "include/ferrule/executor.h").read_text()
    found = {name: int(value) for name, value in re.findall(r"FERRULE_CALL_(\w+) = (\d+),", header)}
    assert found == {call.name: call.value for call in Call}


def test_results_that_are_collected_later() -> None:
    """A device stays open until the last result is collected; results of one device keep their order."""

    def begun(device: str, end: int) -> Use:
        return Use(device=device, call=Call.RUN, end=end)

    planned = schedule([begun("a", 2), begun("b", 1), None, begun("a", 4), begun("a", 4), None, None])
    assert [
        [str(call) for call in step.calls if call.call in {Call.RUN, Call.FINISH, Call.CLOSE}] for step in planned.steps
    ] == [
        ["0 a run"],
        ["1 b run", "1 b finish", "1 b close"],
        ["0 a finish"],
        ["3 a run"],
        ["4 a run", "3 a finish", "4 a finish", "4 a close"],
        [],
        [],
    ]
