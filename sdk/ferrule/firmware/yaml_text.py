# SPDX-License-Identifier: Apache-2.0
"""Writes YAML that YAML 1.1 and YAML 1.2 parsers read alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ferrule.rendering import one_line, yaml_scalar

YamlValue = str | int | Mapping[str, "YamlValue"] | Sequence["YamlValue"] | None
"""The values that can be written; mappings keep their order."""
YamlMap = dict[str, YamlValue]


def yaml_text(value: Mapping[str, YamlValue], *, comment: str = "") -> str:
    """Return a document in block style; the lines of `comment` precede it as comments."""
    lines = [f"# {one_line(line)}".rstrip() for line in comment.splitlines()]
    return "\n".join((*lines, *_mapping(value), ""))


def _mapping(value: Mapping[str, YamlValue]) -> Iterator[str]:
    for key, each in value.items():
        match each:
            case str() | int() | None:
                yield f"{yaml_scalar(key)}: {yaml_scalar(each)}".rstrip()
            case Mapping():
                yield f"{yaml_scalar(key)}:"
                yield from _indented(_mapping(each), "  ", "  ")
            case _:
                yield f"{yaml_scalar(key)}:"
                yield from _indented(_sequence(each), "  ", "  ")


def _sequence(values: Sequence[YamlValue]) -> Iterator[str]:
    for each in values:
        match each:
            case str() | int() | None:
                yield f"- {yaml_scalar(each)}".rstrip()
            case Mapping():
                yield from _indented(_mapping(each), "- ", "  ")
            case _:
                yield from _indented(_sequence(each), "- ", "  ")


def _indented(lines: Iterator[str], first: str, other: str) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield f"{other if number else first}{line}"
