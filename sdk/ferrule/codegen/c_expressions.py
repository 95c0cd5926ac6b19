# SPDX-License-Identifier: Apache-2.0
"""Spells expressions in C."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ferrule.codegen.c_types import declarator
from ferrule.dom import (
    AddressOf,
    Aggregate,
    ArrayData,
    Binary,
    BinaryOperator,
    Boolean,
    Call,
    Cast,
    Dereference,
    Expression,
    Field,
    Float,
    Identifier,
    Index,
    Integer,
    Member,
    Null,
    SizeOf,
    String,
    Unary,
    UnaryOperator,
)
from ferrule.rendering.c_text import c_name, string_literal

_UNARY: Mapping[UnaryOperator, str] = {UnaryOperator.NEGATE: "-", UnaryOperator.NOT: "!"}
_BINARY: Mapping[BinaryOperator, str] = {
    BinaryOperator.ADD: "+",
    BinaryOperator.SUBTRACT: "-",
    BinaryOperator.MULTIPLY: "*",
    BinaryOperator.EQUAL: "==",
    BinaryOperator.NOT_EQUAL: "!=",
    BinaryOperator.LESS: "<",
    BinaryOperator.AND: "&&",
    BinaryOperator.OR: "||",
}
_RANK: Mapping[BinaryOperator, int] = {
    BinaryOperator.OR: 0,
    BinaryOperator.AND: 1,
    BinaryOperator.EQUAL: 2,
    BinaryOperator.NOT_EQUAL: 2,
    BinaryOperator.LESS: 3,
    BinaryOperator.ADD: 4,
    BinaryOperator.SUBTRACT: 4,
    BinaryOperator.MULTIPLY: 5,
}


def expression(node: Expression) -> str:
    """Return an expression on one line, with parentheses around operands that need them."""
    match node:
        case Call(function, arguments):
            return f"{_operand(function)}({', '.join(map(expression, arguments))})"
        case Member(Dereference(pointer), name):
            return f"{_operand(pointer)}->{c_name(name)}"
        case Member(whole, name):
            return f"{_operand(whole)}.{c_name(name)}"
        case Index(array, index):
            return f"{_operand(array)}[{expression(index)}]"
        case AddressOf(operand):
            return f"&{_operand(operand)}"
        case Dereference(operand):
            return f"*{_operand(operand)}"
        case Unary(operator, operand):
            return f"{_UNARY[operator]}{_operand(operand)}"
        case Binary():
            return _binary(node)
        case Cast(type_, operand):
            return f"({declarator(type_)}){_operand(operand)}"
        case Aggregate(fields):
            return "{" + ", ".join(_field(field) for field in fields) + "}"
        case ArrayData(values):
            return "{" + ", ".join(literals(values)) + "}"
        case _:
            return _primary(node)


def _primary(node: Expression) -> str:
    match node:
        case Identifier(name):
            return c_name(name)
        case Integer(value, unsigned):
            return f"{integer(value).removesuffix('U')}U" if unsigned else integer(value)
        case Float(value):
            return float_literal(np.float32(value))
        case Boolean(value):
            return "true" if value else "false"
        case String(value):
            return string_literal(value)
        case Null():
            return "NULL"
        case SizeOf(type_):
            return f"sizeof({declarator(type_)})"
        case _:
            raise TypeError(f"not an expression: {node!r}")


def _binary(node: Binary) -> str:
    rank = _RANK[node.operator]
    sides = []
    for side, tighter in ((node.left, rank), (node.right, rank + 1)):
        text = expression(side) if isinstance(side, Binary) else _operand(side)
        mixed = isinstance(side, Binary) and {node.operator, side.operator} == {BinaryOperator.AND, BinaryOperator.OR}
        loose = isinstance(side, Binary) and _RANK[side.operator] < tighter
        sides.append(f"({text})" if mixed or loose else text)
    return f"{sides[0]} {_BINARY[node.operator]} {sides[1]}"


def _operand(node: Expression) -> str:
    text = expression(node)
    return f"({text})" if isinstance(node, Binary | Cast) or _is_negative(node) else text


def _is_negative(node: Expression) -> bool:
    return isinstance(node, Integer | Float) and node.value < 0


def _field(field: Field) -> str:
    value = expression(field.value)
    return f".{c_name(field.name)} = {value}" if field.name else value


def integer(value: int) -> str:
    """Return a C literal for any 64-bit integer."""
    if value == -(2**31):
        return "(-2147483647 - 1)"
    if -(2**31) < value < 2**31:
        return str(value)
    if 2**31 <= value < 2**32:
        return f"{value}U"
    if value == -(2**63):
        return "INT64_MIN"
    if -(2**63) < value < 2**63:
        return f"INT64_C({value})" if value >= 0 else f"-INT64_C({-value})"
    raise ValueError(f"{value} does not fit into 64 bits")


def float_literal(value: np.float32) -> str:
    """Return the shortest literal that reads back to the same float32.

    C has no literals for infinities and NaN, and freestanding C has no <math.h>: they become constant divisions (C11,
    F.8.5). The sign and the payload of a NaN are not kept.
    """
    if not np.isfinite(value):
        return "(0.0f / 0.0f)" if np.isnan(value) else f"({'-' if value < 0 else ''}1.0f / 0.0f)"
    text = str(value)
    return f"{text}f" if "." in text or "e" in text else f"{text}.0f"


def literals(values: NDArray[Any]) -> list[str]:
    """Return the literals of an array's elements, flattened."""
    flat = np.ascontiguousarray(values).reshape(-1)
    if flat.dtype == np.float32:
        return [float_literal(value) for value in flat]
    items: list[int] = flat.tolist()
    if flat.dtype.itemsize < 4:
        return list(map(str, items))
    return [integer(item) for item in items]
