# SPDX-License-Identifier: Apache-2.0
"""Small faults for Python and C sources: operators, constants, conditions, and omitted statements."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ferrule._typing import override


@dataclass(frozen=True, slots=True, order=True)
class Mutant:
    """A span of a file and its replacement."""

    file: str
    """The path relative to the repository's root."""
    start: int
    end: int
    new: str
    is_condition: bool = field(default=False, compare=False)
    """Whether a decision changes: a comparison, `and`, `or`, `not`, the negated test of a branch or of a filter."""

    def applied(self, text: str) -> str:
        """Return the file's text with the replacement made."""
        return text[: self.start] + self.new + text[self.end :]

    def lines(self, text: str) -> tuple[int, str, str]:
        """Return the number of the first changed line, and the changed lines before and after."""
        first, last = text.rfind("\n", 0, self.start) + 1, text.find("\n", self.end)
        before = text[first : last if last >= 0 else None]
        after = self.applied(text)[first : len(self.applied(text)) - (len(text) - first - len(before))]
        return text.count("\n", 0, self.start) + 1, " ".join(before.split()), " ".join(after.split())


_COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.Is: ("is", "is not"),
}
_ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "//"),
    ast.FloorDiv: ("//", "*"),
    ast.Div: ("/", "*"),
    ast.Mod: ("%", "//"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}


