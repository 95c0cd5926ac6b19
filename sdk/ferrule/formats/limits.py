# SPDX-License-Identifier: Apache-2.0
"""What the formats take of files at most, and of the names in them."""

from __future__ import annotations

from collections.abc import Sized

from ferrule.errors import ModelError

MAX_RANK = 8
MAX_TENSOR_BYTES = 2**31 - 1
"""The most bytes of a tensor, because offsets on the boards have 32 bits."""
_NAME_LIMIT = 1024
"""The most characters of a name that are kept: a fact of Ferrule's messages and C names, not a refusal."""


def printable(raw: str | bytes) -> str:
    """Return a name with each unprintable character replaced by '_'; one that is not UTF-8 is stored as bytes."""
    if isinstance(raw, bytes):
        raw = raw[: 4 * _NAME_LIMIT].decode("utf-8", errors="replace")  # a character has up to 4 bytes
    return "".join(character if character.isprintable() else "_" for character in raw[:_NAME_LIMIT])


def check_count(what: str, found: Sized, allowed: range) -> None:
    """Refuse an operator with another number of inputs or outputs than those allowed."""
    if len(found) not in allowed:
        last = allowed.stop - 1
        expected = str(last) if len(allowed) == 1 else f"{allowed.start} to {last}"
        raise ModelError(f"it has {len(found)} {what}, expected {expected}")


def front_axis(value: int, rank: int) -> int:
    """Return an axis of an operator counted from the front; ModelError unless it is within `rank` axes."""
    if not -rank <= value < rank:
        raise ModelError(f"its axis is {value}, expected {-rank} to {rank - 1}")
    return value % rank
