# SPDX-License-Identifier: Apache-2.0
"""Tables on a terminal, which no width makes incomplete or unreadable without a note."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table

_NARROW = 12
"""Characters per line of a column whose texts are broken into lines."""
_LONG = 100
"""Rows above which a plain table is drawn without rich."""
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
    widths = {heading: _width(heading, listed) for heading in headings}
    shown, left_out = list(headings), []
    for heading in optional:
        if _least_width(shown, widths, set(shown)) <= console.width:
            break
        shown.remove(heading)
        left_out.append(heading)
    for heading in spare:
        if _least_width(shown, widths, right) <= console.width:
            break
        shown.remove(heading)
        left_out.append(heading)
    tiers = ({*right, *whole}, set(right), set[str]())
    unbroken = next((tier for tier in tiers if _least_width(shown, widths, tier) <= console.width), set[str]())
    plain = _plain_rows(shown, listed) if _least_width(shown, widths, set(shown)) <= console.width else None
    if plain is None:
        console.print(_table(shown, listed, right, unbroken, title))
    else:
        head = _table(shown, listed[:1], right, set(shown), title, widths)
        console.print(_Plain(head, plain, [(widths[each], each in right) for each in shown]), crop=False)
    if left_out:
        console.print(f"[dim]the terminal is too narrow for: {', '.join(left_out)}[/]", highlight=False)


def _width(heading: str, rows: Sequence[Mapping[str, str]]) -> int:
    """Return the width of a column whose lines are not broken."""
    from rich.cells import cell_len
    from rich.text import Text

    def lines(cell: str) -> list[str]:
        return (Text.from_markup(cell).plain if _has_markup(cell) else cell).splitlines()

    return max(map(cell_len, [heading, *(line for cell in {row[heading] for row in rows} for line in lines(cell))]))


def _least_width(headings: Sequence[str], widths: Mapping[str, int], unbroken: Collection[str]) -> int:
    """Return the width of a table whose columns in `unbroken` are in one line, and whose others are very narrow."""
    full = ((heading in unbroken, widths[heading]) for heading in headings)
    return 1 + sum((width if whole else min(width, _NARROW)) + _BORDER for whole, width in full)


def least_width(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> int:
    """Return the width of a table of which no column is left out and no cell is broken into lines."""
    listed = [dict(zip(headings, row, strict=True)) for row in rows]
    return _least_width(headings, {heading: _width(heading, listed) for heading in headings}, headings)


def _has_markup(cell: str) -> bool:
    return any(mark in cell for mark in "[\\:")


def _plain_rows(headings: Sequence[str], rows: Sequence[Mapping[str, str]]) -> list[list[list[str]]] | None:
    """Return the lines of each cell of a long table; None if a cell has a style, or characters of no certain width."""
    from rich.text import Text

    if len(rows) <= _LONG:
        return None
    known: dict[str, list[str]] = {}
    for cell in {row[heading] for row in rows for heading in headings}:
        text = Text.from_markup(cell) if _has_markup(cell) else Text(cell)
        known[cell] = text.plain.split("\n")
        if text.spans or not all(map(str.isprintable, known[cell])):
            return None
    return [[known[row[heading]] for heading in headings] for row in rows]


@dataclass(frozen=True, slots=True)
class _Plain:
    """A long table whose cells need no style and no line breaks: rich would take a millisecond for each row.

    Rich draws the headings and the first row, and the others are like that one.
    """

    table: Table
    """Has the first row alone."""
    rows: Sequence[Sequence[Sequence[str]]]
    """The lines of each cell."""
    columns: Sequence[tuple[int, bool]]
    """The width of each column, and whether it is aligned to the right."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.segment import Segment

        *drawn, foot = console.render_lines(self.table, options, pad=False)
        first = max(map(len, self.rows[0]))
        for line in drawn[:-first]:
            yield from (*line, Segment.line())
        bar = drawn[-1][0].text
        for row in self.rows:
            yield Segment("".join(f"{bar} {f' {bar} '.join(texts)} {bar}\n" for texts in self._lines(row)))
        yield from (*foot, Segment.line())

    def _lines(self, row: Sequence[Sequence[str]]) -> Iterator[list[str]]:
        """Yield the texts of each line of a row, which has as many as its highest cell."""
        for index in range(max(map(len, row))):
            texts = (cell[index] if index < len(cell) else "" for cell in row)
            yield [_padded(text, *column) for text, column in zip(texts, self.columns, strict=True)]


def _padded(text: str, width: int, at_right: bool) -> str:
    from rich.cells import cell_len

    if at_right:
        text = text.rstrip()
    space = " " * (width - cell_len(text))
    return f"{space}{text}" if at_right else f"{text}{space}"


def _table(
    headings: Sequence[str],
    rows: Iterable[dict[str, str]],
    right: Collection[str],
    unbroken: Collection[str],
    title: str,
    widths: Mapping[str, int] | None = None,
) -> Table:
    from rich.table import Table

    table = Table(title=title or None)
    for heading in headings:
        table.add_column(
            heading,
            justify="right" if heading in right else "left",
            no_wrap=heading in unbroken,
            overflow="fold",
            width=None if widths is None else widths[heading],
        )
    for row in rows:
        table.add_row(*(row[heading] for heading in headings))
    return table
