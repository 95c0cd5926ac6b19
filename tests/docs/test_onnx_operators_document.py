# SPDX-License-Identifier: Apache-2.0
"""Compares the operators that docs/onnx.md lists with those of the reader."""

from __future__ import annotations

import re

from pages import ROOT

from ferrule.formats.onnx.folding import FOLDS
from ferrule.formats.onnx.operators import OPERATORS
from ferrule.formats.onnx.qlinear import EXPANSIONS

SECTION = (ROOT / "docs" / "onnx.md").read_text(encoding="utf-8").partition("## Operators\n")[2].partition("\n## ")[0]


def test_every_operator_has_one_row() -> None:
    cells = [row.split("|")[1] for row in SECTION.splitlines() if row.startswith("| ")]
    listed = [name.strip() for cell in cells[1:] for name in cell.split(",")]
    assert sorted(listed) == sorted(OPERATORS)


def test_every_operator_that_is_computed_is_listed() -> None:
    (listed,) = re.findall(r"with these\noperators: (.*?)\.", SECTION, re.DOTALL)
    assert sorted(re.split(r",\s+", listed)) == sorted({*FOLDS, "Constant"})


def test_every_operator_with_scales_is_listed() -> None:
    words = set(re.findall(r"\bQ(?:Gemm|Linear[A-Z]\w+)", SECTION))
    assert words == {name.rpartition("::")[2] for name in EXPANSIONS}
