# SPDX-License-Identifier: Apache-2.0
"""`--shape`, which every command has that reads a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from onnx_models import model, node

from ferrule import formats


def test_commands_take_shapes(ferrule: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "pooled.onnx"
    made = model([node("MaxPool", "x", "y", kernel_shape=[2, 2])], {"x": ("float32", ["N", 4, "H", "W"])})
    path.write_bytes(made.SerializeToString())
    refused = ferrule("inspect", path)
    assert refused.code == 2
    assert "--shape NAME=1,3,32,32" in refused.err
    shown = ferrule("inspect", path, "--shape", "x=1,4,6,5")
    assert shown.code == 0
    assert "input 'x': [N, 4, H, W] in the file, read as [1, 4, 6, 5]" in shown.out
    for given in ("x", "x=", "=1,4,6,5", "x=1,4,6,b", "x=1,,6,5"):
        assert f"--shape {given}: expected NAME=EXTENTS" in ferrule("inspect", path, "--shape", given).err
    twice = ferrule("inspect", path, "--shape", "x=1,4,6,5", "--shape", "x=1,4,6,6")
    assert "--shape gives the shape of 'x' several times" in twice.err
    written = tmp_path / "pooled.tflite"
    assert ferrule("convert", path, written, "--shape", "x=3,4,6,5").code == 0
    assert formats.load(written).inputs[0].shape == (3, 4, 6, 5)


@pytest.mark.parametrize("command", ["inspect", "run", "generate", "verify", "evaluate", "convert", "quantize"])
def test_each_command_that_reads_a_model_has_the_option(ferrule: Callable[..., Any], command: str) -> None:
    assert "--shape NAME=EXTENTS" in ferrule(command, "--help").out
