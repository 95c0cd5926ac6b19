# SPDX-License-Identifier: Apache-2.0
"""Models from standard input, and files that are not there."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ferrule.formats import load, to_tflite
from ferrule.reading import near_names, read_standard_input
from ferrule.report.inspection import Inspection

Ferrule = Callable[..., Any]


class Given(io.TextIOWrapper):
    """Standard input with these bytes; `terminal` says whether it is one."""

    terminal = False

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data))

    def isatty(self) -> bool:
        return self.terminal


def give(monkeypatch: pytest.MonkeyPatch, data: bytes, *, terminal: bool = False) -> None:
    stream = Given(data)
    stream.terminal = terminal
    monkeypatch.setattr(sys, "stdin", stream)


def test_a_model_from_standard_input(ferrule: Ferrule, dense: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, dense.read_bytes())
    piped = msgspec.json.decode(ferrule("inspect", "-", "--json").out, type=Inspection)
    read = msgspec.json.decode(ferrule("inspect", dense, "--json").out, type=Inspection)
    assert (piped.name, piped.layers, piped.arena) == ("model", read.layers, read.arena)


def test_other_commands_read_it_too(
    ferrule: Ferrule, dense: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch, dense.read_bytes())
    converted = tmp_path / "converted.tflite"
    assert ferrule("convert", "-", converted).code == 0
    assert to_tflite(load(converted, "a")) == to_tflite(load(dense, "a"))
    give(monkeypatch, dense.read_bytes())
    outcome = ferrule("generate", "-", "--name", "piped", "--out", tmp_path / "project")
    assert outcome.code == 0, outcome.err
    assert list((tmp_path / "project").rglob("ferrule_piped.h"))


@pytest.mark.parametrize(
    ("data", "terminal", "message"),
    [
        (b"", False, "the file is empty"),
        (b"<!DOCTYPE html>", False, "it is a page in HTML"),
        (b"", True, "-: standard input is a terminal, expected a file or a pipe"),
    ],
)
def test_what_is_no_model(
    ferrule: Ferrule, monkeypatch: pytest.MonkeyPatch, data: bytes, terminal: bool, message: str
) -> None:
    give(monkeypatch, data, terminal=terminal)
    outcome = ferrule("inspect", "-")
    assert outcome.code == 2
    assert message in outcome.err


def test_a_closed_one(ferrule: Ferrule, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    outcome = ferrule("inspect", "-")
    assert (outcome.code, "standard input is closed" in outcome.err) == (2, True)


def test_it_has_one_model(ferrule: Ferrule, tmp_path: Path) -> None:
    outcome = ferrule("generate", "-", "-", "--out", tmp_path / "project")
    assert (outcome.code, "is given several times" in outcome.err) == (2, True)


def test_it_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, b"12345")
    assert read_standard_input(5) == b"12345"
    give(monkeypatch, b"12345")
    with pytest.raises(OSError, match="more than 4 bytes"):
        read_standard_input(4)


def test_a_file_that_is_not_there(ferrule: Ferrule, dense: Path, tmp_path: Path) -> None:
    here = tmp_path / "kws.tflite"
    here.write_bytes(dense.read_bytes())
    asked = {
        "kws.tfilte": f"hint: did you mean {here}?",
        "other.onnx": "",
        "nowhere/kws.tflite": f"hint: there is no folder '{tmp_path / 'nowhere'}' either",
    }
    for name, hint in asked.items():
        outcome = ferrule("inspect", tmp_path / name)
        assert outcome.code == 2
        assert outcome.err.splitlines() == [f"error: there is no file '{tmp_path / name}'", *filter(None, [hint])]


@pytest.mark.parametrize(
    "arguments",
    [
        ("report", "run.jsn"),
        ("compare", "run.jsn", "run.json"),
        ("evaluate", "MODEL", "--data", "x.np"),
        ("run", "MODEL", "--input", "x.np"),
        ("inspect", "MODEL", "--backends", "CpuAcc", "--config", "ferule.toml"),
        ("sweep", "swep.toml"),
    ],
    ids=lambda given: given[0],
)
def test_the_files_of_other_arguments(
    ferrule: Ferrule, dense: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("run.json", "x.npy", "ferrule.toml", "sweep.toml"):
        (tmp_path / name).write_text("")
    outcome = ferrule(*(str(dense) if each == "MODEL" else each for each in arguments))
    assert outcome.code == 2
    assert "did you mean" in outcome.err, outcome.err
    assert ".tflite" not in outcome.err.replace(str(dense), "")


def test_a_folder_that_nobody_may_list(tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir(mode=0)
    assert near_names(hidden / "a") is None
    hidden.chmod(0o700)
