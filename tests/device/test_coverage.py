# SPDX-License-Identifier: Apache-2.0
"""The tests beside this one run every line and every branch of device.c and command.c, both ways."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from coverage_gate import count_c
from needs import require_gcov

FOLDER = Path(__file__).parent


def missed(folder: Path, *tests: str) -> dict[str, set[int]]:
    """Run tests and return, by source, the lines that did not run, or with a branch that was not taken."""
    gcov = require_gcov()
    assert count_c(FOLDER, *tests, output=folder / "counts.json") == []  # tests/support builds the sources
    found = {}
    for name in ("device.c", "command.c"):
        (data,) = folder.glob(f"*-{Path(name).stem}*.gcda")
        argv = [gcov, "--branch-probabilities", "--json-format", "--stdout", str(data)]
        out = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=True, timeout=60).stdout
        (file,) = [each for each in json.loads(out)["files"] if Path(each["file"]).name.startswith(Path(name).stem)]
        lines = file["lines"]
        assert len(lines) > 100
        assert sum(len(line["branches"]) for line in lines) > 50
        found[name] = {
            line["line_number"]
            for line in lines
            if line["count"] == 0 or any(branch["count"] == 0 for branch in line["branches"])
        }
    return found


@pytest.mark.cc
@pytest.mark.sentinel
def test_all_of_it_runs(tmp_path: Path) -> None:
    tests = ("test_calls.py", "test_commands.py", "test_races.py", "test_state_table.py", "test_turns.py")
    assert missed(tmp_path, *tests) == {"device.c": set(), "command.c": set()}


@pytest.mark.cc
def test_what_does_not_run_is_noticed(tmp_path: Path) -> None:
    assert all(missed(tmp_path, "test_calls.py", "-k", "copies").values())
