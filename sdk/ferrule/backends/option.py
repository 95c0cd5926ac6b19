# SPDX-License-Identifier: Apache-2.0
"""The options that a backend declares, and what users give for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ferrule.errors import FerruleError

OptionValue = bool | int | float | str

_TRUTH = {"true": True, "false": False}
_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


class OptionError(FerruleError):
    """An option that the backend does not have, or a value that it does not take; the hint lists what it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendOption:
    """One option of a backend for a model; it has the type of its default."""

    name: str
    default: OptionValue
    meaning: str
    """One sentence for people, without the full stop."""
    choices: tuple[OptionValue, ...] = ()
    """The only values; empty for all of the type and within the limits."""
    lowest: float | None = None
    highest: float | None = None
    """Limits of a number, included."""
    host: bool = True
    """Whether it means something where the layers run on the host."""
    firmware: bool = False
    """Whether it means something where they run on a board."""

    @property
    def type(self) -> str:
        """Name of the type: bool, int, float or str."""
        return type(self.default).__name__

    @property
    def expectation(self) -> str:
        """What a value has to be, for messages."""
        if self.choices:
            return f"one of {', '.join(map(str, self.choices))}"
        limits = [(word, limit) for word, limit in (("from", self.lowest), ("to", self.highest)) if limit is not None]
        return " ".join((_KINDS[type(self.default)], *(f"{word} {limit:g}" for word, limit in limits)))

    def accepts(self, value: OptionValue) -> bool:
        """Return whether a value has the type, and is one of the choices and within the limits."""
        kind = type(self.default)
        if type(value) is not kind and not (kind is float and type(value) is int):
            return False
        if self.choices and value not in self.choices:
            return False
        if isinstance(value, str | bool):
            return True
        return (self.lowest is None or value >= self.lowest) and (self.highest is None or value <= self.highest)

    def parse(self, text: str) -> OptionValue | None:
        """Return the value that a text means; None if it means none of the type."""
        kind = type(self.default)
        if kind is str:
            return text
        value = read_value(text)
        if kind is float and type(value) is int:
            return float(value)
        return value if type(value) is kind else None


def read_value(text: str) -> OptionValue:
    """Return a text as true or false, as a number where it is one, else as it is."""
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
    """Return options that are given as text, with their types.

    Where a backend declares nothing (None), each value is read as `read_value` does.

    Raises:
        OptionError: the backend has no such option, or it does not take the value.
    """
    if declared is None:
        return {name: read_value(text) for name, text in texts.items()}
    values: dict[str, OptionValue] = {}
    for name, text in texts.items():
        option = _find(backend, declared, name)
        value = option.parse(text)
        if value is None or not option.accepts(value):
            raise _refused(backend, declared, option, text)
        values[name] = value
    return values


def check_options(backend: str, declared: Sequence[BackendOption] | None, given: Mapping[str, OptionValue]) -> None:
    """Check options against what the backend declares; None stands for a backend that takes whatever comes.

    Raises:
        OptionError: the backend has no such option, or it does not take the value.
    """
    for name, value in () if declared is None else given.items():
        option = _find(backend, declared or (), name)
        if not option.accepts(value):
            raise _refused(backend, declared or (), option, value)


def _find(backend: str, declared: Sequence[BackendOption], name: str) -> BackendOption:
    for option in declared:
        if option.name == name:
            return option
    raise OptionError(f"backend {backend} has no option '{name}'", hint=_listed(backend, declared))


def _refused(backend: str, declared: Sequence[BackendOption], option: BackendOption, value: OptionValue) -> OptionError:
    return OptionError(
        f"option '{option.name}' of backend {backend} is {value!r}, expected {option.expectation}",
        hint=_listed(backend, declared),
    )


def _listed(backend: str, declared: Sequence[BackendOption]) -> str:
    known = "; ".join(f"{item.name}: {item.expectation}" for item in declared)
    return f"options of {backend}: {known or 'none'}"
