# SPDX-License-Identifier: Apache-2.0
"""Statements of the document model."""

from __future__ import annotations

from dataclasses import dataclass

from ferrule.dom.expressions import Expression
from ferrule.dom.types import Type


@dataclass(frozen=True, slots=True)
class Evaluate:
    """An expression for its effect."""

    expression: Expression


@dataclass(frozen=True, slots=True)
class Declare:
    """A local variable."""

    name: str
    type: Type
    value: Expression | None = None


@dataclass(frozen=True, slots=True)
class Assign:
    """target = value."""

    target: Expression
    value: Expression


@dataclass(frozen=True, slots=True)
class Block:
    """Statements in a scope of their own."""

    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class If:
    """A choice."""

    condition: Expression
    then: Block
    otherwise: Block | None = None


@dataclass(frozen=True, slots=True)
class For:
    """Counts `variable`, an int32, from `start` up to and without `stop`."""

    variable: str
    start: Expression
    stop: Expression
    body: Block


@dataclass(frozen=True, slots=True)
class Return:
    """Leaves the function."""

    value: Expression | None = None


@dataclass(frozen=True, slots=True)
class Comment:
    """A remark for the reader, on lines of its own."""

    text: str


@dataclass(frozen=True, slots=True)
class Assembly:
    """Verbatim text for one target; the only node that is not portable."""

    text: str


Statement = Evaluate | Declare | Assign | Block | If | For | Return | Comment | Assembly
