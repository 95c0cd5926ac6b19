# SPDX-License-Identifier: Apache-2.0
"""Follows docs/zephyr.md."""

from __future__ import annotations

import errno
import re
from pathlib import Path

import pytest
import zephyr_bench
from needs import require_module

from ferrule.boards import load_board
from ferrule.firmware.platforms import platform
from ferrule.firmware.platforms.zephyr_tools import NEWEST_TRIED, ZEPHYR_BOARDS
from ferrule.resources import root
from ferrule.testing import build_adapter

DOCUMENT = Path(__file__).parents[2] / "docs" / "zephyr.md"
TEXT = DOCUMENT.read_text(encoding="utf-8")
FILE = re.compile(r"```\{code-block\} \w+\n:caption: (\S+)\n(.*?)```", re.DOTALL)


@pytest.mark.cc
def test_the_program_works(tmp_path: Path) -> None:
    require_module("cffi", "pip install 'ferrule[run]'")
    for name, text in FILE.findall(TEXT):
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "bind.h").write_text("#include <stdint.h>\nint32_t start_npu0(void);\n")
    given = '#include "ferrule_fake_zephyr.h"\n#define DEVICE_DT_GET(node) ferrule_fake_device(0, "npu0")\n'
    (tmp_path / "faked.c").write_text(f'{given}#include "bind.c"\n')
    adapter = build_adapter(
        "zephyr",
        sources=[tmp_path / "faked.c", tmp_path / "acme.c"],
        headers=["bind.h"],
        include_dirs=[tmp_path],
    )
    assert adapter.lib.start_npu0() == zephyr_bench.OK
    assert adapter.fakes.trace == "new new ready?"  # a mutex and a semaphore


@pytest.mark.cc
def test_the_codes_are_as_the_table_has_them() -> None:
    lib = zephyr_bench.built().lib
    rows = re.findall(r"^\| (?:`(E\w+)`|another) \| `(\w+)` \| `(E\w+)` \|$", TEXT, re.MULTILINE)
    assert len(rows) == len(zephyr_bench.STATUS_OF)
    for name, status, back in rows:
        number = getattr(errno, name) if name else errno.EFAULT
        assert lib.ferrule_zephyr_status(-number) == getattr(lib, status), name
        assert lib.ferrule_zephyr_errno(getattr(lib, status)) == -getattr(errno, back), status


def test_every_option_is_explained() -> None:
    text = (root() / "platforms" / "zephyr" / "Kconfig").read_text()
    options = {}
    if "Kconfig.template.log_config" in text:
        options["CONFIG_FERRULE_LOG_LEVEL"] = "that of the log"
    for block in re.split(r"^(?=(?:menu)?config |choice )", text, flags=re.MULTILINE):
        found = re.match(r"(?:menu)?config (\w+)\n", block)
        if found is not None:
            default = re.search(r"^\tdefault (\w+)", block, re.MULTILINE)
            options[f"CONFIG_{found[1]}"] = "n" if default is None else default[1]
    explained = dict(re.findall(r"^\| `(CONFIG_FERRULE\w*)` \| (.+?) \|", TEXT, re.MULTILINE))
    assert set(explained) == set(options)
    for name, default in explained.items():
        if name == "CONFIG_FERRULE_UART_INTERRUPT":
            assert default == "y", "the choice's default, where there are interrupts"
        elif name != "CONFIG_FERRULE_ACCELERATOR_INIT_PRIORITY":
            assert options[name] == default, name


def test_the_boards_are_there() -> None:
    assert "--platform zephyr" in TEXT
    assert platform("zephyr").title.startswith("Zephyr 3.5")
    table = TEXT[TEXT.index("### Boards") : TEXT.index("## Tested versions")]
    lines = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("| `")]
    rows = {name.strip(" `"): [cell.strip() for cell in cells] for name, *cells in lines}
    assert set(rows) == set(ZEPHYR_BOARDS)
    for name, board in ZEPHYR_BOARDS.items():
        assert load_board(name).name == name
        names, older, link, modules = rows[name]
        assert re.findall(r"`(.*?)`", names) == [board.name]
        assert ("since" in names) is (board.since is not None)
        assert re.findall(r"`(.*?)`", older) == [name for name, _ in board.older]
        assert re.findall(r"`(.*?)`", link) == [board.link]
        assert modules == " ".join(board.modules)


def test_the_newest_release_that_was_tried() -> None:
    """The page, and the manifest of a generated workspace, name the same release."""
    words = " ".join(TEXT[TEXT.index("## Tested versions") :].split())
    releases = re.search(r"used Zephyr ([\d., and]+),", words)
    assert releases is not None
    found = [tuple(map(int, each.split("."))) for each in re.findall(r"\d+\.\d+\.\d+", releases[1])]
    assert max(found) == tuple(map(int, NEWEST_TRIED.split(".")))
