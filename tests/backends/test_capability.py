# SPDX-License-Identifier: Apache-2.0
"""The capabilities that Ferrule names are those that it reads."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import ferrule
from ferrule.backends import capability
from ferrule.backends.registry import default_registry

PACKAGE = Path(ferrule.__file__).parent
NAMES = {name: value for name, value in vars(capability).items() if name.isupper()}
READERS = [*PACKAGE.glob("optimizer/**/*.py"), *PACKAGE.glob("runtime/**/*.py"), PACKAGE / "backends" / "capability.py"]
"""The guards read the rules of rounding by a function of the module itself."""


@pytest.mark.parametrize("name", NAMES)
def test_every_named_capability_is_read(name: str) -> None:
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in READERS)
    nodes = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name))
    read = {node.id for node in nodes if isinstance(node.ctx, ast.Load)}
    assert name in read, f"{name} is advertised, and nothing reads it"


def test_shipped_backends_declare_named_capabilities_only() -> None:
    registry = default_registry()
    for row in registry.rows():
        if not row.reason:
            assert set(registry.create(row.id).capabilities()) <= set(NAMES.values()), row.id


def test_the_page_lists_the_named_capabilities() -> None:
    page = (PACKAGE.parents[1] / "docs" / "backends.md").read_text(encoding="utf-8").split("## Capabilities")[1]
    assert {line.split("`")[1] for line in page.splitlines() if line.startswith("| `")} == set(NAMES.values())
