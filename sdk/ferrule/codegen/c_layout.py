# SPDX-License-Identifier: Apache-2.0
"""Breaks C and C++ into lines as the project's clang-format style does."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from ferrule.rendering.c_text import COLUMNS, OFF, ON, c_comment, fitted

INDENT = "    "


def assembled(parts: Iterable[str]) -> str:
    """Return the text of a file with an empty line between its parts."""
    return fitted("\n\n".join(part for part in parts if part) + "\n")


def first_comment(banner: str, doc: str) -> str:
    """Return the first comment of a file."""
    lines = [*c_comment(banner).splitlines(), *([""] if doc else []), *textwrap.wrap(c_comment(doc), COLUMNS - 3)]
    if len(lines) == 1:
        return f"/* {lines[0]} */"
    return "/* " + "\n".join([lines[0], *(f" * {line}".rstrip() for line in lines[1:])]) + "\n */"


def doc_comment(text: str, indent: str = "") -> str:
    """Return the comment before a declaration with the end of its line; empty for an empty text."""
    if not text:
        return ""
    text = c_comment(text)
    one_line = f"{indent}/** {text} */\n"
    if len(one_line) <= COLUMNS + 1 and "\n" not in text:
        return one_line
    lines = [
        line for paragraph in text.split("\n") for line in textwrap.wrap(paragraph, COLUMNS - 3 - len(indent)) or [""]
    ]
    body = "".join(f"{indent} * {line}".rstrip() + "\n" for line in lines)
    return f"{indent}/**\n{body}{indent} */\n"


def remark(text: str, indent: str) -> str:
    """Return a comment among statements."""
    lines = textwrap.wrap(c_comment(text), COLUMNS - len(indent) - 6) or [""]
    if len(lines) == 1:
        return f"{indent}/* {lines[0]} */"
    middle = "".join(f"\n{indent} * {line}" for line in lines[1:])
    return f"{indent}/* {lines[0]}{middle} */"


def as_written(text: str, *, force: bool = False) -> str:
    """Return text with clang-format switched off around it if that would reformat it: tables and overlong lines."""
    if force or any(len(line) > COLUMNS for line in text.splitlines()):
        return f"{OFF}\n{text}\n{ON}"
    return text


def filled(head: str, words: Sequence[str], tail: str) -> str:
    """Return head, words separated by commas, and tail, wrapped at the column limit and aligned after the head."""
    last_line = head.rsplit("\n", 1)[-1]
    pad = " " * len(last_line)
    if last_line.strip() and any(len(pad) + len(word) + len(tail) > COLUMNS for word in words):  # too long here
        margin = " " * (len(last_line) - len(last_line.lstrip()) + len(INDENT))
        return f"{head}\n{filled(margin, words, tail)}"
    lines, current = [], last_line
    for number, word in enumerate(words):
        closing = tail if number == len(words) - 1 else ","
        glue = "" if current in {last_line, pad} else " "
        if len(current) + len(glue) + len(word) + len(closing) > COLUMNS and current not in {last_line, pad}:
            lines.append(current)
            current, glue = pad, ""
        current += f"{glue}{word}{closing}"
    if not words:
        current += tail
    return head[: len(head) - len(last_line)] + "\n".join([*lines, current])
