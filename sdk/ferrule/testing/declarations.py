# SPDX-License-Identifier: Apache-2.0
"""Reads the declarations of C headers in a form for cffi: preprocessed, without unsupported constructs."""

from __future__ import annotations

import ast
import operator
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ferrule.errors import FerruleError
from ferrule.nativelib import CompilationError, run_compiler
from ferrule.testing.cdata import CData

_MARKER = re.compile(r'# (\d+) "(.*?)"((?: \d)*)$')
_COMPLAINT = re.compile(r"^(.*?):(\d+):(?:\d+:)? (?:fatal )?error: (.*)$", re.MULTILINE)
_REMEDY = (
    "a header of an RTOS often needs its own compiler and configuration: name `headers` with plain declarations that "
    "do not include it, or put a stand-in of the same name into a folder of `include_dirs`"
)
_MACRO = re.compile(r"#define ([A-Za-z]\w*) +\S")
_SPECIFIER = re.compile(r"\b(?:__extension__|_Noreturn|__restrict|__inline)\b")
_CONSTANT = re.compile(r"^(extern|typedef) const ")
"""`const` is removed, because cffi gives no address of a const object."""
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_ATTRIBUTE = re.compile(r"\b(?:__attribute__|_Alignas|alignas)\b")
_VALUE = "ferrule_value"
_SUFFIX = re.compile(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]+\b")
_MOST_BITS = 64
_SHOWN = 100
_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
}


def preprocess(command: Sequence[str], text: str, *, title: str) -> str:
    """Return C text preprocessed by the compiler `command`, which includes its flags.

    Raises:
        CompilationError: an include is missing, or an #error was reached; the message names the file and the line.
    """
    try:
        return run_compiler([*command, "-E", "-x", "c", "-"], f"can't preprocess {title}", text=text)
    except CompilationError as error:
        found = _COMPLAINT.search(str(error))
        if found is None:
            raise
        from_input = found[1].startswith("<") or found[1].endswith("-stdin.c")  # zig keeps its input in such a file
        place = "" if from_input else f" {found[1]}:{found[2]}:"
        raise CompilationError(f"can't preprocess {title}:{place} {found[3]}", hint=_REMEDY) from error


def declare(ffi: CData, command: Sequence[str], headers: Sequence[str], *, title: str) -> None:
    """Declare to a cffi interface what `headers`, named as in an `#include`, and the headers that they include declare.

    Headers of the compiler and the C library are omitted, because cffi knows their types. Functions with a body and
    macros that are not integers are omitted as well.

    Raises:
        CompilationError: the headers cannot be preprocessed; the message names the file and the line.
        FerruleError: cffi cannot read a declaration; the message names its file and line.
    """
    found = declared(command, headers, title=title)
    lines = [line for line, _ in found]
    try:
        ffi.cdef("\n".join(lines))
    except Exception as error:
        line, origin = found[_first_unreadable(type(ffi), lines)]
        reason = str(error).splitlines()[-1].rpartition("<cdef source string>:")[2]
        shown = line if len(line) <= _SHOWN else f"{line[:_SHOWN]}..."
        raise FerruleError(
            f"{title} can't be declared to Python: {origin}: cffi can't read '{shown}' ({reason})", hint=_REMEDY
        ) from error


def _first_unreadable(ffi: Callable[[], CData], lines: Sequence[str]) -> int:
    """Return the index of the first line that cffi cannot read in a new interface; otherwise, that of the last."""

    def unreadable(last: int) -> bool:
        try:
            ffi().cdef("\n".join(lines[: last + 1]))
        except Exception:  # noqa: BLE001 of any type, cffi's or pycparser's
            return True
        return False

    # the last line is not tried: all of them were refused, perhaps for what the caller's interface has already
    return bisect_left(range(len(lines) - 1), True, key=unreadable)


