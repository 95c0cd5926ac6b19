# SPDX-License-Identifier: Apache-2.0
"""Names, titles and reasons that would be syntax without quoting, in the projects of all platforms.

The texts of models and boards have the marker `zZ9`, which identifiers lose (they are in one case). It may stand in
comments and strings only, and a command in a text would write a file that shows that it was executed.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from children import ran
from formatting import check_formatted
from gate import every
from hostile import HOSTILE
from markdown_it import MarkdownIt
from needs import require_module, require_program
from small_networks import SCALE, int8_input

from ferrule import Network, Quantization
from ferrule.architectures import CORTEX_M
from ferrule.backends import BackendId, Device
from ferrule.boards import Board, load_board
from ferrule.firmware import PLATFORMS, Job, ProjectRequest, emit_program
from ferrule.firmware import platform as platform_of
from ferrule.firmware.platforms import ProjectFiles
from ferrule.firmware.toolchain import gcc_for
from ferrule.resources import root

ALL = " ".join(("zZ9", *(text for text in HOSTILE if len(text) < 300), "zZ9"))
SMALL = {
    "all": ALL,
    "long": "zZ9" + "A long name of a layer, " * 12,
    "words": "zZ9" + "x" * 300,
    "comment": "zZ9/*",
    "backslash": "zZ9\\",
}
EVERY = {text: f"zZ9{text}" for text in HOSTILE}
CANARY = "P"
"""The file that the commands in the texts would write."""


def network(name: str) -> Network:
    made = Network(name)
    made.add_input(int8_input(f"{name} in", 1, 6))
    made.add_fully_connected_layer(
        f"{name} in",
        np.ones((4, 6), np.int8),
        np.ones(4, np.int32),
        weights_quantization=Quantization.of(0.02),
        quantization=SCALE,
        name=f"{name} out",
    )
    made.set_outputs([f"{name} out"])
    return made


def board(folder: Path, name: str, text: str) -> Board:
    """Return a copy of mps2-an386 whose texts are hostile; a folder's name can have no slash."""
    made = folder / name.replace("/", "_")[:90].strip()
    shutil.copytree(root() / "boards" / "mps2-an386", made)
    shutil.copytree(root() / "boards" / "mps2", folder / "mps2")
    file = made / "board.toml"
    title = json.dumps(text[:200], ensure_ascii=False)
    content = re.sub(r"^title = .*$", lambda _: f"title = {title}", file.read_text(), flags=re.MULTILINE)
    setup = f"\n[[setup]]\naddress = 0x40004008\nset = 1\nwhy = {json.dumps(text[:90], ensure_ascii=False)}\n"
    file.write_text(content + setup, encoding="utf-8")
    return load_board(made)


def project(folder: Path, platform: str, text: str, *, device: bool) -> tuple[ProjectFiles, Board]:
    """Write a project into a folder and return its files."""
    home = folder / "boards"
    # the names of targets of CMSIS and of Zephyr's boards are checked or in a table
    described = board(home, text if platform == "bare-metal" else "mps2-an386", text)
    binding = {"base": 0x4008_0000, "interrupt": 28}
    dog = Device(name=f"{text} dog", backend=BackendId("Woofles"), binding=binding)
    job = Job(hints={f"{text} out": f"Woofles/{text} dog"}, devices=(dog,)) if device else Job()
    request = ProjectRequest(
        program=emit_program([network(text)], job), board=described, toolchain="arm-none-eabi-gcc", optimization="O2"
    )
    files = platform_of(platform).files(request)
    for name, data in {**files.generated, **files.starters}.items():
        path = folder / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return files, described


def own_files(folder: Path) -> list[Path]:
    """Return the files of a project that were written for the model and the board."""
    top = folder / "project"
    found = [path for path in sorted(top.rglob("*")) if path.is_file()]
    return [path for path in found if path.relative_to(top).parts[0] != "lib" and path.suffix not in {".repl", ".toml"}]


