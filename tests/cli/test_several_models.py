# SPDX-License-Identifier: Apache-2.0
"""Commands with several models."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from needs import require_module

Ferrule = Callable[..., Any]


@pytest.mark.emu
def test_two_models_are_run_and_verified(ferrule: Ferrule, dense: Path, two_by_two: Path, tmp_path: Path) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    keep, report = tmp_path / "kept", tmp_path / "report.json"
    names = ("--name", "first", "--name", "second")
    done = ferrule("run", dense, two_by_two, *names, "--keep", keep, "--json", report)
    assert done.code == 0, done.err
    assert [each["model"]["name"] for each in json.loads(report.read_text())] == ["first", "second"]
    assert [each["verdict"] for each in json.loads(report.read_text())] == ["exact", "exact"]
    assert done.out.count("verdict: exact") == 2

    elf = keep / "build" / "firmware.elf"
    equal = ferrule("verify", elf, dense, two_by_two, *names)
    assert equal.code == 0, equal.err
    lines = equal.out.splitlines()
    assert [line for line in lines if line.endswith(":")] == ["first:", "second:"], equal.out
    assert sum(line.endswith(" equal") for line in lines) == 6
    part = ferrule("verify", elf, two_by_two, "--name", "second")
    assert part.code == 1
    assert "the firmware has 2 models, compared with 1: name all, in their order" in part.out


def test_a_name_renames_a_model(ferrule: Ferrule, dense: Path, tmp_path: Path) -> None:
    done = ferrule("generate", dense, "--name", "mine", "--out", tmp_path / "project")
    assert done.code == 0, done.err
    assert (tmp_path / "project" / "model" / "ferrule_mine.c").is_file()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--name", "one"], "--name is given 1 times for 2 models"),
        (["--target", "arm-cpu-c++"], "--target makes a class from one model, with one --name"),
        (["--name", "same", "--name", "same"], "both have the C identifier same"),
    ],
)
def test_what_several_models_cannot_have(
    ferrule: Ferrule, dense: Path, two_by_two: Path, tmp_path: Path, given: list[str], message: str
) -> None:
    outcome = ferrule("generate", dense, two_by_two, *given, "--out", tmp_path / "out")
    assert outcome.code == 2
    assert message in outcome.err
    assert not (tmp_path / "out").exists()


def test_arrays_are_for_one_model(ferrule: Ferrule, dense: Path, two_by_two: Path, tmp_path: Path) -> None:
    outcome = ferrule("run", dense, two_by_two, "--output", tmp_path / "y.npy")
    assert outcome.code == 2
    assert "--input and --output are for one model" in outcome.err
