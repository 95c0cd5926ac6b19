# SPDX-License-Identifier: Apache-2.0
"""Checks the options, files, classes and methods that docs/renode.md names."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

from ferrule.emulation import engine, renode
from ferrule.emulation.renode import bridge, process, project_files

DOCUMENT = Path(__file__).parents[2] / "docs" / "renode.md"
TEXT = DOCUMENT.read_text(encoding="utf-8")
CLIENTS = {
    "robot": renode.RobotServer,
    "tester": renode.TerminalTester,
    "monitor": renode.Monitor,
    "control": renode.ExternalControl,
}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def test_options() -> None:
    from ferrule.cli.generate import command as generate
    from ferrule.cli.run import command as run

    for name, command in (("run", run), ("generate", generate)):
        known = {option for parameter in command.params for option in parameter.opts}
        lines = [line for line in TEXT.splitlines() if f"ferrule {name} " in line]
        assert len(lines) >= 1
        for line in lines:
            used = set(re.findall(r"(?<!\w)--[a-z-]+", line.partition(f"ferrule {name} ")[2]))
            assert used <= known, line


def test_engines_and_names() -> None:
    for name in set(re.findall(r"--engine (renode[\w:]*)", TEXT)):
        assert engine(name).name == name
    for name in (process.NETWORK_VARIABLE, bridge.SOURCE.name, project_files.SCRIPT_NAME, project_files.TEST_NAME):
        assert name in TEXT


def test_the_configuration_is_read(tmp_path: Path) -> None:
    (block,) = blocks("toml")
    assert tomllib.loads(block)["devices"]["npu0"] == {"backend": "Woofles", "binding": {"use_interrupt": 1}}


def test_the_clients_have_what_the_example_calls() -> None:
    (block,) = blocks("python")
    tree = ast.parse(block)
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert imported <= set(renode.__all__)
    called = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = node.value.id
            found = CLIENTS.get(name) or getattr(renode, name, None)
            if found is None:
                pytest.fail(f"{name} is unknown")
            assert hasattr(found, node.attr), node.attr
            called += 1
    assert called > 10
