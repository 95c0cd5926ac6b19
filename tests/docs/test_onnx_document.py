# SPDX-License-Identifier: Apache-2.0
"""docs/onnx.md followed from a PyTorch model to a board, and its quantisation on a model made by onnx.helper."""

from __future__ import annotations

import os
import runpy
import shlex
import subprocess
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from needs import require_module, require_python
from pages import ROOT, blocks

from ferrule.cli.main import cli

PAGE = ROOT / "docs" / "onnx.md"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the page's files, in which the test runs."""
    require_module("onnx", "pip install 'ferrule[onnx]'")
    require_module("onnxruntime", "pip install 'ferrule[oracle]'")
    for block in blocks(PAGE):
        if block.caption:
            (tmp_path / block.caption).write_text(block.text)
    assert {path.name for path in tmp_path.iterdir()} == {"train.py", "quantise.py"}
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_quantisation_of_the_page(folder: Path) -> None:
    """The model has other weights; the steps are the page's."""
    import onnx
    from onnx_graphs import samples_of, small_cnn

    model = small_cnn(8)
    for names in (model.graph.input[0], *model.graph.node):
        if isinstance(names, onnx.ValueInfoProto):
            names.name = "image"
        else:
            names.input[:] = ["image" if name == "input" else name for name in names.input]
    onnx.save(model, folder / "digits.onnx")
    samples = np.concatenate([sample["image"] for sample in samples_of(model, 8)])
    np.save(folder / "calibration.npy", samples)
    runpy.run_path("quantise.py")
    written = onnx.load(folder / "digits_int8.onnx")
    assert {"Conv", "Gemm", "QuantizeLinear", "DequantizeLinear"} <= {node.op_type for node in written.graph.node}


@pytest.mark.cc
@pytest.mark.emu
def test_the_page_from_pytorch_to_a_board(folder: Path) -> None:
    python = require_python("FERRULE_TORCH")
    runner = CliRunner()
    (steps,) = [each for each in blocks(PAGE) if each.language == "sh" and "train.py" in each.text]
    printed = {}
    for program, *words in map(shlex.split, steps.text.splitlines()):
        if program == "python":
            subprocess.run([python, *words], check=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
        else:
            result = runner.invoke(cli, words, catch_exceptions=False)
            assert result.exit_code == 0, result.output
            printed[words[0]] = result.output
    assert "verdict: exact" in printed["run"]
    assert "onnx" in printed["inspect"]
    (cut,) = [each for each in blocks(PAGE) if each.language == "python" and not each.caption]
    exec(compile(cut.text, cut.place, "exec"), {})  # noqa: S102 it is the page's
    result = runner.invoke(cli, ["inspect", "digits_integer.onnx"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
