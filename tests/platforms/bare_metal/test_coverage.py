# SPDX-License-Identifier: Apache-2.0
"""Every line and every way of every branch of the bare-metal adapter is run by the tests beside this one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
PROGRAM = """
import sys
import pytest

code = pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[1:]])
from bare_metal_machine import compiled
from ferrule.testing.coverage import coverage

file = coverage(compiled()).file("bare_metal.c")
assert len(file.lines) > 30 and len(file.branches) > 6, "nothing is counted"
print("missed", file.missed_lines, file.missed_branches)
sys.exit(code)
"""
"""The plug-in of pytest wants to be the first that imports ferrule."""


def missed(tests: str) -> str:
    """Run those tests whose names fit in a process of their own, and return what they left out."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "test_bare_metal.py", "-k", tests],
        cwd=FOLDER,
        env={
            **os.environ,
            "FERRULE_TEST_COVERAGE": "1",
            "PYTHONPATH": str(FOLDER.parents[1] / "support"),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


@pytest.mark.cc
def test_all_of_it_runs() -> None:
    assert missed("not mutant and not sanitizers") == "missed [] []"


@pytest.mark.cc
def test_what_does_not_run_is_noticed() -> None:
    assert missed("storage") != "missed [] []"
