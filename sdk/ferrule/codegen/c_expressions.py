# SPDX-License-Identifier: Apache-2.0
"""Spells expressions in C."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, assert_never

import numpy as np
from numpy.typing import NDArray

from ferrule.codegen.c_types import CTypes
from ferrule.dom import (
    AddressOf,
    Aggregate,
    ArrayData,
    Binary,
    BinaryOperator,
    Boolean,
    Call,
    Cast,
    Construct,
    Dereference,
    Expression,
    Field,
    Float,
    Identifier,
    Index,
    Integer,
    Member,
    Not,
    Null,
    QualifiedName,
    String,
)
from ferrule.rendering.c_text import string_literal

_BINARY: Mapping[BinaryOperator, str] = {
    BinaryOperator.ADD: "+",
    BinaryOperator.EQUAL: "==",
    BinaryOperator.NOT_EQUAL: "!=",
    BinaryOperator.LESS: "<",
    BinaryOperator.OR: "||",
}
_RANK: Mapping[BinaryOperator, int] = {
    BinaryOperator.OR: 0,
    BinaryOperator.EQUAL: 1,
    BinaryOperator.NOT_EQUAL: 1,
    BinaryOperator.LESS: 2,
    BinaryOperator.ADD: 3,
}


class CExpressions(CTypes):
    """The part of the C writer for expressions; each is on one line, with the parentheses that it needs."""

    _loose: ClassVar[tuple[type[Expression], ...]] = (Binary, Cast)
    """The expressions that stand in parentheses as operands."""
    _null: ClassVar[str] = "NULL"
    """The null pointer."""

    def expression(self, node: Expression) -> str:
        """Return an expression on one line."""
        match node:
            case Identifier(name):
                return self._name(name)
            case QualifiedName():
                return self._qualified_name(node)
            case Integer(value, unsigned):
                return self.integer(value, unsigned=unsigned)
            case Float(value):
                return self.float(np.float32(value))
            case Boolean(value):
                return "true" if value else "false"
            case String(value):
                return string_literal(value)
            case Null():
                return self._null
            case Call() | Construct():
                return f"{self._callee(node)}({', '.join(map(self.expression, node.arguments))})"
            case Member(Dereference(pointer), name):
                return f"{self._primary(pointer)}->{self._name(name)}"
            case Member(whole, name):
                return f"{self._primary(whole)}.{self._name(name)}"
            case Index(array, index):
                return f"{self._primary(array)}[{self.expression(index)}]"
            case AddressOf(operand):
                return f"&{self._operand(operand)}"
            case Dereference(operand):
                return f"*{self._operand(operand)}"
            case Not(operand):
                return f"!{self._operand(operand)}"
            case Binary():
                return self._binary(node)
            case Cast():
                return self._cast(node)
            case Aggregate(fields):
                return "{" + ", ".join(map(self._field, fields)) + "}"
            case ArrayData(values):
                return "{" + ", ".join(self.literals(values)) + "}"
            case _:
                assert_never(node)

    def integer(self, value: int, *, unsigned: bool = False) -> str:
        """Return a literal for any 64-bit integer."""
        if unsigned or value >= 1 << 63:
            return f"{value}U" if value < 1 << 32 else self._wide(value, unsigned=True)
        if value == -(1 << 31):
            return "(-2147483647 - 1)"
        if -(1 << 31) < value < 1 << 31:
            return str(value)
        return f"{value}U" if 0 < value < 1 << 32 else self._wide(value)

    def _wide(self, value: int, *, unsigned: bool = False) -> str:
        """Return a literal for an integer of more than 32 bits."""
        if unsigned:
            return f"UINT64_C({value})"
        if value == -(1 << 63):
            return "INT64_MIN"
        return f"INT64_C({value})" if value >= 0 else f"-INT64_C({-value})"

    def float(self, value: np.float32) -> str:
        """Return the shortest literal that reads back to the same float32."""
        if not np.isfinite(value):
            return self._not_finite(value)
        text = str(value)
        return f"{text}f" if "." in text or "e" in text else f"{text}.0f"

    def _not_finite(self, value: np.float32) -> str:
        """Return an infinity or a NaN.

        C has no literals for them, and freestanding C has no <math.h>: they become constant divisions (C11, F.8.5). The
        sign and the payload of a NaN are not kept.
        """
        return "(0.0f / 0.0f)" if np.isnan(value) else f"({'-' if value < 0 else ''}1.0f / 0.0f)"

    def literals(self, values: NDArray[Any]) -> list[str]:
        """Return the literals of an array's elements, flattened."""
        flat = np.ascontiguousarray(values).reshape(-1)
        if flat.dtype == np.float32:
            return [self.float(value) for value in flat]
        items: list[int] = (flat.view(np.uint8) if flat.dtype == np.bool_ else flat).tolist()
        if flat.dtype.itemsize < 4:
            return list(map(str, items))
        return [self.integer(item) for item in items]

    def _qualified_name(self, node: QualifiedName) -> str:
        raise self._lacks("namespaces", node)

    def _callee(self, node: Call | Construct) -> str:
        """Return what an expression calls."""
        return self._primary(node.function) if isinstance(node, Call) else self._class_type(node.type)

    def _cast(self, node: Cast) -> str:
        return f"({self.declared(node.type)}){self._operand(node.operand)}"

    def _field(self, field: Field) -> str:
        value = self.expression(field.value)
        return f"{self._designator(field)} = {value}" if field.name else value

    def _designator(self, field: Field) -> str:
        return f".{self._name(field.name or '')}"

    def _binary(self, node: Binary) -> str:
        rank = _RANK[node.operator]
        sides = []
        for side, tighter in ((node.left, rank), (node.right, rank + 1)):
            binds = isinstance(side, Binary) and _RANK[side.operator] >= tighter
            sides.append(self.expression(side) if binds else self._operand(side))
        return f"{sides[0]} {_BINARY[node.operator]} {sides[1]}"

    def _operand(self, node: Expression) -> str:
        """Return the operand of an operator."""
        text = self.expression(node)
        return f"({text})" if isinstance(node, self._loose) or _is_negative(node) else text

    def _primary(self, node: Expression) -> str:
        """Return the function, array or object that a suffix belongs to."""
        return f"({self.expression(node)})" if isinstance(node, AddressOf | Dereference | Not) else self._operand(node)


def _is_negative(node: Expression) -> bool:
    return isinstance(node, Integer | Float) and node.value < 0
