# SPDX-License-Identifier: Apache-2.0
"""Every line and every way of every branch of the C for CMSIS is run by the tests beside this one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from needs import require_program

FOLDER = Path(__file__).parent
COVERAGE = "FERRULE_TEST_CMSIS_COVERAGE"
FULL = re.compile(r"(\w+\.c): (\d+)/\2 lines, (\d+)/\3 branches")
BUILDS = 4
"""Three of the adapter, one of the driver."""


def table(folder: Path, *arguments: str) -> list[str]:
    """Run tests, and return what ran in C, a line per file and build."""
    require_program("gcov", "apt-get install gcc")
    path = folder / "coverage.txt"
    names = ("test_adapter.py", "test_usart.py", "test_cmsdk_driver.py")
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *names, *arguments]
    environment = {**os.environ, COVERAGE: str(path)}
    done = subprocess.run(argv, cwd=FOLDER, env=environment, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return path.read_text(encoding="utf-8").splitlines()


@pytest.mark.cc
def test_all_of_it_runs(tmp_path: Path) -> None:
    lines = table(tmp_path)
    own = [line for line in lines if not line.startswith("device.c")]
    assert [line for line in own if not FULL.fullmatch(line)] == []
    files = [line.partition(":")[0] for line in own]
    assert files.count("cmsis.c") == files.count("cmsis_usart.c") == BUILDS - 1
    assert files.count("cmsis_counter.c") == BUILDS - 2
    assert files.count("usart_cmsdk.c") == 1


@pytest.mark.cc
def test_what_does_not_run_is_noticed(tmp_path: Path) -> None:
    assert any("missing" in line for line in table(tmp_path, "-k", "copes_with_any_storage"))
