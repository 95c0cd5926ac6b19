# SPDX-License-Identifier: Apache-2.0
"""The tests beside this one run every line and every branch of the drivers, both ways."""

from __future__ import annotations

from pathlib import Path

import pytest
from coverage_gate import count_c

from ferrule.testing.coverage import FileCoverage

FOLDER = Path(__file__).parent
TESTS = {each: f"test_{each}.py" for each in ("uart_nrf", "uart_nrf51", "uart_stm32")}
TESTS["uart_stm32f7"] = TESTS["uart_stm32"]
DRIVERS = tuple(TESTS)
pytestmark = pytest.mark.cc


def covered(tmp_path: Path, driver: str, *options: str) -> FileCoverage:
    reports = count_c(FOLDER, TESTS[driver], *options, output=tmp_path / "counts.json")
    (file,) = (report.files[f"{driver}.c"] for report in reports if f"{driver}.c" in report.files)
    return file


@pytest.mark.parametrize("driver", DRIVERS)
def test_all_of_it_runs(tmp_path: Path, driver: str) -> None:
    file = covered(tmp_path, driver)
    assert (file.missed_lines, file.missed_branches) == ([], [])
    assert len(file.lines) > 10
    assert len(file.branches) > 4


@pytest.mark.parametrize(
    "driver", [DRIVERS[0], *(pytest.param(each, marks=pytest.mark.nightly) for each in DRIVERS[1:])]
)
def test_what_does_not_run_is_noticed(tmp_path: Path, driver: str) -> None:
    assert not covered(tmp_path, driver, "-k", "no_configuration").is_full
