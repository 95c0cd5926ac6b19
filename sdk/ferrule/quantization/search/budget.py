# SPDX-License-Identifier: Apache-2.0
"""The budget of a search: what a model may take of a board."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ferrule._frozen import frozen
from ferrule.errors import FerruleError
from ferrule.interface import name_of

KINDS = ("flash", "ram", "ms")
"""Bytes of flash and of RAM, and milliseconds of an inference."""
_BYTES = {"": 1, "K": 1024, "Ki": 1024, "KiB": 1024, "M": 1 << 20, "Mi": 1 << 20, "MiB": 1 << 20}
_AMOUNT = re.compile(r"(?P<number>[0-9]{1,12}(?:\.[0-9]{1,6})?)(?P<unit>[KMiB]*)", re.ASCII)


@frozen
class BoardBudget:
    """The most of each kind that is named."""

    limits: Mapping[str, float]

    @classmethod
    def parse(cls, text: str) -> BoardBudget:
        """Return the budget that flash=256K,ram=64K,ms=50 states; K is 1,024 bytes, and M 1,024 of these.

        Raises:
            FerruleError: the text is another one, or names a kind twice.
        """
        limits: dict[str, float] = {}
        for part in text.split(","):
            kind, _, amount = part.strip().partition("=")
            found = _AMOUNT.fullmatch(amount)
            unit = "" if found is None else found["unit"]
            if found is None or kind not in KINDS or unit not in _BYTES or (kind == "ms" and unit):
                raise FerruleError(
                    f"{name_of('budget')} has '{part.strip()}', expected flash=BYTES, ram=BYTES or ms=NUMBER",
                    hint="such as flash=256K,ram=64K,ms=50",
                )
            if kind in limits:
                raise FerruleError(f"{name_of('budget')} names {kind} twice")
            limits[kind] = float(found["number"]) * _BYTES[unit]
        return cls(limits=limits)

    def exceeded(self, taken: Mapping[str, float | None]) -> tuple[str, ...]:
        """Return the kinds of which more is taken than there is, or is not known how much."""
        return tuple(
            kind for kind, limit in self.limits.items() if (amount := taken.get(kind)) is None or amount > limit
        )
