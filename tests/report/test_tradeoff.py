# SPDX-License-Identifier: Apache-2.0
"""Charts of what can be chosen: the front, the chosen one, limits, and what is not drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_reader import Page
from saved_documents import search_document, sweep_document

from ferrule.report import tradeoff
from ferrule.report.base import Document
from ferrule.report.html import html_page
from ferrule.report.html.charts import HEIGHT, ticks, tradeoff_chart
from ferrule.report.search_document import SearchDocument
from ferrule.report.sections import Only, Part, Picture, Section
from ferrule.report.sweep_document import SweepDocument, SweepRow
from ferrule.report.tradeoff import Axis, Choice, Mark, Tradeoff, front, with_front


def drawn(document: Document) -> list[Tradeoff]:
    """Return the data of all charts of a page."""

    def inside(section: Section) -> list[Tradeoff]:
        match section:
            case Part():
                return [each for part in section.shown(Only.PAGES) for each in inside(part)]
            case Picture(kind="tradeoff", data=Tradeoff() as data):
                return [data]
            case _:
                return []

    return inside(document.sections())


def runs(*rows: SweepRow) -> SweepDocument:
    return replace(sweep_document(), rows=rows, planned=len(rows))


def row(name: str, count: int, accuracy: float | None, **others: object) -> SweepRow:
    metrics = {} if accuracy is None else {"accuracy": accuracy}
    plain = sweep_document().rows[0]
    return replace(plain, run=name, options={"goal": name}, count=count, metrics=metrics, **others)


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), max_size=40), st.integers(0, 40))
def test_both_ways_to_find_the_front_agree(points: list[tuple[int, int, int]], few: int) -> None:
    array = np.asarray(points, np.float64).reshape(-1, 3)

    def dominates(one: Sequence[int], other: Sequence[int]) -> bool:
        return one != other and all(a <= b for a, b in zip(one, other, strict=True))

    expected = [not any(dominates(other, each) for other in points) for each in points]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tradeoff, "_FEW", few)
        assert front(array).tolist() == expected


def test_what_exceeds_a_limit_or_lacks_a_number_is_not_on_the_front() -> None:
    value, cost = Axis(name="accuracy", better="higher"), Axis(name="time")
    choices = [
        Choice(name="a", values={"accuracy": 0.5, "time": 1.0}),
        Choice(name="b", values={"accuracy": 0.4, "time": 2.0}),
        Choice(name="c", values={"accuracy": 0.9, "time": 0.5}, mark=Mark.OVER),
        Choice(name="d", values={"accuracy": 0.9}),
        Choice(name="e", values={"accuracy": math.nan, "time": 0.1}),
    ]
    marks = [each.mark for each in with_front(choices, (value, cost))]
    assert marks == [Mark.FRONT, Mark.OTHER, Mark.OVER, Mark.OTHER, Mark.OTHER]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5))
def test_ticks_are_even_and_enclose_the_values(values: list[float]) -> None:
    found = ticks(values)
    assert 2 <= len(found) <= 6
    assert all(one < other for one, other in pairwise(found))
    slack = 1e-9 * max(map(abs, (*values, *found)))
    assert found[0] <= min(values) + slack
    assert found[-1] >= max(values) - slack


def test_a_search_names_the_chosen_trial_and_its_limits() -> None:
    (data,) = drawn(search_document())
    assert [each.mark for each in data.choices] == [Mark.FRONT, Mark.CHOSEN, Mark.OTHER, Mark.OVER, Mark.BUILT]
    assert data.caption.startswith("4 trials, 2 on the front")
    assert "Chosen: 1 int16, 1 int8." in data.caption
    chart = tradeoff_chart(data)
    assert [panel.title for panel in chart.panels] == [
        "accuracy against time, ms",
        "accuracy against flash, B",
        "accuracy against RAM, B",
    ]
    time, flash, ram = chart.panels
    assert time.limit is not None
    assert time.limit[1] == "limit 10"
    assert time.note == "1 trial without a value is not drawn."
    assert flash.limit is not None
    assert flash.limit[0] == pytest.approx(0.4)
    assert (ram.limit, ram.note) == (None, "")
    assert [dot.mark for dot in flash.dots] == ["other", "over", "front", "chosen", "built"]
    assert flash.dots[-1].tip == "1 int16, 1 int8: accuracy 0.9, flash 36,000 B (built and run)"
    assert flash.summary.endswith("the best go from accuracy 0.8 at 20,000 B to accuracy 0.9 at 30,000 B")


def test_marks_differ_by_their_shapes() -> None:
    page = html_page(search_document())
    shapes = {}
    for mark in ("other", "over", "front", "chosen", "built"):
        start = page.index(f'<svg class="mark {mark}" x="9"')
        shapes[mark] = page[page.index(">", start) + 1 : page.index("</svg>", start)].replace(' class="ring"', "")
    assert len({*shapes.values()}) == 5
    text = Page(page).text
    assert "dominated over a limit front chosen built and run" in text
    assert "The same as a table" in text
    assert "1 float 0.95" not in text
    assert "2 float 0.95 – 90,000 30,000 over a limit" in text, "a time that is not known is none"


def test_a_search_without_a_choice_marks_none() -> None:
    (data,) = drawn(search_document(chosen=False))
    assert {each.mark for each in data.choices} == {Mark.FRONT, Mark.OTHER, Mark.OVER}
    assert "Chosen" not in data.caption


def test_without_labels_less_noise_is_better() -> None:
    document = replace(search_document(), metric="")
    (data,) = drawn(document)
    assert (data.value.name, data.value.better) == ("noise", "lower")
    assert "2 float" not in [each.name for each in data.choices if "noise" in each.values]


def test_the_front_begins_with_the_least_error() -> None:
    worse, better = (replace(each, metric=float(index)) for index, each in enumerate(search_document().trials[:2]))
    document: SearchDocument = replace(search_document(), metric="mae", trials=(better, worse))
    text = Page(html_page(document)).text
    front_of = text[text.index("blocks mae noise") :]
    assert front_of.index("2 int8 0") < front_of.index("1 int16, 1 int8 1")
    assert {each.better for each in document.measures() if each.scope == "metric"} == {"lower"}


def test_a_sweep_has_the_front_of_what_its_runs_take() -> None:
    document = runs(
        row("a", 400, 0.5), row("b", 500, 0.6), row("c", 600, 0.55), row("d", 300, 0.9, verdict="different")
    )
    (data,) = drawn(document)
    assert [(each.name, each.mark) for each in data.choices] == [
        ("goal=a", Mark.FRONT),
        ("goal=b", Mark.FRONT),
        ("goal=c", Mark.OTHER),
    ]
    text = Page(html_page(document)).text
    assert "1 run that failed, differed or compared nothing is not drawn." in text
    assert "run accuracy time, instructions RAM, B flash, B goal=b 0.6 500 34,040 42,000 goal=a 0.5 400" in text


def test_a_missed_deadline_is_over_a_limit() -> None:
    (data,) = drawn(runs(row("a", 400, 0.5), row("b", 500, 0.6, judgement="missed")))
    assert [each.mark for each in data.choices] == [Mark.FRONT, Mark.OVER]


def test_a_run_without_the_metric_is_not_drawn_and_counted() -> None:
    (data,) = drawn(runs(row("a", 400, 0.5), row("b", 500, 0.6), row("c", 100, None)))
    assert tradeoff_chart(data).panels[0].note == "1 run without a value is not drawn."


def test_instructions_and_cycles_are_in_no_picture_together() -> None:
    (data,) = drawn(runs(row("a", 400, 0.5), row("b", 500, 0.6), row("c", 100, 0.4, unit="cycles")))
    assert "time" not in data.choices[2].values
    timed = [row(name, 400, 0.5 + 0.1 * ms, unit="cycles", milliseconds=ms) for name, ms in (("a", 1.0), ("b", 2.0))]
    (data,) = drawn(runs(*timed))
    assert data.costs[0].label == "time, ms"


def test_without_a_metric_the_time_stands_against_the_memory() -> None:
    fast, small = row("a", 400, None), row("b", 500, None, ram_bytes=1_000)
    (data,) = drawn(runs(fast, small))
    assert (data.value.name, [cost.name for cost in data.costs]) == ("time", ["RAM"])
    assert [each.mark for each in data.choices] == [Mark.FRONT, Mark.FRONT]


def test_each_board_has_a_chart_and_equal_runs_none() -> None:
    assert drawn(runs(row("a", 400, 0.5), row("b", 400, 0.5))) == []
    boards = [row(name, count, 0.5, board=f"b{index}") for index in range(10) for name, count in (("a", 1), ("b", 2))]
    document = runs(*boards)
    assert len(drawn(document)) == 8
    assert "2 more boards: a sweep of each draws them." in Page(html_page(document)).text


def test_very_many_runs_are_drawn_by_their_front_first() -> None:
    rows = [row(str(index), 1_000 + index, 0.5 + (index == 999) / 10) for index in range(1_000)]
    (data,) = drawn(runs(*rows))
    (panel,) = tradeoff_chart(data).panels
    assert len(panel.dots) == 400
    assert panel.note == "600 more are not drawn."
    assert [dot.mark for dot in panel.dots[-2:]] == ["front", "front"]


def test_a_metric_has_a_bar() -> None:
    page = html_page(runs(row("a", 400, 0.5), row("b", 500, 0.25)))
    assert '0.25<span class="bar"><span class="c7" style="width:50%">' in page


def test_dots_lie_where_their_values_are() -> None:
    choices = [Choice(name=str(x), values={"v": x, "c": 10 * x}) for x in (0.0, 1.0, 2.0)]
    (panel,) = tradeoff_chart(Tradeoff(noun="x", value=Axis(name="v"), costs=[Axis(name="c")], choices=choices)).panels
    assert [(dot.x, dot.y) for dot in panel.dots] == [(0.0, HEIGHT), (0.5, HEIGHT / 2), (1.0, 0.0)]
    assert (panel.down[0], panel.down[-1], panel.across[-1]) == ("2", "0", "20")
