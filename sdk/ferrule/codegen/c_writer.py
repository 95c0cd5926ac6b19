# SPDX-License-Identifier: Apache-2.0
"""Prints a module of the document model as a C header and a C source, in the project's clang-format style."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from numpy.typing import NDArray

from ferrule.codegen.c_expressions import expression, integer, literals
from ferrule.codegen.c_types import declarator
from ferrule.dom import (
    Aggregate,
    ArrayData,
    Assembly,
    Assign,
    Block,
    Call,
    Class,
    Comment,
    Declaration,
    Declare,
    Enumeration,
    Evaluate,
    Expression,
    Field,
    For,
    Function,
    If,
    Include,
    IncludeKind,
    Linkage,
    Module,
    Return,
    Section,
    Statement,
    Struct,
    Variable,
)
from ferrule.rendering.c_text import COLUMNS, c_comment, c_name, fitted
from ferrule.rendering.quoting import C_HEADER

INDENT = "    "
_SECTIONS = {
    Section.IDENTITY: "FERRULE_IDENTITY ",
    Section.WEIGHTS: "FERRULE_WEIGHTS ",
    Section.WORKSPACE: "FERRULE_WORKSPACE ",
}


def write_header(module: Module, banner: str) -> str:
    """Return the C header of a module; `banner` is the text of its first comment."""
    guard = re.sub(r"\W", "_", f"{module.name}_h").upper()
    parts = [
        _banner(banner, module.doc),
        f"#ifndef {guard}\n#define {guard}",
        _includes(module.interface_includes),
        '#ifdef __cplusplus\nextern "C" {\n#endif',
        *(_declare(item) for item in module.interface),
        "#ifdef __cplusplus\n}\n#endif",
        f"#endif /* {guard} */",
    ]
    return _assemble(parts)


def write_source(module: Module, banner: str) -> str:
    """Return the C source of a module; `banner` is the text of its first comment."""
    parts = [
        _banner(banner, module.doc),
        _includes((Include(path=f"{module.name}.h"),)),
        _includes(module.implementation_includes),
        *(_define(item) for item in module.implementation),
    ]
    return _assemble(parts)


def write_declarations(declarations: Iterable[Declaration]) -> str:
    """Return only the definitions, for inclusion in another source."""
    return _assemble(_define(item) for item in declarations)


def _assemble(parts: Iterable[str]) -> str:
    return fitted("\n\n".join(part for part in parts if part) + "\n")


def _banner(banner: str, doc: str) -> str:
    lines = [*c_comment(banner).splitlines(), *([""] if doc else []), *textwrap.wrap(c_comment(doc), COLUMNS - 3)]
    if len(lines) == 1:
        return f"/* {lines[0]} */"
    return "/* " + "\n".join([lines[0], *(f" * {line}".rstrip() for line in lines[1:])]) + "\n */"


def _includes(includes: Sequence[Include]) -> str:
    system = sorted(
        {f"#include <{C_HEADER.quote(item.path)}>" for item in includes if item.kind is not IncludeKind.PROJECT}
    )
    local = sorted({f'#include "{C_HEADER.quote(item.path)}"' for item in includes if item.kind is IncludeKind.PROJECT})
    return "\n\n".join("\n".join(group) for group in (local, system) if group)


def _doc(text: str, indent: str = "") -> str:
    if not text:
        return ""
    text = c_comment(text)
    one_line = f"{indent}/** {text} */\n"
    if len(one_line) <= COLUMNS + 1 and "\n" not in text:
        return one_line
    lines = [
        line for paragraph in text.split("\n") for line in textwrap.wrap(paragraph, COLUMNS - 3 - len(indent)) or [""]
    ]
    body = "".join(f"{indent} * {line}".rstrip() + "\n" for line in lines)
    return f"{indent}/**\n{body}{indent} */\n"


def _declare(item: Declaration) -> str:
    """Return a declaration as it appears in the header."""
    match item:
        case Variable():
            return f"{_doc(item.doc)}extern {declarator(item.type, item.name)};"
        case Function():
            return f"{_doc(item.doc)}{_signature(item)};"
        case _:
            return _define(item)


def _define(item: Declaration) -> str:
    match item:
        case Variable():
            return _variable(item)
        case Function(body=None):
            return f"{_doc(item.doc)}{_signature(item)};"
        case Function(body=Block() as body):
            doc = _doc(item.doc) if item.linkage is Linkage.INTERNAL else ""
            return f"{doc}{_signature(item)}\n{_block(body, '')}"
        case Struct():
            return _struct(item)
        case Enumeration():
            return _enumeration(item)
        case Class():
            raise TypeError(f"C has no classes, got class '{item.name}'")
        case _:
            raise TypeError(f"not a declaration: {item!r}")


def _variable(item: Variable) -> str:
    internal = item.linkage is Linkage.INTERNAL
    doc = _doc(item.doc) if internal else ""
    storage = "static " if internal else ""
    section = _SECTIONS[item.section] if item.section is not None else ""
    if item.memory:
        section = f"FERRULE_IN_MEMORY({item.memory}) "
    aligned = f"_Alignas({item.alignment}) " if item.alignment is not None else ""
    head = f"{storage}{section}{aligned}{declarator(item.type, item.name)}"
    return doc + _as_written(f"{head}{_initial(item.value)};", force=isinstance(item.value, ArrayData))


def _as_written(text: str, *, force: bool = False) -> str:
    """Return text with clang-format switched off around it if that would reformat it: tables and overlong lines."""
    if force or any(len(line) > COLUMNS for line in text.splitlines()):
        return f"/* clang-format off */\n{text}\n/* clang-format on */"
    return text


def _initial(value: Expression | None) -> str:
    match value:
        case None:
            return ""
        case Aggregate(fields):
            return " = {\n" + "".join(f"{_entry(field)},\n" for field in fields) + "}"
        case ArrayData(values):
            return " = {\n" + "".join(f"{line}\n" for line in _rows(values)) + "}"
        case _:
            return f" = {expression(value)}"


def _entry(field: Field) -> str:
    """Return one value of an aggregate at module level, without the following comma."""
    name = f"{INDENT}.{c_name(field.name)} =" if field.name else ""
    line = f"{name} {expression(field.value)}" if name else f"{INDENT}{expression(field.value)}"
    if len(line) + 1 <= COLUMNS:
        return line
    if isinstance(field.value, Aggregate):
        start = f"{name} {{" if name else f"{INDENT}{{"
        parts = [_entry(part).lstrip() for part in field.value.fields]
        return start + (",\n" + " " * len(start)).join(parts) + "}"
    return f"{name}\n{INDENT * 2}{expression(field.value)}" if name else line


def _rows(values: NDArray[Any]) -> Iterator[str]:
    """Yield the lines of an array's initial value, with 16 elements of 1 byte, 12 of 2 bytes or 6 larger ones each."""
    words = literals(values)
    per_line = {1: 16, 2: 12}.get(values.dtype.itemsize, 6)
    for start in range(0, len(words), per_line):
        yield INDENT + ", ".join(words[start : start + per_line]) + ","


