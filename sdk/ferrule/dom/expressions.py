# SPDX-License-Identifier: Apache-2.0
"""Expressions of the document model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from enum import Enum, auto

import numpy as np
from numpy.typing import NDArray

from ferrule._frozen import frozen, positional
from ferrule.dom.types import ClassType, Type

_BEYOND_FLOAT32 = (2.0 - 2.0**-24) * 2.0**127
"""The least number that rounds to an infinite float32."""


class BinaryOperator(Enum):
    """The operator of a `Binary`."""

    ADD = auto()
    EQUAL = auto()
    NOT_EQUAL = auto()
    LESS = auto()
    OR = auto()


@positional
class Identifier:
    """A variable, function or enumerator, given by its name."""

    name: str


@positional
class QualifiedName:
    """A name in a namespace or class, such as an enumerator; `namespace` is outermost first and not empty."""

    namespace: tuple[str, ...]
    name: str

    def __post_init__(self) -> None:
        if not self.namespace:
            raise ValueError(f"the qualified name '{self.name}' has no namespace, expected at least one")


@positional
class Integer:
    """An integer literal of at most 64 bits; ValueError for more, and for a negative unsigned one."""

    value: int
    unsigned: bool = False

    def __post_init__(self) -> None:
        if not -(1 << 63) <= self.value < 1 << 64:
            raise ValueError(f"an integer literal of {self.value.bit_length()} bits, expected at most 64")
        if self.unsigned and self.value < 0:
            raise ValueError(f"an unsigned integer literal of {self.value}, expected 0 or more")


@positional
class Float:
    """A float32 literal, printed so that it reads back to the same bits; infinities and NaN have no literal."""

    value: float

    def __post_init__(self) -> None:
        if math.isfinite(self.value) and abs(self.value) >= _BEYOND_FLOAT32:
            raise ValueError(f"a float literal of {self.value}, which float32 cannot represent")


@positional
class Boolean:
    """True or false."""

    value: bool


@positional
class String:
    """A string literal; writers escape it."""

    value: str


@positional
class Null:
    """The null pointer."""


@positional
class Call:
    """A function call."""

    function: Expression
    arguments: tuple[Expression, ...] = ()


@positional
class Construct:
    """A new object of a class, made by the constructor that takes these arguments."""

    type: ClassType
    arguments: tuple[Expression, ...] = ()


@positional
class Member:
    """A member of a structure or class, a method too.

    If `object` is a `Dereference`, it is accessed through its pointer.
    """

    object: Expression
    name: str


@positional
class Index:
    """An element of an array."""

    array: Expression
    index: Expression


@positional
class AddressOf:
    """A pointer to its operand."""

    operand: Expression


@positional
class Dereference:
    """The object that a pointer points to."""

    operand: Expression


@positional
class Not:
    """Whether its operand is false."""

    operand: Expression


@positional
class Binary:
    """An operation with two operands."""

    operator: BinaryOperator
    left: Expression
    right: Expression


@positional
class Cast:
    """A value converted to another type."""

    type: Type
    operand: Expression


@positional
class Field:
    """One value of an aggregate; without a name, its position identifies the member."""

    value: Expression
    name: str | None = None


@positional
class Aggregate:
    """The initial value of a structure or an array of structures."""

    fields: tuple[Field, ...]


@frozen(eq=False, kw_only=False)
class ArrayData:
    """The initial value of an array of numbers: bool, integers or float32; any shape, printed flat.

    ValueError for other elements.
    """

    values: NDArray[np.generic]

    def __post_init__(self) -> None:
        if self.values.dtype.kind not in "iub" and self.values.dtype != np.float32:
            raise ValueError(f"an array of {self.values.dtype}, expected bool, integers or float32")


Expression = (
    Identifier
    | QualifiedName
    | Integer
    | Float
    | Boolean
    | String
    | Null
    | Call
    | Construct
    | Member
    | Index
    | AddressOf
    | Dereference
    | Not
    | Binary
    | Cast
    | Aggregate
    | ArrayData
)


def call_of(function: str, *arguments: Expression) -> Call:
    """Return the call of a function by its name."""
    return Call(Identifier(function), arguments)


def unsigned(value: int) -> Integer:
    """Return an unsigned integer literal."""
    return Integer(value, unsigned=True)


def elements(values: Iterable[Expression]) -> Aggregate:
    """Return an aggregate whose values are by position."""
    return Aggregate(tuple(map(Field, values)))


def designated(values: Mapping[str, Expression]) -> Aggregate:
    """Return an aggregate whose values are by the names of the members."""
    return Aggregate(tuple(Field(value, name) for name, value in values.items()))
