# SPDX-License-Identifier: Apache-2.0
"""Renders templates; each value is quoted by the context in which it stands.

The language of a template follows from its file name. While a template is compiled, its own text is read in that
language, so that the context of each value is known, and the context's quoting is put around the value. A template
cannot state another quoting or none; only a value of type `Verbatim` is written as it is.
"""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ferrule._typing import override
from ferrule.errors import FerruleError
from ferrule.reading import files_below
from ferrule.rendering.c_text import COLUMNS, c_argument, c_call
from ferrule.rendering.languages import Language, Region, language_of
from ferrule.rendering.quoting import Context, Verbatim, make_shell

if TYPE_CHECKING:
    import jinja2
    from jinja2 import nodes

_VALUE = "\0"
"""Stands for a value in the text that precedes it."""
_HEAD = re.compile(r"[A-Za-z0-9_ =*]*")
"""Beginnings of C statements: types, names and an assignment."""


class Templates:
    """A folder of templates."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def render(self, template: str, **values: object) -> str:
        """Return a template with its values filled in; a missing value is a bug in Ferrule.

        Raises:
            FerruleError: a value cannot be written at its place, such as a file name with a line break in a makefile.
        """
        return language_of(template).finish(self._environment.get_template(template).render(values))

    def render_folder(self, folder: str, **values: object) -> dict[str, str]:
        """Return the rendered templates of a folder by relative path without `.j2`."""
        top = self.folder / folder
        return {
            path.relative_to(top).with_suffix("").as_posix(): self.render(
                path.relative_to(self.folder).as_posix(), **values
            )
            for path in files_below(top, "*.j2")
        }

    @cached_property
    def _environment(self) -> jinja2.Environment:
        return environment(self.folder)


def environment(folder: Path) -> jinja2.Environment:
    """Return the environment of the templates in a folder."""
    import jinja2

    class Quoting(jinja2.Environment):
        """An environment whose templates are compiled with the quoting of their values."""

        @override
        def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
            tree = super()._parse(source, name, filename)
            Reader(language_of(name or ""), name or "", self).read(tree)
            return tree

    made = Quoting(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=False,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.globals |= {"c_call": _c_call, "c_variable": _c_variable}
    made.filters |= {"hex": _hex, "thousands": _thousands, "shell": make_shell}
    return made


class Reader:
    """Reads a template's tree in its language and puts the quoting of its context around each value."""

    def __init__(self, language: Language, name: str, environment: jinja2.Environment) -> None:
        self._language = language
        self._name = name
        self._environment = environment
        self._region: Region | None = None
        self._text = ""
        """The template's text so far, along one path through its conditions; a value is one character."""

    def read(self, tree: nodes.Template) -> None:
        """Put the quoting into a tree; ValueError if a value stands where its context does not allow one."""
        self._body(tree.body)
        if self._region is not None and self._region.closing.search("\n") is None:
            raise self._wrong(1, f"{self._context.name} is not closed")

    @property
    def _context(self) -> Context:
        return self._language.default if self._region is None else self._region.context

    def _body(self, body: list[nodes.Node]) -> None:
        from jinja2 import nodes

        for node in body:
            match node:
                case nodes.Output():
                    node.nodes = [self._piece(each) for each in node.nodes]
                case nodes.If():
                    self._branches(node.lineno, [node.body, *(each.body for each in node.elif_), node.else_])
                case nodes.For():
                    self._branches(node.lineno, [node.body, node.else_])
                case nodes.Include() if self._region is None:
                    pass
                case nodes.Assign():
                    pass
                case _:
                    raise self._wrong(node.lineno, f"a {type(node).__name__} can't be here")

    def _branches(self, line: int, bodies: list[list[nodes.Node]]) -> None:
        """Read parts of which one, or none, is written; all must end in the context in which they begin."""
        region, text = self._region, self._text
        for body in bodies:
            self._region, self._text = region, text
            self._body(body)
            if self._region is not region:
                raise self._wrong(line, f"a part begins in another context than it ends: {self._context.name}")

    def _piece(self, node: nodes.Expr) -> nodes.Expr:
        """Return a part of the output, with the quoting around it if it is a value."""
        from jinja2 import nodes

        if isinstance(node, nodes.TemplateData):
            self._advance(node.data, node.lineno)
            return node
        literals = _literals(node)
        if literals is not None:
            bodies: list[list[nodes.Node]] = [[nodes.Output([nodes.TemplateData(each)])] for each in literals]
            self._branches(node.lineno, bodies)
            return node
        context, before = self._context, self._text[-1:]
        if before and before in context.apart:
            raise self._wrong(node.lineno, f"a value follows {before!r} in {context.name}")
        if context.whole and before not in {"", " ", "\n"}:
            raise self._wrong(node.lineno, f"a value must begin after a space in {context.name}")
        self._text += _VALUE
        quoting = f"quote for {context.name}"
        self._environment.filters[quoting] = context.quote
        made = nodes.Filter(node, quoting, [], [], None, None, lineno=node.lineno)
        made.environment = self._environment
        return made

    def _advance(self, text: str, line: int) -> None:
        """Go on behind a piece of the template's own text."""
        after_value, context = self._text.endswith(_VALUE), self._context
        if after_value and text:
            if text[0] in context.apart:
                raise self._wrong(line, f"a value is followed by {text[0]!r} in {context.name}")
            if context.whole and (text[0].isalnum() or text[0] in "_.-/\"'"):
                raise self._wrong(line, f"a value must stand alone in {context.name}")
        at: int | None = len(self._text)
        self._text += text
        while at is not None:
            at = self._next_border(at)

    def _next_border(self, at: int) -> int | None:
        """Cross the next border between regions and return the place behind it; None if there is none."""
        if self._region is not None:
            end = self._region.closing.search(self._text, at)
            if end is None:
                return None
            self._region = None
            return end.end()
        found = [(each.opening.search(self._text, at), each) for each in self._language.regions]
        starts = [(match.start(), match.end(), region) for match, region in found if match is not None]
        if not starts:
            return None
        _, behind, self._region = min(starts, key=lambda each: each[0])
        return behind

    def _wrong(self, line: int, why: str) -> ValueError:
        return ValueError(f"template {self._name}, line {line}: {why}")


