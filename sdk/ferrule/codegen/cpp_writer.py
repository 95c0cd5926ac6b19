# SPDX-License-Identifier: Apache-2.0
"""Writes modules of the document model in C++14, in the project's clang-format style."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import ClassVar, assert_never

import numpy as np

from ferrule._typing import override
from ferrule.codegen.c_layout import INDENT, doc_comment
from ferrule.codegen.c_writer import CWriter
from ferrule.codegen.cpp_layout import Group, Piece, flat, laid_out, listed, prototype
from ferrule.dom import (
    Aggregate,
    Attribute,
    Binary,
    Boolean,
    Call,
    Cast,
    Class,
    ClassMember,
    ClassType,
    Const,
    Constant,
    Construct,
    Constructor,
    Declaration,
    Declare,
    Destructor,
    Expression,
    Field,
    Float,
    Function,
    Include,
    Initialiser,
    Integer,
    Linkage,
    Method,
    Module,
    Not,
    Null,
    Parameter,
    Pointer,
    QualifiedName,
    Reference,
    Scalar,
    String,
    Type,
    Variable,
    Visibility,
)
from ferrule.rendering.c_text import COLUMNS, cpp_name

_NEVER_A_NAME = (Integer, Float, Boolean, String, Null, Aggregate, Not, Binary)
_LINKAGES = {Linkage.INTERNAL: "static ", Linkage.INLINE: "inline "}
_SECTIONS = {Visibility.PUBLIC: "public", Visibility.PROTECTED: "protected", Visibility.PRIVATE: "private"}


class CppWriter(CWriter):
    """Writes C++14; named fields of aggregates are refused.

    The modules include <cstdint> for integers of a fixed width, <cstddef> for sizes, and <limits> for infinities and
    NaN. A class of the interface is declared in the header, any other one in the source.
    """

    language: ClassVar[str] = "C++14"
    header_suffix: ClassVar[str] = ".h"
    source_suffix: ClassVar[str] = ".cpp"
    _aligning: ClassVar[tuple[Include, ...]] = ()
    _align: ClassVar[str] = "alignas"
    _opening: ClassVar[str] = ""
    _closing: ClassVar[str] = ""
    _loose: ClassVar[tuple[type[Expression], ...]] = (Binary,)
    _null: ClassVar[str] = "nullptr"

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
    def _qualified_name(self, node: QualifiedName) -> str:
        return self._qualified((*node.namespace, node.name))

    @override
    def _cast(self, node: Cast) -> str:
        """Return a static_cast, or a reinterpret_cast where only that one reads an object as other data."""
        kind = "reinterpret_cast" if _is_data(node.type) and not isinstance(node.operand, Null) else "static_cast"
        return f"{kind}<{self.declared(node.type)}>({self.expression(node.operand)})"

    @override
    def _designator(self, field: Field) -> str:
        raise self._lacks("designated initialisers", field)

    def _piece(self, node: Expression) -> Piece:
        """Return an expression that can be broken into lines."""
        match node:
            case Call() | Construct():
                return Group(f"{self._callee(node)}(", tuple(map(self._piece, node.arguments)), ")")
            case Aggregate(fields) if not any(field.name for field in fields):
                return Group("{", tuple(self._piece(field.value) for field in fields), "}")
            case _:
                return self.expression(node)

    # ---- statements

    @override
    def _assignment(self, head: str, value: Expression, indent: str) -> str:
        return self._wrapped(f"{head} = ", value)

    @override
    def _wrapped(self, start: str, value: Expression) -> str:
        return laid_out(start, self._piece(value), ";")

    @override
    def _declare_local(self, item: Declare, indent: str) -> str:
        made = self._made(item.type, item.name, item.value)
        return super()._declare_local(item, indent) if made is None else laid_out(indent, made, ";")

    def _made(self, type_: Type, name: str, value: Expression | None) -> Group | None:
        """Return the declaration of an object made by its own constructor; None for other declarations."""
        if not isinstance(value, Construct) or (type_.type if isinstance(type_, Const) else type_) != value.type:
            return None
        head, parts = self.declared(type_, name), [self._piece(each) for each in value.arguments]
        if not parts:
            return Group(head, (), "{}" if isinstance(type_, Const) else "")
        if all(map(_may_declare, value.arguments)):  # then the line would declare a function
            parts[0] = f"({flat(parts[0])})"
        return Group(f"{head}(", tuple(parts), ")")

    # ---- declarations

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
        return doc + laid_out(self._storage(item), made, ";")

    @override
    def _storage(self, item: Variable) -> str:
        aligned = f"alignas({item.alignment}) " if item.alignment is not None else ""
        return f"{aligned}{'static ' if item.linkage is Linkage.INTERNAL else ''}{self._section(item)}"

    @override
    def _signature(self, item: Function, end: str = "") -> str:
        storage = _LINKAGES.get(item.linkage, "")
        return self._prototype(storage, item.returns, self._name(item.name), item.parameters, end)

    @override
    def _constant(self, item: Constant) -> str:
        head = f"{doc_comment(item.doc)}constexpr {self.declared(item.type, item.name)}"
        return f"{head}{self._initial(item.value)};"

    def _prototype(
        self, start: str, returns: Type | None, name: str, parameters: Sequence[Parameter], end: str = ""
    ) -> str:
        """Return the head of a function, or of a constructor, which returns nothing; `end` follows it."""
        words = [self.declared(each.type, each.name) for each in parameters]
        return prototype(start, "" if returns is None else self.declared(returns), name, words, end)

    # ---- classes

    @override
    def _declare(self, item: Declaration) -> str:
        return self._declare_class(item) if isinstance(item, Class) else super()._declare(item)

    @override
    def _define(self, item: Declaration) -> str:
        parts = [super()._define(item), self._bodies(item) if isinstance(item, Class) else ""]
        return "\n\n".join(filter(None, parts))

    def _declare_class(self, item: Class) -> str:
        sections = [
            f"  {_SECTIONS[visibility]}:\n{self._members(item, tuple(members))}\n"
            for visibility, members in groupby(item.members, _visibility)
        ]
        return f"{doc_comment(item.doc)}class {self._name(item.name)}\n{{\n" + "\n".join(sections) + "};"

    def _members(self, owner: Class, members: Sequence[ClassMember]) -> str:
        """Return consecutive members as the class declares them; a documented one is apart from the one before it."""
        texts = [f"{doc_comment(member.doc, INDENT)}{self._member(owner, member)}" for member in members]
        gaps = ["", *("\n" if member.doc else "" for member in members[1:])]
        return "\n".join(gap + text for gap, text in zip(gaps, texts, strict=True))

    def _member(self, owner: Class, member: ClassMember) -> str:
        match member:
            case Attribute():
                return f"{INDENT}{self.declared(member.type, member.name)};"
            case Method():
                start = f"{INDENT}virtual " if member.virtual else INDENT
                return self._head(start, member, self._name(member.name), ";")
            case Constructor():
                start = f"{INDENT}explicit " if len(member.parameters) == 1 else INDENT
                return self._prototype(start, None, self._name(owner.name), member.parameters, ";")
            case Destructor():
                return f"{INDENT}virtual ~{self._name(owner.name)}() = default;"
            case _:
                assert_never(member)

    def _head(self, start: str, method: Method, name: str, end: str = "") -> str:
        """Return a method's return type, name, parameters and qualifiers."""
        constant = " const" if method.constant else ""
        return self._prototype(start, method.returns, name, method.parameters, f"{constant}{end}")

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
        head = self._prototype("", None, f"{name}::{name}", item.parameters)
        if not item.initialisers:
            return head
        initialisers = [self._initialiser(each) for each in item.initialisers]
        line = f"{head} : {', '.join(map(flat, initialisers))}"
        return line if "\n" not in head and len(line) <= COLUMNS else listed(f"{head}\n{INDENT}: ", initialisers)

    def _initialiser(self, item: Initialiser) -> Group:
        return Group(f"{self._name(item.name)}(", tuple(map(self._piece, item.arguments)), ")")


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