def _struct(item: Struct) -> str:
    lines = [f"struct {c_name(item.name)} {{"]
    for member in item.members:
        if member.doc:
            lines.append(_doc(member.doc, INDENT).rstrip("\n"))
        lines.append(f"{INDENT}{declarator(member.type, member.name)};")
    return _doc(item.doc) + "\n".join([*lines, "};"])


def _enumeration(item: Enumeration) -> str:
    lines = [f"enum {c_name(item.name)} {{" if item.name else "enum {"]
    for constant in item.enumerators:
        if constant.doc:
            lines.append(_doc(constant.doc, INDENT).rstrip("\n"))
        lines.append(f"{INDENT}{c_name(constant.name)} = {integer(constant.value)},")
    return _doc(item.doc) + "\n".join([*lines, "};"])


def _signature(item: Function) -> str:
    storage = "static " if item.linkage is Linkage.INTERNAL else ""
    head = f"{storage}{declarator(item.returns, item.name)}("
    parameters = [declarator(p.type, p.name) for p in item.parameters] or ["void"]
    return _fill(head, parameters, ")")


def _fill(head: str, words: Sequence[str], tail: str) -> str:
    """Return head, words separated by commas, and tail, wrapped at the column limit and aligned after the head."""
    last_line = head.rsplit("\n", 1)[-1]
    pad = " " * len(last_line)
    if any(len(pad) + len(word) + len(tail) > COLUMNS for word in words):  # too long for a place behind the head
        margin = " " * (len(last_line) - len(last_line.lstrip()) + len(INDENT))
        return f"{head}\n{_fill(margin, words, tail)}"
    lines, current = [], last_line
    for number, word in enumerate(words):
        closing = tail if number == len(words) - 1 else ","
        glue = "" if current.endswith("(") or current == pad else " "
        if len(current) + len(glue) + len(word) + len(closing) > COLUMNS and current not in {last_line, pad}:
            lines.append(current)
            current, glue = pad, ""
        current += f"{glue}{word}{closing}"
    if not words:
        current += tail
    return head[: len(head) - len(last_line)] + "\n".join([*lines, current])


