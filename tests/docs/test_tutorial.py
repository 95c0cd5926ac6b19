# SPDX-License-Identifier: Apache-2.0
"""docs/tutorial.md followed: from its committed model to a program in C, and, with PyTorch, from the training on."""

from __future__ import annotations

import os
import runpy
import shlex
import shutil
import subprocess
from collections.abc import Mapping
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
FILES = {"data.py", "train.py", "main.c"}


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


def follow(cc: tuple[str, ...], others: Mapping[str, str]) -> dict[str, str]:
    """Run Ferrule's commands, with `others` in place of some words, and the program; return what each printed."""
    printed = {}
    for words in commands("ferrule"):
        result = CliRunner().invoke(cli, [others.get(word, word) for word in words], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        printed[words[0]] = result.output
    (compiling,) = [each.text for each in blocks(PAGE) if each.language == "sh" and "./classify" in each.text]
    assert compiling.startswith("cc -std=c11 ")
    compile_and_run = compiling.replace("cc ", f"{shlex.join(cc)} -Wall -Wextra -Wconversion -Werror ", 1)
    done = ran(["bash", "-e", "-c", compile_and_run], check=True)
    return printed | {"classify": done.stdout}


def check_program(printed: str) -> None:
    """Compare the digits and scores of the program in C with the numpy reference."""
    (scores,) = ferrule.load("digits_int8.tflite").run([np.load("test_images.npy")], real=True)
    assert printed.splitlines() == [f"{row.argmax()} {row.max():.6f}" for row in scores]


@pytest.mark.cc
@pytest.mark.emu
def test_the_page_from_its_model_to_a_program(folder: Path, host_cc: tuple[str, ...]) -> None:
    """What run and the program print is on the page; the float model takes the place of PyTorch's."""
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    require_module("ai_edge_quantizer", "pip install 'ferrule[quantize]'")
    shutil.copy(MODELS / "digits.onnx", folder)
    printed = follow(host_cc, {"digits.pt2": "digits.onnx"})
    check_program(printed["classify"])
    quantized, run, classified, *_ = [each.text for each in blocks(PAGE) if each.language == "text"]
    for shown, command in ((quantized, "quantize"), (run, "run")):
        reported = [line.strip() for line in printed[command].splitlines()]
        assert [line for line in shown.splitlines() if line.strip() not in reported] == []
    assert printed["classify"].startswith(classified)
    made, committed = ferrule.load("digits_int8.tflite"), ferrule.load(MODELS / "digits_int8.tflite")
    assert digest(made) == digest(committed)
    assert not any(info.dtype is ferrule.DataType.FLOAT32 for info in (each.info for each in made.tensors))


@pytest.mark.cc
@pytest.mark.emu
def test_the_page_from_pytorch(folder: Path, host_cc: tuple[str, ...]) -> None:
    python = require_python("FERRULE_TORCH")
    require_module("ai_edge_quantizer", "pip install 'ferrule[quantize]'")
    for words in commands("python"):
        subprocess.run([python, *words], cwd=folder, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    printed = follow(host_cc, {})
    check_program(printed["classify"])
    labels = np.load("test_labels.npy")
    assert (np.load("scores.npy").argmax(1) == labels).mean() > 0.95
    assert "samples: 360 of 360 agree with the reference" in printed["run"]
    assert "verdict: exact" in printed["run"]
