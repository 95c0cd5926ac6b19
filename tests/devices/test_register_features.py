# SPDX-License-Identifier: Apache-2.0
"""Arrays, named values, further accesses and sizes of register tables: what they refuse, and what models do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from children import ran
from hypothesis import given, settings
from hypothesis import strategies as st
from needs import require_cc, require_program
from register_tables import TIMER

from ferrule._typing import override
from ferrule.devices import (
    Access,
    ArrayElement,
    BusError,
    EnumeratedValue,
    Field,
    Register,
    RegisterModel,
    RegisterTable,
    Usage,
    c_header,
    documentation,
)
from ferrule.errors import FerruleError

NARROW = replace(TIMER, narrow_accesses=True)


class Timer(RegisterModel):
    table = TIMER

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, int, int]] = []
        self.reset()

    @override
    def on_write(self, register: Register, old: int, new: int) -> None:
        self.seen.append((register.name, old, new))

    @override
    def on_read_clear(self, register: Register, old: int, new: int) -> None:
        self.seen.append((register.name, old, new))


class NarrowTimer(Timer):
    table = NARROW


def _value(name: str, value: int, usage: Usage = Usage.READ_WRITE) -> EnumeratedValue:
    return EnumeratedValue(name=name, value=value, usage=usage)


@pytest.mark.parametrize(
    ("register", "message"),
    [
        (Register("A", 0, size_bits=24), r"t\.A has 24 bits, expected 8, 16 or 32"),
        (Register("A", 1, size_bits=16), r"t\.A is at 0x1, expected a multiple of 2 below 0x100"),
        (Register("A", 0xFF, size_bits=16), r"t\.A is at 0xff"),
        (Register("A", 0, size_bits=8, reset=256), r"reset value 0x100, expected 8 bits"),
        (Register("A b", 0), r"t\.A b: 'A b' is not a name"),
        (Register("A%s", 0), r"is not a name"),
        (Register("A", 0, dim=2, increment=4), r"its name has not one %s"),
        (Register("A%s", 0, dim=2, increment=2), r"has the increment 2, expected 4 or more"),
        (Register("A%s", 0, dim=99_999, increment=4), r"has 99999 elements, expected 1 to 65536"),
        (Register("A%s", 0, dim=2, increment=4, indices=("A",)), r"has 2 elements and 1 indices"),
        (Register("A%s", 0, dim=2, increment=4, indices=("A", "A")), r"t\.AA is declared twice"),
        (Register("A%s", 0, dim=2, increment=4, indices=("A", "*/")), r"'\*/' is not a name"),
        (Register("A", 0, indices=("A",)), r"has an increment or indices, but no dim"),
        (Register("A%s", 0xF8, dim=3, increment=4), r"t\.A2 is at 0x100"),
        (
            Register("A", 0, access=Access.READ_ONLY, fields=(Field("F", 0, pulses=True),)),
            r"t\.A\.F pulses, but software cannot write it",
        ),
        (
            Register("A", 0, reset=4, fields=(Field("F", 2, pulses=True),)),
            r"t\.A\.F pulses, so its reset value is zero, found 0x1",
        ),
        (
            Register("A", 0, fields=(Field("F", 0), Field("F", 1))),
            r"A\.F is declared twice",
        ),
        (Register("A", 0, fields=(Field("F-", 0),)), r"'F-' is not a name"),
        (
            Register("A", 0, fields=(Field("F", 0, values=(_value("ON", 2),)),)),
            r"ON is 2, expected 0",
        ),
        (
            Register("A", 0, fields=(Field("F", 0, values=(_value("ON", 1), _value("ON", 0))),)),
            r"A\.F\.ON is declared twice",
        ),
        (
            Register(
                "A",
                0,
                fields=(Field("F", 0, values=(_value("ON", 1), _value("OFF", 0, Usage.READ))),),
            ),
            r"has values for both accesses, and values for one of them",
        ),
        (TIMER.register("COMPARE1"), r"is an element of an array"),
    ],
)
def test_tables_that_are_wrong(register: Register, message: str) -> None:
    with pytest.raises(FerruleError, match=message):
        RegisterTable(name="t", registers=(register,), size_bytes=0x100)


@pytest.mark.parametrize("offset", [0x10, 0x12, 0x28])
def test_registers_that_overlap_an_element_of_an_array(offset: int) -> None:
    more = Register("MORE", offset, size_bits=8)
    with pytest.raises(FerruleError, match=rf"MORE is at {offset:#x}, where COMPARE\d is"):
        replace(TIMER, registers=(*TIMER.registers, more))


def test_arrays_are_found_by_element() -> None:
    element = TIMER.register("COMPARE2")
    assert isinstance(element, ArrayElement)
    assert (element.array, element.index, element.offset) == ("COMPARE%s", 2, 0x20)
    assert TIMER.at(0x20) is element
    assert TIMER.covering(0x23) is element
    assert [each.name for each in TIMER][-6:] == ["COMPARE0", "COMPARE1", "COMPARE2", "COMPARE3", "CHA_NOW", "CHB_NOW"]
    with pytest.raises(FerruleError, match="timer has no register COMPARE%s"):
        TIMER.register("COMPARE%s")
    assert TIMER.register("CONTROL").field("MODE").value("REPEAT") == 1
    with pytest.raises(FerruleError, match="field MODE has no value TWICE: it has ONCE, REPEAT"):
        TIMER.register("CONTROL").field("MODE").value("TWICE")


def test_accesses_of_fields() -> None:
    timer = Timer()
    timer.write(0, 2, 0xFFFF)
    assert timer.value("CONTROL") == 0xFF31
    assert timer.read(0, 2) == 0x31
    timer.set_value("EVENTS", 0x0001_AB01)
    timer.write(4, 4, 0xFFF0_FF03)
    assert timer.value("EVENTS") == 0x0000_AB02
    assert timer.read(4, 4) == 0x0000_AB02
    assert timer.value("EVENTS") == 0x0000_0002
    timer.set_value("CAUSE", 5)
    assert [timer.read(8, 4), timer.read(8, 4)] == [5, 0]
    timer.write(0xC, 4, 6)
    timer.write(0xC, 4, 1)
    assert timer.read(0xC, 4) == 7
    timer.write(0x18, 4, 9)
    assert [timer.value(f"COMPARE{index}") for index in range(4)] == [7, 9, 7, 7]
    assert timer.seen[1:4] == [
        ("EVENTS", 0x0001_AB01, 0x0000_AB02),
        ("EVENTS", 0x0000_AB02, 0x0000_0002),
        ("CAUSE", 5, 0),
    ]
    with pytest.raises(BusError, match="a write of CHA_NOW, which is read-only"):
        timer.write(0x14, 4, 0)


@pytest.mark.parametrize(
    ("offset", "width", "reason"), [(0, 4, "expected 2 B"), (2, 2, "expected 1 B"), (1, 1, "no reg")]
)
def test_accesses_of_another_width(offset: int, width: int, reason: str) -> None:
    with pytest.raises(BusError, match=reason):
        Timer().read(offset, width)


def test_narrow_accesses() -> None:
    timer = NarrowTimer()
    timer.write(0x11, 1, 0xAB)
    assert timer.value("COMPARE0") == 0xAB07
    assert timer.read(0x10, 2) == 0xAB07
    timer.set_value("EVENTS", 0xFF01)
    timer.write(6, 2, 0x1)
    assert timer.value("EVENTS") == 0x1_FF01
    assert timer.read(4, 1) == 1
    assert timer.value("EVENTS") == 0x1_FF01
    assert timer.read(5, 1) == 0xFF
    assert timer.value("EVENTS") == 0x1_0001
    for offset, width, reason in ((0x11, 2, "no register"), (0, 4, "at most 2 B"), (2, 2, "expected 1 B for PRESC")):
        with pytest.raises(BusError, match=reason):
            timer.write(offset, width, 0)


@given(
    accesses=st.lists(st.sampled_from([None, *Access]), min_size=8, max_size=8),
    outer=st.sampled_from(Access),
    old=st.integers(0, 255),
    value=st.integers(0, 255),
    lanes=st.integers(0, 255),
)
@settings(max_examples=40)
def test_a_write_changes_each_bit_by_its_own_rule(
    accesses: list[Access | None], outer: Access, old: int, value: int, lanes: int
) -> None:
    fields = tuple(Field(f"F{bit}", bit, access=access) for bit, access in enumerate(accesses))
    new = Register("A", 0, size_bits=8, access=outer, fields=fields).written(old, value, lanes)
    for bit, access in enumerate(accesses):
        before, given_, covered = (number >> bit & 1 for number in (old, value, lanes))
        effects = {"w1c": before and not given_, "w1s": before or given_, "ro": before}
        expected = effects.get(access or outer, given_) if covered else before
        assert new >> bit & 1 == int(expected)


@pytest.mark.cc
def test_the_header_says_to_c_what_the_table_says(tmp_path: Path) -> None:
    (tmp_path / "timer.h").write_text(c_header(TIMER), encoding="utf-8")
    (tmp_path / "check.c").write_text(
        """#include "timer.h"
