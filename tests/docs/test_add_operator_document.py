# SPDX-License-Identifier: Apache-2.0
"""Compares docs/add_operator.md with the files that it quotes."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from children import ran
from needs import require_module

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "add_operator.md").read_text(encoding="utf-8")
QUOTED = re.findall(r"```\{code-block\} \w+\n:caption: (\S+)\n(.*?)```", TEXT, re.DOTALL)
TABLE = re.findall(r"^\| `(\S+)` \|", TEXT, re.MULTILINE)


GENERATED = {"include/ferrule/layers.h", "tests/testing/backends/golden/layer_cases.txt"}


def test_it_names_eight_files() -> None:
    assert len(TABLE) == len(set(TABLE)) == 8
    assert {name for name, _ in QUOTED} == set(TABLE) - GENERATED


@pytest.mark.parametrize(("name", "lines"), QUOTED, ids=[name for name, _ in QUOTED])
def test_what_it_quotes_stands_there(name: str, lines: str) -> None:
    assert lines in (ROOT / name).read_text(encoding="utf-8")


def test_the_oracle_is_asked() -> None:
    require_module("tflite_micro", "pip install --pre tflite-micro")
    require_module("ai_edge_litert", "pip install ai-edge-litert")
    (program,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    done = ran([sys.executable, "-c", program], cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.replace(" ", "").count("-2.,-0.,0.,2.,inf,nan") == 2


def test_the_paths_that_it_names_exist() -> None:
    paths = {path for path in re.findall(r"\b(?:tests|docs|src_c|sdk)/[\w./]+\w", TEXT) if "<" not in path}
    assert [path for path in paths if not (ROOT / path).exists()] == []
