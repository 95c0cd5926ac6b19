# SPDX-License-Identifier: Apache-2.0
"""The pages are readable: short lines, links that lead somewhere, and an entry in the contents for each page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import ROOT, pages

TEXT_COLUMNS, CODE_COLUMNS = 100, 120
LINK = re.compile(r"\]\(([^)\s]+)\)")


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", pages(), ids=named)
def test_lines_are_short(page: Path) -> None:
    """Tables, and lines that are long because of a link, are exempt."""
    code, long = False, []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        if line.lstrip().startswith("```"):
            code = not code
        limit = CODE_COLUMNS if code else TEXT_COLUMNS
        if not line.startswith("|") and len(LINK.sub("]()", line)) > limit:
            long.append(f"{number}: {len(line)} columns, at most {limit}")
    assert long == []


@pytest.mark.parametrize("page", pages(), ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        path = target.partition("#")[0]
        if path and "://" not in target:
            assert (page.parent / path).exists(), target


def test_the_reference_has_the_modules_of_the_public_interface() -> None:
    reference = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    interface = (ROOT / "docs" / "api.md").read_text(encoding="utf-8").split("## Modules")[1]
    public = re.findall(r"^\| `(ferrule[\w.]*)` \|", interface, re.MULTILINE)
    assert re.findall(r"^\.\. automodule:: (\S+)$", reference, re.MULTILINE) == public
