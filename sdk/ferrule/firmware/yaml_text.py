# SPDX-License-Identifier: Apache-2.0
"""Writes YAML that YAML 1.1 and YAML 1.2 parsers read alike."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

YamlValue = str | int | Mapping[str, "YamlValue"] | Sequence["YamlValue"] | None
"""The values that can be written; mappings keep their order."""

_PLAIN = re.compile(r"(?:\.?/|<|-{0,2})?[A-Za-z_](?:[A-Za-z0-9_./+@^&=<>'~,-]|:(?=[^ ])| (?=[A-Za-z0-9_]))*")
"""Strings written without quotes, a subset of those that YAML allows."""
_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
"""Words, in any case, that YAML 1.1 does not read as strings."""


def yaml_text(value: Mapping[str, YamlValue], *, comment: str = "") -> str:
    """Return a document in block style; the lines of `comment` precede it as comments."""
    lines = [f"# {line}".rstrip() for line in comment.splitlines()]
    return "\n".join((*lines, *_mapping(value), ""))


def scalar(value: str | int | None) -> str:
    """Return a scalar; strings that a parser could read as another type are quoted."""
    if value is None:
        return ""
    if isinstance(value, int):
        return str(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return '"' + "".join(map(_escaped, value)) + '"'


def _escaped(character: str) -> str:
    """Return a character for a double-quoted string; unlike JSON, YAML has no surrogate pairs of escapes."""
    if character in '"\\':
        return f"\\{character}"
    if " " <= character <= "~":
        return character
    return f"\\u{ord(character):04X}" if ord(character) < 1 << 16 else f"\\U{ord(character):08X}"


def _mapping(value: Mapping[str, YamlValue]) -> Iterator[str]:
    for key, each in value.items():
        match each:
            case str() | int() | None:
                yield f"{scalar(key)}: {scalar(each)}".rstrip()
            case Mapping():
                yield f"{scalar(key)}:"
                yield from _indented(_mapping(each), "  ", "  ")
            case _:
                yield f"{scalar(key)}:"
                yield from _indented(_sequence(each), "  ", "  ")


def _sequence(values: Sequence[YamlValue]) -> Iterator[str]:
    for each in values:
        match each:
            case str() | int() | None:
                yield f"- {scalar(each)}".rstrip()
            case Mapping():
                yield from _indented(_mapping(each), "- ", "  ")
            case _:
                yield from _indented(_sequence(each), "- ", "  ")


def _indented(lines: Iterator[str], first: str, other: str) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield f"{other if number else first}{line}"
