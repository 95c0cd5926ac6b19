# SPDX-License-Identifier: Apache-2.0
"""Arrays in files, named with `--input`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ferrule import DataType, TensorInfo
from ferrule.cli.arrays import parse_input_options
from ferrule.errors import InputError


def info(name: str = "x") -> TensorInfo:
    return TensorInfo(name, (2, 3), DataType.INT8)


def test_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.arange(3))
    parsed = parse_input_options([str(path)], [info()])
    assert parsed["x"].tolist() == [0, 1, 2]
    assert type(parsed["x"]) is np.ndarray


def test_input_options(tmp_path: Path) -> None:
    one, two = tmp_path / "one.npy", tmp_path / "a=b.npy"
    np.save(one, np.zeros(1))
    np.save(two, np.zeros(2))
    assert list(parse_input_options([str(one)], [info()])) == ["x"]
    assert list(parse_input_options([f"x={one}"], [info()])) == ["x"]
    parsed = parse_input_options([str(two)], [info()])
    assert parsed["x"].shape == (2,)
    assert list(parse_input_options([f"b={one}", f"a={one}"], [info("a"), info("b")])) == ["b", "a"]
    assert list(parse_input_options([f"serving:0={one}"], [info("serving:0"), info("b")])) == ["serving:0"]


def test_input_options_that_are_wrong(tmp_path: Path) -> None:
    path = tmp_path / "one.npy"
    np.save(path, np.zeros(1))
    with pytest.raises(InputError, match="names no input") as caught:
        parse_input_options([str(path)], [info("a"), info("b")])
    assert caught.value.hint == "the model's inputs: a, b"
    with pytest.raises(InputError, match="'a' is given twice"):
        parse_input_options([f"a={path}", f"a={path}"], [info("a"), info("b")])
    with pytest.raises(InputError, match="'x' is given twice"):
        parse_input_options([str(path), str(path)], [info()])
