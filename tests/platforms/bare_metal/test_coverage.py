# SPDX-License-Identifier: Apache-2.0
"""The tests beside this one run every line and every branch of the bare-metal adapter, both ways."""

from __future__ import annotations

from pathlib import Path

import pytest
from coverage_gate import count_c

from ferrule.testing.coverage import FileCoverage

FOLDER = Path(__file__).parent
pytestmark = pytest.mark.cc


def covered(tmp_path: Path, tests: str) -> FileCoverage:
    """Run the tests whose names match, and return the adapter's coverage."""
    (report,) = count_c(FOLDER, "test_bare_metal.py", "-k", tests, output=tmp_path / "counts.json")
    return report.file("bare_metal.c")


def test_all_of_it_runs(tmp_path: Path) -> None:
    file = covered(tmp_path, "not mutant and not sanitizers")
    assert (file.missed_lines, file.missed_branches) == ([], [])
    assert len(file.lines) > 30
    assert len(file.branches) > 6


@pytest.mark.nightly
def test_what_does_not_run_is_noticed(tmp_path: Path) -> None:
    assert not covered(tmp_path, "storage").is_full
