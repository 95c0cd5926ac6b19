# SPDX-License-Identifier: Apache-2.0
"""`ferrule init`: the first steps of each template's README.md work, and nothing is overwritten."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from children import ran
from markdown_it import MarkdownIt
from needs import require_cc, require_module, require_program, require_variable

from ferrule.cli.init import TEMPLATES, WITH_BACKEND
from ferrule.cli.main import cli
from ferrule.devices import c_header

Ferrule = Callable[..., Any]


def steps(folder: Path) -> list[list[str]]:
    """Return the commands of the first block of a README.md."""
    tokens = MarkdownIt("commonmark").parse((folder / "README.md").read_text(encoding="utf-8"))
    block = next(each.content for each in tokens if each.type == "fence")
    return [shlex.split(line) for line in block.splitlines()]


def follow(folder: Path, commands: list[list[str]]) -> Iterator[str]:
    """Run the commands of a README.md in its folder, and yield what each printed."""
    words = {"python": [sys.executable], "ferrule": [sys.executable, "-m", "ferrule"]}
    environment = {**os.environ, "PYTEST_ADDOPTS": "-p no:cacheprovider"}
    for command in commands:
        if command[:4] == ["python", "-m", "pip", "install"]:  # the environment of the tests has them
            continue
        argv = [*words[command[0]], *command[1:]]
        done = ran(argv, cwd=folder, env=environment)
        assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}{done.stderr}"
        yield done.stdout


def needs_run() -> None:
    for module in ("unicorn", "ziglang", "cffi"):
        require_module(module, "pip install 'ferrule[run]'")
    require_cc()


def test_the_templates_are_listed(ferrule: Ferrule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = ferrule("init")
    assert (outcome.code, outcome.err) == (0, "")
    assert [line.split()[0] for line in outcome.out.splitlines()[:-1]] == list(TEMPLATES)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_files_of_an_editor_are_right(ferrule: Ferrule, tmp_path: Path, template: str) -> None:
    folder = tmp_path / "my first-npu"
    outcome = ferrule("init", template, folder)
    assert outcome.code == 0, outcome.err
    files = {path.stem: json.loads(path.read_text("utf-8")) for path in (folder / ".vscode").iterdir()}
    assert files.keys() == {"tasks", "launch", "settings", "extensions"}
    tasks = {task["label"]: task for task in files["tasks"]["tasks"]}
    context = click.Context(cli)
    for task in tasks.values():
        assert task["args"][:2] == ["-m", "ferrule"]
        name, *arguments = task["args"][2:]
        found = cli.get_command(context, name)
        assert found is not None
        found.make_context(name, arguments, parent=context)  # raises for an unknown option
        assert task.get("dependsOn", task["label"]) in tasks
    (launch,) = files["launch"]["configurations"]
    server = tasks[launch["preLaunchTask"]]
    assert launch["miDebuggerServerAddress"].rpartition(":")[2] in server["args"]
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert f"gdb-multiarch {launch['program'].removeprefix('${workspaceFolder}/')}" in readme
    assert "--keep firmware --gdb 3333" in readme
    tests = files["settings"]["python.testing.pytestArgs"]
    assert template == "zephyr" or (folder / tests[0]).is_dir()
    assert readme.startswith("# my first-npu\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["modle", "new"], "there is no template 'modle'"),
        (["model"], "ferrule init model lacks the folder to create"),
        (["model", "full"], "full exists and is not an empty folder"),
        (["model", "full/file"], "full/file exists and is not an empty folder"),
        (["model", "new", "--board", "none"], "there is no board 'none'"),
        (["model", "new", "--id", "Npu"], "--id is only valid with the templates accelerator and npu"),
        (["accelerator", "new", "--id", "CpuAcc"], "backend 'CpuAcc' already exists"),
        (["accelerator", "new", "--id", "a b"], "'a b' is not a valid backend id"),
        (["accelerator", "3d"], "'3d' is not a valid backend id"),
        (["accelerator", "int"], "'int' is a keyword of C"),
        (["accelerator", "numpy"], "would become the Python package 'numpy', a name that is in use"),
    ],
)
def test_refusals_change_nothing(
    ferrule: Ferrule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine", encoding="utf-8")
    outcome = ferrule("init", *arguments)
    assert outcome.code == 2
    assert message in outcome.err
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "full"]


def test_an_empty_folder_is_used(ferrule: Ferrule, tmp_path: Path) -> None:
    assert ferrule("init", "model", tmp_path).code == 0
    assert (tmp_path / "README.md").is_file()


@pytest.mark.parametrize("name", ["it's", "a`b|c", "é∀", "$(x)", "a;b", "${y}"])
def test_names_of_folders_stay_names(ferrule: Ferrule, tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    assert ferrule("init", "model", folder).code == 0
    tokens = MarkdownIt("commonmark").parse((folder / "README.md").read_text(encoding="utf-8"))
    assert "".join(child.content for child in tokens[1].children or []) == name
    assert [command[0] for command in steps(folder)][:2] == ["python", "python"]


@pytest.mark.parametrize("template", WITH_BACKEND)
def test_the_header_of_an_accelerator_is_that_of_its_table(ferrule: Ferrule, tmp_path: Path, template: str) -> None:
    assert ferrule("init", template, tmp_path / "x", "--id", "LongNamedNpu").code == 0
    names: dict[str, Any] = {}
    package = tmp_path / "x" / "long_named_npu"
    exec((package / "registers.py").read_text(encoding="utf-8"), names)  # noqa: S102 our own
    header = (package / "include" / "long_named_npu" / "registers.h").read_text(encoding="utf-8")
    assert header == c_header(names["TABLE"])


def test_the_files_of_the_npu_come_from_its_systemrdl(
    ferrule: Ferrule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the command of its README.md."""
    require_module("systemrdl", "pip install 'ferrule[rdl]'")
    folder = tmp_path / "x"
    assert ferrule("init", "npu", folder, "--id", "LongNamedNpu").code == 0
    (line,) = re.findall(r"`ferrule (registers [^`]*--python[^`]*)`", (folder / "README.md").read_text("utf-8"))
    paths = [folder / word for word in line.split() if "/" in word]
    written = [path.read_text(encoding="utf-8") for path in paths]
    for path in paths:
        path.unlink()
    monkeypatch.chdir(folder)
    assert ferrule(*line.split()).code == 0
    assert [path.read_text(encoding="utf-8") for path in paths] == written


