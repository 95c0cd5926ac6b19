# SPDX-License-Identifier: Apache-2.0
"""The budgets of `.ci/run`, and the program that judges targets of the Makefile by them."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GOAL_MIN = 15
"""Limit of `.ci/run` on two quiet cores."""
CORES = 2
LOADED = 2.4
"""Processor time on a slow machine beside other busy processes, which share its caches and execution units, over that
on quiet cores of a faster one."""


def within(folder: Path, budget: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return the exit status for a target that prints its options and spends some processor time.

    A make around the tests has options, too, and hands them on.
    """
    spec = importlib.util.spec_from_file_location("within", ROOT / ".ci" / "within.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (folder / "budgets.toml").write_text(f"[it]\n{budget}\n", encoding="utf-8")
    (folder / "Makefile").write_text("it:\n\techo '$(PYTEST_OPTIONS)' >options; exit $(STATUS)\n", encoding="utf-8")
    monkeypatch.setattr(module, "BUDGETS", folder / "budgets.toml")
    monkeypatch.chdir(folder)
    for name in ("MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS", "PYTEST_OPTIONS"):
        monkeypatch.delenv(name, raising=False)
    return int(module.main("it"))


def test_a_target_within_its_budget_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STATUS", "0")
    assert within(tmp_path, "tests = 12\nminutes = 1000", monkeypatch) == 0
    assert (tmp_path / "options").read_text(encoding="utf-8") == "--at-least 12\n"
    assert re.search(r"make it: \d+\.\d minutes of processor time, of at most 1000", capsys.readouterr().err)


def test_a_target_without_tests_gets_no_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATUS", "0")
    assert within(tmp_path, "minutes = 1000", monkeypatch) == 0
    assert (tmp_path / "options").read_text(encoding="utf-8") == "\n"


def test_a_target_that_takes_too_long_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATUS", "0")
    assert within(tmp_path, "minutes = 0", monkeypatch) == 1


def test_a_target_that_fails_keeps_its_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATUS", "3")
    assert within(tmp_path, "minutes = 1000", monkeypatch) == 2  # make's status for a recipe that failed


def test_the_budgets_are_those_of_the_targets_that_run() -> None:
    budgets = tomllib.loads((ROOT / ".ci" / "budgets.toml").read_text(encoding="utf-8"))
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert re.findall(r"^python3 \.ci/within\.py (\S+)$", script, re.MULTILINE) == list(budgets)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target, budget in budgets.items():
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
        assert ("tests" in budget) == ("pytest" in target or target.startswith("test"))
    assert sum(budget["minutes"] for budget in budgets.values()) <= GOAL_MIN * CORES * LOADED
