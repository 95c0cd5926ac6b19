# SPDX-License-Identifier: Apache-2.0
"""Writes modules of the document model in C11, in the project's clang-format style."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, assert_never

from numpy.typing import NDArray

from ferrule._typing import override
from ferrule.codegen.c_layout import INDENT, as_written, assembled, doc_comment, filled, first_comment
from ferrule.codegen.c_statements import CStatements
from ferrule.dom import (
    Aggregate,
    ArrayData,
    Class,
    Constant,
    Declaration,
    Enumeration,
    Expression,
    Field,
    Function,
    Include,
    IncludeKind,
    Linkage,
    Module,
    Section,
    Struct,
    Variable,
)
from ferrule.rendering.c_text import COLUMNS
from ferrule.rendering.quoting import C_HEADER

_SECTIONS: Mapping[Section, str] = {
    Section.IDENTITY: "FERRULE_IDENTITY ",
    Section.WEIGHTS: "FERRULE_WEIGHTS ",
    Section.WORKSPACE: "FERRULE_WORKSPACE ",
}
_LINKAGES: Mapping[Linkage, str] = {Linkage.INTERNAL: "static ", Linkage.INLINE: "static inline "}


class CWriter(CStatements):
    """Writes C; classes, references, qualified names and constructions are refused."""

    language: ClassVar[str] = "C"
    header_suffix: ClassVar[str] = ".h"
    source_suffix: ClassVar[str] = ".c"
    _aligning: ClassVar[tuple[Include, ...]] = (Include("ferrule/align.h"),)
    """What a header includes to declare alignments."""
    _align: ClassVar[str] = "FERRULE_ALIGNAS"
    """What states an alignment in a header."""
    _opening: ClassVar[str] = '#ifdef __cplusplus\nextern "C" {\n#endif'
    """What precedes the declarations of a header, so that C++ can include it too."""
    _closing: ClassVar[str] = "#ifdef __cplusplus\n}\n#endif"
    """What follows them."""

    @override
    def header(self, module: Module, banner: str) -> str:
        guard = re.sub(r"\W", "_", f"{module.name}_h").upper()
        aligned = any(isinstance(item, Variable) and item.alignment is not None for item in module.interface)
        return assembled(
            [
                first_comment(banner, module.doc),
                f"#ifndef {guard}\n#define {guard}",
                self._includes((*module.interface_includes, *(self._aligning if aligned else ()))),
                self._opening,
                *map(self._declare, module.interface),
                self._closing,
                f"#endif /* {guard} */",
            ]
        )

    @override
    def source(self, module: Module, banner: str) -> str:
        return assembled(
            [
                first_comment(banner, module.doc),
                self._includes((Include(module.name, IncludeKind.MODULE),)),
                self._includes(module.implementation_includes),
                *self._definitions(module),
            ]
        )

    @override
    def declarations(self, items: Iterable[Declaration]) -> str:
        return assembled(self._define(item) for item in items)

    def _definitions(self, module: Module) -> Iterator[str]:
        return map(self._define, module.implementation)

    def _includes(self, includes: Sequence[Include]) -> str:
        groups: dict[IncludeKind, set[str]] = {}
        for item in includes:
            groups.setdefault(item.kind, set()).add(self._include(item))
        own = groups.get(IncludeKind.MODULE, set()) | groups.get(IncludeKind.PROJECT, set())
        others = (groups.get(kind, set()) for kind in (IncludeKind.LIBRARY, IncludeKind.STANDARD))
        return "\n\n".join("\n".join(sorted(group)) for group in (own, *others) if group)

    def _include(self, item: Include) -> str:
        path = C_HEADER.quote(item.path)
        if item.kind in {IncludeKind.LIBRARY, IncludeKind.STANDARD}:
            return f"#include <{path}>"
        return f'#include "{path}{self.header_suffix if item.kind is IncludeKind.MODULE else ""}"'

    def _declare(self, item: Declaration) -> str:
        """Return a declaration as it appears in the header."""
        match item:
            case Variable():
                return self._declare_variable(item)
            case Function():
                return self._declare_function(item)
            case Struct():
                return self._struct(item)
            case Enumeration():
                return self._enumeration(item)
            case Constant():
                return self._constant(item)
            case Class():
                raise self._lacks("classes", item)
            case _:
                assert_never(item)

    def _declare_variable(self, item: Variable) -> str:
        """Return the declaration of a variable, with the alignment of its definition.

        Without it, a compiler may rely on a greater alignment, such as that of large arrays on x86-64. C++ allows
        it only before `extern`.
        """
        aligned = f"{self._align}({item.alignment}) " if item.alignment is not None else ""
        return doc_comment(item.doc) + as_written(f"{aligned}extern {self.declared(item.type, item.name)};")

    def _declare_function(self, item: Function) -> str:
        if item.linkage is Linkage.INLINE and item.body is not None:
            return doc_comment(item.doc) + as_written(f"{self._signature(item)}\n{self.block(item.body, '')}")
        return f"{doc_comment(item.doc)}{self._signature(item, ';')}"

    def _define(self, item: Declaration) -> str:
        """Return a declaration as it appears in the source."""
        match item:
            case Variable():
                return self._variable(item)
            case Function():
                if item.body is None:
                    return self._declare(item)
                doc = "" if item.linkage is Linkage.EXTERNAL else doc_comment(item.doc)
                return f"{doc}{self._signature(item)}\n{self.block(item.body, '')}"
            case _:
                return self._declare(item)

    def _variable(self, item: Variable) -> str:
        internal = item.linkage is Linkage.INTERNAL
        doc = doc_comment(item.doc) if internal else ""
        head = f"{self._storage(item)}{self.declared(item.type, item.name)}"
        text = f"{head}{self._initial(item.value)};"
        return doc + as_written(text, force=isinstance(item.value, ArrayData))

    def _storage(self, item: Variable) -> str:
        """Return what precedes the type of a variable."""
        storage = "static " if item.linkage is Linkage.INTERNAL else ""
        aligned = f"_Alignas({item.alignment}) " if item.alignment is not None else ""
        return f"{storage}{self._section(item)}{aligned}"

    def _section(self, item: Variable) -> str:
        """Return the macro that puts a variable into its section or memory."""
        if item.memory:
            return f"FERRULE_IN_MEMORY({self._name(item.memory)}) "
        return _SECTIONS[item.section] if item.section is not None else ""

    def _initial(self, value: Expression | None) -> str:
        match value:
            case None:
                return ""
            case Aggregate(fields):
                return " = {\n" + "".join(f"{self._entry(field)},\n" for field in fields) + "}"
            case ArrayData(values):
                return " = {\n" + "".join(f"{line}\n" for line in self._rows(values)) + "}"
            case _:
                return f" = {self.expression(value)}"

    def _entry(self, field: Field) -> str:
        """Return one value of an aggregate at module level, without the following comma."""
        name = f"{INDENT}{self._designator(field)} =" if field.name else ""
        line = f"{name} {self.expression(field.value)}" if name else f"{INDENT}{self.expression(field.value)}"
        if len(line) + 1 <= COLUMNS:
            return line
        if isinstance(field.value, Aggregate):
            start = f"{name} {{" if name else f"{INDENT}{{"
            parts = [self._entry(part).lstrip() for part in field.value.fields]
            return start + (",\n" + " " * len(start)).join(parts) + "}"
        return f"{name}\n{INDENT * 2}{self.expression(field.value)}" if name else line

    def _rows(self, values: NDArray[Any]) -> Iterator[str]:
        """Yield the lines of an array's initial value: 16 elements of 1 byte, 12 of 2 bytes or 6 larger ones each."""
        words = self.literals(values)
        per_line = {1: 16, 2: 12}.get(values.dtype.itemsize, 6)
        for start in range(0, len(words), per_line):
            yield INDENT + ", ".join(words[start : start + per_line]) + ","

    def _struct(self, item: Struct) -> str:
        rows = ((member.doc, f"{self.declared(member.type, member.name)};") for member in item.members)
        return _listed(item.doc, f"struct {self._name(item.name)}", rows)

    def _enumeration(self, item: Enumeration) -> str:
        rows = ((each.doc, f"{self._name(each.name)} = {self.integer(each.value)},") for each in item.enumerators)
        return _listed(item.doc, f"enum {self._name(item.name)}" if item.name else "enum", rows)

    def _constant(self, item: Constant) -> str:
        return f"{doc_comment(item.doc)}#define {self._name(item.name)} {self.expression(item.value)}"

    def _signature(self, item: Function, end: str = "") -> str:
        """Return the head of a function; `end` follows it on the same line."""
        head = f"{_LINKAGES.get(item.linkage, '')}{self.declared(item.returns, item.name)}("
        return filled(head, [self.declared(each.type, each.name) for each in item.parameters] or ["void"], ")") + end


def _listed(doc: str, head: str, rows: Iterable[tuple[str, str]]) -> str:
    """Return a declaration with a line for each row, below the row's comment."""
    lines = "".join(f"{doc_comment(remark, INDENT)}{INDENT}{text}\n" for remark, text in rows)
    return f"{doc_comment(doc)}{head} {{\n{lines}}};"


C_WRITER = CWriter()
"""The writer of firmware, and the default of generation."""
