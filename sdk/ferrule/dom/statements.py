# SPDX-License-Identifier: Apache-2.0
"""Statements of the document model."""

from __future__ import annotations

from dataclasses import dataclass

from ferrule.dom.expressions import Expression
from ferrule.dom.types import Type


@dataclass(frozen=True, slots=True)
class Evaluate:
    """An expression evaluated for its effect."""

    expression: Expression


@dataclass(frozen=True, slots=True)
class Declare:
    """A local variable."""

    name: str
    type: Type
    value: Expression | None = None


@dataclass(frozen=True, slots=True)
class Assign:
    """The assignment of a value to a target."""

    target: Expression
    value: Expression


@dataclass(frozen=True, slots=True)
class Block:
    """Statements in their own scope."""

    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class If:
    """A conditional statement with an optional alternative."""

    condition: Expression
    then: Block
    otherwise: Block | None = None


@dataclass(frozen=True, slots=True)
class While:
    """Statements repeated as long as a condition holds before them."""

    condition: Expression
    body: Block


@dataclass(frozen=True, slots=True)
class Return:
    """A return from the function, with or without a value."""

    value: Expression | None = None


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment on its own lines."""

    text: str


Statement = Evaluate | Declare | Assign | Block | If | While | Return | Comment
