# SPDX-License-Identifier: Apache-2.0
"""The lanes of tests and their table of durations."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
from lanes import (
    TABLE,
    Duration,
    Durations,
    Table,
    fingerprint,
    key,
    lane,
    missing_tests,
    read_table,
    updated,
    write_table,
)

pytest_plugins = "pytester"
ROOT = Path(__file__).parents[2]
GOAL_S = 5 * 60
"""Wall-clock time limit of `make test`."""
CORES = 2
SHARE = 0.75
"""Share of the processor time; the rest is for sentinels, short tests, and test collection."""


def row(longest_s: float, total_s: float) -> Duration:
    return Duration(longest_s=longest_s, total_s=total_s)


def listed(short: tuple[str, ...] = (), **rows: Duration) -> Durations:
    return Durations(rows, frozenset(map(fingerprint, short)))


def test_the_table_names_only_tests_that_exist() -> None:
    """To drop the others, run any test with `pytest --write-durations`."""
    assert missing_tests(read_table(ROOT), ROOT) == []


@pytest.mark.parametrize(("lanes", "goal_s"), [({"fast"}, 60), ({"fast", None}, GOAL_S)])
def test_lanes_end_in_time_by_the_table(lanes: set[str | None], goal_s: float) -> None:
    rows = [each for durations in read_table(ROOT).values() for each in durations.rows.values()]
    assert sum(each.total_s for each in rows if lane(each) in lanes) < goal_s * CORES * SHARE


@pytest.mark.parametrize(
    ("duration", "mark"),
    [
        (None, "slow"),
        (Duration(longest_s=0, total_s=0), "fast"),
        (row(0.07, 20), "fast"),
        (row(0.08, 0.08), None),
        (row(0.14, 5), None),
        (row(0.15, 0.15), "slow"),
    ],
)
def test_the_longest_of_a_function_decides(duration: Duration | None, mark: str | None) -> None:
    assert lane(duration) == mark


@pytest.mark.parametrize(
    ("node_id", "expected"),
    [
        ("tests/a.py::test_b", ("tests/a.py", "test_b")),
        ("tests/a.py::test_b[x::y]", ("tests/a.py", "test_b")),
        ("tests/a.py::Class::test_b[1-[]]", ("tests/a.py", "Class::test_b")),
    ],
)
def test_parameters_do_not_count(node_id: str, expected: tuple[str, str]) -> None:
    assert key(node_id) == expected


HERE = "tests/testing/test_lanes.py"
FIRST, SECOND = "test_parameters_do_not_count", "test_figures_that_hardly_change_stay"
THIRD = "test_what_did_not_run_stays"


def test_figures_that_hardly_change_stay() -> None:
    table: Table = {HERE: listed(**{FIRST: row(2.0, 4.0)})}
    assert (
        updated(table, ROOT, [(f"{HERE}::{FIRST}[a]", row(1.5, 1.5)), (f"{HERE}::{FIRST}[b]", row(2.9, 2.9))]) == table
    )
    assert updated(
        table, ROOT, [(f"{HERE}::{FIRST}[a]", row(3.456, 3.456)), (f"{HERE}::{FIRST}[b]", row(1.0, 1.0))]
    ) == {HERE: listed(**{FIRST: row(3.5, 4.5)})}


def test_what_did_not_run_stays() -> None:
    table: Table = {HERE: listed((THIRD,), **{FIRST: row(2.0, 4.0)})}
    assert updated(table, ROOT, [(f"{HERE}::{SECOND}", row(1.0, 1.0))]) == {
        HERE: listed((THIRD,), **{SECOND: row(1.0, 1.0), FIRST: row(2.0, 4.0)})
    }


@pytest.mark.parametrize(
    ("measured", "was_short", "short"),
    [
        (row(0.01, 0.04), False, True),
        (row(0.01, 0.06), False, False),
        (row(0.01, 0.06), True, True),
        (row(0.01, 0.08), True, False),
        (row(0.08, 0.01), True, False),
    ],
)
def test_short_functions_stay_short_near_the_limit(measured: Duration, was_short: bool, short: bool) -> None:
    table: Table = {HERE: listed((FIRST,))} if was_short else {}
    expected = listed((FIRST,)) if short else listed(**{FIRST: measured})
    assert updated(table, ROOT, [(f"{HERE}::{FIRST}", measured)]) == {HERE: expected}


def test_what_is_gone_is_dropped() -> None:
    table: Table = {
        HERE: listed(("test_short_that_was_here",), **{FIRST: row(2.0, 2.0), "test_that_was_here": row(1.0, 1.0)}),
        "tests/test_file_that_was_here.py": listed(("test_b",), test_a=row(1.0, 1.0)),
    }
    assert len(missing_tests(table, ROOT)) == 4
    assert updated(table, ROOT, [(f"{HERE}::{FIRST}", row(0.01, 0.01))]) == {HERE: listed((FIRST,))}


def test_inherited_tests_are_kept(tmp_path: Path) -> None:
    inherited = listed(("TestIt::test_short",), **{"TestIt::test_long": row(1.0, 1.0)})
    (tmp_path / "test_it.py").write_text("class TestIt(Family):\n    pass\n", encoding="utf-8")
    assert missing_tests({"test_it.py": inherited}, tmp_path) == []
    (tmp_path / "test_it.py").write_text("class TestIt:\n    pass\n", encoding="utf-8")
    assert len(missing_tests({"test_it.py": inherited}, tmp_path)) == 2


def test_the_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    table: Table = {
        HERE: listed((THIRD,), **{FIRST: row(0.5, 12.0), SECOND: row(1.0, 1.0)}),
        "tests/b.py": listed(test_c=row(0.1, 2.25)),
        "tests/c.py": listed(("test_d", "test_e")),
    }
    (tmp_path / "tests").mkdir()
    write_table(table, tmp_path)
    assert read_table(tmp_path) == table
    assert (tmp_path / TABLE).read_text().count("\n") == 13


def test_only_what_was_measured_has_a_duration() -> None:
    durations = listed((FIRST,), **{SECOND: row(1.0, 1.0)})
    assert [durations.of(name) for name in (FIRST, SECOND, THIRD)] == [row(0, 0), row(1.0, 1.0), None]


MODULE = """
import pytest

