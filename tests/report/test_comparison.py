# SPDX-License-Identifier: Apache-2.0
"""What a comparison of documents states, and what it allows."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from saved_documents import (
    documents,
    evaluation_document,
    inspection_document,
    quantization_document,
    run_document,
    search_document,
    sweep_document,
)

from ferrule.errors import FerruleError
from ferrule.report import LayerPart, ReportDocument, Verdict
from ferrule.report.comparison import compare_documents
from ferrule.report.comparison_document import MATTERS, Change, ChangePart, Comparison
from ferrule.report.console import print_report
from ferrule.report.evaluation_document import EvaluationDocument
from ferrule.report.limits import Limits, parse_limits
from ferrule.report.sections import Cell, State

RUN = run_document()
MINE = "kws.tflite mps2-an386 unicorn zig CpuAcc,Npu goal=speed"


def changed(comparison: Comparison) -> dict[str, ChangePart]:
    """Return what has changed, by place and counter."""
    return {
        f"{each.place} {each.counter}".strip(): each for each in comparison.changes if each.change is not Change.EQUAL
    }


def counting(count: int, document: ReportDocument = RUN) -> ReportDocument:
    return replace(document, count=replace(document.count, per_inference=count))


def layers(*names: str, types: str = "CONV_2D") -> ReportDocument:
    """Return a run with these layers, whose counts are 100, 101 and so on."""
    layer = RUN.layers[0]
    made: tuple[LayerPart, ...] = tuple(
        replace(layer, name=name, index=index, count=100 + index, type=types) for index, name in enumerate(names)
    )
    return replace(RUN, layers=made)


@pytest.mark.parametrize(
    "name", ["run", "different run", "inspection", "evaluation", "sweep", "quantization", "search"]
)
def test_a_document_equals_itself(name: str) -> None:
    document = documents()[name]
    counts_layers = name in {"run", "different run", "evaluation"}
    comparison = compare_documents(document, document, parse_limits(["0", *(["layer=0"] * counts_layers)]))
    assert changed(comparison) == {}
    assert not comparison.failed
    assert comparison.differences == ()
    assert len(comparison.changes) > 4


@given(st.integers(1, 10**12), st.integers(1, 10**12), st.integers(0, 200))
def test_a_limit_is_a_share_of_the_old_value(old: int, new: int, percent: int) -> None:
    comparison = compare_documents(counting(old), counting(new), parse_limits([f"instructions={percent}%"]))
    assert comparison.failed == (new - old > percent / 100 * old)
    backwards = compare_documents(counting(new), counting(old))
    if old != new:
        states = changed(comparison)["instructions"].change, changed(backwards)["instructions"].change
        assert set(states) == {Change.BETTER, Change.WORSE}


@pytest.mark.parametrize(
    ("limits", "new", "failed"),
    [
        ([], 800, False),
        (["1%"], 404, False),
        (["1%"], 405, True),
        (["1%"], 300, False),
        (["instructions=5%", "1%"], 420, False),
        (["5%,instructions=1%"], 420, True),
        (["flash=0"], 800, False),
        (["INSTRUCTIONS=20"], 420, False),
        (["instructions=20"], 421, True),
        (["layer=0"], 800, False),
    ],
)
def test_a_counter_has_its_own_limit_or_that_of_all(limits: list[str], new: int, failed: bool) -> None:
    assert compare_documents(RUN, counting(new), parse_limits(limits)).failed == failed


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("much", "'much' is not a limit"),
        ("", "'' is not a limit"),
        ("-1%", "'-1%' is not a limit"),
        ("nan", "'nan' is not a limit"),
        ("inf%", "'inf%' is not a limit"),
        ("flash=", "'' is not a limit"),
        ("=1%", "'=1%' names no counter"),
        ("1%,2%", "all counters has two limits"),
        ("flash=0,FLASH=1", "flash has two limits"),
    ],
)
def test_a_limit_that_is_none_is_refused(option: str, message: str) -> None:
    with pytest.raises(FerruleError, match=message) as caught:
        parse_limits([option])
    assert f"limit {option}" in str(caught.value)


def test_a_limit_for_no_counter_is_refused() -> None:
    with pytest.raises(FerruleError, match="there is no counter 'flsh'") as caught:
        compare_documents(RUN, RUN, parse_limits(["flsh=1%"]))
    assert caught.value.hint == "did you mean flash?"


def test_from_nothing_any_growth_is_over_a_percentage() -> None:
    old = replace(RUN, memory=replace(RUN.memory, ram=replace(RUN.memory.ram, stack_used=0)))
    comparison = compare_documents(old, RUN, parse_limits(["1000%"]))
    assert [change.counter for change in comparison.changes if change.failed] == ["stack"]
    assert changed(comparison)["stack"].relative is None


def test_a_verdict_may_not_become_different() -> None:
    bad = run_document(verdict=Verdict.DIFFERENT)
    assert compare_documents(RUN, bad).failed
    assert not compare_documents(bad, RUN).failed
    assert not compare_documents(bad, bad).failed
    near = replace(RUN, verdict=Verdict.WITHIN_BOUND)
    assert changed(compare_documents(RUN, near))["verdict"].change is Change.WORSE
    assert not compare_documents(RUN, near).failed


def test_a_part_of_the_flash_has_no_limit_but_its_own() -> None:
    flash = RUN.memory.flash
    assert flash is not None
    moved = replace(flash, code=flash.code + 5_000, weights=flash.weights - 5_000)
    new = replace(RUN, memory=replace(RUN.memory, flash=moved))
    assert not compare_documents(RUN, new, parse_limits(["0"])).failed
    assert compare_documents(RUN, new, parse_limits(["code=0"])).failed


def test_layers_are_matched_by_name() -> None:
    comparison = compare_documents(layers("a", "b", "c"), layers("b", "a", "d", "c"), parse_limits(["layer=0"]))
    found = {each.place: each.change for each in changed(comparison).values()}
    assert found == {"b": Change.BETTER, "a": Change.WORSE, "c": Change.WORSE, "d": Change.ADDED}
    assert [each.place for each in comparison.changes if each.failed] == ["a", "c"]


def test_a_layer_between_the_same_neighbours_is_renamed() -> None:
    comparison = compare_documents(layers("a", "b", "c"), layers("a", "x", "c"))
    (change,) = [each for each in comparison.changes if each.place == "x"]
    assert (change.old, change.new, change.note, change.change) == (101, 101, "was 'b'", Change.OTHER)
    other = compare_documents(layers("a", "b", "c"), layers("a", "x", "y", "c"))
    states = {each.place: each.change for each in other.changes if each.place in {"b", "x", "y"}}
    assert states == {"b": Change.REMOVED, "x": Change.ADDED, "y": Change.ADDED}
    retyped = compare_documents(layers("b"), layers("x", types="ADD"))
    assert {each.change for each in retyped.changes if each.place} == {Change.ADDED, Change.REMOVED}


def test_equal_names_are_told_apart() -> None:
    comparison = compare_documents(layers("a", "a"), layers("a", "a"))
    assert [each.place for each in comparison.changes if each.scope == "layer"] == ["a", "a (2)"]


def test_other_conditions_are_stated() -> None:
    build = replace(RUN.build, board="other", toolchain_version="gcc 14")
    new = replace(RUN, build=build, engine="qemu", ferrule_version="0.2.0", model=replace(RUN.model, digest="ff"))
    assert compare_documents(RUN, new).differences == (
        "The board differs: mps2-an386, now other.",
        "The engine differs: unicorn, now qemu.",
        "The compiler differs: zig 0.17.0 Os, now gcc 14 Os.",
        "Ferrule differs: 0.1.0, now 0.2.0.",
        "The model's contents differ: its digest is another one.",
    )


def test_instructions_are_not_compared_with_cycles() -> None:
    new = replace(RUN, count=replace(RUN.count, unit="cycles"))
    assert not compare_documents(RUN, new).failed
    comparison = compare_documents(RUN, new, parse_limits(["1%"]))
    assert [(each.counter, each.note) for each in comparison.changes if each.failed] == [
        ("instructions", "it cannot be compared with its limit")
    ]
    assert comparison.differences == ("One counts instructions and the other cycles, so that these are not compared.",)
    states = {each.counter: each.change for each in comparison.changes if each.counter in {"instructions", "cycles"}}
    assert states == {"instructions": Change.REMOVED, "cycles": Change.ADDED}


def test_other_models_are_refused_unless_they_are_asked_for() -> None:
    other = replace(RUN, model=replace(RUN.model, name="vww", digest="ff" * 32))
    with pytest.raises(FerruleError, match=r"is of the model 'kws\.v1', the new one of 'vww'") as caught:
        compare_documents(RUN, other)
    assert caught.value.hint == "other_model=True compares them nevertheless"
    assert compare_documents(RUN, other, other_model=True).differences == ("The model differs: kws.v1, now vww.",)
    renamed = replace(RUN, model=replace(RUN.model, name="kws2"))
    assert compare_documents(RUN, renamed).differences == ("The model differs: kws.v1, now kws2.",)
    with pytest.raises(FerruleError, match="the new one of 'b'"):
        compare_documents(inspection_document(), inspection_document("b"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("run", "sweep", "the old document is of kind 'run', the new one of kind 'sweep'"),
        ("quantization", "evaluation", "the old document is of kind 'quantization', the new one of kind 'evaluation'"),
        ("failure", "failure", "a failure cannot be compared"),
        ("comparison", "comparison", "a comparison cannot be compared"),
    ],
)
def test_documents_that_do_not_go_together_are_refused(old: str, new: str, message: str) -> None:
    with pytest.raises(FerruleError, match=message):
        compare_documents(documents()[old], documents()[new])


@pytest.mark.parametrize(("new", "significant"), [(0.88, "not significant"), (0.7, "significant")])
def test_a_metric_states_whether_its_change_is_significant(new: float, significant: str) -> None:
    comparison = compare_documents(evaluation_document(), evaluation_document(accuracy=new), parse_limits(["5%"]))
    change = changed(comparison)["accuracy"]
    assert change.change is Change.WORSE
    assert change.note.startswith(f"{significant}: the intervals")
    assert comparison.failed == (new < 0.855)


def test_an_error_that_grows_is_worse() -> None:
    document = evaluation_document()
    metric = replace(document.metrics[0], name="mae", better="lower")
    old, new = (replace(document, metrics=(replace(metric, value=value),)) for value in (1.0, 2.0))
    assert changed(compare_documents(old, new))["mae"].change is Change.WORSE


def test_other_data_are_stated() -> None:
    document = evaluation_document()
    other = replace(document, data=replace(document.data, digest="00"))
    assert compare_documents(document, other).differences == (
        "The data differ: the metrics are those of other samples.",
    )


def test_the_runs_of_sweeps_are_matched_by_their_choices() -> None:
    old = sweep_document()
    done, different, failed = old.rows
    new = replace(
        old,
        rows=(
            replace(failed, status="done", verdict="exact", error="", count=7),
            replace(done, count=800, run="another digest"),
            replace(different, board="another"),
        ),
    )
    comparison = compare_documents(old, new, parse_limits(["1%"]))
    states = {(each.place.split()[2], each.counter): each for each in changed(comparison).values()}
    assert states["unicorn", "instructions"].failed
    assert states["renode", "verdict"].change is Change.BETTER
    assert {each.change for each in changed(comparison).values() if " qemu " in each.place} == {
        Change.ADDED,
        Change.REMOVED,
    }
    assert compare_documents(new, old).failed


def test_a_metric_that_is_undefined_now_is_over_its_limit() -> None:
    old = evaluation_document()
    new = replace(old, metrics=(replace(old.metrics[0], value=None),))
    assert compare_documents(old, new).uncompared == ("The new document lacks the metric 'accuracy'.",)
    limited = compare_documents(old, new, parse_limits(["accuracy=10%"]))
    assert limited.worse
    assert limited.uncompared[-1] == "The limit accuracy (10%) has nothing to judge."


def without_proof(document: EvaluationDocument) -> EvaluationDocument:
    return replace(document, proof=None)


def without_metrics(document: EvaluationDocument) -> EvaluationDocument:
    return replace(document, metrics=(), float_model=None)


@pytest.mark.parametrize("lose", [without_proof, without_metrics])
@pytest.mark.parametrize("limits", [[], ["1%"]])
def test_what_one_document_lacks_is_no_success(
    lose: Callable[[EvaluationDocument], EvaluationDocument], limits: list[str]
) -> None:
    whole = evaluation_document()
    less = lose(whole)
    for old, new in ((whole, less), (less, whole)):
        comparison = compare_documents(old, new, parse_limits(limits))
        assert comparison.uncompared
        assert comparison.failed
    assert not compare_documents(whole, whole, parse_limits(limits)).failed
    assert not compare_documents(less, less, parse_limits(limits)).failed


def test_documents_without_a_value_in_common_are_not_compared() -> None:
    whole, sweep = evaluation_document(), sweep_document()
    bare = without_metrics(without_proof(whole))
    none = "The documents have no value in common."
    assert compare_documents(bare, bare).uncompared == (none,)
    empty = replace(sweep, rows=(), planned=0)
    assert compare_documents(empty, empty).uncompared == (none,)
    for old, new in ((sweep, empty), (empty, sweep)):
        assert compare_documents(old, new).uncompared == (none, "No run is in both documents.")
    other = replace(sweep, rows=tuple(replace(row, board="another") for row in sweep.rows))
    assert "No run is in both documents." in compare_documents(sweep, other).uncompared
    assert not compare_documents(sweep, replace(sweep, rows=sweep.rows[:2]), parse_limits([])).uncompared


def test_a_limit_that_judges_nothing_is_no_success() -> None:
    sweep, whole = sweep_document(), evaluation_document()
    assert compare_documents(sweep, sweep, parse_limits(["layer=0"])).uncompared == (
        "The limit layer (0) has nothing to judge.",
    )
    assert not compare_documents(whole, whole, parse_limits(["proof=0", "layer=0"])).uncompared
    gone = compare_documents(whole, without_proof(whole), parse_limits(["proof=0"]))
    assert gone.uncompared[-1] == "The limit proof (0) has nothing to judge."


def test_a_run_without_a_verdict_is_worse() -> None:
    sweep = sweep_document()
    silent = replace(sweep, rows=(replace(sweep.rows[0], verdict=""), *sweep.rows[1:]))
    assert compare_documents(sweep, silent).worse
    run = replace(RUN, verdict=Verdict.NOTHING_COMPARED)
    assert compare_documents(RUN, run).worse
    assert not compare_documents(run, RUN).worse


def test_a_named_counter_without_a_better_direction_may_not_change() -> None:
    document = sweep_document()
    old, new = (replace(document, rows=(replace(document.rows[0], metrics={"mine": x}),)) for x in (1.0, 0.5))
    assert changed(compare_documents(old, new, parse_limits(["1%"])))[f"{MINE} mine"].change is Change.OTHER
    assert not compare_documents(old, new, parse_limits(["1%"])).failed
    for first, second in ((old, new), (new, old)):
        assert compare_documents(first, second, parse_limits(["mine=1%"])).failed


def test_inspections_are_compared() -> None:
    old = inspection_document()
    comparison = compare_documents(old, replace(old, macs=2_000), parse_limits(["1%"]))
    assert list(changed(comparison)) == ["MACs"]
    assert comparison.failed


def printed(comparison: Comparison, width: int) -> str:
    from rich.console import Console

    stream = io.StringIO()
    print_report(comparison, Console(file=stream, width=width))
    return stream.getvalue()


def test_a_terminal_shows_what_has_changed() -> None:
    comparison = compare_documents(RUN, counting(500), parse_limits(["1%"]))
    lines = printed(comparison, 100).splitlines()
    (row,) = [line for line in lines if "instructions" in line]
    assert [cell.strip() for cell in row.split("│")[1:5]] == ["instructions", "400", "500", "+25.00%"]
    assert lines[-1] == "comparison: 1 value worse than allowed"
    assert "13 values are equal" in lines
    assert "too narrow" not in printed(comparison, 80)
    assert all(len(line) <= 80 for line in printed(comparison, 80).splitlines())
    assert printed(compare_documents(RUN, RUN), 80).splitlines() == [
        "14 values are equal",
        "compared: 14 values, 2 layers",
        "comparison: within the limits",
    ]


def test_names_cannot_mark_up_the_terminal() -> None:
    old = layers("a", "b", "c")
    new = replace(layers("a", "[red]x[/]", "\x1b[31m\nc"), engine="[bold]")
    text = printed(compare_documents(old, new), 160)
    assert "[red]x[/]" in text
    assert "[bold]" in text
    assert "\x1b" not in text


def test_without_limits_all_may_change() -> None:
    assert Limits().of("whole", "instructions") is None


@pytest.mark.parametrize(
    ("change", "text", "state"),
    [
        ({"old": 10_000, "new": 9_994, "relative": -0.0006, "change": Change.BETTER}, "better, below 0.5%", None),
        ({"old": 10_000, "new": 9_950, "relative": -0.005, "change": Change.BETTER}, "better", State.GOOD),
        ({"old": 10_000, "new": 10_040, "relative": 0.004, "change": Change.WORSE}, "worse, below 0.5%", None),
        ({"old": 10_000, "new": 10_060, "relative": 0.006, "change": Change.WORSE}, "worse", State.WARN),
        ({"old": 0, "new": 1, "change": Change.WORSE}, "worse", State.WARN),
        (
            {"old": 0.8, "new": 0.9, "relative": 0.125, "change": Change.BETTER, "significant": False},
            "better, not significant",
            None,
        ),
        (
            {"old": 0.8, "new": 0.9, "relative": 0.125, "change": Change.BETTER, "significant": True},
            "better",
            State.GOOD,
        ),
        (
            {"old": 10_000, "new": 10_001, "relative": 0.0001, "change": Change.WORSE, "failed": True, "limit": "0"},
            "worse than allowed (limit 0)",
            State.BAD,
        ),
        ({"old": "exact", "new": "different", "change": Change.WORSE}, "worse", State.WARN),
    ],
)
def test_a_change_that_does_not_matter_has_no_colour(change: dict[str, Any], text: str, state: State | None) -> None:
    assert ChangePart(scope="whole", counter="instructions", **change).row[4] == Cell(text, state)


def test_the_page_of_comparisons_states_what_matters() -> None:
    page = " ".join((Path(__file__).parents[2] / "docs" / "reports.md").read_text(encoding="utf-8").split())
    assert f"changes by less than {MATTERS:.1%}" in page


def test_two_quantisations_show_their_ranges_and_the_noise_of_each_layer() -> None:
    old = quantization_document()
    worse = replace(old.losses[1], error=0.9, own_error=0.1)
    new = replace(old, ranges="mse", losses=(old.losses[0], worse), integer_bytes=1_100)
    found = changed(compare_documents(old, new))
    assert (found["ranges"].old, found["ranges"].new, found["ranges"].change) == ("minmax", "mse", Change.OTHER)
    assert found["conv_2d_0 SQNR"].change is Change.WORSE
    assert found["conv_2d_0 own SQNR"].change is Change.ADDED
    assert found["constants"].change is Change.WORSE
    assert compare_documents(old, new, parse_limits(["constants=5%"])).worse
    assert not compare_documents(old, new, parse_limits(["constants=10%"])).worse


def test_two_searches_show_what_was_chosen_and_their_fronts() -> None:
    old = search_document()
    first, second, *others = old.trials
    new = replace(
        old,
        budget={"flash": 50_000, "ms": 10.0},
        measured={"flash": 45_000, "ms": 9.0},
        trials=(replace(first, metric=0.85), replace(second, front=False), *others),
    )
    comparison = compare_documents(old, new, parse_limits(["10%"]))
    found = changed(comparison)
    assert found["2 int8 accuracy"].change is Change.BETTER
    assert found["1 int16, 1 int8 accuracy"].change is Change.REMOVED
    assert not found["1 int16, 1 int8 accuracy"].failed, "a front may change at will"
    assert found["budget of flash"].change is Change.OTHER
    assert found["flash"].failed, "25 % more"
    assert [each.counter for each in comparison.changes if each.failed] == ["flash"]


def test_a_search_that_no_longer_keeps_its_budget_is_worse() -> None:
    comparison = compare_documents(search_document(), search_document(chosen=False))
    assert comparison.failed
    assert changed(comparison)["verdict"].new == "failed"
