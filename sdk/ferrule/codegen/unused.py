# SPDX-License-Identifier: Apache-2.0
"""Removes unused local variables, such as a model input that no layer reads, since compilers warn about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass

from ferrule.dom import Declare, Identifier, Statement


def without_unused(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    """Return the statements without the declarations of variables that no other statement names."""
    body = tuple(statements)
    named = names_in(body)
    return tuple(item for item in body if not isinstance(item, Declare) or item.name in named)


def names_in(statements: Iterable[Statement]) -> frozenset[str]:
    """Return the identifiers that occur in statements; the variable of a declaration does not count."""
    return frozenset(_names(tuple(statements)))


def _names(node: object) -> Iterator[str]:
    if isinstance(node, Identifier):
        yield node.name
    elif isinstance(node, tuple):
        for item in node:
            yield from _names(item)
    elif is_dataclass(node):
        for field in fields(node):
            yield from _names(getattr(node, field.name))
