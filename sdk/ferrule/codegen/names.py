# SPDX-License-Identifier: Apache-2.0
"""C identifiers from the names that a model carries."""

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
    ptrdiff_t devices held status handles entries run_operators
"""
_RESERVED = frozenset(_WORDS.split())
"""Keywords of C and C++, and what generated functions call their own variables."""
_LONGEST = 32


def identifier(name: str) -> str:
    """Return `name` as a lower-case C identifier of at most 32 characters; several names may become the same."""
    text = re.sub(r"[^0-9A-Za-z]+", "_", name).strip("_").lower()
    if len(text) > _LONGEST:
        text = text[-_LONGEST:].lstrip("_")
    if not text or text[0].isdigit():
        text = f"t_{text}".rstrip("_")
    if text.startswith("ferrule"):  # the prefix of everything that has external linkage
        text = f"t_{text}"
    return f"{text}_" if text in _RESERVED else text


class Names:
    """Hands out C identifiers, each once."""

    def __init__(self) -> None:
        self._names = UniqueNames()

    def take(self, name: str) -> str:
        """Return an identifier for a name that nothing else got."""
        return self._names.take(identifier(name))
