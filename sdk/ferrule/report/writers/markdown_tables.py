# SPDX-License-Identifier: Apache-2.0
"""Tables and blocks of GitHub-flavoured Markdown."""

from __future__ import annotations

import re
from collections.abc import Collection

from ferrule.interface import either, spelled
from ferrule.rendering import shown


class Table:
    """A table; its cells are Markdown, so that the caller has quoted them."""

    def __init__(self, *headings: str, right: Collection[str] = ()) -> None:
        self._headings = headings
        self._rows: list[tuple[str, ...]] = []
        self._right = frozenset(right)

    def add(self, *cells: str) -> None:
        """Append a row."""
        assert len(cells) == len(self._headings)
        self._rows.append(cells)

    def text(self, most: int | None = None) -> str:
        """Return the table with at most so many rows, and a sentence about those left out."""
        ruler = ["---:" if heading in self._right else "---" for heading in self._headings]
        listed = self._rows[:most]
        lines = [f"| {' | '.join(cells)} |" for cells in (self._headings, ruler, *listed)]
        left_out = len(self._rows) - len(listed)
        return "\n".join(lines) + (f"\n\nAnd {left_out:,} more, which {whole_list()} lists." if left_out else "")


def whole_list() -> str:
    """Return the name of the format that leaves nothing out."""
    return spelled(either("`--markdown`", "the format `markdown`"))


def code_block(text: str, language: str = "text") -> str:
    """Return text as a block of code, of which Markdown reads nothing."""
    lines = shown(text)
    longest = max((len(run) for run in re.findall(r"`+", lines)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{lines}\n{fence}"
