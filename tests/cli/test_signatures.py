# SPDX-License-Identifier: Apache-2.0
"""`--signature`, which every command has that reads a model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flatbuffer_tree import write
from signature_models import two

from ferrule.formats import load


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "two.tflite"
    path.write_bytes(write(two({"serve": 0, "train": 1})))
    return path


def test_inspect_lists_the_signatures(ferrule: Callable[..., Any], file: Path) -> None:
    refused = ferrule("inspect", file)
    assert refused.code == 2
    assert "'serve', 'train'" in refused.err
    assert "--signature NAME" in refused.err
    shown = ferrule("inspect", file, "--signature", "train")
    assert shown.code == 0
    assert "signature 'train'; the others: serve (--signature)" in shown.out
    assert "2 layers" in shown.out
    document = json.loads(ferrule("inspect", file, "--signature", "train", "--json").out)
    assert document["signatures"] == ["train", "serve"]


def test_commands_take_a_signature(ferrule: Callable[..., Any], file: Path, tmp_path: Path) -> None:
    for name, layers in (("serve", 1), ("train", 2)):
        written = tmp_path / f"{name}.tflite"
        assert f"{layers} layers" in ferrule("convert", file, written, "--signature", name).out
        assert len(load(written).layers) == layers
    assert ferrule("generate", file, "--signature", "train", "--out", tmp_path / "project").code == 0
    assert ferrule("generate", file, "--out", tmp_path / "none").code == 2
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("command", ["inspect", "run", "generate", "verify", "evaluate", "convert"])
def test_each_command_that_reads_a_model_has_the_option(ferrule: Callable[..., Any], command: str) -> None:
    assert "--signature NAME" in ferrule(command, "--help").out
