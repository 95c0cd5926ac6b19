# SPDX-License-Identifier: Apache-2.0
"""Tables on a terminal, which no width makes incomplete or unreadable without a note."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_NARROW = 12
"""Characters per line of a column whose texts are broken into lines."""
_BORDER = 3
"""Characters around a cell: two spaces and a line."""


def print_table(
    console: Console,
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: Collection[str] = ("#",),
    whole: Collection[str] = ("#",),
    optional: Sequence[str] = (),
    spare: Sequence[str] = (),
    title: str = "",
) -> None:
    """Print a table.

    On a console that is too narrow, the columns in `optional` are left out, the first one first, and a line below the
    table names them. If that is not enough, cells are broken into lines: those in `right` and `whole` last. The columns
    in `spare` are left out only where even that would make columns too narrow to read.

    Args:
        console: where to print
        headings: the headings of the columns
        rows: one cell per heading, as rich markup
        right: headings of the columns that are aligned to the right
        whole: headings of the columns whose cells stay in one line if possible
        optional: headings of the columns that are left out rather than broken into lines
        spare: headings of the columns that are left out rather than made very narrow
        title: above the table, as rich markup
    """
    listed = [dict(zip(headings, row, strict=True)) for row in rows]
    shown, left_out = list(headings), []
    for heading in optional:
        if _least_width(shown, listed, set(shown)) <= console.width:
            break
        shown.remove(heading)
        left_out.append(heading)
    for heading in spare:
        if _least_width(shown, listed, right) <= console.width:
            break
        shown.remove(heading)
        left_out.append(heading)
    tiers = ({*right, *whole}, set(right), set[str]())
    unbroken = next((tier for tier in tiers if _least_width(shown, listed, tier) <= console.width), set[str]())
    console.print(_table(shown, listed, right, unbroken, title))
    if left_out:
        console.print(f"[dim]the terminal is too narrow for: {', '.join(left_out)}[/]", highlight=False)


def _least_width(headings: Sequence[str], rows: Sequence[dict[str, str]], unbroken: Collection[str]) -> int:
    """Return the width of a table whose columns in `unbroken` are in one line, and whose others are very narrow."""
    from rich.cells import cell_len
    from rich.text import Text

    def width(heading: str) -> int:
        lines = [line for row in rows for line in Text.from_markup(row[heading]).plain.splitlines()]
        full = max(map(cell_len, [heading, *lines]))
        return full if heading in unbroken else min(full, _NARROW)

    return 1 + sum(width(heading) + _BORDER for heading in headings)


def _table(
    headings: Sequence[str],
    rows: Iterable[dict[str, str]],
    right: Collection[str],
    unbroken: Collection[str],
    title: str,
) -> Table:
    from rich.table import Table

    table = Table(title=title or None)
    for heading in headings:
        table.add_column(
            heading,
            justify="right" if heading in right else "left",
            no_wrap=heading in unbroken,
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(row[heading] for heading in headings))
    return table
