# SPDX-License-Identifier: Apache-2.0
"""SVD files as vendors write them, and files that are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from svd_files import CHIP

import ferrule
from ferrule.devices import Access, Peripheral, SvdFile, read_svd
from ferrule.devices.svd.reading import SvdFile as Reader
from ferrule.devices.svd.xml_tree import COUNTED, HELD_BYTES, parse_xml
from ferrule.errors import BudgetError, FerruleError


def opened(text: str | bytes) -> SvdFile:
    data = text.encode() if isinstance(text, str) else text
    return Reader(Path("chip.svd"), parse_xml(data, Path("chip.svd")))


def chip(old: str = "", new: str = "") -> SvdFile:
    assert old in CHIP
    return opened(CHIP.replace(old, new, 1))


def with_registers(registers: str) -> Peripheral:
    return opened(
        "<device><name>D</name><peripherals><peripheral><name>P</name><baseAddress>0</baseAddress>"
        f"<registers>{registers}</registers></peripheral></peripherals></device>"
    ).peripheral("P")


def test_registers() -> None:
    file = chip()
    assert file.device == "CHIP"
    assert file.names == ("TIMER0", "TIMER1", "OTHER", "BOTH")
    timer = file.peripheral("TIMER1")
    assert (timer.base, timer.interrupts[0].number, timer.table.doc) == (0x4000_1000, 7, "Counts events")
    assert timer.table.size_bytes == 0x100
    control = timer.table.register("CTRL")
    assert control.reset == 0x100
    assert [(each.name, each.bit, each.width, each.access) for each in control.fields] == [
        ("EN", 0, 1, None),
        ("LOOP", 1, 1, None),
        ("SRC0", 8, 4, Access.WRITE_ONLY),
        ("SRC1", 12, 4, Access.WRITE_ONLY),
        ("STOP", 16, 1, None),
        ("TIMES", 20, 2, None),
    ]
    for name in ("EN", "LOOP", "STOP"):
        assert [(each.name, each.value) for each in control.field(name).values] == [("OFF", 0), ("ON", 1)]
    assert {each.name: each.offset for each in timer.table}.items() >= {
        "CHA_CC0": 0x40,
        "CHA_CC2": 0x48,
        "CHA_DEEP_R": 0x50,
        "CHB_CC1": 0x64,
        "CHB_DEEP_R": 0x70,
    }.items()
    assert timer.table.register("CHB_CC1").access is Access.READ_ONLY
    assert timer.table.register("CHB_DEEP_R").size_bits == 8


def test_effects() -> None:
    timer = chip().peripheral("TIMER0")
    for name in ("IRQ", "IRQ2"):
        register = timer.table.register(name)
        assert register.access is Access.CLEAR_BY_ONE
        assert [each.access for each in register.fields] == [None, Access.READ_ONLY, Access.READ_WRITE]
    assert timer.table.register("ODD").size_bits == 16
    assert timer.notes == (
        "CTRL.AGAIN: left out, since another field has its bits or its name",
        "CTRL.TIMES: the values #1x called MANY are left out, since they are several",
        "IRQ.C: a write has the effect oneToToggle, which the model must implement",
        "IRQ: a read has the effect modify, which the model must implement",
        "IRQ2.C: a write has the effect oneToToggle, which the model must implement",
        "IRQ2: a read has the effect modify, which the model must implement",
        "ODD: has 12 bits, read as 16",
        "ODD: may be written once only; the model must refuse other writes",
    )


def test_a_derived_peripheral() -> None:
    other, timer = chip().peripheral("OTHER"), chip().peripheral("TIMER0")
    assert (other.table.registers, other.table.doc) == (timer.table.registers, timer.table.doc)
    assert (other.base, [each.number for each in other.interrupts]) == (0x4000_2000, [8])


def test_registers_that_overlap_are_chosen_by_name() -> None:
    with pytest.raises(FerruleError, match=r"chip\.svd:\d+: registers overlap .*MODE_OUT and MODE_IN") as caught:
        chip().peripheral("BOTH")
    assert "prefer" in (caught.value.hint or "")
    for pattern, kept in (("MODE_OUT", "MODE_OUT"), ("*_IN", "MODE_IN"), ("*", "MODE_IN")):
        found = chip().peripheral("BOTH", prefer=[pattern])
        assert [each.name for each in found.table] == [kept, "LAST"]
        assert len(found.notes) == 1
        assert "left out, since it overlaps" in found.notes[0]


DEEP = "<cluster><name>C</name><addressOffset>0</addressOffset><dim>9999</dim><dimIncrement>4</dimIncrement>"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("<device schema", "<!DOCTYPE d [<!ENTITY a 'b'>]><device schema", "2: a document type declaration is refused"),
        ("</device>", "", r": not well-formed XML"),
        ("utf-8", "utf-99", "not well-formed XML"),
        ("CHIP", "&a;", "undefined entity"),
        ("<dim>2</dim>", "<dim>0</dim>", r"8: <dim> is 0, expected 1 or more"),
        ("<dim>2</dim>", "<dim>99999999</dim>", r":10: <dim> is '99999999', expected a number of 0 to 0x10000"),
        ("A,B", "A,B,C", "<dimIndex> has 3 indices, expected 2"),
        ("A,B", "A-", "<dimIndex> is 'A-', expected a range"),
        ("0x40000000", "0x140000000", "<baseAddress> is '0x140000000', expected a number of 0 to 0xffffffff"),
        ("0x40000000", "here", "<baseAddress> is 'here'"),
        ("<addressOffset>4</addressOffset>", "", "<register> has no <addressOffset>"),
        ("write-only", "sometimes", "<access> is 'sometimes', expected one of read-write"),
        ("oneToToggle", "never", "<modifiedWriteValues> is 'never'"),
        ("<readAction>modify", "<readAction>never", "<readAction> is 'never'"),
        ("[0:0]", "[0-0]", r"<bitRange> is '\[0-0\]', expected \[highest:lowest\]"),
        ("<msb>1", "<msb>0", "a field has the bits 1 to 0"),
        ("<msb>1", "<msb>40", "field LOOP has bits 1 to 40 of a register of 32 bits"),
        ("<size>12", "<size>64", "register ODD has 64 bits, expected 1 to 32"),
        ('derivedFrom="IRQ"', 'derivedFrom="NONE"', "<register> is derived from 'NONE', which does not exist"),
        ('derivedFrom="IRQ"', 'derivedFrom="IRQ2"', "which does not exist"),
        ("<value>#1<", "<value>one<", "the enumerated value ON is 'one', expected a number"),
        ("<name>SWITCH</name>", "<usage>now</usage>", "<usage> is 'now'"),
    ],
)
def test_files_that_are_wrong(old: str, new: str, message: str) -> None:
    text = CHIP.replace(old, new, 1)
    assert text != CHIP
    with pytest.raises(FerruleError, match=message):
        opened(text).peripheral("TIMER0")


@pytest.mark.parametrize(
    ("registers", "message"),
    [
        (DEEP * 5 + "</cluster>" * 5, "has more than 65536 registers"),
        (f"{DEEP}<register><name>R</name><dim>9999</dim><dimIncrement>0</dimIncrement>"
         "<addressOffset>0</addressOffset></register></cluster>", "has more than 65536 registers"),
        ("<register derivedFrom='B'><name>A</name></register><register derivedFrom='A'><name>B</name></register>",
         "<register> is derived from itself"),
        ("".join(f"<register derivedFrom='R{n + 1}'><name>R{n}</name></register>" for n in range(50)),
         "chain of derivedFrom is longer than 32"),
        ("<cluster><name>C</name><addressOffset>0</addressOffset></cluster>"
         "<register derivedFrom='C'><name>R</name><addressOffset>0</addressOffset></register>",
         "<register> is derived from 'C', which does not exist"),
        ("<register><name>R</name><addressOffset>2</addressOffset></register>", "R is at 0x2, expected a multiple"),
        ("<register><name>R</name><dim>2</dim><dimIncrement>0</dimIncrement><addressOffset>0</addressOffset></register>",
         "increment 0, expected 4 or more"),
    ],
)  # fmt: skip
def test_registers_that_are_wrong(registers: str, message: str) -> None:
    with pytest.raises(FerruleError, match=message):
        with_registers(registers)


@pytest.mark.parametrize("derived", [32, 33])
def test_a_chain_has_32_registers_that_derive_from_each_other(derived: int) -> None:
    text = "".join(
        f"<register derivedFrom='R{n + 1}'><name>R{n}</name><addressOffset>{n}</addressOffset></register>"
        for n in range(derived)
    )
    text += f"<register><name>R{derived}</name><addressOffset>{derived}</addressOffset><size>8</size></register>"
    if derived > 32:
        with pytest.raises(FerruleError, match="chain of derivedFrom is longer than 32"):
            with_registers(text)
        return
    assert [each.size_bits for each in with_registers(text).table] == [8] * (derived + 1)


@pytest.mark.parametrize("clusters", [6, 7])
def test_a_path_to_a_base_has_8_names(clusters: int) -> None:
    names = ["P", *(f"C{n}" for n in range(clusters)), "R"]
    inside = "<register><name>R</name><addressOffset>0</addressOffset><size>16</size></register>"
    for name in names[-2:0:-1]:
        inside = f"<cluster><name>{name}</name><addressOffset>0</addressOffset>{inside}</cluster>"
    text = (
        f"{inside}<register derivedFrom='{'.'.join(names)}'><name>S</name><addressOffset>8</addressOffset></register>"
    )
    if clusters > 6:
        with pytest.raises(FerruleError, match=r"is derived from 'P\.C0.*R', which does not exist"):
            with_registers(text)
        return
    assert with_registers(text).table.register("S").size_bits == 16


def test_a_register_derived_from_an_array_is_one() -> None:
    table = with_registers(
        "<register><dim>2</dim><dimIncrement>4</dimIncrement><name>A%s</name><addressOffset>0</addressOffset>"
        "<size>8</size></register><register derivedFrom='A%s'><name>B</name><addressOffset>16</addressOffset>"
        "</register>"
    ).table
    found = table.register("B")
    assert (found.dim, found.offset, found.size_bits) == (0, 16, 8)


def test_values_that_derive_from_others_of_their_name_are_those_of_another_field() -> None:
    values = "<enumeratedValue><name>ON</name><value>1</value></enumeratedValue>"
    table = with_registers(
        "".join(
            f"<register><name>{name}</name><addressOffset>{place}</addressOffset><fields><field><name>F</name>"
            f"<bitOffset>0</bitOffset>{enumeration}</field></fields></register>"
            for name, place, enumeration in (
                ("A", 0, f"<enumeratedValues><name>E</name>{values}</enumeratedValues>"),
                ("B", 4, "<enumeratedValues derivedFrom='E'><name>E</name></enumeratedValues>"),
            )
        )
    ).table
    assert [(each.name, each.value) for each in table.register("B").field("F").values] == [("ON", 1)]


def test_limits(tmp_path: Path) -> None:
    with pytest.raises(FerruleError, match="elements are nested deeper than 64"):
        opened("<device>" + "<cluster>" * 100)
    with pytest.raises(FerruleError, match="has more than 100000 characters"):
        opened(f"<device><name>{'x' * 100_001}</name></device>")
    with pytest.raises(FerruleError, match="cannot be read: No such file"):
        read_svd(tmp_path / "none.svd")


@pytest.mark.parametrize("elements", [2 * COUNTED - 1, 2 * COUNTED])
def test_elements_count_in_the_budget(elements: int) -> None:
    text = "<device>" + "<a/>" * (elements - 1) + "</device>"
    with ferrule.limits(bytes=HELD_BYTES * (2 * COUNTED - 1)):
        if elements < 2 * COUNTED:
            parse_xml(text.encode(), Path("a.svd"))
            return
        with pytest.raises(BudgetError, match=r"a\.svd: a tree of 2,000 elements takes 1,024,000 bytes of memory"):
            parse_xml(text.encode(), Path("a.svd"))


def test_the_file_counts_in_the_budget(tmp_path: Path) -> None:
    file = tmp_path / "a.svd"
    file.write_text(CHIP, encoding="utf-8")
    with ferrule.limits(bytes=file.stat().st_size):
        read_svd(file)
    with ferrule.limits(bytes=file.stat().st_size - 1), pytest.raises(BudgetError, match=r"a\.svd takes [\d,]+ bytes"):
        read_svd(file)


def test_names_of_strangers_become_identifiers(tmp_path: Path) -> None:
    found = with_registers(
        '<register><name>1 */ x()</name><addressOffset>0</addressOffset><fields><field><name>a"b</name>'
        "<bitOffset>0</bitOffset></field></fields></register>"
    )
    (register,) = found.table
    assert (register.name, register.fields[0].name) == ("_1_x_", "a_b")
    with pytest.raises(FerruleError, match=r"there is no peripheral 'P2' in chip\.svd"):
        chip().peripheral("P2")
    (tmp_path / "a.svd").write_text("<a/>", encoding="utf-8")
    with pytest.raises(FerruleError, match="the root element is <a>, expected <device>"):
        read_svd(tmp_path / "a.svd")
