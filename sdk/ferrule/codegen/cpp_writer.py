# SPDX-License-Identifier: Apache-2.0
"""Writes modules of the document model in C++14, in the project's clang-format style."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import ClassVar, assert_never

import numpy as np

from ferrule._typing import override
from ferrule.codegen.c_layout import INDENT, doc_comment, filled
from ferrule.codegen.c_writer import CWriter
from ferrule.dom import (
    Aggregate,
    Attribute,
    Binary,
    Boolean,
    Cast,
    Class,
    ClassMember,
    ClassType,
    Const,
    Construct,
    Constructor,
    Declare,
    Destructor,
    Expression,
    Field,
    Float,
    Initialiser,
    Integer,
    Linkage,
    Method,
    Module,
    Null,
    Parameter,
    Pointer,
    QualifiedName,
    Reference,
    Scalar,
    String,
    Type,
    Unary,
    Variable,
    Visibility,
)
from ferrule.rendering.c_text import COLUMNS, cpp_name

_NEVER_A_NAME = (Integer, Float, Boolean, String, Null, Aggregate, Unary, Binary)
_SECTIONS = {Visibility.PUBLIC: "public", Visibility.PROTECTED: "protected", Visibility.PRIVATE: "private"}


class CppWriter(CWriter):
    """Writes C++14; named fields of aggregates are refused.

    The modules include <cstdint> for integers of a fixed width, <cstddef> for sizes, and <limits> for infinities and
    NaN. A class of the interface is declared in the header, any other one in the source.
    """

    language: ClassVar[str] = "C++14"
    header_suffix: ClassVar[str] = ".h"
    source_suffix: ClassVar[str] = ".cpp"
    _loose: ClassVar[tuple[type[Expression], ...]] = (Binary,)

    # ---- names and types

    @override
    def _name(self, name: str) -> str:
        return cpp_name(name)

    @override
    def _class_type(self, node: ClassType) -> str:
        arguments = f"<{', '.join(map(self.declared, node.arguments))}>" if node.arguments else ""
        return self._qualified((*node.namespace, node.name)) + arguments

    def _qualified(self, names: Sequence[str]) -> str:
        return "::".join(map(self._name, names))

    @override
    def _reference(self, node: Reference, name: str) -> str:
        return self._indirect(node.target, f"&{name}")

    # ---- expressions

    @override
    def _wide(self, value: int, *, unsigned: bool = False) -> str:
        if unsigned:
            return f"{value}ULL"
        return f"{value}LL" if value > -(1 << 63) else f"({value + 1}LL - 1)"

    @override
    def _not_finite(self, value: np.float32) -> str:
        limits = "std::numeric_limits<float>"
        if np.isnan(value):
            return f"{limits}::quiet_NaN()"
        return f"{'-' if value < 0 else ''}{limits}::infinity()"

    @override
    def _null(self) -> str:
        return "nullptr"

    @override
    def _qualified_name(self, node: QualifiedName) -> str:
        return self._qualified((*node.namespace, node.name))

    @override
    def _construct(self, node: Construct) -> str:
        return f"{self._class_type(node.type)}({', '.join(map(self.expression, node.arguments))})"

    @override
    def _cast(self, node: Cast) -> str:
        """Return a static_cast, or a reinterpret_cast where only that one reads an object as other data."""
        kind = "reinterpret_cast" if _is_data(node.type) and not isinstance(node.operand, Null) else "static_cast"
        return f"{kind}<{self.declared(node.type)}>({self.expression(node.operand)})"

    @override
    def _designator(self, field: Field) -> str:
        raise self._lacks("designated initialisers", field)

    # ---- statements

    @override
    def _declare_local(self, item: Declare, indent: str) -> str:
        made = self._made(item.type, item.name, item.value)
        return super()._declare_local(item, indent) if made is None else filled(f"{indent}{made[0]}", made[1], made[2])

    def _made(self, type_: Type, name: str, value: Expression | None) -> tuple[str, Sequence[str], str] | None:
        """Return the declaration of an object made by its own constructor: start, arguments, end; None for others."""
        if not isinstance(value, Construct) or (type_.type if isinstance(type_, Const) else type_) != value.type:
            return None
        head, words = self.declared(type_, name), [self.expression(each) for each in value.arguments]
        if not words:
            return (head, (), "{};") if isinstance(type_, Const) else (head, (), ";")
        if all(map(_may_declare, value.arguments)):  # then the line would declare a function
            words[0] = f"({words[0]})"
        return f"{head}(", words, ");"

    @override
    def _invocation(self, value: Expression) -> tuple[str, Sequence[Expression]] | None:
        if isinstance(value, Construct):
            return self._class_type(value.type), value.arguments
        return super()._invocation(value)

    # ---- declarations

    @override
    def _linked(self, declarations: Sequence[str]) -> Iterator[str]:
        yield from declarations

    @override
    def _definitions(self, module: Module) -> Iterator[str]:
        declared = {item.name for item in module.interface if isinstance(item, Class)}
        for item in module.implementation:
            yield self._bodies(item) if isinstance(item, Class) and item.name in declared else self._define(item)

    @override
    def _variable(self, item: Variable) -> str:
        made = self._made(item.type, item.name, item.value)
        if made is None:
            return super()._variable(item)
        doc = doc_comment(item.doc) if item.linkage is Linkage.INTERNAL else ""
        return doc + filled(f"{self._storage(item)}{made[0]}", made[1], made[2])

    @override
    def _storage(self, item: Variable) -> str:
        aligned = f"alignas({item.alignment}) " if item.alignment is not None else ""
        return f"{aligned}{'static ' if item.linkage is Linkage.INTERNAL else ''}{self._section(item)}"

    @override
    def _parameters(self, parameters: Sequence[Parameter]) -> list[str]:
        return [self.declared(each.type, each.name) for each in parameters]

    # ---- classes

    @override
    def _define_class(self, item: Class) -> str:
        return "\n\n".join(part for part in (self._declare_class(item), self._bodies(item)) if part)

    @override
    def _declare_class(self, item: Class) -> str:
        sections = [
            f"  {_SECTIONS[visibility]}:\n{self._members(item, tuple(members))}"
            for visibility, members in groupby(item.members, _visibility)
        ]
        return f"{doc_comment(item.doc)}class {self._name(item.name)}\n{{\n" + "\n\n".join(sections) + "\n};"

    def _members(self, owner: Class, members: Sequence[ClassMember]) -> str:
        """Return consecutive members as the class declares them; a documented one is apart from the one before it."""
        texts = [f"{doc_comment(member.doc, INDENT)}{self._member(owner, member)};" for member in members]
        gaps = ["", *("\n" if member.doc else "" for member in members[1:])]
        return "\n".join(gap + text for gap, text in zip(gaps, texts, strict=True))

    def _member(self, owner: Class, member: ClassMember) -> str:
        match member:
            case Attribute():
                return f"{INDENT}{self.declared(member.type, member.name)}"
            case Method():
                virtual = "virtual " if member.virtual else ""
                return self._head(f"{INDENT}{virtual}", member, self._name(member.name))
            case Constructor():
                explicit = "explicit " if len(member.parameters) == 1 else ""
                return filled(f"{INDENT}{explicit}{self._name(owner.name)}(", self._parameters(member.parameters), ")")
            case Destructor():
                return f"{INDENT}virtual ~{self._name(owner.name)}() = default"
            case _:
                assert_never(member)

    def _head(self, start: str, method: Method, name: str) -> str:
        """Return a method's return type, name, parameters and qualifiers."""
        parameters, tail = self._parameters(method.parameters), ") const" if method.constant else ")"
        text = filled(f"{start}{self._declared(method.returns, name)}(", parameters, tail)
        if all(len(line) < COLUMNS for line in text.splitlines()):
            return text
        indent = start[: len(start) - len(start.lstrip())]
        return f"{start}{self.declared(method.returns)}\n" + filled(f"{indent}{name}(", parameters, tail)

    def _bodies(self, item: Class) -> str:
        """Return the definitions of a class's constructors and methods."""
        name, bodies = self._name(item.name), []
        for member in item.members:
            if isinstance(member, Method):
                head = self._head("", member, f"{name}::{self._name(member.name)}")
                bodies.append(f"{head}\n{self.block(member.body, '')}")
            elif isinstance(member, Constructor):
                bodies.append(f"{self._constructor(name, member)}\n{self.block(member.body, '')}")
        return "\n\n".join(bodies)

    def _constructor(self, name: str, item: Constructor) -> str:
        head = filled(f"{name}::{name}(", self._parameters(item.parameters), ")")
        initialisers = [self._initialiser(each) for each in item.initialisers]
        line = f"{head} : {', '.join(initialisers)}"
        if not initialisers or ("\n" not in head and len(line) <= COLUMNS):
            return line if initialisers else head
        return f"{head}\n" + filled(f"{INDENT}: ", initialisers, "")

    def _initialiser(self, item: Initialiser) -> str:
        return f"{self._name(item.name)}({', '.join(map(self.expression, item.arguments))})"


def _may_declare(node: Expression) -> bool:
    """Return whether a construction could also be read as the declaration of a parameter, such as `T(x)` or `T()`."""
    if not isinstance(node, Construct):
        return False
    alone = len(node.arguments) == 1 and not isinstance(node.arguments[0], _NEVER_A_NAME)
    return alone or all(map(_may_declare, node.arguments))


def _visibility(member: ClassMember) -> Visibility:
    return Visibility.PUBLIC if isinstance(member, Destructor) else member.visibility


def _is_data(type_: Type) -> bool:
    """Return whether a type is a pointer to numbers or structures, to which no pointer to others is converted."""
    target = type_.target if isinstance(type_, Pointer) else Scalar.VOID
    target = target.type if isinstance(target, Const) else target
    return target is not Scalar.VOID and not isinstance(target, ClassType)
