# SPDX-License-Identifier: Apache-2.0
"""The options that a backend declares, and the values that users set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from ferrule._frozen import frozen
from ferrule.errors import FerruleError

OptionValue = bool | int | float | str
_T = TypeVar("_T")

_TRUTH = {"true": True, "false": False}
_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


class OptionError(FerruleError):
    """An option that the backend does not have, or a value that it does not accept; the hint lists its options."""


@frozen
class BackendOption:
    """One option of a backend for a model; its type is the type of its default."""

    name: str
    default: OptionValue
    meaning: str
    """One sentence for users, without the full stop."""
    choices: tuple[OptionValue, ...] = ()
    """The allowed values; if empty, every value of the type within the limits is allowed."""
    lowest: float | None = None
    highest: float | None = None
    """Limits of a number, inclusive; None for no limit."""
    host: bool = True
    """Whether the option has an effect when layers run on the host."""
    firmware: bool = False
    """Whether the option has an effect when layers run on a board."""

    @property
    def type(self) -> str:
        """Name of the type: bool, int, float or str."""
        return type(self.default).__name__

    @property
    def expectation(self) -> str:
        """A description of the allowed values, for messages."""
        if self.choices:
            return f"one of {', '.join(map(str, self.choices))}"
        limits = [(word, limit) for word, limit in (("from", self.lowest), ("to", self.highest)) if limit is not None]
        return " ".join((_KINDS[type(self.default)], *(f"{word} {limit:g}" for word, limit in limits)))

    def accepts(self, value: OptionValue) -> bool:
        """Return whether a value has the right type, is one of the choices and lies within the limits."""
        kind = type(self.default)
        if type(value) is not kind and not (kind is float and type(value) is int):
            return False
        if self.choices and value not in self.choices:
            return False
        if isinstance(value, str | bool):
            return True
        return (self.lowest is None or value >= self.lowest) and (self.highest is None or value <= self.highest)

    def parse(self, text: str) -> OptionValue | None:
        """Return the value that `text` spells; None if it does not spell a value of the type."""
        kind = type(self.default)
        if kind is str:
            return text
        value = read_value(text)
        if kind is float and type(value) is int:
            return float(value)
        return value if type(value) is kind else None


def read_value(text: str) -> OptionValue:
    """Return `text` as a bool if it is true or false, as a number if it spells one, otherwise unchanged."""
    if text in _TRUTH:
        return _TRUTH[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def parse_options(
    backend: str, declared: Sequence[BackendOption] | None, texts: Mapping[str, str]
) -> dict[str, OptionValue]:
    """Return options given as text, converted to their types.

    If `declared` is None, each value is converted by `read_value`.

    Raises:
        OptionError: the backend has no such option, or it does not take the value.
    """
    if declared is None:
        return {name: read_value(text) for name, text in texts.items()}
    return {name: _accepted(backend, declared, name, text, BackendOption.parse) for name, text in texts.items()}


def check_options(backend: str, declared: Sequence[BackendOption] | None, given: Mapping[str, OptionValue]) -> None:
    """Check options against those that the backend declares; with None, every option is accepted.

    Raises:
        OptionError: the backend has no such option, or it does not take the value.
    """
    if declared is not None:
        for name, value in given.items():
            _accepted(backend, declared, name, value, lambda option, value: value)


def _accepted(
    backend: str,
    declared: Sequence[BackendOption],
    name: str,
    given: _T,
    read: Callable[[BackendOption, _T], OptionValue | None],
) -> OptionValue:
    """Return the value that `read` makes of what is given for an option."""
    known = "; ".join(f"{item.name}: {item.expectation}" for item in declared)
    hint = f"options of {backend}: {known or 'none'}"
    option = next((option for option in declared if option.name == name), None)
    if option is None:
        raise OptionError(f"backend {backend} has no option '{name}'", hint=hint)
    value = read(option, given)
    if value is None or not option.accepts(value):
        message = f"option '{option.name}' of backend {backend} is {given!r}, expected {option.expectation}"
        raise OptionError(message, hint=hint)
    return value
