# SPDX-License-Identifier: Apache-2.0
"""Rules for the kernels' assembler that neither compiler checks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

KERNELS = Path(__file__).parents[2] / "src_c" / "kernels"
RELATIVE = [path for path in sorted(KERNELS.glob("*.c")) if re.search(r'"adr', path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("path", RELATIVE, ids=lambda path: path.name)
def test_functions_with_addresses_relative_to_the_code_are_aligned(path: Path) -> None:
    """ADR counts from a multiple of 4; with -Os, functions may start 2 bytes after one, and it would be wrong by 2."""
    functions = path.read_text(encoding="utf-8").split("__attribute__((naked")[1:]
    assert functions
    assert all(text.split("))")[0].endswith("aligned(4") for text in functions)


def test_the_rule_is_for_some_kernels() -> None:
    assert RELATIVE
