# SPDX-License-Identifier: Apache-2.0
"""Reads XML from strangers into a tree whose elements know their lines: no DTD, no entities, and a budget."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ferrule.budget import Resource, afford
from ferrule.errors import FerruleError
from ferrule.reading import read_bytes

DEPTH = 64
HELD_BYTES = 512
"""Of one element, with its attributes and children; files of silicon vendors have up to 10 MB and 300,000 elements."""
COUNTED = 1000
"""The elements between two comparisons with the budget."""
TEXT = 100_000
"""Largest number of characters in one element."""


@dataclass(slots=True, eq=False)
class Element:
    """An element of an XML file."""

    tag: str
    line: int
    attributes: dict[str, str]
    path: Path
    """The file, for messages."""
    children: list[Element] = field(default_factory=list)
    text: str = ""

    def child(self, tag: str) -> Element | None:
        """Return the first child with a tag, or None."""
        return next(self.all(tag), None)

    def all(self, tag: str) -> Iterator[Element]:
        """Yield the children with a tag."""
        return (each for each in self.children if each.tag == tag)

    def words(self, tag: str) -> str:
        """Return the text of a child with single spaces between its words; empty without the child."""
        found = self.child(tag)
        return "" if found is None else " ".join(found.text.split())

    def choice(self, tag: str, choices: Collection[str], default: str) -> str:
        """Return the text of a child, or the default if it is empty; FerruleError if that is none of the choices."""
        text = self.words(tag) or default
        if text not in choices:
            raise self.wrong(f"<{tag}> is {text[:80]!a}, expected one of {', '.join(choices)}")
        return text

    def wrong(self, message: str, hint: str | None = None) -> FerruleError:
        """Return an error that names the file and the element's line."""
        return FerruleError(f"{self.path}:{self.line}: {message}", hint=hint)


def read_xml(path: Path) -> Element:
    """Return the root element of a file.

    Raises:
        FerruleError: the file cannot be read, is not well-formed XML, declares a DTD, or is nested too deeply.
        BudgetError: the file or its elements are more than the present budget allows.
    """
    try:
        data = read_bytes(path)
    except OSError as error:
        raise FerruleError(f"{path} cannot be read: {error.strerror or error}") from error
    return parse_xml(data, path)


def parse_xml(data: bytes, path: Path) -> Element:
    """Return the root element of XML; `path` is for messages. Raises as `read_xml` does."""
    from xml.parsers.expat import ExpatError

    builder = _Builder(path)
    try:
        builder.parser.Parse(data, True)
    except ExpatError as error:
        raise FerruleError(f"{path}:{error.lineno}: not well-formed XML: {error}") from error
    except (LookupError, UnicodeError, ValueError) as error:  # the encoding that the file states
        raise FerruleError(f"{path}: not well-formed XML: {error}") from error
    assert builder.root is not None
    return builder.root


class _Builder:
    def __init__(self, path: Path) -> None:
        from xml.parsers.expat import ParserCreate

        self.root: Element | None = None
        self.parser = ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.StartDoctypeDeclHandler = self._doctype
        self._path = path
        self._open: list[Element] = []
        self._count = 0

    def _error(self, message: str, hint: str | None = None) -> FerruleError:
        return FerruleError(f"{self._path}:{self.parser.CurrentLineNumber}: {message}", hint=hint)

    def _doctype(self, _name: str, _system: str | None, _public: str | None, _internal: bool) -> None:
        raise self._error("a document type declaration is refused", "remove <!DOCTYPE ...>: SVD files need none")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._count += 1
        if len(self._open) >= DEPTH:
            raise self._error(f"elements are nested deeper than {DEPTH}")
        if self._count % COUNTED == 0:
            afford(Resource.BYTES, HELD_BYTES * self._count, f"{self._path}: a tree of {self._count:,} elements")
        made = Element(tag, self.parser.CurrentLineNumber, attributes, self._path)
        if self._open:
            self._open[-1].children.append(made)
        else:
            self.root = made
        self._open.append(made)

    def _end(self, _tag: str) -> None:
        self._open.pop()

    def _characters(self, text: str) -> None:
        element = self._open[-1]
        if element.children:  # the space between elements
            return
        if len(element.text) + len(text) > TEXT:
            raise self._error(f"<{element.tag[:40]}> has more than {TEXT} characters")
        element.text += text
