# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin that ends a run with a table of the tests not run and of how to get what they need.

A skip must go through `needs.lacking` or be caused by a MissingToolError, as are the skips of ferrule.testing's
families. Any other skip is an error.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator

import pytest
from needs import LackError
from rich import box
from rich.console import Console
from rich.table import Table

from ferrule.errors import MissingToolError

ATTRIBUTE = "ferrule_lack"
"""Attribute of a skipped report: what is missing and how to get it. pytest-xdist carries it from its workers."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Judge the report of a skipped test."""
    report = yield
    judge(report, call.excinfo, item.nodeid)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Judge the report of a module that was skipped as a whole."""
    report = yield
    call: pytest.CallInfo[object] | None = getattr(report, "call", None)
    judge(report, call.excinfo if call is not None else None, collector.nodeid)
    return report


def judge(
    report: pytest.TestReport | pytest.CollectReport,
    info: pytest.ExceptionInfo[BaseException] | None,
    name: str,
) -> None:
    """Record what a skipped test lacks; fail it if the skip does not say, or if FERRULE_REQUIRE_ALL=1 forbids it."""
    if not report.skipped or info is None or not isinstance(info.value, pytest.skip.Exception):
        return
    cause = info.value.__cause__ or info.value.__context__
    if not isinstance(cause, MissingToolError):
        reason = f"skipped with {str(info.value)!r}: a skip goes through needs.lacking, so that the table lists it"
    elif not isinstance(cause, LackError) and os.environ.get("FERRULE_REQUIRE_ALL") == "1":
        reason = str(info.value)
    else:
        setattr(report, ATTRIBUTE, (str(cause), cause.hint or ""))
        return
    report.outcome = "failed"
    report.longrepr = f"{name}: {reason}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table."""
    rows = Counter(
        tuple(lack)
        for report in terminalreporter.stats.get("skipped", [])
        if (lack := getattr(report, ATTRIBUTE, None)) is not None
    )
    if not rows:
        return
    table = Table("tests", "missing", "how to get it", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.columns[0].justify = "right"
    for (what, remedy), number in sorted(rows.items()):
        table.add_row(str(number), what, remedy)
    console = Console(width=terminalreporter._tw.fullwidth, color_system=None)
    with console.capture() as captured:
        console.print(table, markup=False)
    terminalreporter.section(f"{rows.total()} tests were not run")
    for line in captured.get().splitlines():
        terminalreporter.write_line(line.rstrip())
