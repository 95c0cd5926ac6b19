# SPDX-License-Identifier: Apache-2.0
"""Declarations of the document model, and the module that holds them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from ferrule.dom.expressions import Expression
from ferrule.dom.statements import Block
from ferrule.dom.types import Type


class Linkage(Enum):
    """Who sees a function or variable."""

    INTERNAL = auto()
    """Its own module."""
    EXTERNAL = auto()
    """Everybody; defined in the source, declared in the header that it is also put in."""


class Section(Enum):
    """Where data is placed when the default will not do; the target's headers say how."""

    WEIGHTS = auto()
    WORKSPACE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A variable at module level."""

    name: str
    type: Type
    value: Expression | None = None
    linkage: Linkage = Linkage.INTERNAL
    section: Section | None = None
    alignment: int | None = None
    """Bytes; None for the type's own."""
    doc: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of a function."""

    name: str
    type: Type


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function; without a body only its declaration."""

    name: str
    returns: Type
    parameters: tuple[Parameter, ...] = ()
    body: Block | None = None
    linkage: Linkage = Linkage.INTERNAL
    doc: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StructMember:
    """A member of a structure."""

    name: str
    type: Type
    doc: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Struct:
    """The definition of a structure; it has at least one member."""

    name: str
    members: tuple[StructMember, ...]
    doc: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Enumerator:
    """A named constant of 32 bits at most."""

    name: str
    value: int
    doc: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Enumeration:
    """Named integer constants."""

    enumerators: tuple[Enumerator, ...]
    name: str | None = None
    doc: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Class:
    """A class, for writers of object-oriented languages."""

    name: str
    attributes: tuple[StructMember, ...] = ()
    methods: tuple[Function, ...] = ()
    doc: str = ""


Declaration = Variable | Function | Struct | Enumeration | Class


@dataclass(frozen=True, slots=True, kw_only=True)
class Include:
    """Another module's interface."""

    path: str
    system: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A program module: what it shows and what it keeps.

    A declaration with external linkage stands in `interface` (declared) and in `implementation` (defined).
    """

    name: str
    doc: str
    interface_includes: tuple[Include, ...] = ()
    interface: tuple[Declaration, ...] = ()
    implementation_includes: tuple[Include, ...] = ()
    implementation: tuple[Declaration, ...] = ()
