# SPDX-License-Identifier: Apache-2.0
"""Line and branch coverage of C, measured in an inner pytest because workers divide the tests of a file.

As a pytest plugin, this module adds `--count-c` to the inner pytest, which then instruments its builds.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from children import ran
from needs import require_cc, require_gcov, require_module

if TYPE_CHECKING:  # every pytest here loads this module, but few measure coverage
    from ferrule.testing import Adapter
    from ferrule.testing.coverage import CoverageReport

TIMEOUT_S = 500
_counting: list[Path] = []
_counted: list[Adapter[Any]] = []


class _File(msgspec.Struct):
    path: str
    lines: dict[int, int]
    branches: list[tuple[int, int, int]]


_Report = dict[str, _File]


def count_c(folder: Path, *arguments: str, output: Path) -> list[CoverageReport]:
    """Run tests of a folder, and return the coverage of each build made through `counted`, in order.

    Args:
        folder: the working directory of the inner pytest.
        arguments: further arguments for pytest: files, and optionally `-k` with an expression.
        output: the file that the inner pytest writes.
    """
    require_module("cffi", "pip install 'ferrule[testing]'")
    require_cc()
    require_gcov()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--count-c={output}", *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    done = ran(command, cwd=folder, env=environment, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return [_report(each) for each in msgspec.json.decode(output.read_bytes(), type=list[_Report])]


def counting() -> Path | None:
    """Return the file given with `--count-c`; None without that option."""
    return _counting[0] if _counting else None


def counted(build: Callable[..., Adapter[Any]], *arguments: object, **options: object) -> Adapter[Any]:
    """Return the adapter from `build_adapter` or `build_driver`; with `--count-c` its coverage is reported."""
    adapter = build(*arguments, **options, coverage=counting() is not None)
    if counting() is not None:
        _counted.append(adapter)
    return adapter


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--count-c`."""
    parser.addoption("--count-c", metavar="FILE", help="for coverage tests: write the coverage of C to FILE")


def pytest_configure(config: pytest.Config) -> None:
    """Start to measure before the first build."""
    if config.option.count_c:
        _counting.append(Path(config.option.count_c))


def pytest_sessionfinish() -> None:
    """Write the coverage report."""
    if _counting:
        _counting[0].write_bytes(msgspec.json.encode(_plain(_counted)))


def _plain(adapters: Sequence[Adapter[Any]]) -> list[_Report]:
    from ferrule.testing.coverage import coverage

    return [
        {
            name: _File(str(file.path), file.lines, [(*at, count) for at, count in file.branches.items()])
            for name, file in coverage(adapter).files.items()
        }
        for adapter in adapters
    ]


def _report(files: _Report) -> CoverageReport:
    from ferrule.testing.coverage import CoverageReport, FileCoverage

    return CoverageReport(
        files={
            name: FileCoverage(
                path=Path(file.path),
                lines=file.lines,
                branches={(line, number): count for line, number, count in file.branches},
            )
            for name, file in files.items()
        }
    )
