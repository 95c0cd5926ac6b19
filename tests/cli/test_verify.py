# SPDX-License-Identifier: Apache-2.0
"""`ferrule verify`."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from needs import require_program

from ferrule.firmware import build_project, load_project

Ferrule = Callable[..., Any]


@pytest.mark.cc
def test_a_firmware_is_compared_with_a_model(ferrule: Ferrule, dense: Path, two_by_two: Path, tmp_path: Path) -> None:
    require_program("arm-none-eabi-gcc", "apt-get install gcc-arm-none-eabi")
    folder = tmp_path / "project"
    options = ("--board", "mps2-an500", "--toolchain", "arm-none-eabi-gcc", "-O", "Os")
    assert ferrule("generate", dense, *options, "--out", folder).code == 0
    elf = build_project(load_project(folder)).path

    equal = ferrule("verify", elf, dense)
    assert equal.code == 0, equal.err
    lines = equal.out.splitlines()
    assert [line.split()[::2] for line in lines[:3]] == [["model", "equal"], ["plan", "equal"], ["sources", "equal"]]
    assert lines[3].startswith("tables   equal: ")
    assert lines[4].startswith("code     equal: ")
    assert lines[5] == "selftest not recorded: the firmware was generated without --self-test"
    assert lines[6].startswith("built for bare-metal on mps2-an500 by GCC ")
    assert lines[6].endswith(" -Os")

    different = ferrule("verify", elf, two_by_two)
    assert different.code == 1
    assert different.out.count("DIFFERENT: expected ") == 3
    assert "code     DIFFERENT: " in different.out
    board = ferrule("verify", elf, dense, "--board", "mps2-an386")
    assert board.code == 1
    assert [line.split()[2].rstrip(":") for line in board.out.splitlines()[:3]] == ["equal", "equal", "DIFFERENT"]


def test_a_file_that_is_no_firmware_is_refused(ferrule: Ferrule, dense: Path, tmp_path: Path) -> None:
    elf = tmp_path / "firmware.elf"
    elf.write_bytes(b"\x7fELF" + struct.pack("<BBBB", 1, 1, 1, 0))
    outcome = ferrule("verify", elf, dense)
    assert outcome.code == 2
    assert "is not a valid ELF file" in outcome.err
