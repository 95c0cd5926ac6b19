# SPDX-License-Identifier: Apache-2.0
"""Writes a register table as the Python that declares it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum

from ferrule.devices.register_text import c_header
from ferrule.devices.registers import RegisterTable
from ferrule.devices.svd import Peripheral
from ferrule.rendering import Verbatim, one_line

_COLUMNS = 120
_HEXADECIMAL = {"offset", "reset", "size_bytes", "increment"}


def python_source(table: RegisterTable) -> Verbatim:
    """Return an expression that creates the table again; it needs the names that `ferrule.devices` exports."""
    return Verbatim("\n".join(_lines("", table, "", 0)))


def template_values(peripheral: Peripheral) -> dict[str, Verbatim]:
    """Return the parts of a model's files: the table as Python and as C, its imports, and the notes as comments."""
    return {
        "names": Verbatim(", ".join(names_used(peripheral.table))),
        "table": python_source(peripheral.table),
        "notes": Verbatim("\n".join(f"# - {one_line(note)}" for note in peripheral.notes)),
        "header": Verbatim(c_header(peripheral.table).removesuffix("\n")),
    }


def names_used(table: RegisterTable) -> tuple[str, ...]:
    """Return the names of `ferrule.devices` that the table's source needs, sorted."""
    return tuple(sorted(set(_types(table))))


def _types(value: object) -> Iterator[str]:
    if isinstance(value, Enum) or is_dataclass(value):
        yield type(value).__name__
    for _, part in _parts(value):
        yield from _types(part)


def _lines(start: str, value: object, end: str, depth: int) -> list[str]:
    """Return the lines of a value between two texts, in one line if it fits."""
    indent = "    " * depth
    whole = f"{indent}{start}{_flat(value, start.removesuffix('='))}{end}"
    parts = _parts(value)
    if len(whole) <= _COLUMNS or not parts:
        return [whole]
    opening = "(" if isinstance(value, tuple) else f"{type(value).__name__}("
    lines = [f"{indent}{start}{opening}"]
    for name, part in parts:
        lines += _lines(f"{name}=" if name else "", part, ",", depth + 1)
    return [*lines, f"{indent}){end}"]


def _flat(value: object, name: str = "") -> str:
    match value:
        case Enum():
            return f"{type(value).__name__}.{value.name}"
        case str():
            return json.dumps(one_line(value), ensure_ascii=False)
        case bool():
            return str(value)
        case int():
            return f"{value:#x}" if name in _HEXADECIMAL else str(value)
        case tuple():
            inner = ", ".join(_flat(each) for each in value)
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        case _:
            return f"{type(value).__name__}({', '.join(f'{key}={_flat(each, key)}' for key, each in _parts(value))})"


def _parts(value: object) -> Sequence[tuple[str, object]]:
    """Return the parts of a tuple or a dataclass with their names; the defaults are left out."""
    if isinstance(value, tuple):
        return [("", each) for each in value]
    if not is_dataclass(value) or isinstance(value, type):
        return []
    named = ((each.name, each.default, getattr(value, each.name)) for each in fields(value) if each.init)
    return [(name, each) for name, default, each in named if default is MISSING or each != default]
