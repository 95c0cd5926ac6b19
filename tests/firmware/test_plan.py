# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ferrule.architectures import CORTEX_M
from ferrule.boards import load_board
from ferrule.errors import FerruleError
from ferrule.firmware import SourceSet, Toolchain, linker_script, plan_build

STARTUP = CORTEX_M.startup.source_paths


@pytest.mark.cc
def test_a_plan_does_nothing_yet(tmp_path: Path, programs: Path, any_toolchain: Toolchain) -> None:
    board = load_board("mps2-an386")
    folder = tmp_path / "build"
    plan = plan_build(
        SourceSet(sources=[programs / "fault.c"], include_dirs=[tmp_path], defines={"A": "1", "B": ""}),
        board,
        any_toolchain,
        folder,
        "Os",
    )
    assert not folder.exists()
    assert plan.elf == folder / "firmware.elf"
    assert [step.source for step in plan.compile] == [programs / "fault.c", *STARTUP]
    argv = plan.compile[0].argv
    assert {"-DA=1", "-DB", f"-I{tmp_path}", "-Os", "-Werror", "-Wconversion"} <= set(argv)
    assert plan.files[folder / "firmware.ld"] == linker_script(board)
    assert plan == plan_build(
        SourceSet(sources=[programs / "fault.c"], include_dirs=[tmp_path], defines={"A": "1", "B": ""}),
        board,
        any_toolchain,
        folder,
        "Os",
    )


@pytest.mark.cc
def test_sources_of_one_name_get_objects_of_their_own(tmp_path: Path, any_toolchain: Toolchain) -> None:
    sources = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        sources.append(tmp_path / folder / "fault.c")
        sources[-1].write_text("", encoding="utf-8")
    plan = plan_build(SourceSet(sources=sources), load_board("mps2-an386"), any_toolchain, tmp_path)
    names = [step.output.name for step in plan.compile]
    assert len(set(names)) == len(names) == 2 + len(STARTUP)


@pytest.mark.cc
def test_wrong_requests_are_named(tmp_path: Path, programs: Path, any_toolchain: Toolchain) -> None:
    board = load_board("mps2-an386")
    with pytest.raises(FerruleError, match=r"there is no source .*none\.c"):
        plan_build(SourceSet(sources=[tmp_path / "none.c"]), board, any_toolchain, tmp_path)
    with pytest.raises(FerruleError, match="there is no optimization 'O9'"):
        plan_build(SourceSet(sources=[programs / "fault.c"]), board, any_toolchain, tmp_path, "O9")


def test_the_linker_script_follows_the_board() -> None:
    board = load_board("mps2-an505")
    script = linker_script(board)
    assert "ssram1 (rx) : ORIGIN = 0x10000000, LENGTH = 0x00400000" in script
    assert "ssram23 (rwx) : ORIGIN = 0x38000000, LENGTH = 0x00400000" in script
    assert ". += 16384;" in script
    assert "psram" not in script
    moved = replace(board, placement=replace(board.placement, stack_bytes=4096))
    assert ". += 4096;" in linker_script(moved)
