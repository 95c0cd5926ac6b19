# SPDX-License-Identifier: Apache-2.0
"""The tests beside this one run every line and every branch of the Zephyr adapter, both ways."""

from __future__ import annotations

from functools import reduce
from operator import or_
from pathlib import Path

import pytest
from coverage_gate import count_c
from needs import require_sanitizers

from ferrule.testing.coverage import FileCoverage
from ferrule.testing.sanitizers import run_sanitized

FOLDER = Path(__file__).parent
TESTS = ("test_devices.py", "test_uart.py", "test_sources.py")
WITHOUT_CODE = {"log.c"}
"""It only declares the log module."""
pytestmark = pytest.mark.cc


def covered(tmp_path: Path, tests: str) -> dict[str, FileCoverage]:
    """Run the tests whose names match, and return the coverage of the adapter's files over all configurations."""
    reports = count_c(FOLDER, *TESTS, "-k", f"not mutant and ({tests})", output=tmp_path / "counts.json")
    files = reduce(or_, reports).files
    del files["command.c"], files["device.c"]
    return files


def test_all_of_it_runs(tmp_path: Path) -> None:
    files = covered(tmp_path, "test")
    sources = {path.name for path in (FOLDER.parents[2] / "platforms" / "zephyr" / "src").glob("*.c")}
    assert set(files) == sources - WITHOUT_CODE
    missed = {name: (file.missed_lines, file.missed_branches) for name, file in files.items() if not file.is_full}
    assert missed == {}
    assert sum(len(file.lines) for file in files.values()) > 150
    assert sum(len(file.branches) for file in files.values()) > 60


@pytest.mark.nightly
def test_what_does_not_run_is_noticed(tmp_path: Path) -> None:
    assert not all(file.is_full for file in covered(tmp_path, "bind or link or wait").values())


@pytest.mark.nightly
@pytest.mark.parametrize("name", TESTS)
def test_sanitizers_find_nothing(name: str) -> None:
    require_sanitizers("address", "undefined")
    run_sanitized([str(FOLDER / name), "-k", "not mutant"])
