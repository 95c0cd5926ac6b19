# SPDX-License-Identifier: Apache-2.0
"""Tables on a terminal, which no width makes incomplete or unreadable without a note."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_NATURAL = 10_000
"""Characters: wider than any table."""


def print_table(
    console: Console,
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: Collection[str] = ("#",),
    whole: Collection[str] = ("#",),
    optional: Sequence[str] = (),
    title: str = "",
) -> None:
    """Print a table.

    On a console that is too narrow, the columns in `optional` are left out, the first one first, and a line below the
    table names them. If that is not enough, cells are broken into lines: those in `right` and `whole` last.

    Args:
        console: where to print
        headings: the headings of the columns
        rows: one cell per heading, as rich markup
        right: headings of the columns that are aligned to the right
        whole: headings of the columns whose cells stay in one line if possible
        optional: headings of the columns that may be left out
        title: above the table, as rich markup
    """
    listed = [dict(zip(headings, row, strict=True)) for row in rows]
    shown, left_out = list(headings), []
    for heading in optional:
        if _width(console, _table(shown, listed, right, whole, title)) <= console.width:
            break
        shown.remove(heading)
        left_out.append(heading)
    unbroken = _table(shown, listed, right, whole, title)
    fits = console.measure(unbroken, options=console.options.update(width=_NATURAL)).minimum <= console.width
    console.print(unbroken if fits else _table(shown, listed, right, (), title))
    if left_out:
        console.print(f"[dim]the terminal is too narrow for: {', '.join(left_out)}[/]", highlight=False)


def _width(console: Console, table: Table) -> int:
    return console.measure(table, options=console.options.update(width=_NATURAL)).maximum


def _table(
    headings: Sequence[str], rows: Iterable[dict[str, str]], right: Collection[str], whole: Collection[str], title: str
) -> Table:
    from rich.table import Table

    table = Table(title=title or None)
    for heading in headings:
        numbers = heading in right
        table.add_column(
            heading,
            justify="right" if numbers else "left",
            no_wrap=bool(whole) and (numbers or heading in whole),
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(row[heading] for heading in headings))
    return table