def without_quoted(path: Path) -> str:
    """Return what is neither comment nor string in a file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix in {".c", ".h", ".ld", ".overlay"}:
        return re.sub(r'/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', "", text, flags=re.DOTALL)
    return re.sub(r"#.*", "", text)


def check(folder: Path, platform: str, text: str, *, device: bool) -> ProjectFiles:
    """Generate a project and check each of its files in the file's own language."""
    files, described = project(folder, platform, text, device=device)
    for path in own_files(folder):
        content = path.read_text(encoding="utf-8")
        assert all(line.isprintable() for line in content.replace("\t", " ").splitlines()), path
        if path.suffix in {".c", ".h"}:
            assert all(len(line) <= 100 for line in content.splitlines()), path
        if path.suffix in {".yml", ".yaml"}:
            check_yaml(path)
        elif path.suffix == ".md":
            check_page(content, text, described)
        else:
            assert "zZ9" not in without_quoted(path), path
    if (folder / "project" / "ferrule.cmake").exists():
        cmake = require_program("cmake", "apt-get install cmake")
        commands = ["set_source_files_properties", "include_directories"]  # which scripts cannot call
        commands += ["add_compile_definitions", "add_compile_options"]
        lines = [*(f"function({each})\nendfunction()" for each in commands), "include(ferrule.cmake)"]
        (folder / "project" / "script.cmake").write_text("\n".join(lines) + "\n")
        subprocess.run([cmake, "-P", "script.cmake"], cwd=folder / "project", capture_output=True, check=True)
    assert not list(folder.rglob(CANARY))
    return files


def check_format(folder: Path) -> None:
    check_formatted(path for path in own_files(folder) if path.suffix in {".c", ".h"})


def check_yaml(path: Path) -> None:
    require_module("ruamel.yaml", "pip install -e '.[dev]'")
    from ruamel.yaml import YAML

    content = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    if path.name == "sample.yaml":
        assert content["sample"]["name"].startswith("zZ9")


def check_page(content: str, text: str, described: Board) -> None:
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(content)
    inline = [token for token in tokens if token.type == "inline"]
    assert "".join(child.content for child in inline[0].children or ()).startswith(shown(text))
    assert not [
        child for token in inline for child in token.children or () if child.type in {"link_open", "html_inline"}
    ]
    rows = [line for line in content.splitlines() if line.startswith("| 0 |")]
    for row in rows:
        assert len(re.findall(r"(?<!\\)\|", row)) == 7
    (command,) = re.findall(r"^    (ferrule run .*)$", content, re.MULTILINE) or [""]
    if command:
        assert described.name in shlex.split(command)


def shown(text: str) -> str:
    """Return a text as Markdown shows it at the beginning of a line."""
    return text.strip()


@pytest.mark.parametrize("platform", [*PLATFORMS, "library-bare-metal"])
@pytest.mark.parametrize("kind", every(2, SMALL))
def test_no_text_becomes_syntax(tmp_path: Path, platform: str, kind: str) -> None:
    check(tmp_path, platform, SMALL[kind], device=kind in {"all", "words"})
    if kind != "all":  # it has characters that are wider than a column for clang-format
        check_format(tmp_path)


@pytest.mark.parametrize("kind", SMALL)
def test_the_c_compiles_and_nothing_is_executed(tmp_path: Path, kind: str) -> None:
    """A tensor called `/*` once broke the build by -Werror=comment."""
    make = require_program("make", "apt-get install make")
    compiler = require_program("arm-none-eabi-gcc", "apt-get install gcc-arm-none-eabi")
    files, described = project(tmp_path, "bare-metal", SMALL[kind], device=kind == "all")
    top = tmp_path / "project"
    subprocess.run([make, "-n"], cwd=top, capture_output=True, check=True)
    sources = [name for name in files.code.sources if not name.startswith("lib/")]
    assert "main.c" in sources
    flags = [*gcc_for(CORTEX_M).target_flags(described), "-std=c11", "-ffreestanding", "-Wall", "-Wextra", "-Werror"]
    argv = [str(compiler), *flags, "-fsyntax-only", *(f"-I{name}" for name in files.code.include_dirs), *sources]
    done = ran(argv, cwd=top)
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.rglob(CANARY))


@pytest.mark.nightly
@pytest.mark.parametrize("platform", [*PLATFORMS, "library-bare-metal"])
@pytest.mark.parametrize("device", [False, True])
@pytest.mark.parametrize("text", EVERY)
def test_no_text_alone_becomes_syntax(tmp_path: Path, platform: str, device: bool, text: str) -> None:
    check(tmp_path, platform, EVERY[text], device=device)


@pytest.mark.nightly
@pytest.mark.parametrize("text", EVERY)
def test_each_builds(tmp_path: Path, text: str) -> None:
    make = require_program("make", "apt-get install make")
    require_program("arm-none-eabi-gcc", "apt-get install gcc-arm-none-eabi")
    project(tmp_path, "bare-metal", EVERY[text], device=False)
    done = ran([make, "-j2"], cwd=tmp_path / "project")
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.rglob(CANARY))
