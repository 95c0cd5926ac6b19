# SPDX-License-Identifier: Apache-2.0
"""The pages are readable: short lines, links that lead somewhere, and an entry in the contents for each page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import ROOT, pages

TEXT_COLUMNS, CODE_COLUMNS = 100, 120
LINK = re.compile(r"\]\(([^)\s]+)\)")
DELIMITERS = re.compile(r"\|(?: *:?-+:? *\|)+")
CELL_BORDER = re.compile(r"(?<!\\)\|")


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


def tables(text: str) -> list[tuple[int, list[str]]]:
    """Return the lines that begin with a bar, in groups without another line between, each with its first number."""
    code, found, last = False, list[tuple[int, list[str]]](), 0
    for number, line in enumerate(text.splitlines(), start=1):
        code ^= line.lstrip().startswith("```")
        if code or not line.lstrip().startswith("|"):
            continue
        if number != last + 1:
            found.append((number, []))
        found[-1][1].append(line.strip())
        last = number
    return found


@pytest.mark.parametrize("page", pages(), ids=named)
def test_tables_are_whole(page: Path) -> None:
    """A row that a blank line parts from its table, or one with other columns, is no row of it for a reader."""
    wrong = []
    for first, rows in tables(page.read_text(encoding="utf-8")):
        if len(rows) < 2 or DELIMITERS.fullmatch(rows[1]) is None:
            wrong.append(f"{first}: rows without a heading")
            continue
        columns = {len(CELL_BORDER.findall(row)) for row in rows}
        if len(columns) > 1:
            wrong.append(f"{first}: rows of {sorted(columns)} columns, each one more than there are cells")
    assert wrong == []


def test_the_reference_has_the_modules_of_the_public_interface() -> None:
    reference = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    interface = (ROOT / "docs" / "api.md").read_text(encoding="utf-8").split("## Modules")[1]
    public = re.findall(r"^\| `(ferrule[\w.]*)` \|", interface, re.MULTILINE)
    assert re.findall(r"^\.\. automodule:: (\S+)$", reference, re.MULTILINE) == public
