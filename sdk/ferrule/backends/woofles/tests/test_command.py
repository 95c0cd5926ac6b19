# SPDX-License-Identifier: Apache-2.0
"""The commands in memory, the register table, and the C headers generated from both."""

from __future__ import annotations

import struct
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from needs import require_cc

from ferrule.backends.woofles import headers
from ferrule.backends.woofles.command import (
    COMMAND_BYTES,
    WORDS,
    Command,
    CommandError,
    Operation,
    checksum,
)
from ferrule.backends.woofles.registers import ID, TABLE, ErrorCode
from ferrule.errors import FerruleError

UNSIGNED = ("sequence", "input", "second", "bias", "output", "multipliers", "shifts")
NAMES = [field.name for field in fields(Command)]
WORD = st.integers(0, 2**32 - 1)


@st.composite
def commands(draw: st.DrawFn) -> Command:
    signed = {name: draw(st.integers(-(2**31), 2**31 - 1)) for name in NAMES if name not in UNSIGNED}
    return Command(
        **{**signed, **{name: draw(WORD) for name in UNSIGNED}, "operation": draw(st.sampled_from(Operation))}
    )


@given(commands())
def test_what_is_encoded_can_be_decoded(command: Command) -> None:
    data = command.encode()
    assert len(data) == COMMAND_BYTES == 160
    assert Command.decode(data) == command
    assert sum(struct.unpack("<40I", data)) % 2**32 == 2**32 - 1


@given(commands(), st.integers(0, COMMAND_BYTES - 1), st.integers(1, 255))
def test_no_damaged_byte_goes_unnoticed(command: Command, at: int, mask: int) -> None:
    data = bytearray(command.encode())
    data[at] ^= mask
    with pytest.raises(CommandError, match="checksum"):
        Command.decode(bytes(data))


@given(st.lists(WORD, min_size=WORDS - 1, max_size=WORDS - 1), st.booleans())
def test_any_words_are_a_command_or_refused(words: list[int], sealed: bool) -> None:
    data = struct.pack(f"<{WORDS}I", *words, checksum(words) if sealed else 0)
    try:
        command = Command.decode(data)
    except CommandError:
        return
    assert command.encode() == data


@pytest.mark.parametrize("operation", [0, 5, -1, 2**31 - 1])
def test_unknown_operations(operation: int) -> None:
    with pytest.raises(CommandError, match="there is no operation"):
        Command.decode(Command(operation=operation).encode())


def test_reserved_words_are_zero() -> None:
    words = list(struct.unpack("<40I", Command(operation=Operation.ADD).encode()))
    for index in range(len(NAMES), WORDS - 1):
        changed = [*words[:index], 1, *words[index + 1 : -1]]
        with pytest.raises(CommandError, match="reserved"):
            Command.decode(struct.pack("<40I", *changed, checksum(changed)))


def test_an_empty_place_of_the_ring_is_no_command() -> None:
    with pytest.raises(CommandError):
        Command.decode(bytes(COMMAND_BYTES))


@pytest.mark.parametrize("value", [2**32, -(2**31) - 1])
def test_members_have_32_bits(value: int) -> None:
    with pytest.raises(FerruleError, match="count of a command is"):
        Command(operation=Operation.ADD, count=value).encode()


@pytest.mark.parametrize("name", headers.HEADERS)
def test_the_headers_are_those_of_the_tables(name: str) -> None:
    """`python -m ferrule.backends.woofles.headers` regenerates the headers."""
    assert (headers.FOLDER / name).read_text(encoding="utf-8") == headers.HEADERS[name]


def test_main_writes_the_headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headers, "FOLDER", tmp_path)
    headers.main()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == headers.HEADERS


@pytest.mark.cc
def test_c_has_the_same_layout(tmp_path: Path) -> None:
    """Each member and each register has the offset that Python computes."""
    checks = [
        f"_Static_assert(offsetof(struct woofles_command, {name}) == {4 * i}, {name!r});".replace("'", '"')
        for i, name in enumerate(NAMES)
    ]
    checks.append(f'_Static_assert(sizeof(struct woofles_command) == {COMMAND_BYTES}, "size");')
    checks += [f'_Static_assert(WOOFLES_{r.name} == {r.offset}u, "{r.name}");' for r in TABLE]
    checks += [f'_Static_assert(WOOFLES_ERROR_{code.name} == {code.value}, "{code.name}");' for code in ErrorCode]
    checks.append(f'_Static_assert(WOOFLES_ID_RESET == {ID:#x}u, "id");')
    source = tmp_path / "layout.c"
    includes = ["<stddef.h>", '"woofles/command.h"', '"woofles/registers.h"', '"woofles/woofles.h"']
    source.write_text("\n".join([*(f"#include {name}" for name in includes), *checks, ""]))
    folders = (headers.FOLDER.parent, Path(__file__).parents[5] / "include")
    compiler = require_cc()
    argv = [*compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", *(f"-I{each}" for each in folders)]
    subprocess.run([*argv, "-c", "-o", str(tmp_path / "layout.o"), str(source)], check=True)
