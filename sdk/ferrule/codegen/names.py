# SPDX-License-Identifier: Apache-2.0
"""Derives C identifiers from the names in a model."""

from __future__ import annotations

import re

from ferrule.graph.names import UniqueNames

_WORDS = """
    alignas alignof asm auto bool break case catch char class const constexpr continue default delete do
    double else enum explicit export extern false final float for friend goto if inline int long mutable
    namespace new noexcept nullptr operator override private protected public register restrict return
    short signed sizeof static struct switch template this throw true try typedef typeid typename union
    unsigned using virtual void volatile while main memory inputs outputs info sram scratch memmove run
    counters index null int8_t uint8_t int16_t uint16_t int32_t uint32_t int64_t uint64_t size_t
    ptrdiff_t devices held status handles entries run_operators deadline_us
"""
_RESERVED = frozenset(_WORDS.split())
"""Keywords of C and C++, and the names of variables in generated functions."""
LONGEST = 32
"""The most characters of an identifier from a name."""


def identifier(name: str) -> str:
    """Return `name` as a lower-case C identifier, from at most its last 32 characters; different names may collide."""
    text = re.sub(r"[^0-9A-Za-z]+", "_", name).strip("_").lower()
    if len(text) > LONGEST:
        text = text[-LONGEST:].lstrip("_")
    if not text or text[0].isdigit():
        text = f"t_{text}".rstrip("_")
    if text.startswith("ferrule"):  # the prefix of all names with external linkage
        text = f"t_{text}"
    return f"{text}_" if text in _RESERVED else text


class Names:
    """A source of unique C identifiers."""

    def __init__(self) -> None:
        self._names = UniqueNames()

    def take(self, name: str) -> str:
        """Return an identifier derived from a name and not returned before."""
        return self._names.take(identifier(name))
