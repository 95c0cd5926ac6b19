# SPDX-License-Identifier: Apache-2.0
"""Statements of the document model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache

from ferrule._frozen import positional
from ferrule.dom.expressions import Expression, Identifier
from ferrule.dom.types import Type


@positional
class Evaluate:
    """An expression evaluated for its effect."""

    expression: Expression


@positional
class Declare:
    """A local variable."""

    name: str
    type: Type
    value: Expression | None = None


@positional
class Assign:
    """The assignment of a value to a target."""

    target: Expression
    value: Expression


@positional
class Block:
    """Statements in their own scope."""

    statements: tuple[Statement, ...]


@positional
class If:
    """A conditional statement with an optional alternative."""

    condition: Expression
    then: Block
    otherwise: Block | None = None


@positional
class While:
    """Statements repeated as long as a condition holds before them."""

    condition: Expression
    body: Block


@positional
class Return:
    """A return from the function, with or without a value."""

    value: Expression | None = None


@positional
class Comment:
    """A comment on its own lines."""

    text: str


Statement = Evaluate | Declare | Assign | Block | If | While | Return | Comment


def return_if(condition: Expression, value: Expression) -> If:
    """Return the statement that returns a value from the function if a condition holds."""
    return If(condition, Block((Return(value),)))


def names_in(node: object) -> Iterator[str]:
    """Yield the identifiers in a node, or in a tuple of nodes; a declaration does not name its own variable."""
    if isinstance(node, Identifier):
        yield node.name
    elif isinstance(node, tuple):
        for item in node:
            yield from names_in(item)
    else:
        kind: type = type(node)
        for part in _parts(kind):
            yield from names_in(getattr(node, part))


@cache
def _parts(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()
