# SPDX-License-Identifier: Apache-2.0
"""The languages of the templates: which file is in which language, and which of its places is which context."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase

from ferrule._frozen import positional
from ferrule.rendering import quoting
from ferrule.rendering.c_text import fitted
from ferrule.rendering.quoting import Context


@positional
class Region:
    """A part of a file, from the text that opens it to the text that closes it, with its own context."""

    opening: re.Pattern[str]
    closing: re.Pattern[str]
    context: Context

    @classmethod
    def of(cls, opening: str, closing: str, context: Context) -> Region:
        """Return the region between matches of two patterns."""
        return cls(re.compile(opening, re.MULTILINE), re.compile(closing, re.MULTILINE), context)


@positional
class Language:
    """A language in which templates are written."""

    files: tuple[str, ...]
    """Patterns of the names of its files."""
    default: Context
    """The context outside of all regions."""
    regions: tuple[Region, ...] = ()
    """Where two regions could open at the same place, the first one does."""
    finish: Callable[[str], str] = str
    """The last step for a rendered file."""


_QUOTE = r'(?<!\\)"'


def _comments(language: str, opening: str = "#", apart: str = "") -> Region:
    return Region.of(opening, "\n", Context(f"a comment of {language}", quoting.line_comment, apart=apart))


def _block(context: Context) -> Region:
    return Region.of(r"/\*", r"\*/", context)


LANGUAGES = (
    Language(
        ("*.c", "*.cpp", "*.h"),
        quoting.C_CODE,
        (
            _block(quoting.C_COMMENT),
            Region.of('#include "', '"', quoting.C_HEADER),
            Region.of(_QUOTE, _QUOTE, quoting.C_STRING),
        ),
        fitted,
    ),
    Language(("*.ld",), quoting.LINKER, (_block(quoting.C_COMMENT),)),
    Language(("*.overlay",), quoting.DEVICETREE, (_block(quoting.C_COMMENT),)),
    Language(("Makefile", "*.mk"), quoting.MAKE, (_comments("a makefile"),)),
    Language(
        ("CMakeLists.txt", "*.CMakeLists.txt", "*.cmake"),
        quoting.CMAKE,
        (_comments("a CMake file", apart="#[\0"), Region.of(_QUOTE, _QUOTE, quoting.CMAKE_STRING)),
    ),
    Language(("*.yml", "*.yaml"), quoting.YAML, (_comments("a YAML file"),)),
    Language(("Kconfig", "*.Kconfig", "*.conf"), quoting.KCONFIG, (_comments("a Kconfig file"),)),
    Language(
        ("*.md",),
        quoting.MARKDOWN,
        (
            Region.of("^```c\n", "^```$", quoting.C_CODE),
            Region.of("^```yaml\n", "^```$", quoting.YAML),
            Region.of("^```.*\n", "^```$", quoting.MARKDOWN_CODE),
            Region.of("^    ", "\n", quoting.SHELL),
            Region.of("`", "`", quoting.MARKDOWN_CODE),
        ),
    ),
    Language(("*.py",), quoting.PYTHON),
    Language(("*.json",), quoting.JSON, (Region.of(_QUOTE, _QUOTE, quoting.JSON_STRING),)),
    Language(
        ("*.toml",),
        quoting.TOML,
        (
            _comments("a TOML file"),
            Region.of(r"^\[+", r"\]", quoting.TOML_NAME),
            Region.of(_QUOTE, _QUOTE, quoting.TOML_STRING),
        ),
    ),
    Language(("*.rdl",), quoting.C_CODE, (_block(quoting.C_COMMENT), Region.of(_QUOTE, _QUOTE, quoting.C_STRING))),
    Language(
        ("*.repl",),
        quoting.REPL,
        (_comments("a platform description", "//"), Region.of(_QUOTE, _QUOTE, quoting.REPL_STRING)),
    ),
)


def language_of(template: str) -> Language:
    """Return the language of a template by its file name, with or without `.j2`; LookupError if there is none."""
    name = template.rsplit("/", 1)[-1].removesuffix(".j2")
    for language in LANGUAGES:
        if any(fnmatchcase(name, pattern) for pattern in language.files):
            return language
    raise LookupError(f"no language is known for the template {template}: add it to ferrule.rendering.languages")
