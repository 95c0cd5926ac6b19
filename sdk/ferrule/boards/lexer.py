# SPDX-License-Identifier: Apache-2.0
"""Splits a Renode platform description into tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.errors import FerruleError
from ferrule.rendering import check_text

_SCRIPT = re.compile(r"(?P<indent>[ ]+)(?P<kind>(?:pre)?init|reset)(?P<add>[ ]+add)?[ ]*:[ ]*(?://.*)?\Z")
_TOKEN = re.compile(
    r"""
      (?P<space>[ \t\r]*\n|[ \t\r]+)
    | (?P<comment>//[^\n]*|/\*.*?\*/)
    | (?P<text>'''.*?'''|"(?:[^"\\\n]|\\[^\n])*")
    | (?P<number>[+-]?(?:0[xX][0-9a-fA-F]+(?:_[0-9a-fA-F]+)*|[0-9]+(?:_[0-9]+)*(?:\.[0-9]+)?)(?![0-9A-Za-z_.]))
    | (?P<name>\.?[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)
    | (?P<mark>->|[:@<>,+{}\[\];|#-])
    """,
    re.VERBOSE | re.DOTALL,
)


class TokenKind(Enum):
    """The kinds of tokens, with the name of each in messages."""

    NAME = "a name"
    NUMBER = "a number"
    TEXT = "a string"
    MARK = "a mark"
    SCRIPT = "a script"
    END = "the end of the file"


@frozen
class Token:
    """A token and its position; `column` counts from 0, and `first` marks the first token of a line."""

    kind: TokenKind
    text: str
    line: int
    column: int
    first: bool
    lines: tuple[str, ...] = ()
    """The lines of a script without their indentation."""

    @override
    def __str__(self) -> str:
        return self.kind.value if self.kind is TokenKind.END else f"'{self.text}'"


def place_error(file: Path, line: int, message: str, *, hint: str | None = None) -> FerruleError:
    """Return the error for a position in a platform description."""
    return FerruleError(f"{file}:{line}: {message}", hint=hint)


def tokenize(text: str, file: Path) -> list[Token]:
    """Return the tokens of a description; the last is of kind END.

    A script (`init:`, `preinit:`, `reset:`, with or without `add`) becomes one token with its Monitor commands, because
    they follow another grammar. It extends to the next line that is not indented deeper than the script's first line.
    """
    return list(_Lexer(text, file).tokens())


@dataclass
class _Lexer:
    _text: str
    _file: Path
    _at: int = 0
    _line: int = 1
    _line_start: int = 0

    def tokens(self) -> Iterator[Token]:
        first = True
        depth = 0
        while self._at < len(self._text):
            if self._at == self._line_start:
                first = True
                if depth == 0 and (script := self._script()) is not None:
                    yield script
                    continue
            match = _TOKEN.match(self._text, self._at)
            if match is None:
                raise self._unreadable()
            kind = str(match.lastgroup)
            piece = match.group()
            if kind in {"space", "comment"}:
                first = self._skip(piece) or first
                continue
            if depth == 0 and first and "\t" in self._text[self._line_start : self._at]:
                raise place_error(self._file, self._line, "indented by a tab", hint="indent by four spaces")
            self._check(piece)
            column = self._at - self._line_start
            yield Token(kind=TokenKind[kind.upper()], text=piece, line=self._line, column=column, first=first)
            depth = max(0, depth + (piece in {"{", "["}) - (piece in {"}", "]"}))
            first = False
            self._skip(piece)
        yield Token(kind=TokenKind.END, text="", line=self._line, column=0, first=True)

    def _check(self, piece: str) -> None:
        """Raise FerruleError for text that cannot be printed as it is, except for line breaks and tabs."""
        check_text(
            piece.replace("\n", " ").replace("\t", " ").replace("\r", " "), f"{self._file}:{self._line}: the text"
        )

    def _skip(self, piece: str) -> bool:
        """Advance past a piece of text; return whether it contains a line break."""
        start = self._at
        self._at += len(piece)
        breaks = piece.count("\n")
        if breaks:
            self._line += breaks
            self._line_start = start + piece.rindex("\n") + 1
        return bool(breaks)

    def _script(self) -> Token | None:
        match = _SCRIPT.match(self._rest_of_line())
        if match is None:
            return None
        line, indent = self._line, len(match["indent"])
        kind = match["kind"] + (" add" if match["add"] else "")
        self._next_line()
        body: list[str] = []
        while self._at < len(self._text):
            row = self._rest_of_line()
            if row.strip() and len(row) - len(row.lstrip(" ")) <= indent:
                break
            self._check(row.strip())
            body.append(row.strip())
            self._next_line()
        return Token(
            kind=TokenKind.SCRIPT,
            text=kind,
            line=line,
            column=indent,
            first=True,
            lines=tuple(row for row in body if row),
        )

    def _rest_of_line(self) -> str:
        end = self._text.find("\n", self._at)
        return self._text[self._at : len(self._text) if end < 0 else end].rstrip("\r")

    def _next_line(self) -> None:
        end = self._text.find("\n", self._at)
        self._at = len(self._text) if end < 0 else end + 1
        self._line += 1
        self._line_start = self._at

    def _unreadable(self) -> FerruleError:
        rest = self._rest_of_line()
        if rest.startswith(('"', "'''")):
            return place_error(self._file, self._line, "this string is not closed")
        if rest.startswith("/*"):
            return place_error(self._file, self._line, "this comment is not closed")
        word = re.split(r"[ \t]", rest, maxsplit=1)[0][:40]
        return place_error(self._file, self._line, f"{word!r} is not understood")
