# SPDX-License-Identifier: Apache-2.0
"""How a board is used: the rate of its inferences, their deadline and the battery, as users type them."""

from __future__ import annotations

import re
from fractions import Fraction

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.errors import FerruleError

_NUMBER = r"(?P<number>[0-9]{1,12}(?:\.[0-9]{1,12})?)"
_SECONDS = {"s": 1, "min": 60, "h": 3_600, "d": 86_400}
_MILLIAMPERE_HOURS = {"mAh": 1, "Ah": 1_000}
_DEADLINES = {"us": Fraction(1, 1_000_000), "ms": Fraction(1, 1_000), "s": Fraction(1), "min": Fraction(60)}
_RATE = re.compile(rf"{_NUMBER}/(?P<unit>{'|'.join(_SECONDS)})", re.ASCII)
_CAPACITY = re.compile(rf"{_NUMBER} ?(?P<unit>{'|'.join(_MILLIAMPERE_HOURS)})", re.ASCII)
_DEADLINE = re.compile(rf"{_NUMBER} ?(?P<unit>{'|'.join(_DEADLINES)})", re.ASCII)
_MOST_SECONDS = 86_400
_MOST_PER_SECOND = 1_000_000
_MOST_MILLIAMPERE_HOURS = 1_000_000


@frozen
class Rate:
    """How often a board runs an inference."""

    per_second: Fraction
    """Above 0, exact."""
    text: str
    """As it was typed: "10/s"."""

    @property
    def period_s(self) -> float:
        """Seconds from the beginning of an inference to that of the next."""
        return float(1 / self.per_second)

    def busy(self, cycles: float, clock_hz: int) -> float:
        """Return the share of the time that inferences of so many cycles take; above 1 if they are too long."""
        return cycles * float(self.per_second) / clock_hz

    @override
    def __str__(self) -> str:
        return self.text


@frozen
class Battery:
    """A battery, which is drawn at the board's supply voltage down to its end, without self-discharge."""

    milliampere_hours: Fraction
    """Above 0, exact."""
    text: str
    """As it was typed: "220mAh"."""

    @override
    def __str__(self) -> str:
        return self.text


def parse_rate(text: str) -> Rate:
    """Return the rate that a user typed, such as 10/s, 6/min, 0.5/h or 4/d.

    Raises:
        FerruleError: it is malformed, 0, or more than a million per second.
    """
    hint = "a rate is a number of inferences per s, min, h or d, such as 10/s or 6/min"
    found = _matched(_RATE, text, "rate", hint)
    value = Fraction(found["number"]) / _SECONDS[found["unit"]]
    _check(value, _MOST_PER_SECOND, f"rate '{text}'", "1,000,000/s", hint)
    return Rate(per_second=value, text=text)


def parse_battery(text: str) -> Battery:
    """Return the battery that a user typed, such as 220mAh or 1.2Ah.

    Raises:
        FerruleError: it is malformed, 0, or more than a million milliampere hours.
    """
    hint = "a battery is its capacity in mAh or Ah, such as 220mAh or 1.2Ah"
    found = _matched(_CAPACITY, text, "battery", hint)
    value = Fraction(found["number"]) * _MILLIAMPERE_HOURS[found["unit"]]
    _check(value, _MOST_MILLIAMPERE_HOURS, f"battery '{text}'", "1,000,000mAh", hint)
    return Battery(milliampere_hours=value, text=text)


def parse_deadline(text: str) -> Fraction:
    """Return the exact seconds of the deadline that a user typed, such as 50ms, 250us or 1.5s.

    Raises:
        FerruleError: it is malformed, 0, or more than a day.
    """
    hint = "a deadline is a number of us, ms, s or min, such as 50ms"
    found = _matched(_DEADLINE, text, "deadline", hint)
    value = Fraction(found["number"]) * _DEADLINES[found["unit"]]
    _check(value, _MOST_SECONDS, f"deadline '{text}'", "a day", hint)
    return value


def _matched(pattern: re.Pattern[str], text: str, what: str, hint: str) -> re.Match[str]:
    found = pattern.fullmatch(text)
    if found is None:
        shown = text if len(text) <= 40 else f"{text[:40]}..."
        raise FerruleError(f"'{shown}' is not a {what}", hint=hint)
    return found


def _check(value: Fraction, most: int, what: str, most_text: str, hint: str) -> None:
    if not 0 < value <= most:
        raise FerruleError(f"{what} is not above 0 and at most {most_text}", hint=hint)
