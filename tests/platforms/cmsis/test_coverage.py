# SPDX-License-Identifier: Apache-2.0
"""The tests beside this one run every line and every branch of the C for CMSIS, both ways."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from coverage_gate import count_c

from ferrule.testing.coverage import CoverageReport

FOLDER = Path(__file__).parent
TESTS = ("test_adapter.py", "test_usart.py", "test_cmsdk_driver.py")
SHARED = {"command.c", "device.c"}
pytestmark = pytest.mark.cc


def covered(tmp_path: Path, *options: str) -> list[CoverageReport]:
    """Run the tests, and return the coverage of each build: three of the adapter, and one of the driver."""
    reports = count_c(FOLDER, *TESTS, *options, output=tmp_path / "counts.json")
    own = [
        {name: file for name, file in report.files.items() if name not in SHARED and "bench" not in name}
        for report in reports
    ]
    return [CoverageReport(files=files) for files in own]


def test_all_of_it_runs(tmp_path: Path) -> None:
    reports = covered(tmp_path)
    assert [report.table() for report in reports if not all(file.is_full for file in report.files.values())] == []
    builds = Counter(name for report in reports for name in report.files)
    assert builds == {"cmsis.c": 3, "cmsis_usart.c": 3, "cmsis_counter.c": 2, "usart_cmsdk.c": 1}
    assert all(file.lines and file.branches for report in reports for file in report.files.values())


@pytest.mark.nightly
def test_what_does_not_run_is_noticed(tmp_path: Path) -> None:
    assert any("missing" in report.table() for report in covered(tmp_path, "-k", "copes_with_any_storage"))
