# SPDX-License-Identifier: Apache-2.0
"""Spells types and declarators in C."""

from __future__ import annotations

from collections.abc import Mapping

from ferrule.dom import ArrayType, ClassType, Const, Pointer, Reference, Scalar, StructType, Type
from ferrule.rendering.c_text import c_name

SCALAR_NAMES: Mapping[Scalar, str] = {
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


def declarator(type_: Type, name: str = "") -> str:
    """Return the C declaration of `name` with a type, or just the type if `name` is empty.

    Raises:
        TypeError: the type contains a class, which C does not have.
        FerruleError: the name, or the tag of a struct, is not an identifier of C.
    """
    return _declared(type_, c_name(name) if name else "")


def _declared(type_: Type, name: str) -> str:
    match type_:
        case Scalar():
            return _join(SCALAR_NAMES[type_], name)
        case StructType(tag):
            return _join(f"struct {c_name(tag)}", name)
        case Const(Pointer() as pointer):
            return _declared(pointer.target, f"*const {name}".rstrip())
        case Const(inner):
            return f"const {_declared(inner, name)}"
        case Pointer(target):
            return _declared(target, f"*{name}")
        case ArrayType(element, length):
            return _declared(element, f"{name}[{'' if length is None else length}]")
        case ClassType(class_name):
            raise TypeError(f"C has no class '{class_name}'")
        case Reference():
            raise TypeError("C has no references")


def _join(type_name: str, name: str) -> str:
    return f"{type_name} {name}" if name else type_name
