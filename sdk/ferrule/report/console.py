# SPDX-License-Identifier: Apache-2.0
"""Prints documents on a terminal."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ferrule.rendering import shown
from ferrule.report.sections import (
    Cell,
    Code,
    Conclusion,
    Facts,
    Only,
    Part,
    Section,
    State,
    Table,
    Text,
    Value,
    number,
)
from ferrule.report.tables import print_table, table_width

if TYPE_CHECKING:
    from rich.console import Console

    from ferrule.report.html.pages import Shown

_STYLES = {State.GOOD: "bold green", State.WARN: "yellow", State.BAD: "bold red"}


def print_report(document: Shown, console: Console) -> None:
    """Print a document; its verdict is last."""
    print_section(document.sections(), console)


def print_section(section: Section, console: Console) -> None:
    """Print a section, except for what only pages show."""
    match section:
        case Part():
            for each in section.shown(Only.TERMINAL):
                print_section(each, console)
        case Table():
            _print_table(section, console)
        case Facts():
            _print_facts(section, console)
        case Text():
            label = f"{styled(section.label, section.state)}: " if section.label else ""
            _print(f"{label}{_escaped(section.text)}", console)
            for item in section.items:
                _print(f"  {_escaped(item)}", console)
        case Code():
            _print(_escaped(section.text), console)
        case Conclusion():
            _print(f"{section.label}: {styled(section.words, section.state)}", console)


def styled(text: str, state: State | None) -> str:
    """Return a text in the colour of its state, as rich markup."""
    return _escaped(text) if state is None else f"[{_STYLES[state]}]{_escaped(text)}[/]"


def _print(markup: str, console: Console) -> None:
    console.print(markup, highlight=False, soft_wrap=True)


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(shown(text))


def _print_table(table: Table, console: Console) -> None:
    columns, rows = table.shown(Only.TERMINAL)
    columns = [replace(column, heading=_escaped(column.heading)) for column in columns]
    cells = [[_cell(value) for value in row] for row in rows]
    if table.instead and table_width(columns, cells) > console.width:
        console.print(f"[dim]{_escaped(table.instead)}[/]", highlight=False)
    else:
        print_table(console, columns, cells, title=_escaped(table.title))


def _cell(value: Value) -> str:
    match value:
        case Cell():
            return styled(value.text, value.state)
        case int() | float() | str() | None:
            return _escaped(number(value))
        case _:
            raise TypeError("a terminal has no drawings")


def _print_facts(section: Facts, console: Console) -> None:
    from rich.table import Table as Grid

    grid = Grid(show_header=False, box=None, pad_edge=False)
    for fact in section.facts:
        grid.add_row(_escaped(fact.label), _escaped(f"{fact.value}{fact.note}"))
        for line in fact.more:
            grid.add_row("", _escaped(line))
    console.print(grid)
