# SPDX-License-Identifier: Apache-2.0
"""Follows docs/unit-testing.md from beginning to end."""

from __future__ import annotations

import importlib.metadata
import re
import sys
from pathlib import Path

import pytest
from children import ran
from needs import require_cc, require_gcov, require_module

from ferrule.testing import CmsisFakes, Fakes, ZephyrFakes, pytest_plugin

DOCUMENT = Path(__file__).parents[2] / "docs" / "unit-testing.md"
FILE = re.compile(r"```\{code-block\} \w+\n:caption: (\S+)\n(.*?)```", re.DOTALL)
TEXT = DOCUMENT.read_text(encoding="utf-8")


@pytest.mark.cc
def test_its_tests_pass(tmp_path: Path) -> None:
    require_module("cffi", "pip install 'ferrule[testing]'")
    require_cc()
    require_gcov()
    for name, contents in FILE.findall(TEXT):
        with (tmp_path / name).open("a", encoding="utf-8") as file:
            file.write(f"{contents}\n\n")
    registered = any(each.name == "ferrule" for each in importlib.metadata.entry_points(group="pytest11"))
    options = [] if registered else ["-p", "ferrule.testing.pytest_plugin"]
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "."]
    done = ran(argv, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    written = len(re.findall(r"^def test_", TEXT, re.MULTILINE))
    assert f"{written} passed" in done.stdout


def test_what_it_names_is_there() -> None:
    table = TEXT.split("## Scripted failures")[1].split("```")[0]
    names = set(re.findall(r"`(\w+)(?:\(|`)", table.replace("`fakes.`", "")))
    names |= set(re.findall(r", `(\w+)", table))
    known = {name for kind in (Fakes, ZephyrFakes, CmsisFakes) for name in dir(kind)}
    assert names <= known
    assert len(names) > 20


def test_every_fixture_is_listed() -> None:
    fixtures = {name for name in vars(pytest_plugin) if name.startswith("ferrule_") or name.endswith("_adapter")}
    assert fixtures == set(
        re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?`) \|", TEXT.split("## Fixtures")[1], re.MULTILINE)))
    )
