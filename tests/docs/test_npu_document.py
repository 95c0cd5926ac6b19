# SPDX-License-Identifier: Apache-2.0
"""docs/npu.md quotes the files that `ferrule init npu` writes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner
from pages import ROOT, Block, blocks

from ferrule.cli.main import cli

DOCUMENT = ROOT / "docs" / "npu.md"
QUOTED = [block for block in blocks(DOCUMENT) if block.caption]
TEXT = DOCUMENT.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The files of an NPU called Kestrel, by path."""
    folder = tmp_path_factory.mktemp("npu") / "kestrel-npu"
    (line,) = re.findall(r"^ferrule (init npu .*)$", TEXT, re.MULTILINE)
    words = [str(folder) if word == "kestrel-npu" else word for word in line.split()]
    outcome = CliRunner().invoke(cli, words)
    assert outcome.exit_code == 0, outcome.output
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in files}


@pytest.mark.parametrize("block", QUOTED, ids=lambda block: block.place)
def test_quotes_are_in_the_files(block: Block, written: Mapping[str, str]) -> None:
    assert block.text in written[block.caption], block.place


def test_each_named_file_exists(written: Mapping[str, str]) -> None:
    table = TEXT.split("| file | what to replace |", 1)[1].split("\n\n", 1)[0]
    names = re.findall(r"`([\w./]+\.\w+)`", table)
    assert len(names) >= 10
    for name in names:
        assert name in written or f"kestrel/{name}" in written, name


def test_the_driver_has_what_the_page_explains(written: Mapping[str, str]) -> None:
    table = TEXT.split("| function | Kestrel |", 1)[1].split("\n\n", 1)[0]
    functions = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    driver = written["kestrel/src_c/kestrel.c"].split("const struct ferrule_driver kestrel_driver", 1)[1]
    for function in functions:
        assert re.search(rf"^    \.{function} = \w+,$", driver, re.MULTILINE), function


def test_it_has_the_families(written: Mapping[str, str]) -> None:
    """Each of them for the backend as it is; tests/cli/test_init.py runs them."""
    assert {"(BackendFamily)", "(FirmwareFamily)"} <= set(
        re.findall(r"\(\w+Family\)", written["kestrel/tests/test_families.py"])
    )
    assert Path(written["kestrel/backend.toml"].split('tests = ["', 1)[1].split('"', 1)[0]).name == "tests"