@pytest.mark.parametrize("number", range(3))
def test_short(number):
    pass

def test_long():
    pass

@pytest.mark.sentinel
def test_long_sentinel():
    pass

def test_skipped():
    pytest.skip("no")

def test_new():
    pass

@pytest.mark.sentinel
def test_new_sentinel():
    pass

@pytest.mark.nightly
def test_night():
    pass

@pytest.mark.parametrize("number", [0, pytest.param(1, marks=[pytest.mark.nightly, pytest.mark.sentinel])])
def test_partly_night(number):
    pass
"""
INI = """
[pytest]
markers =
    fast
    slow
    sentinel
    nightly
addopts = -p lanes
pythonpath = {support}
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(test_it=MODULE)
    pytester.makeini(INI.format(support=Path(__file__).parents[1] / "support"))
    pytester.mkdir("tests")
    short = ("test_short", "test_skipped", "test_night", "test_partly_night")
    rows = {"test_long": row(2.0, 2.0), "test_long_sentinel": row(2.0, 2.0)}
    write_table({"test_it.py": listed(short, **rows)}, pytester.path)
    return pytester


def run(project: pytest.Pytester, *options: str) -> pytest.RunResult:
    """Run the project's tests: workers in processes of their own, everything else in this process, which is faster."""
    return project.runpytest_subprocess(*options) if "-n" in options else project.runpytest_inprocess(*options)


