# SPDX-License-Identifier: Apache-2.0
"""docs/sweeps.md: its files are sweeps with as many runs as it says, and its table has the keys of the file."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import small_networks

from ferrule.evaluation.sweep import Plan, read_plan
from ferrule.evaluation.sweep.file import OptionsEntry, SweepFile, read_file
from ferrule.formats import to_tflite

TEXT = (Path(__file__).parents[2] / "docs" / "sweeps.md").read_text(encoding="utf-8")
FILE = re.compile(r"```\{code-block\} toml\n:caption: (\S+)\n(.*?)```", re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the page's files, and with the models and data that they name."""
    for name in ("digits", "kws-a", "kws-b"):
        (tmp_path / f"{name}.tflite").write_bytes(to_tflite(small_networks.dense()))
    np.save(tmp_path / "features.npy", np.zeros((3, 6), np.float32))
    np.save(tmp_path / "labels.npy", np.zeros(3, np.int64))
    for name, contents in FILE.findall(TEXT):
        (tmp_path / name).write_text(contents, encoding="utf-8")
    return tmp_path


def plan(folder: Path, name: str) -> Plan:
    return read_plan(folder / name)


def test_the_first_sweep(folder: Path) -> None:
    (told,) = re.findall(r"lists its (\d+) runs", TEXT)
    assert len(plan(folder, "sweep.toml")) == int(told)


def test_the_sweep_with_data(folder: Path) -> None:
    found = plan(folder, "evaluated.toml")
    assert [run.data is not None and run.data.proof for run in found.runs({"zig": "1"})] == [50] * 4


def test_the_sweep_with_a_board(folder: Path) -> None:
    needing = {
        (run.board, run.engine): (run.resources, run.lease is not None and run.lease.place, bool(run.needs.load))
        for run in plan(folder, "boards.toml").runs({"zig": "1"})
    }
    nothing = ((), False, False)
    assert needing == {
        ("nrf52840dk", "unicorn"): nothing,
        ("nrf52840dk", "serial"): ((("BOARD", 1),), "nrf-1", True),
        ("mps2-an386", "unicorn"): nothing,
    }


def test_the_table_has_all_keys() -> None:
    section = TEXT.split("\n## The file\n", 1)[1].split("\n## ", 1)[0]
    cells = " ".join(re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE))
    named = set(re.findall(r"[a-z_]+(?=[`.\]])", cells)) | set(re.findall(r"\[\[?([a-z_]+)", cells))
    assert set(SweepFile.__struct_fields__) <= named
    assert all(f"`{name}`" in section for name in OptionsEntry.__struct_fields__)


def test_every_file_is_one(folder: Path) -> None:
    names = [name for name, _ in FILE.findall(TEXT)]
    assert names == ["sweep.toml", "evaluated.toml", "boards.toml"]
    assert [read_file(folder / name).models for name in names]
