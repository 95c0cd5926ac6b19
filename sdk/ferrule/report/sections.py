# SPDX-License-Identifier: Apache-2.0
"""What a document shows, as sections of a few kinds; each format is one renderer of them.

A section states facts and their order, and no format: neither markup nor quoting.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from math import isfinite

from ferrule._frozen import frozen, positional


class State(StrEnum):
    """How a reader is to take something; each renderer has its own mark or colour."""

    GOOD = "good"
    WARN = "warn"
    BAD = "bad"


class Only(StrEnum):
    """Where something is shown that is not for every reader."""

    PAGES = "pages"
    """HTML and Markdown, which have room for everything."""
    TERMINAL = "terminal"


class Align(StrEnum):
    """What a column holds, from which follow its side and its line breaks."""

    TEXT = "text"
    """Text that may be broken into lines."""
    NAME = "name"
    """A short text, such as a name: in one line where there is room."""
    NUMBER = "number"
    """Aligned to the right, in one line."""
    DRAWN = "drawn"
    """Intervals, for HTML alone."""


@positional
class Cell:
    """A text of a table that has a state."""

    text: str
    state: State | None = None


@frozen
class Interval:
    """A value on a scale from 0, drawn with its confidence interval; only HTML has it."""

    name: str
    value: float
    low: float
    high: float
    top: float
    """The end of the scale."""


def interval(name: str, value: float | None, low: float | None, high: float | None) -> Interval | None:
    """Return a value and its interval on a scale that ends at 1, or a little above the largest of them."""
    if value is None:
        return None
    ends = [value if end is None else end for end in (low, high)]
    largest = max((end for end in (value, *ends) if isfinite(end)), default=0.0)
    return Interval(name=name, value=value, low=ends[0], high=ends[1], top=1.0 if largest <= 1 else largest * 1.1)


Value = str | float | Cell | Interval | None
"""A cell of a table: a number is written with separators, and None is unknown or does not apply."""


@positional
class Column:
    """A column of a table."""

    heading: str
    align: Align = Align.TEXT
    only: Only | None = None
    bar: bool = False
    """Whether a bar, where a format can draw one, compares each number with the largest of the column."""
    sparse: bool = False
    """Whether the column is left out if all of its cells are empty."""
    drop: int = 0
    """On a terminal that is too narrow: 0 to keep the column, else the rank at which it is left out, 1 first.

    A page that is as narrow as a phone leaves out all columns with a rank, here or in `spare`."""
    spare: int = 0
    """The same, but on a terminal only where broken lines would make columns too narrow to read."""

    @property
    def optional(self) -> bool:
        """Whether a narrow page leaves it out."""
        return bool(self.drop or self.spare)

    below: str = ""
    """The heading of the column whose cells HTML shows above those of this column, in one; empty to show it apart."""


def names(*headings: str) -> tuple[Column, ...]:
    """Return columns of short texts."""
    return tuple(Column(heading, Align.NAME) for heading in headings)


def numbers(*headings: str, only: Only | None = None, bar: bool = False, spare: int = 0) -> tuple[Column, ...]:
    """Return columns of numbers."""
    return tuple(Column(heading, Align.NUMBER, only, bar, spare=spare) for heading in headings)


@positional
class Section:
    """A section of a document."""

    only: Only | None = field(default=None, kw_only=True)


@positional
class Conclusion(Section):
    """What a document comes to: first on a page, and last on a terminal."""

    words: str
    state: State
    sentence: str
    """The reason, for pages."""
    label: str = "verdict"


@positional
class Text(Section):
    """A sentence, or its part behind a label, with an item per line below it."""

    text: str
    label: str = ""
    state: State | None = None
    items: Sequence[str] = ()


@positional
class Code(Section):
    """Lines that are shown as they are."""

    text: str
    language: str = "text"


@positional
class Fact:
    """A value with its name."""

    label: str
    value: str
    note: str = ""
    """The text behind the value, with the separator before it."""
    more: Sequence[str] = ()
    """Further lines."""


@positional
class Facts(Section):
    """Values with their names."""

    facts: Sequence[Fact]
    large: bool = False
    """Whether they are the figures of the whole document, which a page shows in large."""

    @classmethod
    def known(cls, values: Mapping[str, str], *, large: bool = False) -> Facts:
        """Return values by name without those that are empty."""
        return cls([Fact(*each) for each in values.items() if each[1]], large)


@positional
class Table(Section):
    """Rows of values."""

    title: str
    """Above the table on a terminal, which shows no headings of parts; for pages, its name."""
    columns: Sequence[Column | str]
    """A heading alone is that of a column of texts that may be broken into lines."""
    rows: Sequence[Sequence[Value]]
    largest: str = ""
    """The heading of the column by which a page lists the rows with the most before all of a long table."""
    groups: Sequence[str] = ()
    """By row: the group whose colour its bars have; empty without groups."""
    shaded: bool = False
    """Whether a page shades each integer by its share of the row, and those on the diagonal as right."""
    instead: str = ""
    """What a terminal shows in place of a table that is wider than itself; empty to break or leave out columns."""

    def shown(self, only: Only, *, drawn: bool = False) -> tuple[list[Column], list[list[Value]]]:
        """Return the columns and the rows for a terminal or for pages, those that are drawn only if asked for."""
        columns = [Column(each) if isinstance(each, str) else each for each in self.columns]
        kept = [
            index
            for index, column in enumerate(columns)
            if column.only in {None, only}
            and (drawn or column.align is not Align.DRAWN)
            and (not column.sparse or any(row[index] for row in self.rows))
        ]
        return [columns[index] for index in kept], [[row[index] for index in kept] for row in self.rows]


@positional
class Picture(Section):
    """A drawing, which HTML has; Markdown has its caption."""

    kind: str
    """How it is drawn, such as "timeline"."""
    data: object
    caption: str = ""
    only: Only | None = field(default=Only.PAGES, kw_only=True)


@positional
class Strip:
    """The data of the picture "strip": parts that add up to a whole."""

    title: str
    parts: Mapping[str, int]
    unit: str = "B"


@positional
class Part(Section):
    """Sections below a heading; on a terminal, their titles are enough. A document is one part."""

    title: str
    sections: Iterable[Section | None]
    """None for what the document lacks."""
    what: str = ""
    """Of a document: its kind, such as "Run"."""
    about: str = ""
    """Of a document: the line below the title."""
    folded: str = ""
    """What a page writes in place of the sections until a reader opens them; empty to show them at once."""

    def shown(self, only: Only) -> list[Section]:
        """Return the sections for a terminal or for pages in their order.

        A terminal ends with the verdict, where its reader is; a page begins with it, the figures and the remarks.
        """
        kept = [section for section in self.sections if section is not None and section.only in {None, only}]
        if only is Only.TERMINAL:
            return kept
        kept = [section for section in kept if _says_something(section)]
        if not self.what:
            return kept
        return sorted(kept, key=lambda each: 2 if isinstance(each, Part) else not isinstance(each, Conclusion))


def _says_something(section: Section) -> bool:
    """Return whether a page has anything of a section to show."""
    match section:
        case Table():
            return bool(section.rows)
        case Facts():
            return bool(section.facts)
        case Picture(data=list() | tuple() as data):
            return bool(data)
        case Part(what=""):
            return bool(section.shown(Only.PAGES))
        case _:
            return True


def part(title: str, *sections: Section | None) -> Part | None:
    """Return a part, unless all of its sections are None."""
    return Part(title, sections) if any(sections) else None


def page_part(title: str, *sections: Section | None) -> Part | None:
    """Return a part that only pages show, unless all of its sections are None."""
    return Part(title, sections, only=Only.PAGES) if any(sections) else None


def plural(count: int, noun: str) -> str:
    """Return a number with its noun, which takes an "s" if there is not one of it."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def number(value: float | str | None) -> str:
    """Return a value as text: whole numbers with separators, others with six digits."""
    match value:
        case None:
            return ""
        case int():
            return f"{value:,}"
        case float():
            return f"{int(value):,}" if value.is_integer() and abs(value) < 1 << 53 else f"{value:.6g}"
        case _:
            return value


def joined(*parts: str | None, by: str = ", ") -> str:
    """Return the parts that are not empty as one text."""
    return by.join(filter(None, parts))


def share(value: float | None) -> str:
    """Return a share, 0 to 1, in per cent; empty for None."""
    return "" if value is None else f"{value:.1%}"


def runner(backend: str, device: str | None) -> str:
    """Return the backend, followed by its device if that has another name."""
    return backend if not device or device == backend else f"{backend}/{device}"


def group_colours(groups: Sequence[str]) -> dict[str, int]:
    """Return the number of the colour of each group, in the order of their first members."""
    return {name: index % 8 for index, name in enumerate(dict.fromkeys(groups))}
