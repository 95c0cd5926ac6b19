# SPDX-License-Identifier: Apache-2.0
"""Spells names, types and declarators in C."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from ferrule._typing import override
from ferrule.codegen.writer import Writer
from ferrule.dom import ArrayType, ClassType, Const, Pointer, Reference, Scalar, StructType, Type
from ferrule.errors import UnsupportedError
from ferrule.rendering.c_text import c_name

_SCALARS: Mapping[Scalar, str] = {
    Scalar.VOID: "void",
    Scalar.BOOL: "bool",
    Scalar.CHAR: "char",
    Scalar.INT8: "int8_t",
    Scalar.UINT8: "uint8_t",
    Scalar.INT16: "int16_t",
    Scalar.UINT16: "uint16_t",
    Scalar.INT32: "int32_t",
    Scalar.UINT32: "uint32_t",
    Scalar.INT64: "int64_t",
    Scalar.UINT64: "uint64_t",
    Scalar.SIZE: "size_t",
    Scalar.FLOAT32: "float",
}


class CTypes(Writer):
    """The part of the C writer for names and types."""

    @override
    def declared(self, type_: Type, name: str = "") -> str:
        return self._declared(type_, self._name(name) if name else "")

    def _name(self, name: str) -> str:
        """Return a name; FerruleError if it is not an identifier of the language."""
        return c_name(name)

    def _lacks(self, what: str, node: object) -> UnsupportedError:
        """Return the error for a node that the language does not have."""
        name = getattr(node, "name", "")
        found = f"{type(node).__name__} '{name}'" if name else type(node).__name__
        return UnsupportedError(f"{self.language} has no {what}, got {found}")

    def _declared(self, type_: Type, name: str) -> str:
        """Return the declaration of a declarator, such as a name behind a star."""
        match type_:
            case Scalar():
                return _join(_SCALARS[type_], name)
            case StructType(tag):
                return _join(f"struct {self._name(tag)}", name)
            case ClassType():
                return _join(self._class_type(type_), name)
            case Const(Pointer() as pointer):
                return self._declared(pointer.target, f"*const {name}".rstrip())
            case Const(inner):
                return f"const {self._declared(inner, name)}"
            case Pointer(target):
                return self._indirect(target, f"*{name}")
            case Reference():
                return self._reference(type_, name)
            case ArrayType(element, length):
                return self._declared(element, f"{name}[{'' if length is None else length}]")
            case _:
                assert_never(type_)

    def _indirect(self, target: Type, declarator: str) -> str:
        """Return the declaration of a pointer or reference, such as `*name`, to a type."""
        return self._declared(target, f"({declarator})" if isinstance(target, ArrayType) else declarator)

    def _class_type(self, node: ClassType) -> str:
        raise self._lacks("classes", node)

    def _reference(self, node: Reference, _name: str) -> str:
        raise self._lacks("references", node)


def _join(type_name: str, name: str) -> str:
    return f"{type_name} {name}" if name else type_name
