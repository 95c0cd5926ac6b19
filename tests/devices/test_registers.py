# SPDX-License-Identifier: Apache-2.0
"""Register tables: the tables they refuse, their C header and their documentation."""

from __future__ import annotations

from pathlib import Path

import pytest
from children import ran
from needs import require_cc, require_program
from register_tables import ADDER as TABLE

from ferrule.devices import Field, Register, RegisterTable, c_header, documentation
from ferrule.errors import FerruleError


def table(*registers: Register) -> RegisterTable:
    return RegisterTable(name="t", registers=registers, size_bytes=0x10)


@pytest.mark.parametrize(
    ("registers", "message"),
    [
        ((Register("A", 2),), r"t\.A is at 0x2, expected a multiple of 4 below 0x10"),
        ((Register("A", 16),), r"t\.A is at 0x10"),
        ((Register("A", -4),), r"t\.A is at -0x4"),
        ((Register("A", 0), Register("B", 0)), r"t\.B is at 0x0, where A is"),
        ((Register("A", 0), Register("A", 4)), r"t\.A is declared twice"),
        ((Register("A", 0, reset=1 << 32),), "expected 32 bits"),
        (
            (Register("A", 0, fields=(Field("F", 30, width=3),)),),
            r"t\.A\.F has bits 30 to 32 of 32",
        ),
        ((Register("A", 0, fields=(Field("F", 0, width=0),)),), r"t\.A\.F has bits"),
        (
            (Register("A", 0, fields=(Field("F", 0, width=4), Field("G", 3))),),
            r"t\.A\.G overlaps",
        ),
    ],
)
def test_tables_that_are_wrong(registers: tuple[Register, ...], message: str) -> None:
    with pytest.raises(FerruleError, match=message):
        table(*registers)


def test_finding() -> None:
    assert TABLE.at(4) is TABLE.register("CONTROL")
    assert TABLE.at(5) is None
    assert TABLE.at(0x20) is None
    assert [register.name for register in TABLE] == ["ID", "CONTROL", "STATUS", "TRIGGER"]
    with pytest.raises(FerruleError, match="adder has no register GO: it has ID, CONTROL, STATUS, TRIGGER"):
        TABLE.register("GO")
    with pytest.raises(FerruleError, match="register CONTROL has no field GO: it has START, MODE"):
        TABLE.register("CONTROL").field("GO")


def test_fields() -> None:
    mode = TABLE.register("CONTROL").field("MODE")
    assert mode.mask == 0x70
    assert mode.get(0x35) == 3
    assert mode.put(7) == 0x70
    for number in (8, -1):
        with pytest.raises(FerruleError, match="field MODE holds 0 to 7"):
            mode.put(number)


@pytest.mark.cc
def test_the_header_says_to_c_what_the_table_says(tmp_path: Path) -> None:
    compiler = require_cc()
    (tmp_path / "adder.h").write_text(c_header(TABLE), encoding="utf-8")
    (tmp_path / "check.c").write_text(
        """#include "adder.h"
_Static_assert(ADDER_ID == 0u && ADDER_ID_RESET == 0x41444452u, "");
_Static_assert(ADDER_CONTROL == 4u && ADDER_CONTROL_START == 1u, "");
_Static_assert(ADDER_CONTROL_MODE_SHIFT == 4u && ADDER_CONTROL_MODE_MASK == 0x70u, "");
_Static_assert(ADDER_STATUS_DONE == 0x80000000u && ADDER_TRIGGER == 12u && ADDER_WINDOW_BYTES == 256u, "");
int nothing;
""",
        encoding="utf-8",
    )
    argv = [*compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", "-c", "check.c", "-o", "check.o"]
    done = ran(argv, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_header_is_formatted(tmp_path: Path) -> None:
    program = require_program("clang-format", "pip install -e '.[dev]'")
    (tmp_path / "adder.h").write_text(c_header(TABLE), encoding="utf-8")
    style = Path(__file__).parents[2] / ".clang-format"
    argv = [program, f"--style=file:{style}", "--dry-run", "-Werror", "adder.h"]
    done = ran(argv, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_documentation_has_every_register_and_field() -> None:
    text = documentation(TABLE)
    assert "| 0x000 | ID | ro | 0x41444452 | who it is |" in text
    assert "| | CONTROL.MODE | | | bits 6:4: how |" in text
    assert "| | STATUS.DONE | | | bits 31: " in text
    assert text.count("\n| 0x0") == 4
