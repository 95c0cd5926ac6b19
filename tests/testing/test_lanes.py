# SPDX-License-Identifier: Apache-2.0
"""The lanes of tests and their table of durations."""

from __future__ import annotations

from pathlib import Path

import pytest
from lanes import TABLE, Duration, Table, key, lane, missing_tests, read_table, updated, write_table

pytest_plugins = "pytester"
ROOT = Path(__file__).parents[2]
GOAL_S = 5 * 60
"""Wall-clock time limit of `make test`."""
CORES = 2
SHARE = 0.75
"""Share of the processor time; the rest is for sentinels, tests too short for the table, and test collection."""


def row(longest_s: float, total_s: float) -> Duration:
    return Duration(longest_s=longest_s, total_s=total_s)


def test_the_table_names_only_tests_that_exist() -> None:
    """To drop the others, run any test with `pytest --write-durations`."""
    assert missing_tests(read_table(ROOT), ROOT) == []


def test_make_test_ends_in_time_by_the_table() -> None:
    rows = [each for functions in read_table(ROOT).values() for each in functions.values()]
    assert sum(each.total_s for each in rows if lane(each) != "slow") < GOAL_S * CORES * SHARE


def test_the_fast_lane_ends_within_a_minute_by_the_table() -> None:
    rows = [each for functions in read_table(ROOT).values() for each in functions.values()]
    assert sum(each.total_s for each in rows if lane(each) == "fast") < 60 * CORES * SHARE


@pytest.mark.parametrize(
    ("duration", "mark"),
    [
        (None, "fast"),
        (row(0.09, 20), "fast"),
        (row(0.1, 0.1), None),
        (row(0.79, 5), None),
        (row(0.8, 0.8), "slow"),
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


def test_figures_that_hardly_change_stay() -> None:
    table: Table = {HERE: {FIRST: row(2.0, 4.0)}}
    assert (
        updated(table, ROOT, [(f"{HERE}::{FIRST}[a]", row(1.5, 1.5)), (f"{HERE}::{FIRST}[b]", row(2.9, 2.9))]) == table
    )
    assert updated(
        table, ROOT, [(f"{HERE}::{FIRST}[a]", row(3.456, 3.456)), (f"{HERE}::{FIRST}[b]", row(1.0, 1.0))]
    ) == {HERE: {FIRST: row(3.5, 4.5)}}


def test_what_did_not_run_stays() -> None:
    table: Table = {HERE: {FIRST: row(2.0, 4.0)}}
    assert updated(table, ROOT, [(f"{HERE}::{SECOND}", row(1.0, 1.0))]) == {
        HERE: {SECOND: row(1.0, 1.0), FIRST: row(2.0, 4.0)}
    }


def test_what_is_short_or_gone_is_dropped() -> None:
    table: Table = {
        HERE: {FIRST: row(2.0, 2.0), "test_that_was_here": row(1.0, 1.0)},
        "tests/test_file_that_was_here.py": {"test_a": row(1.0, 1.0)},
    }
    assert len(missing_tests(table, ROOT)) == 2
    assert updated(table, ROOT, [(f"{HERE}::{FIRST}", row(0.01, 0.01))]) == {}


def test_the_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    table: Table = {HERE: {FIRST: row(0.5, 12.0), SECOND: row(1.0, 1.0)}, "tests/b.py": {"test_c": row(0.1, 2.25)}}
    (tmp_path / "tests").mkdir()
    write_table(table, tmp_path)
    assert read_table(tmp_path) == table
    assert (tmp_path / TABLE).read_text().count("\n") == 9


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
"""
INI = """
[pytest]
markers =
    fast
    slow
    sentinel
addopts = -p lanes
pythonpath = {support}
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(test_it=MODULE)
    pytester.makeini(INI.format(support=Path(__file__).parents[1] / "support"))
    pytester.mkdir("tests")
    write_table({"test_it.py": {"test_long": row(2.0, 2.0), "test_long_sentinel": row(2.0, 2.0)}}, pytester.path)
    return pytester


@pytest.mark.parametrize(
    ("lane", "passed", "left_out", "workers"),
    [
        ("not slow or sentinel", 4, 1, ()),
        ("not slow or sentinel", 4, 1, ("-n", "2")),
        ("fast", 3, 2, ()),
    ],
)
def test_what_is_left_out_is_counted(
    project: pytest.Pytester, lane: str, passed: int, left_out: int, workers: tuple[str, ...]
) -> None:
    result = project.runpytest_subprocess("-m", lane, *workers)
    assert result.parseoutcomes()["passed"] == passed
    result.stdout.fnmatch_lines([f"{left_out} tests were left out: *make test-all*"])


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
    rows = read_table(project.path)["test_it.py"]
    assert set(rows) == {"test_first", "test_second", "test_other"}
    assert rows["test_first"].longest_s >= 0.4
    assert rows["test_second"].longest_s >= 0.6
    assert 0.3 <= rows["test_other"].longest_s < rows["test_second"].longest_s
    assert rows["test_first"].total_s >= 0.4
    assert rows["test_second"].total_s < rows["test_second"].longest_s
