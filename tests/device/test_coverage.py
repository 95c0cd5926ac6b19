# SPDX-License-Identifier: Apache-2.0
"""The tests beside this one run every line and every branch of device.c and command.c, both ways."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from children import ran
from coverage_gate import count_c
from fake_device import PARTS
from needs import require_gcov

FOLDER = Path(__file__).parent


def not_run(lines: list[dict[str, Any]]) -> set[int]:
    """Return the lines of a file of gcov that did not run, or with a branch that was not taken."""
    return {
        line["line_number"]
        for line in lines
        if line["count"] == 0 or any(branch["count"] == 0 for branch in line["branches"])
    }


def missed(folder: Path, *tests: str) -> dict[str, set[int]]:
    """Run tests and return, by source, the lines that did not run, or with a branch that was not taken."""
    gcov = require_gcov()
    assert count_c(FOLDER, *tests, output=folder / "counts.json") == []  # tests/support builds the sources
    found = {}
    for name in ("device.c", "command.c"):
        (data,) = folder.glob(f"*-{Path(name).stem}*.gcda")
        argv = [gcov, "--branch-probabilities", "--json-format", "--stdout", str(data)]
        out = ran(argv, cwd=folder, check=True, timeout=60).stdout
        files = {Path(each["file"]).name: each["lines"] for each in json.loads(out)["files"]}
        (lines,) = [files[each] for each in files if each.startswith(Path(name).stem)]
        assert len(lines) > 100
        assert sum(len(line["branches"]) for line in lines) > 50
        found[name] = not_run(lines)
        found |= {part: not_run(files[part]) for part in PARTS if part in files}
    return found


@pytest.mark.cc
@pytest.mark.sentinel
def test_all_of_it_runs(tmp_path: Path) -> None:
    names = ("calls", "commands", "races", "state_table", "stopping", "turns")
    tests = (f"test_{name}.py" for name in names)
    assert missed(tmp_path, *tests) == {name: set() for name in ("device.c", "command.c", *PARTS)}


@pytest.mark.cc
def test_what_does_not_run_is_noticed(tmp_path: Path) -> None:
    assert all(missed(tmp_path, "test_calls.py", "-k", "copies").values())
