# SPDX-License-Identifier: Apache-2.0
"""A project with links or pipes in it: nothing outside of its folder is read, written or removed, nothing hangs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from needs import require_module
from small_networks import dense

import ferrule
from ferrule.errors import FerruleError
from ferrule.firmware import build_project
from ferrule.firmware.project import Project, load_project


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder beside the project, with a file that must stay as it is."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "mine.c").write_text("mine", encoding="utf-8")
    return folder


@pytest.fixture
def project(tmp_path: Path, outside: Path) -> Project:
    del outside
    return ferrule.generate(dense(), out=tmp_path / "project")


def replaced(folder: Path, name: str, target: str) -> None:
    """Put a link to a place beside a project, or a pipe if it is "", at the place of one of its files or folders."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        path.rename(folder.parent / "was")
    if target:
        path.symlink_to(target if target.startswith("..") else folder.parent / target)
    else:
        os.mkfifo(path)


HOSTILE = {
    "build is a link": ("build", "outside"),
    "build is a link to what is absent": ("build", "outside/new"),
    "build is a relative link": ("build", "../outside"),
    "objects are a link": ("build/objects", "outside"),
    "the firmware is a link": ("build/firmware.elf", "outside/mine.c"),
    "the script is a link": ("build/memory.ld", "outside/mine.c"),
    "a deep file is a link": ("build/objects/x/main.o", "outside/mine.c"),
    "main.c is a link": ("main.c", "outside/mine.c"),
    "the library is a link": ("lib", "outside"),
    "the board is a link": ("board", "outside"),
    "main.c is a pipe": ("main.c", ""),
}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_build_stays_in_its_folder(case: str, project: Project, outside: Path) -> None:
    before = contents(outside)
    replaced(project.folder, *HOSTILE[case])
    with pytest.raises(FerruleError, match=r"leads out of|is a pipe") as caught:
        build_project(load_project(project.folder))
    assert str(project.folder) in str(caught.value)
    assert contents(outside) == before
    assert not (project.folder / "build" / "firmware.elf").is_file() or "firmware" in case


def test_a_link_within_the_project_builds(project: Project) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    (project.folder / "elsewhere").mkdir()
    (project.folder / "build").symlink_to("elsewhere")
    build_project(project)
    assert (project.folder / "elsewhere" / "firmware.elf").is_file()


def test_a_project_whose_folder_is_reached_by_a_link_builds(project: Project, tmp_path: Path) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    (tmp_path / "link").symlink_to(project.folder)
    build_project(load_project(tmp_path / "link"))
    assert (project.folder / "build" / "firmware.elf").is_file()


@pytest.mark.parametrize("name", ["lib", "board"])
def test_generation_writes_through_no_link(name: str, project: Project, outside: Path) -> None:
    before = contents(outside)
    replaced(project.folder, name, "outside")
    with pytest.raises(FerruleError, match="leads out of"):
        ferrule.generate(dense(), out=project.folder, board="mps3-an547")
    assert contents(outside) == before
