# SPDX-License-Identifier: Apache-2.0
"""Text of C programs: literals, comments, and lines of at most 100 columns."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from ferrule.errors import FerruleError

COLUMNS = 100
"""Line length of the generated C, as in .clang-format."""
OFF = "/* clang-format off */"
ON = "/* clang-format on */"
_ESCAPES = {ord("\\"): "\\\\", ord('"'): '\\"', ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"}
_STRING = r'"(?:[^"\\]|\\.)*"'
_COMMENT_MARKS = re.compile(rf"{_STRING}|/\*|\*/")
_BREAKS = re.compile(rf"(?P<text>{_STRING})|[(\[{{]|(?<=[^ ]) (?=[^ {{])")
_CHARACTER = re.compile(r"\\[0-7]{3}|\\.|.")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ARGUMENT = re.compile(r"(?:[&*]|\(void \*\))?[A-Za-z0-9_]+(?:\([A-Za-z0-9_(), ]*\))?")
"""Arguments that generated calls have: a name, a number, an address, or a macro of these."""


def string_literal(value: str) -> str:
    """Return a string literal; characters other than printable ASCII become octal escapes of their UTF-8 bytes."""
    escaped = value.translate(_ESCAPES)
    parts = [c if " " <= c <= "~" else "".join(f"\\{b:03o}" for b in c.encode(errors="surrogatepass")) for c in escaped]
    return '"' + "".join(parts).replace("??", '?""?') + '"'


def c_comment(text: str) -> str:
    """Return text changed so that it neither ends a comment nor begins another one or a trigraph in it."""
    return text.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?").replace("??", "? ?")


_C_WORDS = """
    auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
"""
_CPP_WORDS = """
    alignas alignof and and_eq asm bitand bitor bool catch char16_t char32_t class compl const_cast constexpr decltype
    delete dynamic_cast explicit export false friend mutable namespace new noexcept not not_eq nullptr operator or or_eq
    private protected public reinterpret_cast static_assert static_cast template this thread_local throw true try typeid
    typename using virtual wchar_t xor xor_eq
