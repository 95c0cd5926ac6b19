# SPDX-License-Identifier: Apache-2.0
"""Reads Renode platform descriptions (.repl).

The grammar is that of Renode 1.16; unsupported parts (`as "alias"`, `local`, `using ... prefixed`) are refused by
name. Paths in `using` are resolved against these folders, in this order: the file's own, that of the first file (the
board's), its parent, the folder of Ferrule's own boards and, for files that Renode ships, Renode's own folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ferrule.boards.lexer import Token, TokenKind, place_error, tokenize
from ferrule.boards.repl import (
    Dictionary,
    Entry,
    Interrupt,
    NewObject,
    Platform,
    Range,
    Reference,
    Registration,
    Script,
    Value,
)
from ferrule.documents import file_bytes
from ferrule.errors import FerruleError
from ferrule.reading import exists, is_file
from ferrule.resources import root

_PREFIX = "Antmicro.Renode.Peripherals."
_ROOT_MARK = ".renode-root"
_MAX_DEPTH = 32
"""Of a value in others: the parser calls itself for each, and Python has a limit of its own on that."""
_MAX_FILES = 256
"""Of one platform, each as often as it is included: files that each include the next one twice would be read 2^n
times, and all their bytes are far fewer than the budget has."""
_MAX_DIGITS = 40
"""Of one number: 64 bits take 20 digits. Python itself refuses numbers of many digits, with an error of its own."""
_MAX_LINES = 1024
"""Of one span of interrupts: a GIC of Arm has up to 1,020 lines, a PLIC of RISC-V 1,023."""
_ADDRESS_END = 1 << 64


def read_platform(file: Path) -> Platform:
    """Read a description and all files that it includes with `using`.

    Raises:
        FerruleError: a file cannot be read, is malformed or uses an unsupported feature; for the latter two the message
            begins with file:line.
    """
    entries: dict[str, _Draft] = {}
    files: list[Path] = []
    _Parser(file, entries, files, ()).parse()
    for draft in entries.values():
        for interrupt in draft.interrupts:
            if interrupt.target not in entries:
                raise place_error(
                    draft.file, draft.line, f"'{draft.name}' interrupts '{interrupt.target}', which is not an entry"
                )
    return Platform(
        file=file, files=tuple(dict.fromkeys(files)), entries={name: draft.entry() for name, draft in entries.items()}
    )


@dataclass(kw_only=True)
class _Draft:
    """An entry that later entries of the same name may still change."""

    name: str
    type: str
    file: Path
    line: int
    registrations: tuple[Registration, ...] = ()
    properties: dict[str, Value] = field(default_factory=dict)
    interrupts: list[Interrupt] = field(default_factory=list)
    scripts: list[Script] = field(default_factory=list)

    def entry(self) -> Entry:
        return Entry(**vars(self) | {"interrupts": tuple(self.interrupts), "scripts": tuple(self.scripts)})


class _Parser:
    def __init__(self, file: Path, entries: dict[str, _Draft], files: list[Path], parents: tuple[Path, ...]) -> None:
        """Read a file, which is added to `files`; its entries are added to `entries`, and `parents` include it."""
        if len(files) >= _MAX_FILES:
            raise FerruleError(f"{file}: the description includes more than {_MAX_FILES} files")
        try:
            if not exists(file):
                raise FerruleError(f"there is no platform description {file}")
            text = file_bytes(file).decode("utf-8-sig")
            files.append(file.resolve())
        except (OSError, ValueError) as error:  # ValueError: invalid UTF-8, or a null character in the path
            raise FerruleError(f"cannot read {str(file)!r}: {error}") from None
        self._file = file
        self._tokens = tokenize(text, file)
        self._at = 0
        self._entries = entries
        self._files = files
        self._parents = (*parents, file.resolve())

    def parse(self) -> None:
        started = False
        while self._peek().kind is not TokenKind.END:
            token = self._peek()
            if not token.first or token.column:
                raise self._error(
                    token, f"{token} found where an entry must begin", "an entry begins at the start of a line"
                )
            if token.text == "using" and self._peek(1).kind is TokenKind.TEXT:
                if started:
                    raise self._error(token, "'using' must precede the entries")
                self._using()
            else:
                started = True
                self._entry()

    def _peek(self, ahead: int = 0) -> Token:
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def _next(self) -> Token:
        token = self._peek()
        self._at += 1
        return token

    def _take(self, mark: str) -> bool:
        found = self._is(mark)
        self._at += found
        return found

    def _is(self, mark: str, ahead: int = 0) -> bool:
        token = self._peek(ahead)
        return token.kind is TokenKind.MARK and token.text == mark

    def _expect(self, mark: str, where: str) -> None:
        token = self._peek()
        if not self._take(mark):
            raise self._error(token, f"expected '{mark}' {where}, found {token}")

    def _until(self, close: str, separator: str, where: str, unclosed: FerruleError) -> Iterator[None]:
        """Yield before each item up to a closing mark; the caller reads the item."""
        while not self._take(close):
            if self._peek().kind is TokenKind.END:
                raise unclosed
            yield
            if not self._is(close):
                self._expect(separator, where)

    def _name(self, what: str) -> str:
        token = self._next()
        if token.kind is not TokenKind.NAME:
            raise self._error(token, f"expected {what}, found {token}")
        return token.text

    def _integer(self, what: str) -> int:
        token = self._next()
        if token.kind is not TokenKind.NUMBER or "." in token.text:
            raise self._error(token, f"expected {what}, found {token}")
        if len(token.text) > _MAX_DIGITS:
            raise self._error(token, f"the number has more than {_MAX_DIGITS} characters")
        return int(token.text, 0) if "x" in token.text.lower() else int(token.text)

    def _error(self, token: Token, message: str, hint: str | None = None) -> FerruleError:
        return place_error(self._file, token.line, message, hint=hint)

    def _using(self) -> None:
        self._next()
        token = self._next()
        if not self._peek().first:
            raise self._error(self._peek(), f"{self._peek()} is not supported after 'using'")
        own = self._parents[0].parent
        renode = [folder for folder in self._parents[0].parents if is_file(folder / _ROOT_MARK)][:1]
        starts = (self._file.parent.resolve(), own, own.parent, root() / "boards", *renode)
        path = next(filter(None, (_existing(start / _text(token)) for start in starts)), None)
        if path is None:
            hint = f"paths in 'using' start from {' or '.join(dict.fromkeys(str(start) for start in starts))}"
            raise self._error(token, f"there is no file '{_text(token)}'", hint)
        if path in self._parents:
            raise self._error(token, f"'{_text(token)}' includes itself")
        _Parser(path, self._entries, self._files, self._parents).parse()

    def _entry(self) -> None:
        token = self._peek()
        name = self._name("the name of an entry")
        if self._peek().kind is TokenKind.NAME:
            raise self._error(token, f"'{token.text}' is not understood before an entry")
        self._expect(":", f"after the name '{name}'")
        type_name = None
        if self._peek().kind is TokenKind.NAME and not self._peek().first:
            type_name = self._next().text.removeprefix(_PREFIX)
        draft = self._draft(token, name, type_name)
        if self._take("@"):
            draft.registrations = self._registrations()
        if self._peek().kind is TokenKind.NAME and not self._peek().first:
            raise self._error(self._peek(), f"{self._peek()} is not understood after the registration of '{name}'")
        if self._take("{"):
            unclosed = self._error(self._tokens[self._at - 1], f"the '{{' of '{draft.name}' is not closed")
            for _ in self._until("}", ";", "between two attributes in braces", unclosed):
                self._attribute(draft, ends_at_line=False)
        while self._peek().first and self._peek().column and self._peek().kind is not TokenKind.END:
            self._attribute(draft, ends_at_line=True)

    def _draft(self, token: Token, name: str, type_name: str | None) -> _Draft:
        known = self._entries.get(name)
        if known is None and type_name is None and name == "sysbus":
            type_name = "Bus.SystemBus"
        if type_name is None:
            if known is None:
                raise self._error(token, f"'{name}' has no type, and no entry of that name precedes it")
            return known
        if known is not None:
            raise self._error(token, f"'{name}' is declared a second time; first in {known.file}:{known.line}")
        draft = self._entries[name] = _Draft(name=name, type=type_name, file=self._file, line=token.line)
        return draft

    def _attribute(self, draft: _Draft, *, ends_at_line: bool) -> None:
        token = self._peek()
        if token.kind is TokenKind.SCRIPT:
            self._next()
            draft.scripts.append(Script(kind=token.text, lines=token.lines))
            return
        if token.kind is TokenKind.NAME and self._is(":", 1):
            self._next()
            self._next()
            draft.properties[token.text] = self._value()
        else:
            self._interrupts(draft)
        after = self._peek()
        if ends_at_line and not after.first:
            raise self._error(after, f"{after} is not understood at the end of the line")

    def _registrations(self) -> tuple[Registration, ...]:
        if not self._take("{"):
            return (self._registration(),)
        found = [self._registration()]
        while not self._take("}"):
            self._expect(";", "between two registrations")
            if not self._is("}"):
                found.append(self._registration())
        return tuple(found)

    def _registration(self) -> Registration:
        bus = self._name("the name of a bus")
        following = self._peek()
        named = following.kind is TokenKind.NAME and following.text != "as"
        if following.first or not (following.kind is TokenKind.NUMBER or self._is("<") or self._is("[") or named):
            return Registration(bus=bus)
        point = self._value()
        if not isinstance(point, NewObject):
            return self._checked(Registration(bus=bus, point=point), following)
        rest = dict(point.properties)
        if "address" not in rest:
            return Registration(bus=bus, point=point)
        address, size = rest.pop("address"), rest.pop("size", None)
        if isinstance(address, bool) or not isinstance(address, int | Range):
            raise self._error(following, "the address of a registration must be a number or a range")
        if isinstance(size, bool) or not isinstance(size, int | None):
            raise self._error(following, "the size of a registration must be a number")
        return self._checked(Registration(bus=bus, point=address, size_bytes=size, properties=rest), following)

    def _checked(self, registration: Registration, token: Token) -> Registration:
        if registration.bus == "sysbus" and registration.address is None:
            raise self._error(token, "an address on sysbus must be an integer or a range")
        if registration.address is not None and not 0 <= registration.address < _ADDRESS_END:
            raise self._error(token, f"the address {registration.address} is out of range")
        if registration.size_bytes is not None and not 0 < registration.size_bytes <= _ADDRESS_END:
            raise self._error(token, f"the size {registration.size_bytes} is out of range")
        return registration

    def _value(self, depth: int = 0) -> Value:
        token = self._next()
        if depth > _MAX_DEPTH:
            raise self._error(token, f"values are nested deeper than {_MAX_DEPTH}")
        match token.kind, token.text:
            case TokenKind.TEXT, _:
                return _text(token)
            case TokenKind.NUMBER, text:
                self._at -= 1
                return float(self._next().text) if "." in text else self._integer("a number")
            case TokenKind.NAME, "true" | "false":
                return token.text == "true"
            case TokenKind.NAME, "none" | "empty":
                return None
            case TokenKind.NAME, "new":
                return self._new_object(depth)
            case TokenKind.NAME, name:
                return Reference(name=name)
            case TokenKind.MARK, "<":
                return self._range(token)
            case TokenKind.MARK, "[":
                unclosed = self._error(token, "this '[' is not closed")
                turns = self._until("]", ",", "between two values of a list", unclosed)
                return tuple(self._value(depth + 1) for _ in turns)
            case TokenKind.MARK, "{":
                return self._dictionary(token, depth)
        raise self._error(token, f"expected a value, found {token}")

    def _range(self, opening: Token) -> Range:
        begin = self._integer("the first address of a range")
        self._expect(",", "in a range")
        token = self._peek()
        last = self._integer("the size (+n) or the end of a range")
        self._expect(">", "at the end of a range")
        size = last if token.text.startswith("+") else last - begin
        if not 0 <= begin < _ADDRESS_END or not 0 < size <= _ADDRESS_END:
            raise self._error(opening, f"the range <{begin:#x}, {token.text}> is empty or out of bounds")
        return Range(begin=begin, size=size)

    def _dictionary(self, opening: Token, depth: int) -> Dictionary:
        items: list[tuple[Value, Value]] = []
        unclosed = self._error(opening, "this '{' is not closed")
        for _ in self._until("}", ";", "between two items of a dictionary", unclosed):
            key = self._value(depth + 1)
            self._expect(":", "after the key of a dictionary")
            items.append((key, self._value(depth + 1)))
        return Dictionary(items=tuple(items))

    def _new_object(self, depth: int) -> NewObject:
        token = self._peek()
        type_name = self._name("the name of a class").removeprefix(_PREFIX)
        properties: dict[str, Value] = {}
        if self._take("{"):
            unclosed = self._error(token, f"the '{{' of 'new {type_name}' is not closed")
            for _ in self._until("}", ";", "between two properties in braces", unclosed):
                name = self._name("the name of a property")
                self._expect(":", f"after '{name}'")
                properties[name] = self._value(depth + 1)
        return NewObject(type=type_name, properties=properties)

    def _interrupts(self, draft: _Draft) -> None:
        token = self._peek()
        sources: Sequence[str | int | None] = [None] if self._is("->") else self._outputs()
        self._expect("->", "between the output and the input of an interrupt")
        if self._peek().text == "none":
            self._next()
            draft.interrupts = [line for line in draft.interrupts if line.source not in sources]
            return
        while True:
            target_name = self._name("the entry that an interrupt goes to")
            local = self._integer("the number of a core") if self._take("#") else None
            self._expect("@", f"after '{target_name}'")
            inputs = self._inputs()
            if len(inputs) != len(sources):
                raise self._error(token, f"{len(sources)} outputs are connected to {len(inputs)} inputs")
            draft.interrupts.extend(
                Interrupt(source=source, target=target_name, index=index, local=local)
                for source, index in zip(sources, inputs, strict=True)
            )
            if not self._take("|"):
                return

    def _outputs(self) -> list[str | int]:
        if not self._take("["):
            token = self._peek()
            if token.kind is TokenKind.NAME:
                return [self._next().text]
            if token.kind is TokenKind.NUMBER:
                return [self._integer("an output")]
            raise self._error(token, f"expected a property or an interrupt, found {token}")
        found: list[str | int] = []
        while True:
            if self._peek().kind is TokenKind.NAME:
                found.append(self._next().text)
            else:
                found.extend(self._span("an output"))
            if self._take("]"):
                return found
            self._expect(",", "between two outputs")

    def _inputs(self) -> list[int]:
        if not self._take("["):
            return [self._integer("the number of an input")]
        found = self._span("the number of an input")
        while not self._take("]"):
            self._expect(",", "between two inputs")
            found.extend(self._span("the number of an input"))
        return found

    def _span(self, what: str) -> list[int]:
        """Parse `n` or `n-m`; the lexer reads the second half of `0-1` as a negative number."""
        token = self._peek()
        first = last = self._integer(what)
        if self._take("-"):
            last = self._integer(what)
        elif self._peek().kind is TokenKind.NUMBER and self._peek().text.startswith("-"):
            last = -self._integer(what)
        step = 1 if last >= first else -1
        if first < 0 or last < 0 or abs(last - first) >= _MAX_LINES:
            raise self._error(token, f"the span {first}-{last} is out of range")
        return list(range(first, last + step, step))


def _existing(path: Path) -> Path | None:
    """Return the resolved path of a regular file; None if there is none, or the path is impossible."""
    try:
        return path.resolve() if is_file(path) else None
    except (OSError, ValueError):  # too long, a loop of links, or a null character
        return None


def _text(token: Token) -> str:
    if token.text.startswith("'''"):
        return token.text[3:-3]
    return re.sub(r"\\(.)", r"\1", token.text[1:-1])
