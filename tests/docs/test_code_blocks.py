# SPDX-License-Identifier: Apache-2.0
"""Every code block of every page is run, compiled or parsed, or is marked as output."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

import click
import msgspec
import numpy as np
import pytest
import small_networks
from children import ran
from needs import require_module
from pages import ROOT, Block, blocks, pages

from ferrule.cli.main import cli
from ferrule.formats import to_tflite
from ferrule.running.configuration import ConfigurationFile

BLOCKS = [block for page in pages() for block in blocks(page)]
FOLLOWED = {
    "add_operator": "tests/docs/test_add_operator_document.py",
    "accelerators": "tests/docs/test_accelerators_document.py",
    "acl": "tests/docs/test_acl_document.py",
    "backends": "tests/docs/test_backends_document.py",
    "boards": "tests/boards/test_documentation.py",
    "compile_only_npu": "tests/docs/test_compile_only_npu_document.py",
    "cmsis": "tests/docs/test_cmsis_document.py",
    "data": "tests/docs/test_data_document.py",
    "dynamic_backends": "tests/docs/test_dynamic_backends_document.py",
    "npu": "tests/docs/test_npu_document.py",
    "onnx": "tests/docs/test_onnx_document.py",
    "platforms": "tests/docs/test_platforms_document.py",
    "state": "tests/docs/test_state_document.py",
    "tutorial": "tests/docs/test_tutorial.py",
    "sweeps": "tests/docs/test_sweeps_document.py",
    "unit-testing": "tests/docs/test_unit_testing_document.py",
    "zephyr": "tests/docs/test_zephyr_document.py",
}
"""By page: the test that writes and uses its files, which are the blocks with a caption."""
QUOTING = {"add_operator", "npu"}
"""Pages whose blocks with a caption quote the repository's files, or those that a command writes; their own tests
compare the two."""
FRAMEWORKS = {"torch", "model_explorer"}
"""Modules that users have in an environment of their own, which the tests of a page may lack."""
PROGRAMS = {
    ".ci/run",
    "./classify",
    "cc",
    "cmake",
    "export",
    "gdb-multiarch",
    "git",
    "mkdir",
    "pre-commit",
    "renode",
    "renode-test",
    "scripts/acl_sysroot.sh",
    "scripts/fresh_machine.sh",
    "towncrier",
    "vela",
    "west",
}
"""Programs whose options this test does not check."""


def own(*languages: str) -> list[Block]:
    """Return the blocks in these languages, except those that quote a part of a file."""
    quoted = {block.place for block in BLOCKS if block.caption and block.page.stem in QUOTING}
    return [block for block in BLOCKS if block.language in languages and block.place not in quoted]


def named(block: Block) -> str:
    return block.place


def test_every_block_is_of_a_kind_that_is_checked() -> None:
    """A block with a caption is a file, and needs a test that follows the page; `text` is output or a drawing."""
    kinds = {"text", "sh", "python", "c", "toml", "{toctree}", "{click}", "{eval-rst}"}
    assert not [block.place for block in BLOCKS if not block.caption and block.language not in kinds]
    pages = {block.page: block.place for block in BLOCKS if block.caption}
    assert not [place for page, place in pages.items() if page.stem not in FOLLOWED], "no test follows these pages"
    tests = {page: (ROOT / FOLLOWED[page.stem]).read_text(encoding="utf-8") for page in pages}
    assert not [f"{FOLLOWED[page.stem]} does not name {page.name}" for page in pages if page.name not in tests[page]]


@pytest.mark.parametrize("block", own("sh"), ids=named)
def test_commands(block: Block) -> None:
    for line in block.text.replace("\\\n", " ").splitlines():
        if re.match(r"\w+=\$\(.*\)$", line):
            continue
        words = shlex.split(line, comments=True)
        while words and re.match(r"\w+=", words[0]):
            del words[0]
        if words:
            program = words[0].removeprefix(".venv/bin/")
            assert program in CHECKS or program in PROGRAMS, f"'{program}' is not known to this test"
            if program in CHECKS:
                CHECKS[program](words[1:])


def check_ferrule(words: Sequence[str]) -> None:
    """Parse the options as the command line does."""
    command: click.Command = cli
    context = cli.make_context("ferrule", list(words))
    while isinstance(command, click.Group):
        rest = [*context._protected_args, *context.args]
        name, found, rest = command.resolve_command(context, rest)
        assert found is not None
        command, context = found, found.make_context(name, rest, parent=context)


def check_make(words: Sequence[str]) -> None:
    if "-C" in words:
        return
    targets = re.findall(r"^(\w[\w-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert {word for word in words if "=" not in word} <= set(targets)


def check_pip(words: Sequence[str]) -> None:
    """Check that the extras of ferrule are defined in pyproject.toml."""
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert words[0] == "install"
    for extras in re.findall(r"(?:ferrule|\.)\[([\w,-]+)\]", " ".join(words)):
        assert set(extras.split(",")) <= set(known)


def check_paths(words: Sequence[str]) -> None:
    """Check that paths into the repository exist."""
    for word in words:
        if word.startswith(("tests/", "examples/", "benchmarks/")):
            assert (ROOT / word.partition("::")[0]).exists(), word


CHECKS: dict[str, Callable[[Sequence[str]], None]] = {
    "ferrule": check_ferrule,
    "make": check_make,
    "pip": check_pip,
    "python": check_paths,
    "python3": check_paths,
    "pytest": check_paths,
}


@pytest.mark.parametrize("block", own("python"), ids=named)
def test_python(block: Block) -> None:
    """The code compiles, and all its imports exist, except those of the page's own files."""
    tree = ast.parse(block.text)
    files = {Path(each.caption).with_suffix("").parts[0] for each in blocks(block.page) if each.caption}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name not in FRAMEWORKS:
                    importlib.import_module(alias.name)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None
            if node.module.partition(".")[0] in {*files, *FRAMEWORKS}:
                continue
            module = importlib.import_module(node.module)
            for alias in node.names:
                assert hasattr(module, alias.name) or importlib.util.find_spec(f"{node.module}.{alias.name}")


@pytest.mark.cc
@pytest.mark.emu
@pytest.mark.parametrize("name", ["README.md", "docs/running.md", "docs/get_started.md"])
def test_the_first_program_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    programs = [each for each in blocks(ROOT / name) if each.language == "python"]
    monkeypatch.chdir(tmp_path)
    network = small_networks.dense()
    (tmp_path / "model.tflite").write_bytes(to_tflite(network))
    for block in programs:
        names = {"x": np.zeros(network.inputs[0].shape, np.int8)}
        exec(compile(block.text, block.place, "exec"), names)  # noqa: S102 it is the page's
        report = names["report"]
        assert report.verdict == "exact"


@pytest.mark.cc
@pytest.mark.parametrize("block", [block for block in own("c") if not block.caption], ids=named)
def test_declarations(block: Block, host_cc: tuple[str, ...], tmp_path: Path) -> None:
    """They agree with the declarations in the headers."""
    headers = "".join(f'#include "ferrule/{name}.h"\n' for name in ("device", "backend"))
    argv = [*host_cc, "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}"]
    source = tmp_path / "declarations.c"
    source.write_text(headers + "struct device;\n" + block.text, encoding="utf-8")
    argv += ["-c", "-o", str(tmp_path / "declarations.o"), str(source)]
    done = ran(argv)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("block", [block for block in own("toml") if not block.caption], ids=named)
def test_configurations(block: Block) -> None:
    """A block without a file name is a part of ferrule.toml."""
    msgspec.convert(tomllib.loads(block.text), ConfigurationFile)
