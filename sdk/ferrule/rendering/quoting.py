# SPDX-License-Identifier: Apache-2.0
"""Quotes values for the languages of generated files, one context of each language per constant.

A context either spells a value so that it stays one value, or refuses it; no value can become syntax.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping

from ferrule._frozen import positional
from ferrule.errors import FerruleError, visible
from ferrule.rendering.c_text import c_comment, string_literal


class Verbatim(str):
    """Text in the language of the file, from one of Ferrule's own writers; it is written as it is.

    Text composed of it, such as `verbatim + "..."`, is a plain string again.
    """

    __slots__ = ()


def is_plain(text: str) -> bool:
    """Return whether text is one line without control characters, bidirectional marks and other invisible ones."""
    return text.isprintable()


def one_line(text: str) -> str:
    """Return text with every character that is not printable replaced by a space."""
    return text if is_plain(text) else "".join(c if c.isprintable() else " " for c in text)


def shown(text: str) -> str:
    """Return text for a terminal or a log: what these would obey, except line breaks, becomes escapes."""
    return visible(text).replace("\t", "\\t")


def check_text(text: str, what: str, *, longest: int | None = None) -> None:
    """Raise FerruleError for text that a terminal or a page would not show as it is, or with too many characters."""
    bad = next((c for c in text if not c.isprintable()), None)
    if bad is not None:
        raise FerruleError(
            f"{what} contains the character U+{ord(bad):04X}, which is not printable",
            hint="control characters and bidirectional marks are refused: write one line of plain text",
        )
    if longest is not None and len(text) > longest:
        raise FerruleError(f"{what} has {len(text)} characters, at most {longest} are allowed")


def check_values(document: object, where: str, *, texts: bool = True) -> None:
    """Check the keys and values of a document from JSON or TOML; without `texts`, its integers only.

    Raises:
        FerruleError: a key or a text has a character that is not printable, or an integer has more than 64 bits.
    """
    for key, value in _values(document):
        place = f"{where}: {key}" if key.isprintable() else where
        if isinstance(value, str):
            if texts:
                check_text(value, place)
        elif not -(1 << 63) <= value < 1 << 64:
            raise FerruleError(f"{place} is an integer of more than 64 bits")


def _values(document: object) -> Iterator[tuple[str, str | int]]:
    """Yield all texts and integers of a document with the keys that lead to them; the keys are texts too."""
    left = [("", document)]
    while left:  # a document may be nested deeper than calls may be
        key, value = left.pop()
        match value:
            case str() | int():
                yield key, value
            case dict():
                yield from (("a key", name) for name in value)
                left += [(f"{key}.{name}" if key else name, each) for name, each in value.items()]
            case list() | tuple():
                left += [(f"{key}[{index}]", each) for index, each in enumerate(value)]
            case _:
                pass


@positional
class Context:
    """A kind of place in a language."""

    name: str
    text: Callable[[str], str]
    """Returns the spelling of a string; FerruleError if there is none."""
    other: Callable[[object], str] | None = None
    """Returns the spelling of booleans, lists and tables; None if the context has none."""
    apart: str = ""
    """Characters of the template that may not touch a value; `\\0` stands for another value."""
    whole: bool = False
    """Whether a value must stand alone between spaces."""

    def quote(self, value: object) -> str:
        """Return a value's spelling.

        Raises:
            FerruleError: the language cannot express the value here.
            TypeError: the value is neither text nor a number; this is a mistake in the template.
        """
        if isinstance(value, Verbatim):
            return str(value)
        if isinstance(value, str):
            try:
                return self.text(str(value))
            except FerruleError as error:
                error.args = (f"{str(value)[:80]!a} can't be written into {self.name}: {error}",)
                raise
        if isinstance(value, int) and not isinstance(value, bool):
            return str(int(value))
        if self.other is not None:
            return self.other(value)
        raise TypeError(f"a {type(value).__name__} can't be written into {self.name}")


def _only(pattern: str, what: str) -> Callable[[str], str]:
    """Return the quoting function of a place where only some texts can stand."""
    allowed = re.compile(pattern, re.ASCII)

    def check(text: str) -> str:
        if allowed.fullmatch(text) is None:
            raise FerruleError(f"expected {what}")
        return text

    return check


def make_shell(text: str) -> Verbatim:
    """Return text as one word of a shell command in a make variable."""
    check_text(text, "a word of a command")
    return Verbatim(shlex.quote(text).replace("$", "$$").replace("#", "\\#"))


def yaml_scalar(value: str | int | None) -> str:
    """Return a YAML scalar; strings that a parser could read as another type are quoted."""
    if value is None:
        return ""
    if isinstance(value, int):
        return str(value)
    if _YAML_PLAIN.fullmatch(value) and value.lower() not in _YAML_WORDS:
        return value
    return '"' + "".join(map(_yaml_escaped, value)) + '"'


_YAML_PLAIN = re.compile(r"(?:\.?/|<|-{0,2})?[A-Za-z_](?:[A-Za-z0-9_./+@^&=<>'~,-]|:(?=[^ ])| (?=[A-Za-z0-9_]))*")
"""Strings written without quotes, a subset of those that YAML allows."""
_YAML_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
"""Words, in any case, that YAML 1.1 does not read as strings."""


def _yaml_escaped(character: str) -> str:
    """Return a character for a double-quoted string; unlike JSON, YAML has no surrogate pairs of escapes."""
    if character in '"\\':
        return f"\\{character}"
    if " " <= character <= "~":
        return character
    return f"\\u{ord(character):04X}" if ord(character) < 1 << 16 else f"\\U{ord(character):08X}"


def line_comment(text: str) -> str:
    """Return text for a comment that ends with its line; a backslash could continue it."""
    return one_line(text).replace("\\", "/")


def _c_remark(text: str) -> str:
    return c_comment(one_line(text))


def _cmake(text: str) -> str:
    """Return one unquoted argument of a CMake command."""
    check_text(text, "an argument")
    if not text or ";" in text or "$<" in text:
        raise FerruleError("an argument of CMake is not empty and has neither ';' nor '$<'")
    return re.sub(r"([^A-Za-z0-9_./+=:,<>@%~^-])", _cmake_escape, text)


def _cmake_escape(match: re.Match[str]) -> str:
    return match[1] if ord(match[1]) > ord("~") else f"\\{match[1]}"


def _cmake_string(text: str) -> str:
    check_text(text, "a string")
    if ";" in text or "$<" in text:
        raise FerruleError("a string of CMake has neither ';' nor '$<'")
    return re.sub(r'([\\"$@#])', r"\\\1", text)


def _markdown(text: str) -> str:
    """Return text that Markdown shows as it is, also in a table."""
    marked = re.sub(r"([\\`*\[<|&#~$])", r"\\\1", one_line(text))
    marked = re.sub(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", r"\\_", marked)
    return marked.replace("://", "\\://")


def markdown(text: str) -> str:
    """Return text that a page in Markdown shows as it is, in a sentence and in the cell of a table."""
    return _markdown(shown(text).replace("\n", " "))


def spreadsheet_cell(text: str) -> str:
    """Return text for a cell of a CSV file: one line, before which an apostrophe stands if it looks like a formula.

    Spreadsheets compute what begins with =, +, - or @, and so run commands and open addresses.
    """
    line = shown(text).replace("\n", "\\n")
    return f"'{line}" if line.lstrip(" ")[:1] in _FORMULA else line


_FORMULA = tuple("=+-@＝＋－＠")


def _repl_string(text: str) -> str:
    check_text(text, "a string")
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _shell(text: str) -> str:
    check_text(text, "a word of a command")
    return shlex.quote(text)


def _toml(value: object) -> str:
    match value:
        case bool() | int():
            return json.dumps(value)
        case float():
            return repr(value)
        case str():
            return '"' + "".join(map(_toml_escaped, value)) + '"'
        case Mapping():
            return f"{{ {', '.join(f'{_toml_key(key)} = {_toml(each)}' for key, each in value.items())} }}"
        case list() | tuple():
            return f"[{', '.join(map(_toml, value))}]"
        case _:
            raise TypeError(f"a {type(value).__name__} can't be written into a TOML file")


def _json(text: str) -> str:
    check_text(text, "a string")
    return json.dumps(text, ensure_ascii=False)


def _toml_key(key: str) -> str:
    return key if _TOML_BARE.fullmatch(key) else _toml(key)


def _toml_escaped(character: str) -> str:
    return character if character.isprintable() and character not in '"\\' else f"\\U{ord(character):08X}"


_TOML_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_PATH = r"[A-Za-z0-9_.][A-Za-z0-9_./+@=-]*"
_NAME = r"[A-Za-z0-9_]+"

C_CODE = Context("the code of a C file", _only(r" *(?:-?[A-Za-z0-9_]+)? *", "a name or a number"))
C_HEADER = Context("an #include of a C file", _only(_PATH, "a plain path"))
C_STRING = Context("a string of a C file", lambda text: string_literal(text)[1:-1], apart="?")
C_COMMENT = Context("a comment of a C file", _c_remark, apart="*/\\?\0")
LINKER = Context("a linker script", _only(r"[A-Za-z_.][A-Za-z0-9_.]*", "a symbol or a section"))
DEVICETREE = Context("a devicetree", _only(_NAME, "a label or a number"))
MAKE = Context("a makefile", _only(rf"-?{_PATH}", "a plain word"))
CMAKE = Context("a CMake file", _cmake, apart="\0\"'")
CMAKE_STRING = Context("a string of a CMake file", _cmake_string, apart="\\$\0")
YAML = Context("a YAML file", yaml_scalar, whole=True)
KCONFIG = Context("a Kconfig file", _only(_NAME, "a plain word"))
MARKDOWN = Context("a page", _markdown)
MARKDOWN_CODE = Context("code in a page", _only(r"[A-Za-z0-9_./+-]+", "a plain word"))
SHELL = Context("a command in a page", _shell, apart="\\\"'$`")
PYTHON = Context("a Python file", _only(r"[A-Za-z_][A-Za-z0-9_.]*", "a name"))
JSON = Context("a JSON file", _only(r"-?[0-9]+", "a number"))
JSON_STRING = Context("a string of a JSON file", lambda text: _json(text)[1:-1], apart="\\")
TOML = Context("a TOML file", _toml, _toml, whole=True)
TOML_STRING = Context("a string of a TOML file", lambda text: _toml(text)[1:-1], apart="\\")
TOML_NAME = Context("the name of a TOML table", _only(r"[A-Za-z0-9_-]+", "a bare key"))
REPL = Context("a platform description", _only(_NAME, "a name"))
REPL_STRING = Context("a string of a platform description", _repl_string, apart="\\")
