# SPDX-License-Identifier: Apache-2.0
"""Compares the tables of docs/ethos_u.md with EthosU, and runs the program of the page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import small_networks
from needs import require_module
from pages import ROOT, blocks
from vela_campaign import compile_in_process

from ferrule.backends.ethos_u.configuration import CONFIGURATIONS
from ferrule.backends.ethos_u.firmware import _BINDING, _TEXTS
from ferrule.backends.ethos_u.known_differences import _ARITHMETIC, TABLE
from ferrule.backends.ethos_u.settings import OPTIONS
from ferrule.formats import to_tflite

PAGE = ROOT / "docs" / "ethos_u.md"


def rows(heading: str) -> Iterator[list[str]]:
    """Yield the rows of the table whose first heading is this one."""
    found = False
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if cells and cells[0] == heading:
            found = True
        elif found and not cells:
            return
        elif found and not set(cells[0]) <= {"-"}:
            yield cells


def test_the_table_of_options_has_all() -> None:
    assert [row[0].strip("`") for row in rows("option")] == [option.name for option in OPTIONS]


def test_the_table_of_the_binding_has_all_fields() -> None:
    named = [name for row in rows("field of the binding") for name in re.findall(r"`(\w+)`", row[0])]
    assert sorted(named) == sorted([*_BINDING, *_TEXTS])


def test_the_table_of_refused_layers_has_all() -> None:
    named = {name for row in rows("layer") for name in re.findall(r"\b[A-Z][A-Z0-9_]{2,}\b", row[0])}
    assert named == {str(type_) for type_ in {*TABLE, *_ARITHMETIC}}


def test_every_configuration_is_named() -> None:
    (text,) = (row[2] for row in rows("field of the binding") if row[0] == "`configuration`")
    for each in CONFIGURATIONS:
        assert f"`{each.name}`" in text or f"`-{each.macs}`" in text


def test_the_program_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    require_module("ethosu", "pip install 'ferrule[ethos-u]'")
    network = small_networks.dense()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "model_vela.npz").write_bytes(compile_in_process(to_tflite(network), "ethos-u55-128"))
    (program,) = (block for block in blocks(PAGE) if block.language == "python")
    exec(compile(program.text, str(PAGE), "exec"), {})  # noqa: S102 - the page's own program
    printed = capsys.readouterr().out
    (wanted,) = network.run([np.zeros(network.inputs[0].shape, np.int8)])
    assert f"ethos-u55-128 {wanted} 24" in printed
    assert "CONV" in printed
