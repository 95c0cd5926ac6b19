# SPDX-License-Identifier: Apache-2.0
"""Types of the document model."""

from __future__ import annotations

from enum import Enum, auto

from ferrule._frozen import positional


class Scalar(Enum):
    """A built-in type; the writers define its spelling."""

    VOID = auto()
    BOOL = auto()
    CHAR = auto()
    INT8 = auto()
    UINT8 = auto()
    INT16 = auto()
    UINT16 = auto()
    INT32 = auto()
    UINT32 = auto()
    INT64 = auto()
    UINT64 = auto()
    SIZE = auto()
    FLOAT32 = auto()


@positional
class StructType:
    """A structure type, given by its tag."""

    name: str


@positional
class ClassType:
    """A class type: its name in a namespace, and the arguments of its template."""

    name: str
    namespace: tuple[str, ...] = ()
    """The names of the namespaces, and of the classes, that contain it, outermost first."""
    arguments: tuple[Type, ...] = ()


@positional
class Const:
    """A type whose values cannot be modified."""

    type: Type


@positional
class Pointer:
    """A pointer; `Pointer(Const(x))` points to constant data."""

    target: Type


@positional
class Reference:
    """A reference to an object; `Reference(Const(x))` cannot modify it."""

    target: Type


@positional
class ArrayType:
    """An array type; without a length, the initialiser determines it."""

    element: Type
    length: int | None = None


Type = Scalar | StructType | ClassType | Const | Pointer | Reference | ArrayType