"""
C_KEYWORDS = frozenset(_C_WORDS.split())
"""The keywords of C; those with an underscore and a capital letter are no names of programs anyway."""
CPP_KEYWORDS = C_KEYWORDS - {"restrict"} | frozenset(_CPP_WORDS.split())
"""The keywords of C++14."""


def c_name(name: str) -> str:
    """Return a name; FerruleError if it is not an identifier of C."""
    return _checked_name(name, "C", C_KEYWORDS)


def cpp_name(name: str) -> str:
    """Return a name; FerruleError if it is not an identifier of C++."""
    return _checked_name(name, "C++", CPP_KEYWORDS)


def _checked_name(name: str, language: str, keywords: frozenset[str]) -> str:
    if _IDENTIFIER.fullmatch(name) is None:
        hint = "use ASCII letters, digits and underscores"
        raise FerruleError(f"{name!a} is not an identifier of {language}", hint=hint)
    if name in keywords:
        raise FerruleError(f"'{name}' is a keyword of {language}, not an identifier", hint="choose another name")
    return name


def c_argument(text: str) -> str:
    """Return an argument; FerruleError if it is not a name, a number, an address or a macro of these."""
    if _ARGUMENT.fullmatch(text) is None:
        raise FerruleError(f"{text!a} can't be an argument of a call in C")
    return text


def c_call(head: str, *arguments: str) -> str:
    """Return a C call, broken into lines as by clang-format; `head` is the text before the opening parenthesis.

    Raises:
        FerruleError: an argument is not a name, a number, an address or a macro of these.
    """
    words = [c_argument(argument) for argument in arguments]
    lines = _call_lines(head, words)
    target, _, value = head.partition(" = ")
    if value and len(lines) > 1:
        behind = _call_lines(" " * (len(head) - len(head.lstrip()) + 4) + value, words)
        if len(behind) < len(lines):
            lines = [f"{target} =", *behind]
        below = [f"{head}(", *_call_lines(" " * (len(head) - len(head.lstrip()) + 3), words)]
        below[1] = below[1].replace("(", " ", 1)
        if len(below) < len(lines):
            lines = below
    return "\n".join(lines)


def _call_lines(head: str, words: list[str]) -> list[str]:
    lines, column = [f"{head}("], len(head) + 1
    for number, word in enumerate(words, start=1):
        text = word + (")" if number == len(words) else ",")
        room = COLUMNS - (1 if number == len(words) else 0)  # a semicolon follows
        if number > 1 and len(lines[-1]) + 1 + len(text) > room:
            lines.append(" " * column + text)
        else:
            lines[-1] += text if number == 1 else f" {text}"
    return lines


def fitted(text: str) -> str:
    """Return C without lines of more than 100 columns: comments are wrapped, and code is broken between its parts."""
    if all(len(line) <= COLUMNS for line in text.splitlines()):
        return text
    return "\n".join(_fitted(text.split("\n")))


def _fitted(lines: list[str]) -> Iterator[str]:
    off = inside = False
    for line in lines:
        off = (off or OFF in line) and ON not in line
        began_inside, inside = inside, _comment_is_open(line, inside=inside)
        if len(line) <= COLUMNS:
            yield line
            continue
        indent = line[: len(line) - len(line.lstrip(" "))]
        if began_inside:
            yield from _wrapped(line, "", f"{indent.removesuffix(' ')} * ")
        elif line.lstrip().startswith("/*"):
            yield from _wrapped(line, indent, f"{indent} * ")
        else:
            code, comment = _parted(line)
            if comment:
                yield from _wrapped(f"{indent}{comment}", indent, f"{indent} * ")
            folded = [code] if len(code) <= COLUMNS else _folded(code, indent)
            inner = f"{indent}    " if code.endswith("{") else indent  # where clang-format expects the mark
            yield from folded if off or len(folded) == 1 else [f"{indent}{OFF}", *folded, f"{inner}{ON}"]


def _comment_is_open(line: str, *, inside: bool) -> bool:
    """Return whether a comment is open at the end of a line; `inside` states whether one is at its start."""
    if "/*" in line or "*/" in line:
        for mark in _COMMENT_MARKS.finditer(line):
            inside = mark.group() == "/*" if mark.group() in {"/*", "*/"} else inside
    return inside


def _parted(line: str) -> tuple[str, str]:
    """Return a line's code and the comment behind it, which may be empty."""
    for mark in _COMMENT_MARKS.finditer(line):
        if mark.group() == "/*":
            return line[: mark.start()].rstrip(), line[mark.start() :]
    return line, ""


def _wrapped(line: str, first: str, other: str) -> Iterator[str]:
    """Yield the lines of a comment that continues with the prefix `other`."""
    text = line.strip()
    if not first and text.startswith("* "):
        first, text = other, text[2:]
    text = text.replace(" */", "\0*/")  # the mark stays on the line of the last word
    for part in textwrap.wrap(text, COLUMNS, initial_indent=first, subsequent_indent=other, break_on_hyphens=False):
        yield part.replace("\0*/", " */")


def _folded(line: str, indent: str) -> list[str]:
    """Return the parts of a line of code; the parts after the first are indented deeper, as far as there is room."""
    deep = list(_parts(line, indent + "    "))
    if all(len(part) <= COLUMNS for part in deep):
        return deep
    return list(_parts(line, "    "))


def _parts(line: str, pad: str) -> Iterator[str]:
    mark = " \\" if line.startswith("#") else ""  # a macro's definition goes on in the next line
    while len(line) > COLUMNS:
        part, rest = _first_part(line, COLUMNS - len(mark), len(pad))
        if not rest:
            break
        yield part.rstrip() + mark
        line = pad + rest.lstrip(" ")
    yield line


def _first_part(line: str, room: int, start: int) -> tuple[str, str]:
    """Return a line's longest part that fits, and the rest, which is empty if the line cannot be broken."""
    at = 0
    for found in _BREAKS.finditer(line):
        end = found.end()
        if found["text"] and found.end() > room and len(found["text"]) > room - start:
            cut = found.start() + 1
            for character in _CHARACTER.finditer(line, cut, found.end() - 1):
                if character.end() >= room:
                    break
                cut = character.end()
            if cut > found.start() + 1:
                return line[:cut] + '"', '"' + line[cut:]
        if start < end <= room and not found["text"]:
            at = end
    return (line[:at], line[at:]) if at else (line, "")
