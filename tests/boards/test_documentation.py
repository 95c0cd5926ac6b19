# SPDX-License-Identifier: Apache-2.0
"""Follows docs/boards.md from top to bottom."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from needs import require_module

from ferrule.boards import Board, board_names, load_board
from ferrule.boards.description import BoardDescription
from ferrule.firmware import SourceSet, TooLargeError, execute, plan_build, toolchain

DOCUMENT = Path(__file__).parents[2] / "docs" / "boards.md"
FILE = re.compile(r"```\{code-block\} \w+\n:caption: (\S+)\n(.*?)```", re.DOTALL)


@pytest.fixture
def documented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Board:
    """The board that the document adds."""
    text = DOCUMENT.read_text(encoding="utf-8")
    files = FILE.findall(text)
    assert len(files) == 2
    for name, contents in files:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(contents, encoding="utf-8")
    folder = re.search(r"export FERRULE_BOARDS=\$PWD/(\S+)", text)
    assert folder is not None
    monkeypatch.setenv("FERRULE_BOARDS", str(tmp_path / folder[1]))
    assert "mps3-an524" in board_names()
    return load_board("mps3-an524")


def test_the_documented_board_loads(documented: Board) -> None:
    assert documented.cpu.type == "cortex-m33"
    assert not documented.cpu.hard_float
    assert documented.qemu is not None
    assert documented.qemu.instructions_per_tick == 31.25


@pytest.mark.cc
def test_its_memory_overflow_reads_as_documented(documented: Board, tmp_path: Path) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    source = tmp_path / "large.c"
    source.write_text(
        '#include <stdint.h>\n#include "ferrule/section.h"\nint main(void);\n'
        "FERRULE_WEIGHTS static const volatile uint8_t weights[1000000] = {1};\n"
        "int main(void) { return weights[7]; }\n",
        encoding="utf-8",
    )
    wanted = (
        "the firmware is too big for board mps3-an524: memory 'bram' holds 524,288 B, "
        r"1,00.,... B are needed \(47.,... B too many\): code ... B, constants 32 B, weights 1,000,00. B"
    )
    with pytest.raises(TooLargeError, match=wanted):
        execute(plan_build(SourceSet(sources=[source]), documented, toolchain("zig"), tmp_path / "build"))


def test_every_key_is_documented() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    first_column = " ".join(line.split("|")[1] for line in text.splitlines() if line.startswith("| `"))
    for name in BoardDescription.__struct_fields__:
        assert re.search(rf"`{name}[.`]", first_column), name


@pytest.mark.parametrize("name", board_names())
def test_every_shipped_board_is_listed(name: str) -> None:
    """The table of boards has its memories and UART; the table of tried boards has the board or its family."""
    first, _, tried = DOCUMENT.read_text(encoding="utf-8").partition("The four int8 models of MLPerf Tiny")
    row = next((line for line in first.splitlines() if line.startswith(f"| {name} |")), "")
    assert row, f"docs/boards.md: the table of boards has no row of {name}"
    listed = any(f"| {each} |" in tried for each in (name, f"{name.partition('-')[0]}-*"))
    assert listed, f"docs/boards.md: the table of the models that were run has no row of {name}"
    board = load_board(name)
    addresses = [board.memory(each).address for each in (board.placement.code, board.placement.data)]
    said = "the same" in row
    for address in (*addresses, board.link_uart.address):
        assert said or f"0x{address >> 16:04X}_{address & 0xFFFF:04X}" in row, hex(address)
