# SPDX-License-Identifier: Apache-2.0
"""What a board may not make a compiler, an emulator or a page do."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from ferrule.boards import board_names, load_board, read_platform
from ferrule.boards.allowed import check_flags
from ferrule.emulation.renode.script import check_platform
from ferrule.errors import FerruleError
from ferrule.resources import root

SHIPPED = root() / "boards"


def board(folder: Path, *, old: str = "", new: str = "", extra: str = "") -> Path:
    """Return a copy of mps2-an386 with a changed board.toml and more lines in its platform description."""
    made = folder / "mine"
    shutil.copytree(SHIPPED / "mps2-an386", made)
    shutil.copytree(SHIPPED / "mps2", folder / "mps2")
    file = made / "board.toml"
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    platform = made / "mps2-an386.repl"
    platform.write_text(platform.read_text(encoding="utf-8") + extra, encoding="utf-8")
    return made


@pytest.mark.parametrize("key", ["zig", "arm-none-eabi-gcc"])
@pytest.mark.parametrize(
    "flag",
    [
        "-wrapper",
        "/path/w.sh",
        "-B/path",
        "-specs=/path/x.specs",
        "--specs=nano.specs",
        "@/path/flags",
        "-DX=$(shell touch P)",
        "-DX=`touch P`",
        "-DX=1 -wrapper w.sh",
        "-DX;touch P",
        "-DX\\n",
        "-I/usr/include",
        "-include",
        "-imacros/etc/passwd",
        "-fplugin=x.so",
        "-fpass-plugin=x.so",
        "-mllvm",
        "-Xclang",
        "-Wl,-T,x.ld",
        "-Wa,-I,x",
        "-Wp,-MD,/any/file",
        "-o/any/file",
        "-save-temps=cwd",
        "-fdump-tree-all=/any/file",
        "-fprofile-use=/any/file",
        "-mcpu=cortex-m4\\u202e",
        "",
        "-m",
        "-O3",
    ],
)
def test_flags_that_do_more_than_choose_code_are_refused(tmp_path: Path, key: str, flag: str) -> None:
    made = board(tmp_path, old="[qemu]", new=f'[flags]\n{key} = ["-mthumb", "{flag}"]\n\n[qemu]')
    with pytest.raises(FerruleError, match=rf"flags\.{key}") as caught:
        load_board(made)
    assert caught.value.hint


def test_flags_for_code_are_passed_on(tmp_path: Path) -> None:
    flags = ("-mcpu=cortex-m4+nofp", "-mcmse", "-fno-strict-aliasing", "-ffixed-r9", "-DBOARD_REV=3", "-DON", "-UOFF")
    listed = ", ".join(f'"{flag}"' for flag in flags)
    made = board(tmp_path, old="[qemu]", new=f"[flags]\nzig = [{listed}]\n\n[qemu]")
    assert load_board(made).flags["zig"] == flags


@pytest.mark.parametrize(
    "machine",
    [
        "virt,dumpdtb=/any/file",
        "mps2-an386,",
        "",
        "-help",
        "a b",
        "MPS",
        "mps2-an386,secure=on,firmware=x",
        "x,remap=y",
    ],
)
def test_machines_and_their_options(tmp_path: Path, machine: str) -> None:
    with pytest.raises(FerruleError, match=r"qemu\.machine"):
        load_board(board(tmp_path, old='machine = "mps2-an386"', new=f'machine = "{machine}"'))


def test_a_machine_with_a_harmless_option(tmp_path: Path) -> None:
    made = load_board(board(tmp_path, old='machine = "mps2-an386"', new='machine = "mps3-an524,remap=QSPI"'))
    assert made.qemu is not None
    assert made.qemu.name == "mps3-an524,remap=QSPI"


@pytest.mark.parametrize("bad", ["\\u001b[31m", "\\u202e", "\\u2066", "\\u0007", "\\n", "\\u2028", "\\u200b"])
@pytest.mark.parametrize("key", ["title", "link", "machine", "code", "platform"])
def test_texts_that_a_terminal_would_not_show(tmp_path: Path, key: str, bad: str) -> None:
    with pytest.raises(FerruleError, match=r"contains the character U\+"):
        load_board(board(tmp_path, old=f'{key} = "', new=f'{key} = "{bad}'))


def test_a_very_long_title(tmp_path: Path) -> None:
    with pytest.raises(FerruleError, match=r"title has .* characters, at most 200"):
        load_board(board(tmp_path, old='title = "', new=f'title = "{"x" * 300}'))


def test_the_name_of_a_folder_is_a_text_too(tmp_path: Path) -> None:
    made = board(tmp_path)
    with pytest.raises(FerruleError, match=r"contains the character U\+202E"):
        load_board(made.rename(tmp_path / "my\u202eboard"))


@pytest.mark.parametrize(
    "line",
    [
        '\n// a comment may\x1b\nx: Miscellaneous.X @ none\n    name: "\x1b[31m"\n',
        "\nsysbus:\n    init:\n        Tag\x1b\n",
    ],
)
def test_texts_of_a_platform_description(tmp_path: Path, line: str) -> None:
    with pytest.raises(FerruleError, match=r"mps2-an386\.repl:\d+: .* U\+001B"):
        load_board(board(tmp_path, extra=line))


@pytest.mark.parametrize(
    "extra",
    [
        "\nsysbus:\n    init:\n        LoadBinary @/etc/passwd 0x20000000\n",
        '\nsysbus:\n    init:\n        Tag <0x0, 0x4> "x"; python "import os"\n',
        '\nsysbus:\n    reset:\n        python "import os"\n',
        '\nx: Python.PythonPeripheral @ sysbus <0x70000000, +4>\n    script: "import os"\n',
        '\nx: CoSimulated.CoSimulatedPeripheral @ sysbus <0x70000000, +4>\n    simulationFilePath: "x.so"\n',
        '\nx: Miscellaneous.X @ sysbus <0x70000000, +4>\n    y: new Python.PythonPeripheral { script: "1" }\n',
        "\nx: Antmicro.Renode.Core.X @ sysbus <0x70000000, +4>\n",
    ],
)
def test_renode_gets_no_code(tmp_path: Path, extra: str) -> None:
    made = load_board(board(tmp_path, extra=extra))
    with pytest.raises(FerruleError, match="not passed on to Renode"):
        check_platform(read_platform(made.platform))


@pytest.mark.parametrize("name", board_names())
def test_the_shipped_boards_can_go_to_renode(name: str) -> None:
    check_platform(read_platform(load_board(name).platform))


def test_the_page_lists_the_flags() -> None:
    page = (root() / "docs" / "boards.md").read_text(encoding="utf-8")
    listed = re.search(r"A board may add these flags: (.*?)\. Set", page, re.DOTALL)
    assert listed is not None
    for flag in re.findall(r"`([^`]+)`", listed[1]):
        check_flags([flag.replace("NAME", "X").replace("...", "1").replace("N", "9")], "the page")
