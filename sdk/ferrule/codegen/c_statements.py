# SPDX-License-Identifier: Apache-2.0
"""Spells statements in C."""

from __future__ import annotations

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
    If,
    Return,
    Statement,
    While,
)
from ferrule.rendering.c_text import COLUMNS


class CStatements(CExpressions):
    """The part of the C writer for statements; each begins with its indentation and ends before the end of its line."""

    def statement(self, item: Statement, indent: str) -> str:
        """Return a statement."""
        match item:
            case Evaluate(value):
                return self._wrapped(indent, value)
            case Declare():
                return self._declare_local(item, indent)
            case Assign(target, value):
                return self._assignment(f"{indent}{self.expression(target)}", value, indent)
            case Block():
                return self.block(item, indent)
            case If():
                return self._if(item, indent)
            case While(condition, body):
                return f"{indent}while ({self.expression(condition)}) {self.block(body, indent).lstrip()}"
            case Return(value):
                return f"{indent}return;" if value is None else self._wrapped(f"{indent}return ", value)
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

    def _assignment(self, head: str, value: Expression, indent: str) -> str:
        line = f"{head} = {self.expression(value)};"
        if len(line) <= COLUMNS:
            return line
        alone = f"{indent}{INDENT}{self.expression(value)};"
        if isinstance(value, Call) and len(alone) > COLUMNS:
            text = self._wrapped(f"{head} = ", value)
            if all(len(part) <= COLUMNS for part in text.splitlines()):
                return text
            return f"{head} =\n{self._wrapped(indent + INDENT, value)}"
        if isinstance(value, Aggregate):
            return f"{head} = {{\n{indent}{INDENT}{self.expression(value)[1:]};"
        return f"{head} =\n{alone}"

    def _wrapped(self, start: str, value: Expression) -> str:
        """Return a start, an expression and a semicolon, on several lines if one is too short."""
        line = f"{start}{self.expression(value)};"
        if len(line) <= COLUMNS or not isinstance(value, Call):
            return line
        return filled(f"{start}{self._callee(value)}(", [self.expression(each) for each in value.arguments], ");")
