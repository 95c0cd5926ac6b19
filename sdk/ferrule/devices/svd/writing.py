# SPDX-License-Identifier: Apache-2.0
"""Writes register tables as CMSIS-SVD 1.3."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ferrule.devices.registers import Access, EnumeratedValue, Field, Register, RegisterTable, Usage
from ferrule.devices.svd.peripheral import Peripheral
from ferrule.errors import FerruleError
from ferrule.rendering import one_line

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ACCESS = {Access.READ_ONLY: "read-only", Access.WRITE_ONLY: "write-only"}
_EFFECT = {Access.CLEAR_BY_ONE: "oneToClear", Access.SET_BY_ONE: "oneToSet"}
_STEP = "  "


def svd_text(peripherals: Sequence[Peripheral], *, device: str, doc: str = "") -> str:
    """Return the text of an SVD file for a device called `device` with these peripherals.

    A peripheral with the table of an earlier one is derived from it. The format has no place for `narrow_accesses`.

    Raises:
        FerruleError: a name is no C identifier or occurs twice, or an address has more than 32 bits.
    """
    names: set[str] = set()
    for each in peripherals:
        if each.name in names:
            raise FerruleError(f"there are two peripherals called '{each.name}'", hint="rename one of them")
        names.add(each.name)
        if not 0 <= each.base < 1 << 32:
            raise FerruleError(f"peripheral {each.name} is at {each.base:#x}, expected an address of 32 bits")
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<device schemaVersion="1.3" xmlns:xs="http://www.w3.org/2001/XMLSchema-instance"'
        ' xs:noNamespaceSchemaLocation="CMSIS-SVD.xsd">',
        *_indented(_device(peripherals, device, doc)),
        "</device>",
        "",
    ]
    return "\n".join(lines)


def _device(peripherals: Sequence[Peripheral], device: str, doc: str) -> Iterator[str]:
    yield _text("name", _named(device, "device"))
    yield _text("version", "1.0")
    yield _text("description", doc or f"Devices of {device}")
    yield _text("addressUnitBits", "8")
    yield _text("width", "32")
    yield _text("size", "32")
    yield _text("access", "read-write")
    yield _text("resetValue", "0x0")
    yield _text("resetMask", "0xffffffff")
    yield "<peripherals>"
    first: dict[RegisterTable, str] = {}
    for each in peripherals:
        yield from _indented(_peripheral(each, first.get(each.table, "")))
        first.setdefault(each.table, each.name)
    yield "</peripherals>"


def _peripheral(peripheral: Peripheral, base: str) -> Iterator[str]:
    table = peripheral.table
    yield f'<peripheral derivedFrom="{base}">' if base else "<peripheral>"
    lines = [_text("name", _named(peripheral.name, "peripheral"))]
    if not base:
        lines += _doc(table.doc)
    lines.append(_text("baseAddress", f"{peripheral.base:#010x}"))
    if not base:
        block = [_text("offset", "0x0"), _text("size", f"{table.size_bytes:#x}"), _text("usage", "registers")]
        lines += _wrapped("addressBlock", block)
    for each in peripheral.interrupts:
        inner = [_text("name", _named(each.name, "interrupt")), *_doc(each.doc), _text("value", str(each.number))]
        lines += _wrapped("interrupt", inner)
    if table.registers and not base:
        lines += _wrapped("registers", [line for each in table.registers for line in _register(each)])
    yield from _indented(lines)
    yield "</peripheral>"


def _register(register: Register) -> Iterator[str]:
    lines: list[str] = []
    if register.dim:
        lines += [_text("dim", str(register.dim)), _text("dimIncrement", f"{register.increment:#x}")]
        if register.indices:
            lines.append(_text("dimIndex", ",".join(register.indices)))
    lines += [
        _text("name", register.name),
        *_doc(register.doc),
        _text("addressOffset", f"{register.offset:#x}"),
        _text("size", str(register.size_bits)),
        _text("access", _ACCESS.get(register.access, "read-write")),
        _text("resetValue", f"{register.reset:#x}"),
        _text("resetMask", f"{register.mask:#x}"),
    ]
    if register.access in _EFFECT:
        lines.append(_text("modifiedWriteValues", _EFFECT[register.access]))
    if register.read_clears:
        lines.append(_text("readAction", "clear"))
    if register.fields:
        fields = [line for each in register.fields for line in _field(each, plain=register.access not in _EFFECT)]
        lines += _wrapped("fields", fields)
    yield from _wrapped("register", lines)


def _field(field: Field, *, plain: bool) -> Iterator[str]:
    """Yield the lines of a field; `plain` tells that a write of the register has no effect of its own."""
    lines = [
        _text("name", field.name),
        *_doc(field.doc),
        _text("bitOffset", str(field.bit)),
        _text("bitWidth", str(field.width)),
    ]
    if field.access is not None:
        lines.append(_text("access", _ACCESS.get(field.access, "read-write")))
        if field.access in _EFFECT or not plain:
            lines.append(_text("modifiedWriteValues", _EFFECT.get(field.access, "modify")))
    if field.read_clears:
        lines.append(_text("readAction", "clear"))
    for usage in Usage:
        values = [each for each in field.values if each.usage is usage]
        if values:
            lines += _enumeration(usage, values)
    yield from _wrapped("field", lines)


def _enumeration(usage: Usage, values: Sequence[EnumeratedValue]) -> Iterator[str]:
    lines = [_text("usage", usage)]
    for each in values:
        inner = [_text("name", each.name), *_doc(each.doc), _text("value", str(each.value))]
        lines += _wrapped("enumeratedValue", inner)
    yield from _wrapped("enumeratedValues", lines)


def _doc(text: str) -> list[str]:
    return [_text("description", text)] if text else []


def _wrapped(tag: str, lines: Sequence[str]) -> Iterator[str]:
    yield f"<{tag}>"
    yield from _indented(lines)
    yield f"</{tag}>"


def _indented(lines: Sequence[str] | Iterator[str]) -> Iterator[str]:
    return (f"{_STEP}{line}" for line in lines)


def _text(tag: str, text: str) -> str:
    quoted = one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f"<{tag}>{quoted}</{tag}>"


def _named(name: str, what: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise FerruleError(f"{name!a} is not the name of a {what}", hint="use ASCII letters, digits and underscores")
    return name
