# SPDX-License-Identifier: Apache-2.0
"""Tables written as SVD, as Python and read again are the same; the SVD files have the schema's structure."""

from __future__ import annotations

import importlib.util
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hostile import HOSTILE, UNSHOWN
from hypothesis import given, settings
from hypothesis import strategies as st
from needs import lacking, lacking_variable, require_variable
from register_tables import ADDER, TIMER

from ferrule import devices
from ferrule.backends.woofles.registers import TABLE as WOOFLES
from ferrule.devices import (
    Access,
    EnumeratedValue,
    Field,
    Interrupt,
    Peripheral,
    Register,
    RegisterTable,
    Usage,
    read_svd,
    svd_text,
)
from ferrule.devices.register_source import names_used, python_source
from ferrule.devices.svd.reading import SvdFile
from ferrule.devices.svd.xml_tree import parse_xml
from ferrule.errors import FerruleError
from ferrule.rendering import one_line

names = st.from_regex(r"[A-Z][A-Z0-9_]{0,5}", fullmatch=True).filter(lambda name: not name.startswith("RESERVED"))
docs = st.text("ab&<>\"'é]_%*/ ", max_size=12).map(lambda text: " ".join(text.split()))

ORDER = {
    "device": "name version description addressUnitBits width size access resetValue resetMask peripherals",
    "peripheral": "name description baseAddress addressBlock interrupt registers",
    "addressBlock": "offset size usage",
    "interrupt": "name description value",
    "register": "dim dimIncrement dimIndex name description addressOffset size access resetValue resetMask "
    "modifiedWriteValues readAction fields",
    "field": "name description bitOffset bitWidth access modifiedWriteValues readAction enumeratedValues",
    "enumeratedValues": "usage enumeratedValue",
    "enumeratedValue": "name description value",
    "peripherals": "peripheral",
    "registers": "register",
    "fields": "field",
}
"""The children of each element, in the order of the schema of CMSIS-SVD 1.3."""


@st.composite
def fields_of(draw: st.DrawFn, bits: int) -> tuple[Field, ...]:
    found: list[Field] = []
    at = 0
    for name in draw(st.lists(names, max_size=4, unique=True)):
        at += draw(st.integers(0, 3))
        width = draw(st.integers(1, 5))
        if at + width > bits:
            break
        usages = draw(st.sampled_from([[Usage.READ_WRITE], [Usage.READ, Usage.WRITE]]))
        values = [
            EnumeratedValue(name=each, value=draw(st.integers(0, (1 << width) - 1)), usage=usage, doc=draw(docs))
            for usage in usages
            for each in draw(st.lists(names.map(lambda name, u=usage: f"{u.name}_{name}"), max_size=2, unique=True))
        ]
        found.append(
            Field(
                name,
                at,
                width=width,
                doc=draw(docs),
                access=draw(st.sampled_from([None, *Access])),
                read_clears=draw(st.booleans()),
                values=tuple(values),
            )
        )
        at += width
    return tuple(found)


@st.composite
def tables(draw: st.DrawFn) -> RegisterTable:
    registers = []
    at = 0
    for name in draw(st.lists(names, max_size=4, unique=True)):
        bits = draw(st.sampled_from([8, 16, 32]))
        size = bits // 8
        at = (at + size - 1) // size * size
        dim = draw(st.sampled_from([0, 0, 1, 3]))
        increment = size * draw(st.integers(1, 3)) if dim else 0
        indices = ("A", "B", "C")[:dim] if draw(st.booleans()) else ()
        registers.append(
            Register(
                f"{name}_%s_" if dim else name,
                at,
                access=draw(st.sampled_from(Access)),
                reset=draw(st.integers(0, (1 << bits) - 1)),
                fields=draw(fields_of(bits)),
                doc=draw(docs),
                size_bits=bits,
                read_clears=draw(st.booleans()),
                dim=dim,
                increment=increment,
                indices=indices,
            )
        )
        at += max(dim, 1) * max(increment, size)
    return RegisterTable(name=draw(names), registers=tuple(registers), size_bytes=max(at, 4), doc=draw(docs))


def read_text(text: str) -> SvdFile:
    return SvdFile(Path("a.svd"), parse_xml(text.encode(), Path("a.svd")))


