# SPDX-License-Identifier: Apache-2.0
"""A comparison as Markdown: what has changed, and what is worse than allowed."""

from __future__ import annotations

from collections.abc import Iterator

from ferrule.rendering import markdown as quoted
from ferrule.report.comparison_document import Change, ChangePart, Comparison, SidePart
from ferrule.report.words import counted, growth, number
from ferrule.report.writers.markdown_tables import Table


def of_comparison(document: Comparison, rows: int | None) -> Iterator[str]:
    """Yield the blocks of the page."""
    failed = [change for change in document.changes if change.failed]
    yield f"# {quoted(document.new.model)}: what has changed"
    good = "❌ not everything was compared" if document.uncompared else "✅ within the limits"
    state = f"❌ {counted(len(failed), 'value')} worse than allowed" if failed else good
    limits = ", ".join(f"{name} {limit}".strip() for name, limit in document.limits.items()) or "none"
    yield f"Verdict: **{state}** (limits: {quoted(limits)})."
    sides = Table("", "model", "board", "engine", "toolchain", "Ferrule")
    sides.add("old", *_side(document.old))
    sides.add("new", *_side(document.new))
    yield sides.text()
    yield f"Compared: {document.evidence.of('value')}."
    for sentence in document.uncompared:
        yield f"❌ {quoted(sentence)}"
    for difference in document.differences:
        yield f"⚠️ {quoted(difference)}"
    changes = [change for change in document.changes if change.change is not Change.EQUAL]
    equal = len(document.changes) - len(changes)
    if changes:
        yield "## Changes"
        yield _table([*failed, *(change for change in changes if not change.failed)]).text(rows)
    yield f"{counted(equal, 'value')} {'is' if equal == 1 else 'are'} equal."


def _side(side: SidePart) -> tuple[str, ...]:
    return tuple(map(quoted, (side.model, side.board, side.engine, side.toolchain, side.ferrule)))


def _table(changes: list[ChangePart]) -> Table:
    numbers = ("old", "new", "change")
    table = Table("", "what", *numbers, "state", "note", right=numbers)
    for change in changes:
        unit = f" {change.unit}" if change.unit else ""
        old = "" if change.old is None else f"{number(change.old)}{unit}"
        new = "" if change.new is None else f"{number(change.new)}{unit}"
        state = f"❌ over {change.limit}" if change.failed and change.limit else change.change.value
        what = f"{change.place}: {change.counter}" if change.place else change.counter
        mark = "❌" if change.failed else ""
        table.add(mark, *map(quoted, (what, old, new, growth(change.relative), state, change.note)))
    return table
