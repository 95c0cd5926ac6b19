# SPDX-License-Identifier: Apache-2.0
"""Lines of generated C."""

from __future__ import annotations

import re

import pytest

from ferrule.rendering import COLUMNS, c_call, fitted, string_literal

LONG = "x" * 40


@pytest.mark.parametrize(
    "text",
    [
        f"    const struct {LONG} {LONG} = f({LONG});",
        f"    int32_t status = {LONG}({LONG}, {LONG}, {LONG});",
        f"static int {LONG}[3] = {{{LONG}, {LONG}, {LONG}}};",
        f"    .data = &{LONG}[{LONG}{LONG}],",
        f"#define A {LONG} {LONG} {LONG}",
        f"    if (a == {LONG} && b == {LONG} && c == {LONG}) {{",
        f"    int a; /* {LONG} {LONG} {LONG} */",
        f"/* {LONG} {LONG} {LONG} */",
        f"/** {LONG} {LONG} {LONG} {'y' * 300} */",
        f"/*\n * {LONG} {LONG} {LONG}\n */",
    ],
)
def test_long_lines_are_broken_and_nothing_else_changes(text: str) -> None:
    found = fitted(text)
    assert all(len(line) <= COLUMNS for line in found.splitlines()), found
    assert plain(found) == plain(text)


def plain(text: str) -> str:
    """Return a text without what `fitted` may add: spaces, marks of continued lines, and switches of clang-format."""
    text = re.sub(r"/\* clang-format o(n|ff) \*/", "", text)
    comments = "".join(re.findall(r"/\*.*?\*/", text, re.DOTALL))
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return re.sub(r"[\s\\]", "", code) + re.sub(r"[\s*]", "", comments)


def test_long_strings_are_divided_between_characters() -> None:
    text = f"    .name = {string_literal('é' * 60 + '?' * 30 + chr(34) * 60)},"
    found = fitted(text)
    assert all(len(line) <= COLUMNS for line in found.splitlines())
    joined = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', found))
    assert joined == "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text))
    for part in re.findall(r'"((?:[^"\\]|\\.)*)"', found):
        assert re.fullmatch(r"(?:\\[0-7]{3}|\\\"|[^\\])*", part)


def test_lines_inside_a_comment_keep_its_mark() -> None:
    assert fitted(f"/*\n * {LONG} {LONG} {LONG}\n */") == f"/*\n * {LONG} {LONG}\n * {LONG}\n */"


def test_short_lines_stay() -> None:
    text = "int a;\n\n/* b */\n"
    assert fitted(text) is text


def test_code_that_is_not_formatted_is_marked_once() -> None:
    line = f"static int {LONG}[3] = {{{LONG}, {LONG}, {LONG}}};"
    assert fitted(line).count("clang-format off") == 1
    marked = f"/* clang-format off */\n{line}\n/* clang-format on */"
    assert fitted(marked).count("clang-format off") == 1


def test_a_call_is_broken_behind_the_assignment_if_it_then_fits() -> None:
    call = c_call("        status = ferrule_device_bind_usart", "&" + "d" * 30, "&" + "e" * 24)
    assert call == f"        status =\n            ferrule_device_bind_usart(&{'d' * 30}, &{'e' * 24})"