_Static_assert(TIMER_COMPARE(0) == 0x10u && TIMER_COMPARE(3) == 0x28u && TIMER_COMPARE_COUNT == 4u, "");
_Static_assert(TIMER_COMPARE_RESET == 7u && TIMER_CHA_NOW == 0x14u && TIMER_CHB_NOW == 0x1cu, "");
_Static_assert(TIMER_CONTROL_MODE_REPEAT == 0x10u && TIMER_CONTROL_MODE_ONCE == 0u, "");
_Static_assert(TIMER_EVENTS_LOST_SHIFT == 8u && TIMER_PRESCALER == 2u, "");
""",
        encoding="utf-8",
    )
    argv = [*require_cc(), "-std=c11", "-Wall", "-Wextra", "-Werror", "-c", "check.c", "-o", "check.o"]
    done = ran(argv, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    program = require_program("clang-format", "pip install -e '.[dev]'")
    style = Path(__file__).parents[2] / ".clang-format"
    argv = [program, f"--style=file:{style}", "--dry-run", "-Werror", "timer.h"]
    done = ran(argv, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_c_names_with_two_meanings_are_refused() -> None:
    table = RegisterTable(
        name="t",
        registers=(Register("A", 0, fields=(Field("B", 0),)), Register("A_B", 4)),
    )
    with pytest.raises(FerruleError, match=r"t\.A_B: its C name T_A_B has another meaning in A"):
        c_header(table)


def test_hostile_words_stay_words() -> None:
    table = RegisterTable(
        name="t",
        doc="# <b>\n| x",
        registers=(Register("A", 0, doc="*/ int x; /*\n#error\u2028", fields=()),),
    )
    comment = next(line for line in c_header(table).splitlines() if "int x" in line)
    assert comment == "/* * / int x; / * #error ; read and write */"
    page = documentation(table)
    assert "\\# \\<b> \\| x" in page
    assert "/\\* \\#error" in page


def test_the_page_has_everything() -> None:
    page = documentation(NARROW)
    for text in (
        "Counts \\& stops",
        "Little-endian, in a window of 64 bytes. Aligned bytes",
        "| 0x010 + 0x8 i | COMPARE%s (32 bits) | rw | 0x00000007 | limits (%s: 0 to 3) |",
        "| 0x014 + 0x8 i | CH%s_NOW (32 bits) | ro | 0x00000000 | (%s: A, B) |",
        "| | CONTROL.MODE.ONCE | | | 0: stops at zero |",
        "| | EVENTS.LOST | ro, rc | | bits 15:8:",
        "| 0x008 | CAUSE (32 bits) | ro, rc |",
    ):
        assert text in page


def test_a_field_that_pulses_lasts_for_the_reaction_to_its_write() -> None:
    fields = (Field("GO", 0, pulses=True, doc="starts"), Field("MODE", 4, width=2))
    control = RegisterTable(name="c", registers=(Register("CONTROL", 0, fields=fields),))

    class Model(Timer):
        table = control

    model = Model()
    model.write(0, 4, 0x21)
    assert model.seen == [("CONTROL", 0, 0x21)]
    assert model.read(0, 4) == 0x20
    model.write(0, 4, 0x21)
    assert model.seen[1:] == [("CONTROL", 0x20, 0x21)], "each write is a pulse of its own"
    assert "/* read and write; GO: a pulse, reads as zero */" in c_header(control)
    assert "| | CONTROL.GO | pulse | | bits 0: starts |" in documentation(control)


@pytest.mark.parametrize(("indices", "names"), [((), ["A0", "A1"]), (("X", "Y"), ["AX", "AY"])])
def test_elements_have_the_names_of_their_indices(indices: tuple[str, ...], names: list[str]) -> None:
    register = Register("A%s", 8, dim=2, increment=4, indices=indices)
    assert [(each.name, each.offset) for each in register.elements()] == [(names[0], 8), (names[1], 12)]