def declared(command: Sequence[str], headers: Sequence[str], *, title: str) -> list[tuple[str, str]]:
    """Return one line for each declaration, and where it is: its file and line."""
    include = "".join(f'#include "{header}"\n' for header in headers)
    own, origins, macros = _split(preprocess([*command, "-dD"], include, title=title))
    questions = "".join(f'{_VALUE} "{name}" {name}\n' for name in macros)
    values = _values(preprocess([*command, "-P"], include + questions, title=title))
    kept = [(f"#define {name} {value}", f"the macro {name}") for name, value in values.items()]
    return [*kept, *((f"{text};", origins[line]) for text, line in _statements(own))]


def _split(text: str) -> tuple[str, list[str], list[str]]:
    """Return the text that does not come from system headers, the origin of each line, and the names of the macros."""
    lines = []
    origins = []
    macros = []
    system = True
    file, number = "", 0
    systems: dict[str, bool] = {}  # by file; a system macro is marked as such wherever it is used
    for line in text.splitlines():
        marker = _MARKER.match(line)
        if marker is not None:
            file, number = marker[2], int(marker[1]) - 1
            system = systems.setdefault(file, "3" in marker[3].split() or file.startswith("<"))
            continue
        number += 1
        if system:
            continue
        if line.startswith("#"):
            found = _MACRO.match(line)
            macros += [found[1]] if found else []
        else:
            lines.append(line)
            origins.append(f"{file}:{number}")
    return "\n".join(lines), origins, list(dict.fromkeys(macros))


def _values(text: str) -> dict[str, int]:
    values = {}
    for name, expression in re.findall(rf'^{_VALUE} "(\w+)" (.*)$', text, re.MULTILINE):
        value = _integer(expression)
        if value is not None:
            values[name] = value
    return values


def _integer(expression: str) -> int | None:
    try:
        return _evaluated(ast.parse(_SUFFIX.sub(r"\1", expression).strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _evaluated(node: ast.expr) -> int:
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluated(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            first, second = _evaluated(left), _evaluated(right)
            if isinstance(op, ast.LShift) and second > _MOST_BITS:
                raise ValueError
            return _BINARY[type(op)](first, second)
    raise ValueError


def _statements(text: str) -> Iterator[tuple[str, int]]:
    """Yield the top-level declarations of a translation unit, each with the number of its first line from 0."""
    for statement, line in _chunks(_without_attributes(_SPECIFIER.sub("", _STRING.sub('""', text)))):
        if not statement.startswith(("static ", "inline ", "_Static_assert")):
            yield _CONSTANT.sub(r"\1 ", statement), line


def _chunks(text: str) -> Iterator[tuple[str, int]]:
    """Yield the text between semicolons outside braces, without function definitions, and its first line's number."""
    depth = 0
    start = 0
    line = 0
    for index, character in enumerate(text):
        depth += (character in "({") - (character in ")}")
        body = character == "}" and ")" in text[start : index + 1].partition("{")[0]
        if depth == 0 and (character == ";" or body):
            whole = text[start:index]
            chunk = " ".join(whole.split())
            if chunk and not body:
                yield chunk, line + whole.count("\n", 0, len(whole) - len(whole.lstrip()))
            line += whole.count("\n")
            start = index + 1


def _without_attributes(text: str) -> str:
    """Return the text without attributes and alignments; the number of lines stays the same."""
    kept = []
    start = 0
    while (found := _ATTRIBUTE.search(text, start)) is not None:
        at = found.start()
        kept.append(text[start:at])
        depth = 0
        for end, character in enumerate(text[at:], at):
            depth += (character == "(") - (character == ")")
            if character == ")" and depth == 0:
                kept.append("\n" * text.count("\n", at, end))
                start = end + 1
                break
        else:
            return "".join(kept)  # cffi reports the error
    return "".join([*kept, text[start:]])


def include_flags(folders: Sequence[Path]) -> list[str]:
    """Return the compiler's options for folders with headers."""
    return [f"-I{folder}" for folder in folders]
