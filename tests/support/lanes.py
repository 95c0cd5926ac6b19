# SPDX-License-Identifier: Apache-2.0
"""The lanes of tests: marks `fast` and `slow` by a committed table of durations, which `--write-durations` measures.

A function that is not in the table counts as slow until it is measured, and `nightly` tests are always slow. A duration
is processor time, user and system, from a test's set-up to its tear-down, of the test's process and the children that
it waited for. Unlike wall-clock time it hardly depends on the machine's load. The time of a shared fixture counts in
full for each test's own duration, and once in a function's total.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import resource
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ferrule._frozen import frozen

TABLE = Path("tests") / "durations.json"
"""The path of the table, relative to the folder of pyproject.toml, as are the files named in it."""
FAST_S = 0.08
"""A test below this is `fast`."""
SLOW_S = 0.15
"""A test at or above this is `slow`."""
_CHURN = 1.5
"""A duration is updated when it changed by more than this factor."""
_SHORT_S = 0.05
"""A function is short if its longest test and the sum of its tests are below this."""
_SHORT = ""
"""The name of the row with a file's short functions."""


@frozen
class Duration:
    """Processor time of one function's tests, in seconds."""

    longest_s: float
    """The longest of the tests, each as if it ran alone."""
    total_s: float
    """The sum of the tests, run one after the other."""


@dataclass(frozen=True, slots=True)
class Durations:
    """What was measured of one file's functions; a function's name includes its class if it has one."""

    rows: dict[str, Duration] = field(default_factory=dict)
    short: frozenset[str] = frozenset()
    """Fingerprints of the short functions: there are thousands, and their names would fill most of the table."""

    def of(self, name: str) -> Duration | None:
        """Return the duration of a function, which is 0 for a short one; None if it was never measured."""
        return self.rows.get(name, _NOTHING if fingerprint(name) in self.short else None)


_NOTHING = Duration(longest_s=0, total_s=0)


def fingerprint(name: str) -> str:
    """Return four characters in place of a function's name; two in one file hardly ever share them."""
    return base64.b32encode(hashlib.sha256(name.encode()).digest())[:4].decode().lower()


_TOOLS = {
    **dict.fromkeys(("host_cc", "arm_gcc", "arm_newlib", "any_toolchain"), "cc"),
    **dict.fromkeys(("ferrule_adapter", "ferrule_driver"), "cc"),
    "qemu": "emu",
}
"""Mark of the tests that use a fixture; other tests are marked by hand."""
REMEDY = "`make test-all` runs all except the nightly tests, `make nightly` runs everything"
Table = dict[str, Durations]
"""Durations by file."""


def read_table(root: Path) -> Table:
    """Return the table; it is empty if there is no file."""
    path = root / TABLE
    files = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {
        file: Durations(
            {name: Duration(longest_s=row[0], total_s=row[1]) for name, row in functions.items() if name != _SHORT},
            frozenset(functions.get(_SHORT, "").split()),
        )
        for file, functions in files.items()
    }


def missing_tests(table: Table, root: Path) -> list[str]:
    """Return the table's tests that are no longer in their file, short ones by their fingerprints.

    Tests of a class that may inherit them are kept, and so are the short ones of a file with such a class.
    """
    missing = []
    for file, durations in table.items():
        known = _functions(root / file)
        gone = [name for name in durations.rows if not {name, name.partition("::")[0] + "::"} & known]
        if not any(name.endswith("::") for name in known):
            gone += sorted(durations.short - {fingerprint(name) for name in known})
        missing += [f"{file}::{name}" for name in gone]
    return missing


