# SPDX-License-Identifier: Apache-2.0
"""Rules that the linters do not check: sizes, module names, first lines."""

from __future__ import annotations

import ast
from pathlib import Path
from statistics import median

import pytest
from children import ran
from needs import lacking, require_program

ROOT = Path(__file__).parents[1]
MODULE_LIMIT = 700
FUNCTION_LIMIT = 60
GENERATED = ROOT / "include" / "ferrule" / "layers.h"
FORBIDDEN_NAMES = {"utils.py", "common.py", "helpers.py", "core.py", "misc.py"}


def tracked(*suffixes: str) -> list[Path]:
    listed = ran(
        [require_program("git", "apt-get install git"), "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
    )
    if listed.returncode:
        lacking(f"a git checkout ({listed.stderr.strip()})", "clone the repository")
    names = (name for name in listed.stdout.splitlines() if name.endswith(suffixes))
    return [ROOT / name for name in names if (ROOT / name).exists()]


def test_no_module_is_too_long() -> None:
    written = (path for path in tracked(".py", ".c", ".h") if path != GENERATED)
    long = {path.name: len(path.read_text().splitlines()) for path in written}
    assert {name: lines for name, lines in long.items() if lines > MODULE_LIMIT} == {}


def test_functions_are_short() -> None:
    lengths = {}
    for path in tracked(".py"):
        if "sdk" not in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.end_lineno is not None:
                first = node.body[1] if len(node.body) > 1 and ast.get_docstring(node) else node.body[0]
                lengths[f"{path.name}:{node.name}"] = node.end_lineno - first.lineno + 1
    assert {name: length for name, length in lengths.items() if length > FUNCTION_LIMIT} == {}
    assert median(lengths.values()) < 10


def test_no_module_is_a_drawer() -> None:
    assert not [path for path in tracked(".py") if path.name in FORBIDDEN_NAMES]


@pytest.mark.parametrize("suffix", [".py", ".c", ".h"])
def test_every_file_names_its_licence(suffix: str) -> None:
    line = "SPDX-License-Identifier: Apache-2.0"
    missing = [str(path.relative_to(ROOT)) for path in tracked(suffix) if line not in path.read_text()[:200]]
    assert missing == []


def test_no_source_says_that_something_is_left_to_do() -> None:
    words = ("TODO", "FIXME", "XXX", "NotImplementedError")
    found = [
        f"{path.relative_to(ROOT)}: {word}"
        for path in tracked(".py", ".c", ".h")
        if path != Path(__file__)
        for word in words
        if word in path.read_text()
    ]
    assert found == []