def _literals(node: nodes.Expr) -> list[str] | None:
    """Return the texts of an expression that chooses among texts of the template itself; None for other ones."""
    from jinja2 import nodes

    match node:
        case nodes.Const(value=str() as value):
            return [value]
        case nodes.CondExpr():
            first, second = _literals(node.expr1), _literals(node.expr2) if node.expr2 is not None else [""]
            return None if first is None or second is None else [*first, *second]
        case _:
            return None


def _hex(value: int, *, upper: bool = False) -> Verbatim:
    """Return an address or a word with 8 hexadecimal digits."""
    return Verbatim(f"0x{value:08X}" if upper else f"0x{value:08x}")


def _thousands(value: int) -> Verbatim:
    """Return a number with commas."""
    return Verbatim(f"{value:,}")


def _c_call(head: str, *arguments: str) -> Verbatim:
    """Return a C call; see `ferrule.rendering.c_text.c_call`."""
    return Verbatim(c_call(_c_head(head), *arguments))


def _c_variable(head: str, value: str) -> Verbatim:
    """Return the definition of a variable, broken behind `=` if it is longer than a line."""
    line = f"{_c_head(head)} = {c_argument(value)};"
    indent = " " * (len(head) - len(head.lstrip()) + 4)
    return Verbatim(line if len(line) <= COLUMNS else line.replace(" = ", f" =\n{indent}"))


def _c_head(text: str) -> str:
    if _HEAD.fullmatch(text) is None:
        raise FerruleError(f"{text!a} can't begin a line of C")
    return text
