# SPDX-License-Identifier: Apache-2.0
"""docs/tutorial.md followed: from its committed models to a program in C, and, with PyTorch, from the training on."""

from __future__ import annotations

import os
import runpy
import shlex
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from children import ran
from click.testing import CliRunner
from needs import require_module, require_python
from pages import ROOT, blocks

import ferrule
from ferrule.cli.main import cli
from ferrule.codegen.digest import digest

PAGE = ROOT / "docs" / "tutorial.md"
MODELS = ROOT / "examples" / "tutorial"
FILES = {"data.py", "train.py", "quantise.py", "classify.h", "classify.c", "main.c"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the page's files and its data, in which the test runs."""
    require_module("onnx", "pip install 'ferrule[onnx]'")
    require_module("sklearn", "pip install 'ferrule[demo]'")
    for block in blocks(PAGE):
        if block.caption:
            (tmp_path / block.caption).write_text(block.text, encoding="utf-8")
    assert {path.name for path in tmp_path.iterdir()} == FILES
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    runpy.run_path("data.py")
    return tmp_path


def commands(program: str) -> list[list[str]]:
    """Return the arguments of the page's commands of one program, in order."""
    lines = [
        line
        for block in blocks(PAGE)
        if block.language == "sh"
        for line in block.text.replace("\\\n", " ").splitlines()
        if line.startswith(f"{program} ")
    ]
    return [shlex.split(line, comments=True)[1:] for line in lines]


def follow(cc: tuple[str, ...]) -> dict[str, str]:
    """Run Ferrule's commands, then compile and run the program; return what each printed."""
    printed = {}
    for words in commands("ferrule"):
        result = CliRunner().invoke(cli, words, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        printed[words[0]] = result.output
    (compiling,) = [each.text for each in blocks(PAGE) if each.language == "sh" and "./classify" in each.text]
    assert compiling.startswith("cc -std=c11 ")
    compile_and_run = compiling.replace("cc ", f"{shlex.join(cc)} -Wall -Wextra -Wconversion -Werror ", 1)
    done = ran(["bash", "-e", "-c", compile_and_run], check=True)
    return printed | {"classify": done.stdout}


def check_program(printed: str) -> None:
    """Compare the digits and scores of the program in C with the numpy reference."""
    (scores,) = ferrule.load("digits_int8.onnx").run([np.load("test_images.npy")], real=True)
    assert printed.splitlines() == [f"{row.argmax()} {row.max():.6f}" for row in scores]


@pytest.mark.cc
@pytest.mark.emu
def test_the_page_from_its_models_to_a_program(folder: Path, host_cc: tuple[str, ...]) -> None:
    """What inspect, evaluate and the program print is on the page."""
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    for name in ("digits.onnx", "digits_int8.onnx"):
        shutil.copy(MODELS / name, folder)
    printed = follow(host_cc)
    check_program(printed["classify"])
    shown = [each.text for each in blocks(PAGE) if each.language == "text"]
    lines, arena, evaluation, _, classified, *_ = shown
    assert printed["inspect"].startswith(lines)
    assert arena in printed["inspect"]
    evaluated = [line.strip() for line in printed["evaluate"].splitlines()]
    assert [line for line in evaluation.splitlines() if line.strip() not in evaluated] == []
    assert "samples: 360 of 360 agree with the reference" in printed["run"]
    assert "verdict: exact" in printed["run"]
    assert printed["classify"].startswith(classified)
    assert {path.suffix for path in folder.glob("evaluation.*")} == {".html"}


@pytest.mark.nightly
def test_the_quantisation_of_the_page_made_the_committed_model(folder: Path) -> None:
    require_module("onnxruntime", "pip install 'ferrule[oracle]'")
    shutil.copy(MODELS / "digits.onnx", folder)
    runpy.run_path("quantise.py")
    made, committed = ferrule.load("digits_int8.onnx"), ferrule.load(MODELS / "digits_int8.onnx")
    assert digest(made) == digest(committed)


@pytest.mark.cc
@pytest.mark.emu
def test_the_page_from_pytorch(folder: Path, host_cc: tuple[str, ...]) -> None:
    python = require_python("FERRULE_TORCH")
    for words in commands("python"):
        subprocess.run([python, *words], cwd=folder, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    printed = follow(host_cc)
    check_program(printed["classify"])
    found = [line.split("│")[2] for line in printed["evaluate"].splitlines() if "│ accuracy" in line]
    assert float(found[0]) > 0.95
    assert "verdict: exact" in printed["evaluate"]
