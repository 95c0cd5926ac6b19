# SPDX-License-Identifier: Apache-2.0
"""Tables on a terminal, which no width makes incomplete or unreadable without a note."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from ferrule.report.sections import Align, Column

if TYPE_CHECKING:
    from rich.console import Console
    from rich.segment import Segment
    from rich.table import Table

_NARROW = 12
"""Characters per line of a column whose texts are broken into lines."""
_LONG = 100
"""Rows above which a plain table is drawn without rich."""
_BORDER = 3
"""Characters around a cell: two spaces and a line."""


def print_table(console: Console, columns: Sequence[Column], rows: Sequence[Sequence[str]], *, title: str = "") -> None:
    """Print a table, whose cells and title are rich markup.

    On a console that is too narrow, columns are left out by their `drop`, and a line below the table names them. If
    that is not enough, cells are broken into lines: names and numbers last. By their `spare`, columns are left out only
    where even that would make others too narrow to read.
    """
    from rich.segment import Segments

    shown = list(range(len(columns)))
    left_out = []
    widths = [_width([column.heading, *(row[index] for row in rows)]) for index, column in enumerate(columns)]

    def fits(unbroken: Collection[Align]) -> bool:
        """Return whether the table fits if the columns of some kinds are in one line, and the others very narrow."""
        kept = (widths[each] if columns[each].align in unbroken else min(widths[each], _NARROW) for each in shown)
        return 1 + sum(width + _BORDER for width in kept) <= console.width

    numbers, names = {Align.NUMBER}, {Align.NUMBER, Align.NAME}
    for ranks, unbroken in (([each.drop for each in columns], set(Align)), ([each.spare for each in columns], numbers)):
        for index in sorted((each for each in shown if ranks[each]), key=ranks.__getitem__):
            if fits(unbroken):
                break
            shown.remove(index)
            left_out.append(columns[index].heading)
    whole = next((kinds for kinds in (names, numbers) if fits(kinds)), set[Align]())
    kept = [columns[index] for index in shown]
    cells = [[row[index] for index in shown] for row in rows]
    plain = _plain_rows(cells) if fits(set(Align)) else None
    if plain is None:
        console.print(_table(kept, cells, whole, title))
    else:
        exact = [widths[index] for index in shown]
        head = _table(kept, cells[:1], set(Align), title, exact)
        right = [column.align is Align.NUMBER for column in kept]
        console.print(Segments(_plain(console, head, plain, list(zip(exact, right, strict=True)))), crop=False)
    if left_out:
        console.print(f"[dim]the terminal is too narrow for: {', '.join(left_out)}[/]", highlight=False)


def table_width(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> int:
    """Return the width of a table of which no column is left out and no cell is broken into lines."""
    found = ([column.heading, *(row[index] for row in rows)] for index, column in enumerate(columns))
    return 1 + sum(_width(cells) + _BORDER for cells in found)


def _width(cells: Iterable[str]) -> int:
    """Return the width of a column whose lines are not broken."""
    from rich.cells import cell_len
    from rich.text import Text

    texts = (Text.from_markup(cell).plain if _has_markup(cell) else cell for cell in set(cells))
    return max(cell_len(line) for text in texts for line in text.splitlines() or [""])


def _has_markup(cell: str) -> bool:
    return any(mark in cell for mark in "[\\:")


def _plain_rows(rows: Sequence[Sequence[str]]) -> list[list[list[str]]] | None:
    """Return the lines of each cell of a long table; None if a cell has a style, or characters of no certain width."""
    from rich.text import Text

    if len(rows) <= _LONG:
        return None
    known: dict[str, list[str]] = {}
    for cell in {cell for row in rows for cell in row}:
        text = Text.from_markup(cell) if _has_markup(cell) else Text(cell)
        known[cell] = text.plain.split("\n")
        if text.spans or not all(map(str.isprintable, known[cell])):
            return None
    return [[known[cell] for cell in row] for row in rows]


def _plain(
    console: Console, table: Table, rows: Sequence[Sequence[Sequence[str]]], columns: Sequence[tuple[int, bool]]
) -> Iterator[Segment]:
    """Yield a long table whose cells need no style and no line breaks: rich would take a millisecond for each row.

    Rich draws the headings and the first row, which `table` has alone, and the others are like that one. `columns` has
    the width of each column, and whether it is aligned to the right.
    """
    from rich.segment import Segment

    *drawn, foot = console.render_lines(table, pad=False)
    for line in drawn[: -max(map(len, rows[0]))]:
        yield from (*line, Segment.line())
    bar = drawn[-1][0].text
    for row in rows:
        for texts in zip_longest(*row, fillvalue=""):
            cells = (_padded(text, *column) for text, column in zip(texts, columns, strict=True))
            yield Segment(f"{bar} {f' {bar} '.join(cells)} {bar}\n")
    yield from (*foot, Segment.line())


def _padded(text: str, width: int, at_right: bool) -> str:
    from rich.cells import cell_len

    if at_right:
        text = text.rstrip()
    space = " " * (width - cell_len(text))
    return f"{space}{text}" if at_right else f"{text}{space}"


def _table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    unbroken: Collection[Align],
    title: str,
    widths: Sequence[int | None] = (),
) -> Table:
    from rich.table import Table

    table = Table(title=title or None)
    for column, width in zip(columns, widths or [None] * len(columns), strict=True):
        table.add_column(
            column.heading,
            justify="right" if column.align is Align.NUMBER else "left",
            no_wrap=column.align in unbroken,
            overflow="fold",
            width=width,
        )
    for row in rows:
        table.add_row(*row)
    return table
