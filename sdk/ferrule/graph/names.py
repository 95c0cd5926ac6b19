# SPDX-License-Identifier: Apache-2.0
"""Names that are unique: a wanted name, or the same with a number."""

from __future__ import annotations

from collections.abc import Iterable

from ferrule.errors import ModelError
from ferrule.rendering import is_plain


def check_name(name: str, kind: str) -> None:
    """Raise ModelError for a name that a terminal or a page would not show as it is."""
    if not is_plain(name):
        raise ModelError(
            f"the name {name!a} of a {kind} has characters that are not printable",
            hint="use one line without control characters and bidirectional marks",
        )


class UniqueNames:
    """A growing set of names; a name is never given back. Each call takes constant time on average."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = dict.fromkeys(taken)  # in order: digests of pre-compiled layers include it
        self._numbers: dict[str, int] = {}

    def add(self, name: str) -> None:
        """Mark a name as taken."""
        self._taken[name] = None

    def free(self, wanted: str) -> str:
        """Return `wanted`, or the first of `wanted_2`, `wanted_3`... that is not taken; it stays free."""
        number = self._numbers.get(wanted, 1)
        candidate = wanted if number == 1 else f"{wanted}_{number}"
        while candidate in self._taken:
            number += 1
            candidate = f"{wanted}_{number}"
        self._numbers[wanted] = number
        return candidate

    def take(self, wanted: str) -> str:
        """Return the same name as `free`, and mark it as taken."""
        name = self.free(wanted)
        self.add(name)
        return name
