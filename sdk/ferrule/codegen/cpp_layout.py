# SPDX-License-Identifier: Apache-2.0
"""Breaks calls, lists and prototypes into lines as clang-format does: it searches the layout with the least penalty.

The penalties are those of clang-format's style LLVM. Among layouts of the same penalty, which are rare, the choice may
differ from clang-format's.
"""

from __future__ import annotations

from collections.abc import Sequence

from ferrule._frozen import positional
from ferrule.codegen.c_layout import INDENT
from ferrule.rendering.c_text import COLUMNS, OFF, ON

_BINDING = 20
_FIRST_BREAK = 15
_BREAK_OPENING = 19
_BREAK_ASSIGNMENT = 2
_BREAK_COMMA = 1
_BREAK_PARAMETERS = 100
_BREAK_RETURN_TYPE = 60
_EXCESS = 1_000_000
_SHORT_LIST = 5
"""Longer lists in braces are aligned in columns."""
_PAIR = 2


@positional
class Group:
    """A bracketed list, such as a call with its arguments."""

    opening: str
    """The text up to the opening bracket."""
    parts: tuple[Piece, ...]
    closing: str


Piece = str | Group
"""Code that can be broken into lines behind the opening brackets and the commas of its groups."""


def flat(piece: Piece) -> str:
    """Return code on one line."""
    if isinstance(piece, str):
        return piece
    return f"{piece.opening}{', '.join(map(flat, piece.parts))}{piece.closing}"


def broken(start: str, piece: Piece, end: str) -> str:
    """Return start, code and end on as few lines as possible; a start that ends with `=` may be followed by a break."""
    indent = _indentation(start)
    best = _placed(piece, len(start), indent, 0, end)
    if start.endswith(" = "):
        column = indent + len(INDENT)
        below = _placed(piece, column, column, 0, end)
        if below.penalty + _BINDING + _BREAK_ASSIGNMENT + _FIRST_BREAK < best.penalty:
            return f"{start.rstrip()}\n{' ' * column}{below.text}{end}"
    return f"{start}{best.text}{end}"


def prototype(start: str, returns: str, name: str, parameters: Sequence[str], end: str) -> str:
    """Return the head of a function; `start` precedes its type, which may be empty, `end` follows its parameters."""
    indent = _indentation(start)
    typed = f"{returns}{name}" if not returns or returns[-1] in "*&" else f"{returns} {name}"
    best = _placed(Group(f"{typed}(", tuple(parameters), ")"), len(start), indent, 0, end, _BREAK_PARAMETERS)
    if returns:
        below = _placed(Group(f"{name}(", tuple(parameters), ")"), indent, indent, 0, end, _BREAK_PARAMETERS)
        if below.penalty + _BINDING + _BREAK_RETURN_TYPE + _FIRST_BREAK < best.penalty:
            return f"{start}{returns}\n{' ' * indent}{below.text}{end}"
    return f"{start}{best.text}{end}"


def _indentation(start: str) -> int:
    return len(start) - len(start.lstrip(" "))


def laid_out(start: str, piece: Piece, end: str) -> str:
    """Return a statement on as few lines as possible, marked if clang-format would align it in columns."""
    text = broken(start, piece, end)
    if "\n" not in text or not _has_columns(piece):
        return text
    indent = " " * _indentation(start)
    return f"{indent}{OFF}\n{text}\n{indent}{ON}"


def _has_columns(piece: Piece) -> bool:
    """Return whether code has a list in braces so long that clang-format aligns its values in columns."""
    if isinstance(piece, str):
        return False
    return (piece.closing == "}" and len(piece.parts) > _SHORT_LIST) or any(map(_has_columns, piece.parts))


def listed(start: str, parts: Sequence[Piece]) -> str:
    """Return start and parts, separated by commas and aligned behind the start's last line."""
    column = len(start.rsplit("\n", 1)[-1])
    return start + _parts(Group("", tuple(parts), ""), column, column, -1, "").text


@positional
class _Layout:
    penalty: int
    text: str


def _placed(piece: Piece, column: int, unit: int, depth: int, end: str, opening: int = _BREAK_OPENING) -> _Layout:
    """Return the best layout of code from a column; `end` is the text behind it on its last line."""
    text = flat(piece)
    excess = column + len(text) + len(end) - COLUMNS
    if excess <= 0 or isinstance(piece, str) or not piece.parts:
        return _Layout(max(0, excess) * _EXCESS, text)
    level, margin = column + len(piece.opening), unit + len(INDENT)
    aligned = _parts(piece, level, level if len(piece.parts) > 1 else unit, depth, end)
    below = _parts(piece, margin, margin, depth, end)
    below_penalty = below.penalty + _BINDING * (depth + 2) + opening + _FIRST_BREAK + max(0, level - COLUMNS) * _EXCESS
    if aligned.penalty < below_penalty:
        return _Layout(aligned.penalty, f"{piece.opening}{aligned.text}")
    return _Layout(below_penalty, f"{piece.opening}\n{' ' * margin}{below.text}")


def _parts(group: Group, level: int, unit: int, depth: int, end: str) -> _Layout:
    """Return the best layout of a list whose lines begin at the column `level`."""
    ends = [","] * (len(group.parts) - 1) + [f"{group.closing}{end}"]
    best = _placed(group.parts[0], level, unit, depth + 1, ends[0])
    text, penalty, column = best.text, best.penalty, level + len(best.text)
    new_line = _BINDING * (depth + 2) + _BREAK_COMMA + _FIRST_BREAK
    for part, behind in zip(group.parts[1:], ends[1:], strict=True):
        here, column = None, column + len(", ")
        if "\n" not in best.text:
            here = _placed(part, column, column, depth + 1, behind)
            if here.penalty and len(group.parts) > _PAIR:  # a part on several lines begins on a line of its own
                here = None
        best = _placed(part, level, level, depth + 1, behind)
        if here is not None and here.penalty <= best.penalty + new_line:
            best, text = here, f"{text}, {here.text}"
        else:
            text, column = f"{text},\n{' ' * level}{best.text}", level
            penalty, new_line = penalty + new_line, _BINDING * (depth + 2) + _BREAK_COMMA
        penalty, column = penalty + best.penalty, column + len(best.text)
    return _Layout(penalty, f"{text}{group.closing}")