def _block(block: Block, indent: str) -> str:
    body = "".join(f"{_statement(item, indent + INDENT)}\n" for item in block.statements)
    return f"{indent}{{\n{body}{indent}}}"


def _statement(item: Statement, indent: str) -> str:
    match item:
        case Evaluate(value):
            return _call_line(indent, value)
        case Declare(name, type_, value):
            head = f"{indent}{declarator(type_, name)}"
            return f"{head};" if value is None else _assignment(head, value, indent)
        case Assign(target, value):
            return _assignment(f"{indent}{expression(target)}", value, indent)
        case Block():
            return _block(item, indent)
        case If():
            return _if(item, indent)
        case For(variable, start, stop, body):
            c_name(variable)
            head = f"for (int32_t {variable} = {expression(start)}; {variable} < {expression(stop)}; ++{variable})"
            return f"{indent}{head} {_block(body, indent).lstrip()}"
        case Return(value):
            return f"{indent}return;" if value is None else _call_line(f"{indent}return ", value)
        case Comment(text):
            return _remark(text, indent)
        case Assembly(text):
            return textwrap.indent(text, indent)


def _if(item: If, indent: str) -> str:
    text = f"{indent}if ({expression(item.condition)}) {_block(item.then, indent).lstrip()}"
    if item.otherwise is not None:
        text += f" else {_block(item.otherwise, indent).lstrip()}"
    return text


def _remark(text: str, indent: str) -> str:
    lines = textwrap.wrap(c_comment(text), COLUMNS - len(indent) - 6) or [""]
    if len(lines) == 1:
        return f"{indent}/* {lines[0]} */"
    middle = "".join(f"\n{indent} * {line}" for line in lines[1:])
    return f"{indent}/* {lines[0]}{middle} */"


def _assignment(head: str, value: Expression, indent: str) -> str:
    line = f"{head} = {expression(value)};"
    if len(line) <= COLUMNS:
        return line
    alone = f"{indent}{INDENT}{expression(value)};"
    if isinstance(value, Call) and len(alone) > COLUMNS:
        filled = _call_line(f"{head} = ", value)
        if all(len(part) <= COLUMNS for part in filled.splitlines()):
            return filled
        return f"{head} =\n{_call_line(indent + INDENT, value)}"
    if isinstance(value, Aggregate):
        return f"{head} = {{\n{indent}{INDENT}{expression(value)[1:]};"
    return f"{head} =\n{alone}"


def _call_line(indent: str, value: Expression) -> str:
    line = f"{indent}{expression(value)};"
    if len(line) <= COLUMNS:
        return line
    if isinstance(value, Call):
        head = f"{indent}{expression(value.function)}("
        return _fill(head, [expression(argument) for argument in value.arguments], ");")
    return line
