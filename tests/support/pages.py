# SPDX-License-Identifier: Apache-2.0
"""The documentation's pages and their code blocks."""

from __future__ import annotations

import re
from pathlib import Path

from markdown_it import MarkdownIt

from ferrule._frozen import frozen

ROOT = Path(__file__).parents[2]
HEADER_SCRIPT = "write_header.py"
_DIRECTIVE = re.compile(r"\{([\w-]+)\}\s*(.*)")
_OPTION = re.compile(r":([\w-]+):\s*(.*)")


@frozen
class Block:
    """A fenced code block of a page."""

    page: Path
    line: int
    language: str
    """The first word of the info string, a `{code-block}`'s argument, or another directive's name in braces."""
    caption: str
    """The file that the block shows or belongs to; empty if none is given."""
    text: str

    @property
    def place(self) -> str:
        """The page and the line number, for messages."""
        return f"{self.page.relative_to(ROOT).as_posix()}:{self.line}"


def pages() -> list[Path]:
    """Return all Markdown pages of the documentation."""
    found = [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "SECURITY.md",
        ROOT / "tests" / "support" / "README.md",
    ]
    found += sorted((ROOT / "docs").rglob("*.md"))
    return found + sorted((ROOT / "examples").rglob("*.md"))


def write_backend(page: Path, package: str, folder: Path) -> None:
    """Write the files of a backend that a page develops, and the script that makes the header of its registers."""
    for block in blocks(page):
        if block.caption == HEADER_SCRIPT or block.caption.startswith(f"{package}/"):
            path = folder / block.caption
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.write(block.text)


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page; ValueError if a block is indented instead."""
    found = []
    reader = MarkdownIt("commonmark").enable("table").disable("inline")  # the text of paragraphs is not needed
    for token in reader.parse(page.read_text(encoding="utf-8")):
        if token.map is None or token.type not in {"fence", "code_block"}:
            continue
        line = token.map[0] + 1
        if token.type == "code_block":
            raise ValueError(f"{page.relative_to(ROOT)}:{line}: an indented code block, expected a fenced one")
        found.append(_block(page, line, token.info.strip(), token.content))
    return found


def _block(page: Path, line: int, info: str, content: str) -> Block:
    directive = _DIRECTIVE.fullmatch(info)
    if directive is None:
        return Block(page=page, line=line, language=info, caption="", text=content)
    lines, options = content.splitlines(keepends=True), {}
    while lines and (option := _OPTION.fullmatch(lines[0].strip())):
        options[option[1]] = option[2]
        del lines[0]
    text = "".join(lines)
    if directive[1] != "code-block":
        return Block(page=page, line=line, language=f"{{{directive[1]}}}", caption="", text=text)
    return Block(page=page, line=line, language=directive[2], caption=options.get("caption", ""), text=text)