def check_structure(element: ET.Element) -> None:
    """Check the order of elements, on which the schema insists; ElementTree shares no code with Ferrule's reader."""
    order = ORDER.get(element.tag)
    if order is None:
        assert len(element) == 0
        assert element.text
        return
    tags = [child.tag for child in element]
    assert tags == sorted(tags, key=order.split().index)
    assert element.tag not in {"peripherals", "registers", "fields", "enumeratedValues"} or tags
    for child in element:
        check_structure(child)


@given(table=tables(), base=st.integers(0, (1 << 32) - 1), number=st.integers(0, 200))
@settings(max_examples=25)
def test_svd(table: RegisterTable, base: int, number: int) -> None:
    interrupts = (Interrupt(name="LINE", number=number, doc="raised"),)
    given_ = Peripheral(name=table.name, table=table, base=base, interrupts=interrupts)
    text = svd_text([given_], device="chip")
    check_structure(ET.fromstring(text))  # noqa: S314 our own output
    file = read_text(text)
    assert file.device == "chip"
    assert file.peripheral(table.name) == given_


@given(table=tables())
@settings(max_examples=25)
def test_python(table: RegisterTable) -> None:
    source = python_source(table)
    known = {name: getattr(devices, name) for name in names_used(table)}
    assert eval(source, known) == table  # noqa: S307 our own output
    assert max(map(len, source.splitlines())) <= 120


@pytest.mark.parametrize("text", [*HOSTILE, *UNSHOWN])
def test_hostile_texts(text: str) -> None:
    register = Register("A", 0, doc=text, fields=(Field("F", 0, doc=text),))
    table = RegisterTable(name="t", registers=(register,), doc=text)
    again = eval(python_source(table), vars(devices).copy())  # noqa: S307 our own output
    xml = read_text(svd_text([Peripheral(name="t", table=table, base=0)], device="chip")).peripheral("t").table
    for made in (again, xml):
        for doc in (made.doc, made.registers[0].doc, made.registers[0].fields[0].doc):
            assert doc.split() == one_line(text).split()


@pytest.mark.parametrize("table", [ADDER, TIMER, WOOFLES], ids=lambda table: table.name)
def test_the_tables_of_the_tests(table: RegisterTable) -> None:
    one = Peripheral(name="ONE", table=table, base=0x1000)
    two = Peripheral(name="TWO", table=table, base=0x2000, interrupts=(Interrupt(name="TWO", number=3),))
    file = read_text(svd_text([one, two], device="chip"))
    assert file.names == ("ONE", "TWO")
    for given_ in (one, two):
        found = file.peripheral(given_.name)
        assert (found.table.registers, found.table.doc) == (table.registers, table.doc)
        assert (found.base, found.table.size_bytes) == (given_.base, table.size_bytes)
    assert [each.number for each in file.peripheral("TWO").interrupts] == [3]
    assert file.peripheral("ONE").interrupts == ()


def test_bad_places() -> None:
    one = Peripheral(name="ONE", table=ADDER, base=0x1000)
    for peripherals, message in (
        ([one, one], "two peripherals called 'ONE'"),
        ([Peripheral(name="A B", table=ADDER, base=0)], "'A B' is not the name of a peripheral"),
        ([Peripheral(name="A", table=ADDER, base=1 << 32)], "expected an address of 32 bits"),
    ):
        with pytest.raises(FerruleError, match=message):
            svd_text(peripherals, device="chip")
    with pytest.raises(FerruleError, match="is not the name of a device"):
        svd_text([one], device="</name>")


def test_arms_schema(tmp_path: Path) -> None:
    schema_file = require_variable("FERRULE_SCHEMAS") / "CMSIS-SVD.xsd"
    if not schema_file.is_file():
        lacking_variable("FERRULE_SCHEMAS", "CMSIS-SVD.xsd")
    if importlib.util.find_spec("lxml") is None:
        lacking("the Python module lxml", "pip install lxml", rare=True)
    from lxml import etree

    schema = etree.XMLSchema(etree.parse(schema_file))
    for table in (ADDER, TIMER, WOOFLES):
        file = tmp_path / "a.svd"
        place = Peripheral(name="ONE", table=table, base=0x1000, interrupts=(Interrupt(name="ONE", number=3),))
        again = Peripheral(name="TWO", table=table, base=0x2000)
        file.write_text(svd_text([place, again], device="chip"), encoding="utf-8")
        schema.assertValid(etree.parse(file))
        assert read_svd(file).names == ("ONE", "TWO")
