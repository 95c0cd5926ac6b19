# SPDX-License-Identifier: Apache-2.0
"""The quoting of each context, judged by the program that reads the language."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from children import ran
from hostile import HOSTILE, UNSHOWN
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from needs import require_program

from ferrule.errors import FerruleError
from ferrule.rendering import Verbatim, c_comment, check_text, one_line, quoting
from ferrule.rendering.quoting import Context, make_shell

CONTEXTS = {name: each for name, each in vars(quoting).items() if isinstance(each, Context)}
STRICT = (
    "C_CODE",
    "C_HEADER",
    "LINKER",
    "DEVICETREE",
    "MAKE",
    "KCONFIG",
    "MARKDOWN_CODE",
    "PYTHON",
    "TOML_NAME",
    "REPL",
)


@pytest.mark.parametrize("name", CONTEXTS)
def test_nothing_is_written_that_is_not_shown(name: str) -> None:
    for text in UNSHOWN:
        assert (written(name, text) or "refused").isprintable()


@pytest.mark.parametrize("name", STRICT)
def test_names_are_written_or_refused(name: str) -> None:
    plain = {"", "-x", "x" * 300}
    assert [text for text in HOSTILE if text not in plain and written(name, text) is not None] == []
    assert written(name, "sram1") == "sram1"


def written(name: str, text: str) -> str | None:
    """Return a text's spelling in a context, or None if it is refused."""
    try:
        return CONTEXTS[name].quote(text)
    except FerruleError:
        return None


@pytest.mark.parametrize("name", CONTEXTS)
def test_numbers_and_verbatim_text_are_written_as_they_are(name: str) -> None:
    assert CONTEXTS[name].quote(42) == "42"
    assert CONTEXTS[name].quote(Verbatim("$(x)")) == "$(x)"
    assert type(Verbatim("a") + "b") is str
    with pytest.raises((TypeError, FerruleError)):
        CONTEXTS[name].quote(object())


@given(st.text("*/?\\ x"))
def test_a_comment_of_c_neither_ends_nor_begins_another(text: str) -> None:
    written = c_comment(text)
    assert "*/" not in written
    assert "/*" not in written
    assert "??" not in written


@given(st.text())
def test_toml_reads_back(text: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    assert tomllib.loads(f"a = {quoting.TOML.quote([text, {text: True}])}")["a"] == [text, {text: True}]


@given(st.text(st.characters(categories=("L", "N", "P", "S", "Zs"))))
def test_a_shell_reads_back(text: str) -> None:
    text = one_line(text)
    assert shlex.split(quoting.SHELL.quote(text)) == [text]


@given(st.text("abc\\`*_[]<>|&#~!$:/ 1.-", min_size=1))
def test_a_page_shows_the_text(text: str) -> None:
    text = f"x{text}x"
    (row,) = [each for each in _tokens(f"| {quoting.MARKDOWN.quote(text)} |\n|---|\n") if each.type == "inline"]
    assert [child.type for child in row.children or ()] == ["text"], row.children
    assert (row.children or ())[0].content == text


def _tokens(text: str) -> list:  # type: ignore[type-arg]
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)


def test_make_reads_back(tmp_path: Path) -> None:
    program = require_program("make", "apt-get install make")
    lines = [f"V{index} = {make_shell(text)}" for index, text in enumerate(HOSTILE)]
    lines += ["all:", *(f"\t@printf '%s\\n' $(V{index})" for index in range(len(HOSTILE)))]
    (tmp_path / "Makefile").write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = ran([program, "--no-print-directory"], cwd=tmp_path, check=True)
    assert done.stdout.split("\n")[:-1] == HOSTILE
    assert [path.name for path in tmp_path.iterdir()] == ["Makefile"]


def test_cmake_reads_back(tmp_path: Path) -> None:
    program = require_program("cmake", "apt-get install cmake")
    texts = [text for text in HOSTILE if text and ";" not in text]
    lines = ["cmake_minimum_required(VERSION 3.20)"]
    lines += [
        line
        for text in texts
        for line in (
            f"set(V {quoting.CMAKE.quote(text)})",
            'message("${V}")',
            f'message("{quoting.CMAKE_STRING.quote(text)}")',
        )
    ]
    (tmp_path / "x.cmake").write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = ran([program, "-P", "x.cmake"], cwd=tmp_path, check=True)
    assert done.stderr.split("\n")[:-1] == [text for each in texts for text in (each, each)]
    assert [path.name for path in tmp_path.iterdir()] == ["x.cmake"]


@pytest.mark.parametrize("text", ["a;b", "$<1:x>", ""])
def test_cmake_has_no_spelling_for_some(text: str) -> None:
    with pytest.raises(FerruleError, match="an argument of CMake"):
        quoting.CMAKE.quote(text)


def test_a_refusal_names_the_place_and_the_character() -> None:
    with pytest.raises(FerruleError, match="'a b' can't be written into a linker script"):
        quoting.LINKER.quote("a b")
    with pytest.raises(FerruleError, match=re.escape("a title contains the character U+202E")):
        check_text("\u202e", "a title")
    assert one_line("a\x1bb") == "a b"