def expression(target: str) -> str:
    """Return the tests that a target of the Makefile runs, as it passes them to pytest."""
    (found,) = re.findall(rf'^{target}:.*\n\t.*-m "([^"]+)"', (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    return str(found)


@pytest.mark.parametrize(
    ("lane", "passed", "left_out", "unmeasured", "workers"),
    [
        (expression("test"), 6, 4, 1, ()),
        (expression("test"), 6, 4, 1, ("-n", "1")),
        (expression("test-rest"), 2, 9, 1, ()),
        (expression("test-all"), 8, 2, 0, ()),
        ("fast", 4, 6, 2, ()),
        ("not slow", 4, 6, 2, ()),
    ],
)
def test_what_is_left_out_is_counted(
    project: pytest.Pytester, lane: str, passed: int, left_out: int, unmeasured: int, workers: tuple[str, ...]
) -> None:
    result = run(project, "-m", lane, *workers)
    assert result.parseoutcomes()["passed"] == passed
    result.stdout.fnmatch_lines([f"{left_out} tests were left out: *make test-all*"])
    if unmeasured:
        result.stdout.fnmatch_lines([f"{unmeasured} of them were never measured: *--write-durations*"])
    else:
        result.stdout.no_fnmatch_line("*never measured*")


@pytest.mark.parametrize("marks", [*itertools.product((False, True), repeat=3)], ids=str)
def test_the_rest_is_what_the_first_targets_leave_out(marks: tuple[bool, bool, bool]) -> None:
    """Each test of `make test-all` is in exactly one of `make test` and `make test-rest`; nightly ones are in none."""
    names = dict(zip(("slow", "sentinel", "nightly"), marks, strict=True))
    test, rest, both = (eval(expression(each), names) for each in ("test", "test-rest", "test-all"))  # noqa: S307
    assert test + rest == both == (not names["nightly"])


@pytest.mark.parametrize(
    ("least", "status", "workers"),
    [
        (8, pytest.ExitCode.OK, ()),
        (9, pytest.ExitCode.TESTS_FAILED, ()),
        (9, pytest.ExitCode.TESTS_FAILED, ("-n", "1")),
    ],
)
def test_too_few_tests_fail_the_run(
    project: pytest.Pytester, least: int, status: pytest.ExitCode, workers: tuple[str, ...]
) -> None:
    result = run(project, "-m", "not nightly", "--at-least", str(least), *workers)
    assert result.ret == status
    if status == pytest.ExitCode.TESTS_FAILED:
        result.stdout.fnmatch_lines(["8 tests passed, fewer than the 9 of --at-least"])


def test_nightly_tests_are_not_measured(project: pytest.Pytester) -> None:
    write_table({}, project.path)
    run(project, "--write-durations").assert_outcomes(passed=10, skipped=1)
    measured = read_table(project.path)["test_it.py"]
    assert measured.of("test_night") is None
    for name in ("test_partly_night", "test_new", "test_short"):
        assert measured.of(name) is not None


SHARING = """
import time
import pytest

def work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

@pytest.fixture(scope="module")
def inner():
    work(0.3)

@pytest.fixture(scope="module")
def outer(inner):
    work(0.1)

def test_first(outer):
    pass

def test_second(outer):
    work(0.2)

def test_other(inner):
    pass

def test_none():
    pass
"""


def test_each_test_has_its_share_of_what_they_share(project: pytest.Pytester) -> None:
    project.makepyfile(test_it=SHARING)
    project.runpytest_subprocess("-n", "1", "--write-durations").assert_outcomes(passed=4)
    rows = read_table(project.path)["test_it.py"].rows
    assert set(rows) == {"test_first", "test_second", "test_other"}
    assert rows["test_first"].longest_s >= 0.4
    assert rows["test_second"].longest_s >= 0.6
    assert 0.3 <= rows["test_other"].longest_s < rows["test_second"].longest_s
    assert rows["test_first"].total_s >= 0.4
    assert rows["test_second"].total_s < rows["test_second"].longest_s
