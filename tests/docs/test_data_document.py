# SPDX-License-Identifier: Apache-2.0
"""docs/data.md: its programs write the models and the data, and every command gives the right answers."""

from __future__ import annotations

import json
import runpy
import shlex
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
import pytest
from click.testing import CliRunner
from needs import require_module
from numpy.testing import assert_array_equal
from pages import ROOT, blocks

import ferrule
from ferrule.cli.main import cli
from ferrule.evaluation.data import AudioSettings, DataSettings

PAGE = ROOT / "docs" / "data.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the page's files, and the models and data of its program."""
    require_module("PIL", "pip install pillow")
    require_module("cffi", "pip install 'ferrule[run]'")
    folder = tmp_path_factory.mktemp("data")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for block in blocks(PAGE):
            if block.caption:
                Path(block.caption).write_text(block.text, encoding="utf-8")
        runpy.run_path("make_data.py")
    return folder


def _commands() -> list[str]:
    lines = [line for block in blocks(PAGE) if block.language == "sh" for line in block.text.splitlines()]
    return [line for line in lines if line.startswith("ferrule evaluate")]


@pytest.mark.cc
@pytest.mark.parametrize("line", _commands(), ids=lambda line: line.split("--data ")[1])
def test_a_command_of_the_page(folder: Path, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    _, *words = shlex.split(line)
    result = CliRunner().invoke(cli, [*words, "--quiet", "--json", "-"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    metrics = {metric["name"]: metric["value"] for metric in document["metrics"]}
    assert metrics.get("accuracy", 1.0) == 1.0
    assert metrics.get("mae", 0.0) == 0.0
    assert metrics
    assert document["data"]["samples"] in {10, 12, 20, 30}
    assert len(document["data"]["digest"]) == 64


def test_pixels_are_the_same_data_in_every_form(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    from ferrule.evaluation.data import open_data

    network = ferrule.load("colour.tflite")
    settings = DataSettings(classes=("red", "green", "blue"), scale="1/255", integers="real")
    digests = set()
    for path, labels in [("pixels.npy", "labels.npy"), ("both.npz", "labels"), ("table.csv", "colour")]:
        data = open_data(path, labels, network.inputs, network.outputs, settings, None)
        for _ in data.chunks(7):
            pass
        digests.add(data.part.digest)
    assert len(digests) == 1
    assert_array_equal(
        open_data("real.npy", None, network.inputs, network.outputs, DataSettings(), None).take([0, 7]).inputs[0],
        data.take([0, 7]).inputs[0],
    )


def test_the_program_in_python(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    runpy.run_path("count.py")
    assert capsys.readouterr().out.startswith("30 of 30 are right; ('decode to rgb, Pillow")


def test_every_setting_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for table in (DataSettings, AudioSettings):
        for field in msgspec.structs.fields(table):
            if field.name != "audio":
                assert f"`{field.name}`" in text or f"\n{field.name} = " in text, field.name
    for name in ("resize", "fit", "integers", "longer", "shorter"):
        hints = {**get_type_hints(DataSettings), **get_type_hints(AudioSettings)}
        values = [value for option in (hints[name], *get_args(hints[name])) for value in get_args(option)]
        assert all(f'"{value}"' in text for value in values if isinstance(value, str)), name
