# SPDX-License-Identifier: Apache-2.0
"""The compilation databases of bare-metal projects, read as clangd reads them."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import small_networks
from children import ran
from needs import require_module, require_program

import ferrule
from ferrule.errors import MissingToolError
from ferrule.firmware import build_project
from ferrule.firmware.project import Project
from ferrule.firmware.toolchain import ziglang_program

MAKE = [f"PYTHON={shlex.quote(sys.executable)}", "build/compile_commands.json"]


@pytest.fixture(params=["zig", "arm-none-eabi-gcc"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    if request.param == "zig":
        require_module("ziglang", "pip install 'ferrule[run]'")
    else:
        require_program("arm-none-eabi-gcc", "apt-get install gcc-arm-none-eabi")
    return ferrule.generate(small_networks.dense(), out=tmp_path / 'it\'s "here" \\', toolchain=request.param)


def database(folder: Path) -> list[dict[str, Any]]:
    """Return the entries; clangd looks for the file in a folder `build` above a source, too."""
    entries = json.loads((folder / "build" / "compile_commands.json").read_text(encoding="utf-8"))
    for entry in entries:
        assert Path(entry["directory"]) == folder.resolve()
        assert "arguments" in entry or "command" in entry
    return entries


def check(entry: dict[str, Any]) -> None:
    """Let a compiler parse a source by the command of its entry; zig contains clang, and the headers of clangd."""
    argv = entry.get("arguments") or shlex.split(entry["command"])
    if argv[0] == "clang":
        program = ziglang_program()
        assert program is not None
        argv = [str(program), *argv, "-isystem", str(program.parent / "lib" / "include")]
    done = ran(
        [*(word for word in argv if word != "-c"), "-fsyntax-only"],
        cwd=entry["directory"],
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.cc
def test_make_writes_the_database(project: Project) -> None:
    program = require_program("make", "apt-get install make")
    subprocess.run([program, "-s", *MAKE], cwd=project.folder, check=True)
    entries = database(project.folder)
    assert [entry["file"] for entry in entries] == list(project.manifest.sources)
    check(entries[0])


@pytest.mark.cc
def test_ferrule_build_writes_the_database(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    written = project.folder / "build" / "compile_commands.json"

    def stop(plan: Any, **_given: Any) -> Path:  # noqa: ANN401
        (text,) = (text for path, text in plan.files.items() if path == written.resolve())
        written.parent.mkdir()
        written.write_text(text, encoding="utf-8")
        raise MissingToolError("stopped")

    monkeypatch.setattr("ferrule.firmware.project.execute", stop)
    with pytest.raises(MissingToolError, match="stopped"):
        build_project(project)
    entries = database(project.folder)
    assert [Path(entry["file"]) for entry in entries] == [
        (project.folder / name).resolve() for name in project.manifest.sources
    ]
    assert all(Path(entry["file"]).is_file() for entry in entries)
    check(entries[0])


def test_projects_have_no_path_of_this_machine(project: Project) -> None:
    here = str(project.folder.resolve().parent)
    for path in project.folder.rglob("*"):
        assert path.is_dir() or here.encode() not in path.read_bytes()
