# SPDX-License-Identifier: Apache-2.0
"""Spells statements in C."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from ferrule.codegen.c_expressions import CExpressions
from ferrule.codegen.c_layout import INDENT, filled, remark
from ferrule.dom import (
    Aggregate,
    Assign,
    Block,
    Call,
    Comment,
    Declare,
    Evaluate,
    Expression,
    For,
    If,
    Return,
    Statement,
)
from ferrule.rendering.c_text import COLUMNS


class CStatements(CExpressions):
    """The part of the C writer for statements; each begins with its indentation and ends before the end of its line."""

    def statement(self, item: Statement, indent: str) -> str:
        """Return a statement."""
        match item:
            case Evaluate(value):
                return self._call_line(indent, value)
            case Declare():
                return self._declare_local(item, indent)
            case Assign(target, value):
                return self._assignment(f"{indent}{self.expression(target)}", value, indent)
            case Block():
                return self.block(item, indent)
            case If():
                return self._if(item, indent)
            case For():
                return self._for(item, indent)
            case Return(value):
                return f"{indent}return;" if value is None else self._call_line(f"{indent}return ", value)
            case Comment(text):
                return remark(text, indent)
            case _:
                assert_never(item)

    def block(self, block: Block, indent: str) -> str:
        """Return statements in braces."""
        body = "".join(f"{self.statement(item, indent + INDENT)}\n" for item in block.statements)
        return f"{indent}{{\n{body}{indent}}}"

    def _declare_local(self, item: Declare, indent: str) -> str:
        head = f"{indent}{self.declared(item.type, item.name)}"
        return f"{head};" if item.value is None else self._assignment(head, item.value, indent)

    def _if(self, item: If, indent: str) -> str:
        text = f"{indent}if ({self.expression(item.condition)}) {self.block(item.then, indent).lstrip()}"
        if item.otherwise is not None:
            text += f" else {self.block(item.otherwise, indent).lstrip()}"
        return text

    def _for(self, item: For, indent: str) -> str:
        variable, stop = self._name(item.variable), self.expression(item.stop)
        head = f"for (int32_t {variable} = {self.expression(item.start)}; {variable} < {stop}; ++{variable})"
        return f"{indent}{head} {self.block(item.body, indent).lstrip()}"

    def _assignment(self, head: str, value: Expression, indent: str) -> str:
        line = f"{head} = {self.expression(value)};"
        if len(line) <= COLUMNS:
            return line
        alone = f"{indent}{INDENT}{self.expression(value)};"
        if self._invocation(value) is not None and len(alone) > COLUMNS:
            text = self._call_line(f"{head} = ", value)
            if all(len(part) <= COLUMNS for part in text.splitlines()):
                return text
            return f"{head} =\n{self._call_line(indent + INDENT, value)}"
        if isinstance(value, Aggregate):
            return f"{head} = {{\n{indent}{INDENT}{self.expression(value)[1:]};"
        return f"{head} =\n{alone}"

    def _call_line(self, indent: str, value: Expression) -> str:
        line = f"{indent}{self.expression(value)};"
        if len(line) <= COLUMNS:
            return line
        invocation = self._invocation(value)
        if invocation is None:
            return line
        callee, arguments = invocation
        return filled(f"{indent}{callee}(", [self.expression(argument) for argument in arguments], ");")

    def _invocation(self, value: Expression) -> tuple[str, Sequence[Expression]] | None:
        """Return what an expression calls and the arguments; None for other expressions."""
        return (self._primary(value.function), value.arguments) if isinstance(value, Call) else None
