# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of docs/api.md, one after another."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import small_networks
from needs import require_module

from ferrule.formats import to_tflite

DOCUMENT = Path(__file__).parents[2] / "docs" / "api.md"


@pytest.mark.cc
def test_the_programs_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    programs = re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(programs) == 3
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.tflite").write_bytes(to_tflite(small_networks.dense()))
    names: dict[str, Any] = {}
    for program in programs:
        exec(compile(program, str(DOCUMENT), "exec"), names)  # noqa: S102 they are the page's
    assert repr(names["firmware"]).startswith("<Firmware 'model' for mps2-an386 by zig -O2: ")
    assert repr(names["project"]).startswith(f"<Project {Path('build/model')}: 'model' for bare-metal, ")
    assert names["inspection"].schedule[0].calls
