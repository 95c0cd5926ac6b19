# SPDX-License-Identifier: Apache-2.0
"""Follows docs/compile_only_npu.md from beginning to end."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import children
import pytest
from children import ran
from needs import require_module
from pages import ROOT, blocks

DOCUMENT = ROOT / "docs" / "compile_only_npu.md"
COMMAND = re.compile(r"^ferrule (.*?)(?:  +#.*)?$", re.MULTILINE)


@pytest.fixture(scope="module")
def documented(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page's files, and the header that they generate."""
    folder = tmp_path_factory.mktemp("compile_only_npu")
    for block in blocks(DOCUMENT):
        if block.caption:
            path = folder / block.caption
            path.parent.mkdir(parents=True, exist_ok=True)
            assert not path.exists(), block.place
            path.write_text(block.text, encoding="utf-8")
    run(folder, "write_header.py")
    return folder


def run(folder: Path, *arguments: str) -> str:
    environment = children.environment(folder, FERRULE_BACKENDS="")
    done = ran([sys.executable, *arguments], cwd=folder, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_compiler_agrees_with_the_reference(documented: Path) -> None:
    out = run(documented, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", "tern")
    assert "8 passed" in out


@pytest.mark.cc
@pytest.mark.emu
def test_two_configurations_run_in_one_network(documented: Path) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    assert "status -5 (UNAVAILABLE): layer 'third/program' on Tern/large" in run(documented, "use.py")


@pytest.mark.cc
@pytest.mark.emu
@pytest.mark.nightly
def test_the_commands_run(documented: Path) -> None:
    run(documented, "use.py")
    commands = [match.split() for match in COMMAND.findall(DOCUMENT.read_text(encoding="utf-8"))]
    expected = (
        ("inspect", r"PRE_COMPILED \(1 layers for 32 MACs\)[ │]*Tern/large"),
        ("run", r"transfers of devices: all allowed\ncompared: .*\nverdict: exact"),
        ("generate", ""),
    )
    for command, (name, words) in zip(commands, expected, strict=True):
        assert command[0] == name
        assert re.search(words, run(documented, "-m", "ferrule", *command))
    devices = (documented / "project" / "devices.c").read_text(encoding="utf-8")
    assert (devices.count("macs = 8U"), devices.count("macs = 32U")) == (1, 1)
