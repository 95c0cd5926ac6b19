# SPDX-License-Identifier: Apache-2.0
"""How much worse a value may be before a comparison fails, as `--fail-on` states it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from ferrule._frozen import frozen
from ferrule.errors import FerruleError, unknown_name
from ferrule.interface import either

_PARTS = frozenset({"code", "weights", "workspace", "stack bound"})
"""The counters that are parts of others; a limit for all counters is for the others."""
LAYER = "layer"
"""The name of the limit for the count of a single layer, which no limit for all counters covers."""
_FAIL_ON = either("--fail-on", "limit")


@frozen
class Limit:
    """The most by which a value may be worse."""

    text: str
    amount: float
    """A share of the old value, or a number in the counter's unit."""
    relative: bool

    def exceeded(self, old: float, new: float) -> bool:
        """Return whether a value that is worse is more so than this allows."""
        return abs(new - old) > (self.amount * abs(old) if self.relative else self.amount)


@frozen
class Limits:
    """The limits of a comparison."""

    by_counter: Mapping[str, Limit] = field(default_factory=dict)
    """By counter in lower case; "" for all values of the whole, metrics and runs without a limit of their own."""

    def of(self, scope: str, counter: str) -> Limit | None:
        """Return the limit of a value; None if it may change at will, as what a front has beside the chosen one."""
        if scope == "trial":
            return None
        if scope == "layer":
            return self.by_counter.get(LAYER) if counter in {"instructions", "cycles"} else None
        general = None if counter in _PARTS else self.by_counter.get("")
        return self.by_counter.get(counter.lower(), general)

    def check(self, counters: Iterable[str]) -> None:
        """Raise FerruleError if a limit is for a counter that no document has."""
        known = {LAYER, *counters}
        lower = {counter.lower() for counter in known}
        for name in self.by_counter:
            if name and name not in lower:
                raise unknown_name("counter", name, known, where="of these documents")


def parse_limits(options: Sequence[str]) -> Limits:
    """Return the limits of `--fail-on` options, such as "1%" or "instructions=1%,flash=0".

    Raises:
        FerruleError: a limit is not a number, is negative, or is given twice.
    """
    found: dict[str, Limit] = {}
    for option in options:
        for part in option.split(","):
            name, separator, amount = part.rpartition("=")
            name = name.strip().lower()
            if name in found:
                raise FerruleError(f"{_FAIL_ON} {option}: {name or 'all counters'} has two limits")
            if separator and not name:
                raise FerruleError(f"{_FAIL_ON} {option}: '{part}' names no counter before the =")
            found[name] = _limit(option, amount.strip())
    return Limits(by_counter=found)


def _limit(option: str, text: str) -> Limit:
    number = text.removesuffix("%").strip()
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise FerruleError(
            f"{_FAIL_ON} {option}: '{text}' is not a limit",
            hint="a limit is a percentage such as 1%, or a number such as 512; instructions=1%,flash=0 has one each",
        )
    relative = text.endswith("%")
    return Limit(text=text, amount=value / 100 if relative else value, relative=relative)
