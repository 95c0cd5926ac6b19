# SPDX-License-Identifier: Apache-2.0
"""Reads the declarations of C headers in a form for cffi: preprocessed, without unsupported constructs."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ferrule.nativelib import run_compiler

_MARKER = re.compile(r'# \d+ "(.*?)"((?: \d)*)$')
_MACRO = re.compile(r"#define ([A-Za-z]\w*) +\S")
_SPECIFIER = re.compile(r"\b(?:__extension__|_Noreturn|__restrict|__inline)\b")
_CONSTANT = re.compile(r"^(extern|typedef) const ")
"""`const` is removed, because cffi gives no address of a const object."""
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_ATTRIBUTE = "__attribute__"
_VALUE = "ferrule_value"
_SUFFIX = re.compile(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]+\b")
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
        CompilationError: an include is missing, or an #error was reached.
    """
    return run_compiler([*command, "-E", "-x", "c", "-"], f"can't preprocess {title}", text=text)


def declarations(command: Sequence[str], headers: Sequence[str], *, title: str) -> str:
    """Return the declarations of `headers`, named as in an `#include`, and of the headers they include, for FFI.cdef.

    Headers of the compiler and the C library are omitted, because cffi knows their types. Functions with a body and
    macros that are not integers are omitted as well.
    """
    include = "".join(f'#include "{header}"\n' for header in headers)
    own, macros = _split(preprocess([*command, "-dD"], include, title=title))
    values = _values(preprocess([*command, "-P"], include + _questions(macros), title=title))
    kept = [f"#define {name} {value}" for name, value in values.items()]
    return "\n".join([*kept, *(f"{text};" for text in _statements(own))])


def _split(text: str) -> tuple[str, list[str]]:
    """Return the text, and the names of the macros, that do not come from system headers."""
    lines = []
    macros = []
    system = True
    systems: dict[str, bool] = {}  # by file; a system macro is marked as such wherever it is used
    for line in text.splitlines():
        marker = _MARKER.match(line)
        if marker is not None:
            system = systems.setdefault(marker[1], "3" in marker[2].split() or marker[1].startswith("<"))
        elif system:
            continue
        elif line.startswith("#"):
            found = _MACRO.match(line)
            macros += [found[1]] if found else []
        else:
            lines.append(line)
    return "\n".join(lines), list(dict.fromkeys(macros))


def _questions(macros: Sequence[str]) -> str:
    return "".join(f'{_VALUE} "{name}" {name}\n' for name in macros)


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
    except (SyntaxError, ValueError):
        return None


def _evaluated(node: ast.expr) -> int:
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluated(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](_evaluated(left), _evaluated(right))
    raise ValueError


def _statements(text: str) -> Iterator[str]:
    """Yield the top-level declarations of a translation unit."""
    for statement in _chunks(_without_attributes(_SPECIFIER.sub("", _STRING.sub('""', text)))):
        if not statement.startswith(("static ", "inline ", "_Static_assert")):
            yield _CONSTANT.sub(r"\1 ", statement)


def _is_function(statement: str) -> bool:
    return ")" in statement.partition("{")[0]


def _chunks(text: str) -> Iterator[str]:
    """Yield the text between semicolons outside braces, without function definitions."""
    depth = 0
    start = 0
    for index, character in enumerate(text):
        depth += (character in "({") - (character in ")}")
        body = character == "}" and _is_function(text[start : index + 1])
        if depth == 0 and (character == ";" or body):
            chunk = " ".join(text[start:index].split())
            start = index + 1
            if chunk and not body:
                yield chunk


def _without_attributes(text: str) -> str:
    while (at := text.find(_ATTRIBUTE)) >= 0:
        depth = 0
        for end, character in enumerate(text[at:], at):
            depth += (character == "(") - (character == ")")
            if character == ")" and depth == 0:
                text = text[:at] + text[end + 1 :]
                break
        else:
            return text[:at]  # cffi reports the error
    return text


def include_flags(folders: Sequence[Path]) -> list[str]:
    """Return the compiler's options for folders with headers."""
    return [f"-I{folder}" for folder in folders]