def _functions(path: Path) -> set[str]:
    """Return the functions and `class::method` names in a file, and `class::` for a class that may inherit tests."""
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body if path.exists() else ():
        match node:
            case ast.FunctionDef():
                found.add(node.name)
            case ast.ClassDef():
                found |= {f"{node.name}::{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)}
                found |= {f"{node.name}::"} if node.bases else set()
            case ast.Assign(targets=[ast.Name(id=name)]) if name.startswith(
                "Test"
            ):  # such as Hypothesis's state machines
                found.add(f"{name}::")
    return found


def key(node_id: str) -> tuple[str, str]:
    """Return the file and the function of a test, without its parameters."""
    file, _, name = node_id.partition("[")[0].partition("::")
    return file, name


def updated(table: Table, root: Path, measured: Iterable[tuple[str, Duration]]) -> Table:
    """Return the sorted table with the measured functions replaced and missing tests removed."""
    tests: dict[str, dict[str, list[Duration]]] = {}
    for node_id, each in measured:
        file, name = key(node_id)
        tests.setdefault(file, {}).setdefault(name, []).append(each)
    result: Table = {}
    for file in sorted({*table, *tests}):
        rows, short = {**table.get(file, Durations()).rows}, {*table.get(file, Durations()).short}
        for name, some in tests.get(file, {}).items():
            row = Duration(longest_s=max(each.longest_s for each in some), total_s=sum(each.total_s for each in some))
            limit_s = _SHORT_S * _CHURN if fingerprint(name) in short else _SHORT_S
            if name in rows and _close(row, rows[name]):
                continue
            if max(row.longest_s, row.total_s) < limit_s:
                rows.pop(name, None)
                short.add(fingerprint(name))
            else:
                short.discard(fingerprint(name))
                rows[name] = Duration(longest_s=_rounded(row.longest_s), total_s=_rounded(row.total_s))
        gone = {key(each)[1] for each in missing_tests({file: Durations(rows, frozenset(short))}, root)}
        kept = {name: row for name, row in sorted(rows.items()) if name not in gone}
        if kept or short - gone:
            result[file] = Durations(kept, frozenset(short - gone))
    return result


def _close(first: Duration, second: Duration) -> bool:
    pairs = (first.longest_s, second.longest_s), (first.total_s, second.total_s)
    return all(one < other * _CHURN and other < one * _CHURN for one, other in pairs)


def _rounded(seconds: float) -> float:
    return float(f"{seconds:.2g}")


def write_table(table: Table, root: Path) -> None:
    """Write the table, one function per line and a file's short ones in one, so that a change is a short diff."""
    files = []
    for file, each in table.items():
        rows = [f"{json.dumps(_SHORT)}: {json.dumps(' '.join(sorted(each.short)))}"] if each.short else []
        rows += [f"{json.dumps(name)}: [{row.longest_s:g}, {row.total_s:g}]" for name, row in each.rows.items()]
        text = ",\n    ".join(rows)
        files.append(f"  {json.dumps(file)}: {{\n    {text}\n  }}")
    (root / TABLE).write_text("{\n" + ",\n".join(files) + "\n}\n", encoding="utf-8")


def lane(row: Duration | None) -> str | None:
    """Return the mark of a test by its duration: fast, slow or None; a test that was never measured is slow."""
    if row is None or row.longest_s >= SLOW_S:
        return "slow"
    return "fast" if row.longest_s < FAST_S else None


# The plugin. Under xdist it runs in the process that collects the reports and in each worker.


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--write-durations` and `--at-least`."""
    parser.addoption(
        "--write-durations",
        action="store_true",
        help="measure the tests that run and update the table; run all tests of a function, since it holds their sum",
    )
    parser.addoption("--at-least", metavar="N", type=int, default=0, help="fail the run if fewer than N tests passed")


def pytest_configure(config: pytest.Config) -> None:
    """Register the parts that measure and collect."""
    config.pluginmanager.register(_Clock())
    config.pluginmanager.register(_Totals(config))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests before `-m` selects among them; tests that need rare tools are marked slow by hand."""
    table = read_table(config.rootpath)
    for item in items:
        file, name = key(item.nodeid)
        row = table.get(file, Durations()).of(name)
        by_hand = any(item.get_closest_marker(mark) is not None for mark in ("slow", "nightly"))
        mark = "slow" if by_hand else lane(row)
        if mark is not None:
            item.add_marker(mark)
        item.stash[_UNMEASURED] = row is None and not by_hand
        for need in {_TOOLS[fixture] for fixture in getattr(item, "fixturenames", ()) if fixture in _TOOLS}:
            item.add_marker(need)


_UNMEASURED = pytest.StashKey[bool]()
"""Whether a test is slow only because it was never measured."""


def _processor_s() -> float:
    usages = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


class _Clock:
    """Measures each test and, separately, the fixtures that tests share."""

    def __init__(self) -> None:
        self._started_s = 0.0
        self._within_s = [0.0]
        self._shared: dict[tuple[str, str], float] = {}
        self._set_up: set[tuple[str, str]] = set()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        self._started_s = _processor_s()
        self._set_up = set()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
        started_s = _processor_s()
        self._within_s.append(0.0)
        try:
            return (yield)
        finally:
            spent_s = _processor_s() - started_s
            own_s = spent_s - self._within_s.pop()
            self._within_s[-1] += spent_s
            if fixturedef.scope != "function":
                self._shared[fixturedef.baseid, fixturedef.argname] = own_s
                self._set_up.add((fixturedef.baseid, fixturedef.argname))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Function, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put the duration into the test's last report, which carries it from a worker."""
        report = yield
        if call.when == "teardown":
            spent_s = _processor_s() - self._started_s
            others_s = sum(
                own_s
                for (base, name), own_s in self._shared.items()
                if name in item.fixturenames and item.nodeid.startswith(base) and (base, name) not in self._set_up
            )
            report.processor_s = spent_s, spent_s + others_s  # type: ignore[attr-defined]
        return report


class _Totals:
    """Collects the reports of all workers: durations of the tests that passed, and the number of deselected tests."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._left_out = 0
        self._unmeasured = 0
        self._passed: set[str] = set()
        self._measured: list[tuple[str, Duration]] = []

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        self._left_out += len(items)
        self._unmeasured += sum(item.stash.get(_UNMEASURED, False) for item in items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:  # noqa: ANN401 xdist has no public type for it
        output: dict[str, int] = getattr(node, "workeroutput", {})
        # every worker deselects the same tests
        self._left_out = max(self._left_out, output.get("left_out", 0))
        self._unmeasured = max(self._unmeasured, output.get("unmeasured", 0))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self._passed.add(report.nodeid)
        elif report.when == "teardown" and report.nodeid in self._passed and "nightly" not in report.keywords:
            spent_s, alone_s = report.processor_s
            self._measured.append((report.nodeid, Duration(longest_s=alone_s, total_s=spent_s)))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(self._config, "workeroutput", None)
        if output is not None:
            output["left_out"] = self._left_out
            output["unmeasured"] = self._unmeasured
            return
        if self._config.getoption("--write-durations"):
            root = self._config.rootpath
            write_table(updated(read_table(root), root, self._measured), root)
        if self._too_few() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _too_few(self) -> bool:
        return len(self._passed) < int(self._config.getoption("--at-least"))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        spent_s = sum(each.total_s for _, each in self._measured)
        if self._measured:
            terminalreporter.write_line(f"{len(self._measured)} tests took {spent_s:.1f} s of processor time")
        if self._left_out and self._config.getoption("markexpr"):
            terminalreporter.write_line(f"{self._left_out} tests were left out: {REMEDY}")
        if self._unmeasured and self._config.getoption("markexpr"):
            terminalreporter.write_line(
                f"{self._unmeasured} of them were never measured: `pytest --write-durations FILE` does that"
            )
        if self._too_few():
            least = self._config.getoption("--at-least")
            terminalreporter.write_line(f"{len(self._passed)} tests passed, fewer than the {least} of --at-least")