class _PythonSites(ast.NodeVisitor):
    """Finds the mutable places of a module; annotations, decorators, docstrings and message texts stay."""

    def __init__(self, file: str, text: str) -> None:
        self._file = file
        self._lines = [0]
        for line in text.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self._text = text
        self.found: list[Mutant] = []

    def _at(self, line: int, column: int) -> int:
        start = self._lines[line - 1]
        piece = self._text[start : self._lines[line]].encode()[:column]
        return start + len(piece.decode())

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _replace(self, node: ast.expr | ast.stmt, new: str, *, is_condition: bool = False) -> None:
        self.found.append(Mutant(self._file, *self._span(node), new, is_condition))

    def _negate(self, test: ast.expr) -> None:
        start, end = self._span(test)
        self._replace(test, f"not ({self._text[start:end]})", is_condition=True)

    def _between(self, left: ast.expr, right: ast.expr, old: str, new: str, *, is_condition: bool = False) -> None:
        start, end = self._span(left)[1], self._span(right)[0]
        matched = re.search(rf"(?<![^\s)]){re.escape(old)}(?![^\s(])", self._text[start:end])
        if matched is not None:
            self.found.append(Mutant(self._file, start + matched.start(), start + matched.end(), new, is_condition))

    @override
    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._block(node.body)
        for default in (*node.args.defaults, *(each for each in node.args.kw_defaults if each is not None)):
            self.visit(default)

    @override
    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        if not any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases):
            self._block(node.body)

    def _block(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self.visit(statement)

    @override
    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    @override
    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave f-strings, which are messages, unchanged."""

    def _condition(self, node: ast.If | ast.While | ast.IfExp) -> None:
        if ast.unparse(node.test) != "TYPE_CHECKING":
            self._negate(node.test)
            self.generic_visit(node)

    visit_If = visit_While = visit_IfExp = _condition  # noqa: N815 - names of ast

    @override
    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._negate(test)
        self.generic_visit(node)

    @override
    def visit_Compare(self, node: ast.Compare) -> None:
        for left, operator, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
            if type(operator) in _COMPARISONS:
                self._between(left, right, *_COMPARISONS[type(operator)], is_condition=True)
        self.generic_visit(node)

    @override
    def visit_BinOp(self, node: ast.BinOp) -> None:
        if type(node.op) in _ARITHMETIC and not isinstance(node.left, ast.JoinedStr):
            self._between(node.left, node.right, *_ARITHMETIC[type(node.op)])
        self.generic_visit(node)

    @override
    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._between(left, right, old, new, is_condition=True)
        self.generic_visit(node)

    @override
    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            start, end = self._span(node.operand)
            self._replace(node, f"bool({self._text[start:end]})", is_condition=True)
        self.generic_visit(node)

    @override
    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._replace(node, str(not node.value))
        elif isinstance(node.value, int | float):
            self._replace(node, f"({ast.unparse(node)} + 1)")
            self._replace(node, f"({ast.unparse(node)} - 1)")

    @override
    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self._replace(node, "pass")
        self.generic_visit(node)

    @override
    def visit_Assign(self, node: ast.Assign) -> None:
        if all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
            self._replace(node, "pass")
        self.visit(node.value)

    def _remove(self, node: ast.stmt) -> None:
        self._replace(node, "pass")
        if isinstance(node, ast.AugAssign):
            self.visit(node.value)

    visit_AugAssign = visit_Raise = visit_Continue = visit_Break = _remove  # noqa: N815 - names of ast

    @override
    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and ast.unparse(node.value) != "None":
            self._replace(node, "return None")
        elif node.value is None:
            self._replace(node, "pass")
        self.generic_visit(node)


_C_OPERATORS = {
    old: new
    for one, other in (("==", "!="), ("<", "<="), (">", ">="), ("&&", "||"), ("+", "-"), ("*", "/"), ("<<", ">>"))
    for old, new in ((one, other), (other, one))
} | {"&": "|", "|": "&", "^": "&", "%": "/", "+=": "-=", "-=": "+=", "|=": "&=", "&=": "|=", "++": "--", "--": "++"}
_C_DECISIONS = frozenset({"==", "!=", "<", "<=", ">", ">=", "&&", "||"})
_C_TOKEN = re.compile(
    r"(?P<skip>/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'"
    r"|^[ \t]*#[ \t]*(?!define)\w+(?:\\\n|[^\n])*|^[ \t]*#[ \t]*define[ \t]+\w+)"
    r"|(?P<float>\b\d+\.\d*(?:[eE][-+]?\d+)?[fF]?)"
    r"|(?P<number>\b(?:0[xX][0-9a-fA-F]+|\d+)[uUlL]*\b(?!\.))"
    r"|(?P<operator>(?<= )(?:[=!<>]=|&&|\|\||<<|>>|[-+|&]=|[-+*/%<>&|^])(?=[ \n])|\+\+|--)"
    r"|(?P<word>\w+|.)",
    re.DOTALL | re.MULTILINE,
)
_C_STATEMENT = re.compile(
    r"^[ \t]+((?:[\w.>()*-]|\[[^]\n]*\])+(?: [-+|&^*]?= [^;{}\n]+|\([^;{}\n]*\)|\+\+|--)|break|continue);", re.MULTILINE
)
_C_CONDITION = re.compile(r"^[ \t]+(?:\} else )?(?:if|while) \((.*)\) \{$", re.MULTILINE)


def _c_sites(file: str, text: str) -> Iterator[Mutant]:
    skipped = [False] * len(text)
    for token in _C_TOKEN.finditer(text):
        if token["skip"] is not None:
            skipped[token.start() : token.end()] = [True] * (token.end() - token.start())
        elif token["number"] is not None:
            digits = token["number"].rstrip("uUlL")
            suffix = token["number"][len(digits) :]
            value = int(digits, 0)
            changed = {value + 1, abs(value - 1)}
            yield from (Mutant(file, token.start(), token.end(), f"{each}{suffix}") for each in sorted(changed))
        elif token["operator"] is not None:
            operator = token["operator"]
            yield Mutant(file, token.start(), token.end(), _C_OPERATORS[operator], operator in _C_DECISIONS)
    for statement in _C_STATEMENT.finditer(text):
        if not skipped[statement.start(1)]:
            yield Mutant(file, statement.start(1), statement.end(1), "(void)0")
    for condition in _C_CONDITION.finditer(text):
        if not skipped[condition.start(1)]:
            yield Mutant(file, condition.start(1), condition.end(1), f"!({condition[1]})", is_condition=True)


def sites(file: str, text: str) -> list[Mutant]:
    """Return every mutant of a file, in text order."""
    if file.endswith(".py"):
        visitor = _PythonSites(file, text)
        visitor.visit(ast.parse(text))
        return sorted(visitor.found, key=lambda each: (each.start, each.end, each.new))
    return sorted(_c_sites(file, text), key=lambda each: (each.start, each.end, each.new))
