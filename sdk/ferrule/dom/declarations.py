# SPDX-License-Identifier: Apache-2.0
"""Declarations of the document model, and the module that contains them."""

from __future__ import annotations

from enum import Enum, auto

from ferrule._frozen import frozen, positional
from ferrule.dom.expressions import Expression
from ferrule.dom.statements import Block
from ferrule.dom.types import Scalar, Type


class Linkage(Enum):
    """The visibility of a function or variable."""

    INTERNAL = auto()
    """Visible in its own module only."""
    EXTERNAL = auto()
    """Visible everywhere: declared in the header and defined in the source."""
    INLINE = auto()
    """A function that the header defines: only the programs that call it contain it."""


class Section(Enum):
    """A place for data other than the default one; the target's headers define how data gets there."""

    IDENTITY = auto()
    WEIGHTS = auto()
    WORKSPACE = auto()


@positional
class Variable:
    """A variable at module level."""

    name: str
    type: Type
    value: Expression | None = None
    linkage: Linkage = Linkage.INTERNAL
    section: Section | None = None
    memory: str = ""
    """The name of a memory of the board that holds it; empty for the place that `section` states."""
    alignment: int | None = None
    """In bytes; None for the type's natural alignment."""
    doc: str = ""


@positional
class Parameter:
    """A parameter of a function; without a name, it is not used."""

    name: str
    type: Type


@positional
class Function:
    """A function, or only its declaration if there is no body."""

    name: str
    returns: Type
    parameters: tuple[Parameter, ...] = ()
    body: Block | None = None
    linkage: Linkage = Linkage.INTERNAL
    doc: str = ""


@positional
class StructMember:
    """A member of a structure."""

    name: str
    type: Type
    doc: str = ""


@positional
class Struct:
    """The definition of a structure; it has at least one member, ValueError if not."""

    name: str
    members: tuple[StructMember, ...]
    doc: str = ""

    def __post_init__(self) -> None:
        if not self.members:
            raise ValueError(f"structure '{self.name}' has no member, expected at least one")


@positional
class Enumerator:
    """A named integer constant of at most 32 bits; ValueError for more."""

    name: str
    value: int
    doc: str = ""

    def __post_init__(self) -> None:
        if not -(1 << 31) <= self.value < 1 << 32:
            raise ValueError(f"enumerator '{self.name}' of {self.value.bit_length()} bits, expected at most 32")


@positional
class Enumeration:
    """Named integer constants, at least one; ValueError if there is none."""

    enumerators: tuple[Enumerator, ...]
    name: str | None = None
    doc: str = ""

    def __post_init__(self) -> None:
        if not self.enumerators:
            raise ValueError("an enumeration without enumerators, expected at least one")


@positional
class Constant:
    """A named number, which takes no memory."""

    name: str
    type: Scalar
    value: Expression
    doc: str = ""


class Visibility(Enum):
    """Where a member of a class can be used."""

    PUBLIC = auto()
    PROTECTED = auto()
    """In the class and the classes derived from it."""
    PRIVATE = auto()


@positional
class Attribute:
    """A variable that each object of a class has."""

    name: str
    type: Type
    visibility: Visibility = Visibility.PRIVATE
    doc: str = ""


@frozen
class Method:
    """A function of a class; `body` is its definition."""

    name: str
    returns: Type
    parameters: tuple[Parameter, ...] = ()
    body: Block
    visibility: Visibility = Visibility.PUBLIC
    constant: bool = False
    """Whether it leaves the object as it is."""
    virtual: bool = False
    """Whether derived classes may replace it."""
    doc: str = ""


@positional
class Initialiser:
    """The arguments with which a constructor makes an attribute, or another constructor of the class makes the object.

    A constructor that delegates has one initialiser, with the name of the class.
    """

    name: str
    arguments: tuple[Expression, ...] = ()


@frozen
class Constructor:
    """A constructor: it makes the attributes by the initialisers, and then runs `body`."""

    parameters: tuple[Parameter, ...] = ()
    initialisers: tuple[Initialiser, ...] = ()
    body: Block
    visibility: Visibility = Visibility.PUBLIC
    doc: str = ""


@frozen
class Destructor:
    """A destructor that releases the attributes and does nothing else; virtual, so that derived classes are safe."""

    doc: str = ""


ClassMember = Attribute | Method | Constructor | Destructor


@frozen
class Class:
    """A class with the definitions of its methods."""

    name: str
    members: tuple[ClassMember, ...] = ()
    doc: str = ""


Declaration = Variable | Function | Struct | Enumeration | Constant | Class


class IncludeKind(Enum):
    """Where the interface of another module comes from."""

    MODULE = auto()
    """A module of the generated program; the path is the module's name, without the suffix of its file."""
    PROJECT = auto()
    """From the program itself."""
    LIBRARY = auto()
    """From a library that the program uses."""
    STANDARD = auto()
    """From the language's own library."""


@positional
class Include:
    """Another module's interface."""

    path: str
    kind: IncludeKind = IncludeKind.PROJECT


def includes(*paths: str, kind: IncludeKind = IncludeKind.PROJECT) -> tuple[Include, ...]:
    """Return the includes of the paths that are not empty."""
    return tuple(Include(path, kind) for path in paths if path)


@frozen
class Module:
    """A program module: its public interface and its implementation.

    A class of the interface, and a declaration with external linkage, is in `interface`, to be declared, and in
    `implementation`, to be defined; ValueError for a class that is not defined.
    """

    name: str
    doc: str
    interface_includes: tuple[Include, ...] = ()
    interface: tuple[Declaration, ...] = ()
    implementation_includes: tuple[Include, ...] = ()
    implementation: tuple[Declaration, ...] = ()

    def __post_init__(self) -> None:
        defined = {item.name for item in self.implementation if isinstance(item, Class)}
        for item in self.interface:
            if isinstance(item, Class) and item.name not in defined:
                raise ValueError(
                    f"class '{item.name}' is in the interface of module '{self.name}', but not in its implementation"
                )
