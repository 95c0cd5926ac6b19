# SPDX-License-Identifier: Apache-2.0
"""Every line and every way of every branch of the Zephyr adapter is run by the tests beside this one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ferrule.testing.sanitizers import run_sanitized

FOLDER = Path(__file__).parent
PROGRAM = """
import sys
import pytest

code = pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[1:]])  # its plug-in imports ferrule first
from ferrule.testing.coverage import coverage
from zephyr_bench import BUILDS
files = coverage(*BUILDS).files
del files["device.c"]
assert sum(len(file.lines) for file in files.values()) > 150, "nothing is counted"
assert sum(len(file.branches) for file in files.values()) > 60, "nothing is counted"
print(sorted(files))
print("missed", {name: (each.missed_lines, each.missed_branches) for name, each in files.items() if not each.is_full})
sys.exit(code)
"""
TESTS = ("test_devices.py", "test_uart.py", "test_sources.py")


def covered(*tests: str) -> list[str]:
    """Run tests in a process of their own, and return which files they ran and what they left out of them."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *TESTS, "-k", "not mutant", *tests],
        cwd=FOLDER,
        env={**os.environ, "FERRULE_TEST_COVERAGE": "1", "PYTHONPATH": str(FOLDER.parents[1] / "support")},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-2:]


@pytest.mark.cc
def test_all_of_it_runs() -> None:
    sources = sorted(path.name for path in (FOLDER.parents[2] / "platforms" / "zephyr" / "src").glob("*.c"))
    assert covered() == [str(sources), "missed {}"]


@pytest.mark.cc
def test_what_does_not_run_is_noticed() -> None:
    assert covered("-k", "bind or link or wait")[-1] != "missed {}"


@pytest.mark.cc
def test_sanitizers_find_nothing() -> None:
    run_sanitized([*(str(FOLDER / name) for name in TESTS), "-k", "not mutant"])
