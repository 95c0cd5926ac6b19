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
    return "\n".join((*lines, *_block(value), ""))


def _block(value: Mapping[str, YamlValue] | Sequence[YamlValue]) -> Iterator[str]:
    """Yield the lines of a mapping or a list."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            head = f"{yaml_scalar(key)}:"
            if isinstance(each, str | int | None):
                yield f"{head} {yaml_scalar(each)}".rstrip()
            else:
                yield head
                yield from _indented(_block(each), "  ")
        return
    for each in value:
        if isinstance(each, str | int | None):
            yield f"- {yaml_scalar(each)}".rstrip()
        else:
            yield from _indented(_block(each), "- ")


def _indented(lines: Iterator[str], first: str) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield f"{'  ' if number else first}{line}"
