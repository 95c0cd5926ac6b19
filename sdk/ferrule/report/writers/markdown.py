# SPDX-License-Identifier: Apache-2.0
"""Documents as summaries in GitHub-flavoured Markdown, whole or shortened for the summary of a job."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ferrule.interface import either, spelled
from ferrule.rendering import markdown as quoted
from ferrule.rendering import shown
from ferrule.report.base import Document
from ferrule.report.sections import (
    Align,
    Cell,
    Code,
    Conclusion,
    Facts,
    Only,
    Part,
    Picture,
    Section,
    State,
    Table,
    Text,
    Value,
    number,
)

SUMMARY_BYTES = 1 << 20
"""The most that a hosted runner shows of the summary of one step."""
_SUMMARY_ROWS = 100
_MARKS = {None: "", State.GOOD: "✅ ", State.WARN: "⚠️ ", State.BAD: "❌ "}


def markdown_text(documents: Sequence[Document]) -> str:
    """Return the summary with every row."""
    return _page(documents, None)


def summary_text(documents: Sequence[Document]) -> str:
    """Return the summary with tables so short that it stays below `SUMMARY_BYTES`; it states what it leaves out."""
    rows = _SUMMARY_ROWS
    text = _page(documents, rows)
    while len(text.encode()) > SUMMARY_BYTES and rows > 1:
        rows //= 2
        text = _page(documents, rows)
    return text


def _page(documents: Sequence[Document], rows: int | None) -> str:
    return "\n\n".join(block for document in documents for block in _blocks(document.sections(), rows, "#")) + "\n"


def _blocks(section: Section, rows: int | None, level: str) -> Iterator[str]:
    """Yield the blocks of a section, with at most so many rows or parts of one kind."""
    match section:
        case Part():
            every = section.shown(Only.PAGES)
            listed = every if rows is None else every[: rows + 1]  # a sentence may precede the parts
            blocks = [block for each in listed for block in _blocks(each, rows, f"{level}#")]
            if blocks:
                yield f"{level} {f'{section.what}: ' if section.what else ''}{quoted(section.title)}"
            if section.about:
                yield quoted(section.about)
            yield from blocks
            if len(listed) < len(every):
                yield _left_out(len(every) - len(listed)).strip()
        case Conclusion():
            sentence = f". {quoted(section.sentence)}" if section.sentence else "."
            yield f"{_capital(section.label)}: **{_MARKS[section.state]}{quoted(section.words)}**{sentence}"
        case Text():
            label = f"{_capital(section.label)}: " if section.label else ""
            yield f"{_MARKS[section.state]}{quoted(f'{label}{section.text}')}"
            if section.items:
                items = [f"- {quoted(item)}" for item in section.items[:rows]]
                yield "\n".join(items) + _left_out(len(section.items) - len(items))
        case Code():
            yield _code_block(section)
        case Facts():
            facts = [(fact.label, "; ".join([f"{fact.value}{fact.note}", *fact.more])) for fact in section.facts]
            yield _table(("what", "value"), ("---", "---:"), [tuple(map(quoted, fact)) for fact in facts])
        case Table():
            columns, cells = section.shown(Only.PAGES)
            ruler = ["---:" if column.align is Align.NUMBER else "---" for column in columns]
            shown_rows = [[_cell(cell) for cell in row] for row in cells[:rows]]
            left_out = _left_out(len(cells) - len(shown_rows))
            yield _table([quoted(column.heading) for column in columns], ruler, shown_rows) + left_out
        case Picture(caption=caption) if caption:
            yield quoted(caption)


def _table(headings: Sequence[str], ruler: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headings, ruler, *rows))


def _left_out(count: int) -> str:
    """Return a sentence about what a shortened summary leaves out."""
    whole = spelled(either("`--markdown`", "the format `markdown`"))
    return f"\n\nAnd {count:,} more, which {whole} lists." if count else ""


def _cell(value: Value) -> str:
    if isinstance(value, Cell):
        return quoted(f"{'' if value.state is State.WARN else _MARKS[value.state]}{value.text}")
    return quoted(number(value)) if value is None or isinstance(value, str | int | float) else ""


def _capital(label: str) -> str:
    return label[:1].upper() + label[1:]


def _code_block(section: Code) -> str:
    """Return text as a block of code, of which Markdown reads nothing."""
    lines = shown(section.text)
    longest = max((len(run) for run in re.findall(r"`+", lines)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{section.language}\n{lines}\n{fence}"
