# SPDX-License-Identifier: Apache-2.0
"""Prints comparisons on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferrule.rendering import one_line
from ferrule.report.comparison_document import Change, ChangePart, Comparison
from ferrule.report.tables import print_table
from ferrule.report.words import counted, growth, number

if TYPE_CHECKING:
    from rich.console import Console

_STYLES = {Change.BETTER: "green", Change.WORSE: "yellow"}


def print_comparison(document: Comparison, console: Console) -> None:
    """Print what differs about the conditions, the table of what has changed, and whether it is worse than allowed."""
    from rich.markup import escape

    for difference in document.differences:
        console.print(f"[yellow]note:[/] {escape(one_line(difference))}", highlight=False, soft_wrap=True)
    changes = [change for change in document.changes if change.change is not Change.EQUAL]
    if changes:
        noted = any(change.note for change in changes)
        print_table(
            console,
            ("what", "old", "new", "change", "state", *(("note",) if noted else ())),
            [_row(change)[: 6 if noted else 5] for change in changes],
            right=("old", "new", "change"),
            whole=("state",),
            optional=("note",) if noted else (),
            title=escape(one_line(f"{document.new.model}: what has changed")),
        )
    equal = len(document.changes) - len(changes)
    console.print(f"{counted(equal, 'value')} {'is' if equal == 1 else 'are'} equal", highlight=False)
    console.print(f"compared: {document.evidence.of('value')}", highlight=False)
    for sentence in document.uncompared:
        console.print(f"[bold red]not compared:[/] {escape(one_line(sentence))}", highlight=False, soft_wrap=True)
    failed = sum(change.failed for change in document.changes)
    if failed:
        console.print(f"comparison: [bold red]{counted(failed, 'value')} worse than allowed[/]", highlight=False)
    elif document.uncompared:
        console.print("comparison: [bold red]not everything was compared[/]", highlight=False)
    else:
        console.print("comparison: [bold green]within the limits[/]", highlight=False)


def _row(change: ChangePart) -> tuple[str, ...]:
    from rich.markup import escape

    what = f"{change.place}: {change.counter}" if change.place else change.counter
    limit = f" (limit {change.limit})" if change.limit else ""
    style = "bold red" if change.failed else _STYLES.get(change.change, "")
    state = f"worse than allowed{limit}" if change.failed else f"{change.change}{limit}"
    unit = f" {change.unit}" if change.unit else ""
    values = [f"{number(value)}{unit}" if value is not None else "" for value in (change.old, change.new)]
    cells = [escape(one_line(cell)) for cell in (what, *values, growth(change.relative), state, change.note)]
    cells[4] = f"[{style}]{cells[4]}[/]" if style else cells[4]
    return tuple(cells)
