# SPDX-License-Identifier: Apache-2.0
"""Imports go one way: a package may import only the packages listed before it."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "sdk" / "ferrule"

PAGE = PACKAGE.parents[1] / "docs" / "architecture.md"


def order() -> list[list[str]]:
    """Return the rows of the layer list on the page."""
    section = PAGE.read_text(encoding="utf-8").split("## The layers\n")[1]
    listed = section.split("```text\n")[1].split("```")[0]
    return [row.replace(",", " ").split() for row in listed.split("<")]


RANK = {name: rank for rank, row in enumerate(order()) for name in row}


def imported(path: Path) -> set[str]:
    """Return the names below `ferrule` that a module imports, at any place in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("ferrule.")}
    return found


def modules() -> list[Path]:
    """Return the package's modules without the tests in backends' folders, which may import anything."""
    found = (path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")
    return sorted(path for path in found if "tests" not in path.relative_to(PACKAGE).parts)


def test_every_package_has_a_rank() -> None:
    tops = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in modules()}
    assert tops == set(RANK)


def test_imports_go_down_only() -> None:
    # the backends' registry lists the shipped backends, and `formats` implements `ferrule.load`
    wrong = []
    for path in modules():
        place = path.relative_to(PACKAGE)
        own = place.parts[0].removesuffix(".py")
        after = {name for name in imported(path) if name != own and RANK.get(name, len(RANK)) > RANK[own]}
        wrong += [f"{place} imports {name}, which is listed after {own}" for name in sorted(after)]
    assert not wrong


def test_only_a_network_in_a_notebook_goes_through_the_facade() -> None:
    found = [
        str(path.relative_to(PACKAGE))
        for path in modules()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import) and any(alias.name == "ferrule" for alias in node.names)
    ]
    assert found == ["network/network.py"]


def test_codegen_knows_backends_through_their_firmware_face_only() -> None:
    allowed = {"ferrule.backends", "ferrule.backends.contribution", "ferrule.backends.firmware"}
    for path in (PACKAGE / "codegen").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ferrule.backends"):
                assert node.module in allowed, f"{path.name} imports {node.module}"
