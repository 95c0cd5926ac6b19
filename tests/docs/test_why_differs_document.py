# SPDX-License-Identifier: Apache-2.0
"""docs/why-differs.md: its commands find what they are said to find."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pytest
import small_networks
from click.testing import CliRunner, Result
from needs import require_module
from pages import ROOT, blocks

from ferrule import DataType, Network, TensorInfo
from ferrule.cli.main import cli
from ferrule.errors import FerruleError, InputError
from ferrule.formats import to_tflite

PAGE = ROOT / "docs" / "why-differs.md"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    network = Network("stateful")
    network.add_input(TensorInfo("frame", (1, 2), DataType.FLOAT32))
    network.set_outputs([network.add_signal_overlap_add_layer("frame", frame_step=1)])
    Path("stateful.tflite").write_bytes(to_tflite(network))
    np.save("series.npy", np.arange(1, 9, dtype=np.float32).reshape(4, 2))


def _run(line: str) -> Result:
    return CliRunner().invoke(cli, shlex.split(line)[1:], standalone_mode=False)


def _commands() -> list[str]:
    text = "".join(block.text for block in blocks(PAGE) if block.language == "sh")
    return text.replace("\\\n", " ").splitlines()


@pytest.mark.cc
@pytest.mark.emu
def test_state_is_found_by_resetting() -> None:
    for line in _commands():
        if "stateful" in line:
            assert _run(line).exit_code == 0
    assert np.load("one.npy").ravel().tolist() == [1, 5, 9, 13]
    assert np.load("each.npy").ravel().tolist() == [1, 3, 5, 7]


def test_bytes_are_refused() -> None:
    Path("dense.tflite").write_bytes(to_tflite(small_networks.dense()))
    np.save("bytes.npy", np.zeros((2, 6), np.uint8))
    error = _run("ferrule run dense.tflite --input bytes.npy").exception
    assert isinstance(error, InputError)
    assert "is uint8[2, 6], expected int8[1, 6]" in str(error)
    assert "real=True" in str(error.hint)  # as a program says it


@pytest.mark.cc
@pytest.mark.emu
@pytest.mark.nightly
def test_all_commands_of_the_page(models: Path) -> None:
    """Follow the page with the model that it names; the outputs that it quotes depend on the samples."""
    Path("kws.tflite").symlink_to(models / "kws_ref_model.tflite")
    Path("kws_float.tflite").symlink_to(models / "kws_ref_model_float32.tflite")
    random = np.random.default_rng(0)
    np.save("real.npy", random.normal(0, 30, (20, 49, 10, 1)).astype(np.float32))
    np.save("bytes.npy", random.integers(0, 256, (20, 49, 10, 1)).astype(np.uint8))
    np.save("labels.npy", random.integers(0, 12, 20))
    expected = {"bytes.npy": 1, "--goal speed": 1, "--locate": 1}
    for line in _commands():
        result = _run(line)
        wanted = next((code for part, code in expected.items() if part in line), 0)
        code = result.return_value or result.exit_code
        assert code == wanted, (line, result.output, result.exception)
        if "--locate" in line:
            assert "first difference: layer 'conv_2d_0' (CONV_2D) on Woofles/npu0" in result.output
        if "bytes.npy" in line:
            assert isinstance(result.exception, FerruleError)
    differing = np.load("answer.npy") != np.load("litert.npy")
    assert (int(differing.sum()), differing.size) == (15, 240)
