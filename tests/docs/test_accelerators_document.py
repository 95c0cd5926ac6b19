# SPDX-License-Identifier: Apache-2.0
"""Follows docs/accelerators.md from beginning to end."""

from __future__ import annotations

import importlib.metadata
import re
import sys
from pathlib import Path

import children
import pytest
from children import ran
from needs import require_cc, require_module
from svd_files import CHIP

from ferrule.backends.woofles.registers import TABLE
from ferrule.devices import documentation

DOCUMENT = Path(__file__).parents[2] / "docs" / "accelerators.md"
FILE = re.compile(r"```\{code-block\} \w+\n:caption: (\S+)\n(.*?)```", re.DOTALL)
TEXT = DOCUMENT.read_text(encoding="utf-8")
COMMAND = re.compile(r"^ferrule (.*?)(?:  +#.*)?$", re.MULTILINE)


@pytest.fixture(scope="module")
def documented(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page's files, and the header that they generate."""
    folder = tmp_path_factory.mktemp("accelerators")
    for name, contents in FILE.findall(TEXT):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(contents)
    run(folder, "write_header.py")
    return folder


def run(folder: Path, *arguments: str, code: int = 0) -> str:
    environment = children.environment(folder, FERRULE_BACKENDS="")
    done = ran([sys.executable, *arguments], cwd=folder, env=environment)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.cc
def test_the_unit_tests_pass(documented: Path) -> None:
    require_module("cffi", "pip install 'ferrule[testing]'")
    require_cc()
    registered = any(each.name == "ferrule" for each in importlib.metadata.entry_points(group="pytest11"))
    options = [] if registered else ["-p", "ferrule.testing.pytest_plugin"]
    out = run(documented, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", *options, "yap")
    assert "13 passed" in out


@pytest.mark.cc
@pytest.mark.emu
def test_the_program_and_the_commands_run(documented: Path) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    require_module("systemrdl", "pip install 'ferrule[rdl]'")
    assert run(documented, "use.py").count("status -12 (DEVICE): layer 'largest' on Yap/yap0") == 2
    (documented / "chip.svd").write_text(CHIP, encoding="utf-8")  # the files of a vendor
    (documented / "dma.rdl").write_text("addrmap dma { reg { field {} LENGTH[16]; } LENGTH; };", encoding="utf-8")
    commands = [match.split() for match in COMMAND.findall(TEXT)]
    names = ["registers"] * 4 + ["new"] * 2 + ["inspect", "run", "run", "run", "generate"]
    assert [command[0] for command in commands] == names
    expected = (
        (0, "INTERRUPT"),
        (0, ""),
        (0, "TIMER0"),
        (0, "IRQ2"),
        (0, "timer0"),
        (0, "dma"),
        (0, "Yap"),
        (0, "transfers of devices: all allowed"),
        (2, "(DEVICE)"),
        (1, "first difference: layer 'maximum_0' (MAXIMUM) on Yap/yap0"),
        (0, ""),
    )
    for command, (code, words) in zip(commands, expected, strict=True):
        assert words in run(documented, "-m", "ferrule", *command, code=code)
    assert list((documented / "project").rglob("yap.c"))
    assert "<name>yap0</name>" in (documented / "yap.svd").read_text(encoding="utf-8")


def test_woofles_registers_are_those_of_its_table() -> None:
    table = documentation(TABLE).split("\n", 1)[1]
    assert table in TEXT