@pytest.mark.emu
def test_a_model_runs_at_once(ferrule: Ferrule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_run()
    assert ferrule("init", "model", tmp_path / "m").code == 0
    monkeypatch.chdir(tmp_path / "m")
    commands = steps(tmp_path / "m")
    assert ["ferrule", "run", "model.tflite"] in commands
    list(follow(tmp_path / "m", [command for command in commands if "make_model.py" in command]))
    outcome = ferrule("run", "model.tflite")
    assert outcome.code == 0, outcome.err
    assert "verdict: exact" in outcome.out or "verdict: within_bound" in outcome.out


@pytest.mark.nightly
@pytest.mark.emu
@pytest.mark.parametrize("template", TEMPLATES)
def test_the_first_steps(ferrule: Ferrule, tmp_path: Path, template: str) -> None:
    needs_run()
    if template == "zephyr":
        require_variable("ZEPHYR_BASE")
    folder = tmp_path / "first"
    assert ferrule("init", template, folder).code == 0
    printed = "".join(follow(folder, steps(folder)))
    assert "verdict: exact" in printed
    assert template != "npu" or re.search(r"by its driver: busy_cycles [\d,]+, stall_cycles ", printed)
    assert template == "zephyr" or re.search(r"\d+ passed", printed)


@pytest.mark.nightly
@pytest.mark.emu
def test_a_debugger_attaches(ferrule: Ferrule, tmp_path: Path) -> None:
    """What the launch configuration of the editor does, by gdb itself."""
    needs_run()
    gdb = require_program("gdb-multiarch", "apt-get install gdb-multiarch")
    folder = tmp_path / "m"
    assert ferrule("init", "model", folder).code == 0
    list(follow(folder, [["python", "make_model.py"]]))
    tasks = json.loads((folder / ".vscode" / "tasks.json").read_text("utf-8"))["tasks"]
    arguments = next(task["args"] for task in tasks if task["label"] == "ferrule: wait for gdb")
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    argv = [sys.executable, *(port if word == "3333" else word for word in arguments)]
    with subprocess.Popen(argv, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as server:
        assert server.stderr is not None
        assert any(line.startswith("waiting: ") for line in server.stderr)
        script = ("directory firmware", f"target remote localhost:{port}", "break main", "continue", "delete", "detach")
        options = [word for line in script for word in ("-ex", line)]
        done = ran(
            [gdb, "-batch", "firmware/build/firmware.elf", *options],
            cwd=folder,
        )
        assert re.search(r"Breakpoint 1, main .*main\.c:\d+", done.stdout), done.stdout + done.stderr
        server.communicate(timeout=300)
        assert server.returncode == 0
