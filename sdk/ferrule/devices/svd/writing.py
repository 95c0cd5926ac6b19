# SPDX-License-Identifier: Apache-2.0
"""Writes register tables as CMSIS-SVD 1.3."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ferrule.devices.registers import Access, Field, Register, RegisterTable, Usage
from ferrule.devices.svd.peripheral import Peripheral
from ferrule.errors import FerruleError
from ferrule.rendering import one_line

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ACCESS = {Access.READ_ONLY: "read-only", Access.WRITE_ONLY: "write-only"}
_EFFECT = {Access.CLEAR_BY_ONE: "oneToClear", Access.SET_BY_ONE: "oneToSet"}


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
    root = Element(
        "device",
        {
            "schemaVersion": "1.3",
            "xmlns:xs": "http://www.w3.org/2001/XMLSchema-instance",
            "xs:noNamespaceSchemaLocation": "CMSIS-SVD.xsd",
        },
    )
    _fill(
        root,
        {
            "name": _named(device, "device"),
            "version": "1.0",
            "description": doc or f"Devices of {device}",
            "addressUnitBits": "8",
            "width": "32",
            "size": "32",
            "access": "read-write",
            "resetValue": "0x0",
            "resetMask": "0xffffffff",
        },
    )
    inner = SubElement(root, "peripherals")
    first: dict[RegisterTable, str] = {}
    for each in peripherals:
        _add_peripheral(inner, each, first.get(each.table, ""))
        first.setdefault(each.table, each.name)
    indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tostring(root, "unicode", short_empty_elements=False)}\n'


def _fill(parent: Element, texts: Mapping[str, str]) -> None:
    """Add a child for each text that is not empty."""
    for tag, text in texts.items():
        if text:
            SubElement(parent, tag).text = one_line(text)


def _add_peripheral(parent: Element, peripheral: Peripheral, base: str) -> None:
    table, name = peripheral.table, _named(peripheral.name, "peripheral")
    element = SubElement(parent, "peripheral", {"derivedFrom": base} if base else {})
    doc = "" if base else table.doc
    _fill(element, {"name": name, "description": doc, "baseAddress": f"{peripheral.base:#010x}"})
    if not base:
        block = {"offset": "0x0", "size": f"{table.size_bytes:#x}", "usage": "registers"}
        _fill(SubElement(element, "addressBlock"), block)
    for each in peripheral.interrupts:
        texts = {"name": _named(each.name, "interrupt"), "description": each.doc, "value": str(each.number)}
        _fill(SubElement(element, "interrupt"), texts)
    if table.registers and not base:
        registers = SubElement(element, "registers")
        for register in table.registers:
            _add_register(registers, register)


def _add_register(parent: Element, register: Register) -> None:
    element = SubElement(parent, "register")
    if register.dim:
        increment, indices = f"{register.increment:#x}", ",".join(register.indices)
        _fill(element, {"dim": str(register.dim), "dimIncrement": increment, "dimIndex": indices})
    _fill(
        element,
        {
            "name": register.name,
            "description": register.doc,
            "addressOffset": f"{register.offset:#x}",
            "size": str(register.size_bits),
            "access": _ACCESS.get(register.access, "read-write"),
            "resetValue": f"{register.reset:#x}",
            "resetMask": f"{register.mask:#x}",
            "modifiedWriteValues": _EFFECT.get(register.access, ""),
            "readAction": "clear" if register.read_clears else "",
        },
    )
    if register.fields:
        fields = SubElement(element, "fields")
        for each in register.fields:
            _add_field(fields, each, plain=register.access not in _EFFECT)


def _add_field(parent: Element, field: Field, *, plain: bool) -> None:
    """Add a field; `plain` tells that a write of the register has no effect of its own."""
    element = SubElement(parent, "field")
    place = {"bitOffset": str(field.bit), "bitWidth": str(field.width)}
    _fill(element, {"name": field.name, "description": field.doc, **place})
    if field.access is not None:
        effect = _EFFECT.get(field.access, "" if plain else "modify")
        _fill(element, {"access": _ACCESS.get(field.access, "read-write"), "modifiedWriteValues": effect})
    _fill(element, {"readAction": "clear" if field.read_clears else ""})
    for usage in Usage:
        values = [each for each in field.values if each.usage is usage]
        if values:
            enumeration = SubElement(element, "enumeratedValues")
            _fill(enumeration, {"usage": usage})
            for each in values:
                texts = {"name": each.name, "description": each.doc, "value": str(each.value)}
                _fill(SubElement(enumeration, "enumeratedValue"), texts)


def _named(name: str, what: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise FerruleError(f"{name!a} is not the name of a {what}", hint="use ASCII letters, digits and underscores")
    return name
