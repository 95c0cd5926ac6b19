# SPDX-License-Identifier: Apache-2.0
"""Damage to texts and to the trees of TOML and JSON documents."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Sequence
from typing import Any

from mutation import mutate

_TOKEN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|0[xX][0-9a-fA-F]+|[0-9]+|[ \t]+|\n|.", re.DOTALL)
_WORDS = (
    *(
        "",
        " ",
        "\n",
        "\t",
        "\r\n",
        '"',
        "'",
        "'''",
        "\\",
        "/*",
        "*/",
        "//",
        "#",
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        "<",
        ">",
    ),
    *(":", ";", ",", ".", "@", "->", "=", "+", "-", "|", "$(x)", "../", "..", "/dev/zero", "\0", "\x1b[31m", "\u202e"),
    *("0", "-1", "1", "0x", "0xFFFFFFFF", "0x100000000", "4294967296", "18446744073709551616", "1e400", "nan", "-inf"),
    *(
        "9" * 5000,
        "a" * 3000,
        "[" * 1500,
        "{" * 1500,
        "true",
        "none",
        "null",
        "init:",
        "using",
        "sysbus",
        "é",
        "\ud7ff",
    ),
)
VALUES: tuple[Any, ...] = (
    *(True, False, 0, 1, -1, 7, 2**31, 2**32, 2**63, 2**64, 10**40, 1.5, float("inf"), float("nan")),
    *(
        "",
        "x",
        "a b",
        "é",
        "x" * 3000,
        "\x1b[31m",
        "\u202e",
        "..",
        "../../x",
        "/dev/zero",
        "$(x)",
        "*/",
        '"',
        "\n",
        "{}",
    ),
    *([], {}, [[]], [0], ["x"], {"x": 0}, [{}], {"": ""}),
)


class Raw(str):
    """A value that is written to the document as it is."""

    __slots__ = ()


_RAW = (
    Raw("9" * 5000),
    Raw("0x" + "f" * 6000),
    Raw("[" * 1200),
    Raw("1979-05-27"),
    Raw("00:00"),
    Raw("1e999"),
    Raw(""),
)


def mutate_text(text: str, others: Sequence[str], choice: random.Random) -> bytes:
    """Return a text with some tokens or some bytes damaged."""
    if choice.random() < 0.25:
        return mutate(text.encode(), [other.encode() for other in others], choice)
    tokens = _TOKEN.findall(text)
    for _ in range(choice.choice((1, 1, 2, 3, 5))):
        place = choice.randrange(len(tokens) + 1)
        kind = choice.randrange(6)
        if kind == 0:
            del tokens[place : place + choice.choice((1, 1, 2, 8))]
        elif kind == 1:
            tokens[place:place] = tokens[place : place + choice.choice((1, 3, 20))]
        elif kind == 2:
            tokens[place : place + 1] = [choice.choice(_WORDS)]
        elif kind == 3:
            tokens.insert(place, choice.choice(_WORDS))
        elif kind == 4 and tokens:
            other = choice.randrange(len(tokens))
            place = min(place, len(tokens) - 1)
            tokens[place], tokens[other] = tokens[other], tokens[place]
        else:
            pieces = _TOKEN.findall(choice.choice(others))
            first = choice.randrange(len(pieces) + 1)
            tokens[place:place] = pieces[first : first + choice.choice((1, 5, 20))]
    return "".join(tokens).encode("utf-8", "replace")


def mutate_tree(tree: dict[str, Any], choice: random.Random) -> dict[str, Any]:
    """Return a document with one to three of its values or keys changed."""
    result = copy.deepcopy(tree)
    for _ in range(choice.choice((1, 1, 2, 3))):
        _change(choice.choice(_containers(result)), result, choice)
    return result


def _containers(node: object) -> list[Any]:
    found: list[Any] = []
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            found.append(each)
            waiting += each.values()
        elif isinstance(each, list):
            found.append(each)
            waiting += each
    return found


def _change(node: Any, tree: dict[str, Any], choice: random.Random) -> None:  # noqa: ANN401
    value = copy.deepcopy(choice.choice((*VALUES, *_RAW)))
    keys: list[Any] = list(node) if isinstance(node, dict) else list(range(len(node)))
    if not keys or choice.random() < 0.1:
        if isinstance(node, dict):
            node[choice.choice(("x", "", "title", "é", "a.b", "\x1b", "x" * 2000))] = value
        else:
            node.append(value)
        return
    key = choice.choice(keys)
    kind = choice.randrange(6)
    if kind == 0:
        del node[key]
    elif kind == 1:
        node[key] = copy.deepcopy(choice.choice(_containers(tree)))
    elif kind == 2 and isinstance(node, dict):
        node[choice.choice(("x", "Title", "\n", str(key) + "s"))] = node.pop(key)
    elif kind == 3 and isinstance(node[key], int) and not isinstance(node[key], bool):
        node[key] += choice.choice((-(2**32), -1, 1, 2, 4, 1024, 2**32))
    elif kind == 4 and isinstance(node[key], str):
        node[key] = mutate_text(node[key], [node[key]], choice).decode("utf-8", "replace")
    else:
        node[key] = value


def toml_text(tree: dict[str, Any]) -> str:
    """Return a document as TOML: one line for each key, with inline tables."""
    return "".join(f"{_string(key)} = {_inline(value)}\n" for key, value in tree.items())


def json_text(tree: object) -> str:
    """Return a document as JSON; numbers that JSON lacks are written as they are."""
    if isinstance(tree, Raw):
        return str(tree)
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {json_text(value)}" for key, value in tree.items()) + "}"
    if isinstance(tree, list):
        return "[" + ", ".join(map(json_text, tree)) + "]"
    return json.dumps(tree)


def _inline(value: object) -> str:
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_string(key)} = {_inline(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return _string(value) if isinstance(value, str) else str(value)


def _string(text: str) -> str:
    """Return a TOML string; escapes of JSON are those of TOML, except for DEL."""
    return json.dumps(text).replace("\x7f", "\\u007f")
