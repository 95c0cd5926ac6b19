# SPDX-License-Identifier: Apache-2.0
"""Compares values with type annotations, down to the fields of dataclasses.

An annotation may have rules: `Annotated[int, POWER_OF_TWO]`. So the interface of backends states in one place what each
method returns; the guards check it (see `ferrule.backends.guarded`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, NewType, Union, get_args, get_origin, get_type_hints

import numpy as np

from ferrule._frozen import positional

_ALSO: Mapping[type, tuple[type, ...]] = {
    bool: (bool, np.bool_),
    int: (int, np.integer),
    float: (float, int, np.floating, np.integer),
}
"""The types of values that stand for a built-in type."""
_NAMED = 3
"""The number of types that a message names."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
LAST_ADDRESS = (1 << 32) - 1
_WIDEST = 1 << 20
"""The largest alignment, in bytes: more than any memory of a microcontroller needs."""


@positional
class Rule:
    """What holds for a value of an annotation beside its type; None needs no rule."""

    holds: Callable[[Any], bool]
    expected: str
    """The description of the values for which it holds, in messages."""


def at_least(lowest: int) -> Rule:
    """Return the rule for numbers from `lowest` on."""
    return Rule(lambda value: lowest <= value < math.inf, f"{lowest} or more")


def between(lowest: int, highest: int) -> Rule:
    """Return the rule for numbers between two limits, included."""
    return Rule(lambda value: lowest <= value <= highest, f"a number from {lowest} to {highest}")


def named_as(expected: str, *, optional: bool = False, prefix: str = "") -> Rule:
    """Return the rule for C identifiers, or for their ends after `prefix`; "" is one if `optional`."""
    return Rule(lambda text: bool(_NAME.fullmatch(prefix + text) if text else optional), expected)


POWER_OF_TWO = Rule(lambda value: value > 0 and not value & (value - 1), "a power of two")
ALIGNMENT = Rule(
    lambda value: POWER_OF_TWO.holds(value) and value <= _WIDEST, f"{POWER_OF_TWO.expected} up to {_WIDEST}"
)
IDENTIFIER = named_as("a C identifier")
SHORT_NAME = Rule(lambda text: bool(text) and text.isprintable(), "a short name")
UINT32 = between(0, LAST_ADDRESS)

_Misfit = tuple[str, str, str]
"""What precedes the path of the part that is wrong, the path, and what is wrong."""
_Check = Callable[[Any], _Misfit | None]


def misfit(value: object, annotation: Any, path: str = "") -> str:  # noqa: ANN401 - annotations have no common type
    """Return the first part of a value that has the wrong type, such as "blobs[0].data is None, expected ndarray".

    Returns "" if every part fits. The parts are the items of tuples, sequences and mappings, and the fields of
    dataclasses. `path` names the value in the message. A protocol fits every value.
    """
    found = _check_of(annotation)(value)
    if found is None:
        return ""
    before, inner, wrong = found
    return " ".join(filter(None, (before, f"{path}{inner}".lstrip("."), wrong)))


def named(value: object) -> str:
    """Return the description of a value in messages: None, or its type with an article."""
    kind = type(value).__name__
    return "None" if value is None else f"{'an' if kind[0] in 'aeiouAEIO' else 'a'} {kind}"


@cache
def _check_of(annotation: Any) -> _Check:  # noqa: ANN401 - annotations have no common type
    """Return the check of an annotation; for each class of values, it looks for the alternative once."""
    if get_origin(annotation) is Annotated:
        return _ruled(*get_args(annotation))
    arms = _arms(annotation)
    parts: Callable[[Any], _Check] = cache(lambda kind: _check_of_class(kind, arms))

    def check(value: object) -> _Misfit | None:
        own = parts(type(value))
        return None if own is _nothing else own(value)

    return check


def _ruled(kind: Any, rule: Rule) -> _Check:  # noqa: ANN401 - annotations have no common type
    plain = _check_of(kind)

    def check(value: object) -> _Misfit | None:
        wrong = plain(value)
        if wrong is None and value is not None and not rule.holds(value):
            return "", "", f"is {ascii(value) if isinstance(value, str) else value}, expected {rule.expected}"
        return wrong

    return check


def _check_of_class(kind: type, arms: tuple[Any, ...]) -> _Check:
    """Return the check of the values of one class, by the first alternative that the class fits."""
    fitting = [arm for arm in arms if _takes(arm, kind)]
    if not fitting:
        return lambda value: ("", "", f"is {named(value)}, expected {_expected(arms)}")
    arm, origin, arguments = fitting[0], get_origin(fitting[0]), get_args(fitting[0])
    if arm is Any or arm is object:
        return _nothing
    if issubclass(kind, str):
        return _check_text
    if origin is tuple and arguments[-1:] != (...,):
        return _check_tuple(arguments)
    if issubclass(kind, Mapping):
        return _check_mapping(*(arguments or (object, object)))
    if origin is not None and issubclass(kind, tuple | list | frozenset | set):
        return _check_items(arguments[0])
    return _check_fields(kind) if is_dataclass(kind) else _nothing


def _nothing(value: object) -> None:
    """Check no part of a value."""


def _check_text(value: str) -> _Misfit | None:
    if value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value):
        return None
    return "", "", f"is {value!a}, expected text that UTF-8 can encode"


def _check_tuple(kinds: tuple[Any, ...]) -> _Check:
    checks = [_check_of(kind) for kind in kinds]

    def check(value: tuple[object, ...]) -> _Misfit | None:
        if len(value) != len(checks):
            return "", "", f"is {named(value)}, expected a tuple of {len(checks)}"
        return _first((f"[{i}]", check(item)) for i, (check, item) in enumerate(zip(checks, value, strict=True)))

    return check


def _check_items(kind: Any) -> _Check:  # noqa: ANN401 - annotations have no common type
    check = _check_of(kind)
    return lambda value: _first((f"[{i}]", check(item)) for i, item in enumerate(value))


def _check_mapping(key: Any, item: Any) -> _Check:  # noqa: ANN401 - annotations have no common type
    check_key, check_item = _check_of(key), _check_of(item)

    def check(value: Mapping[object, object]) -> _Misfit | None:
        for each in value:
            wrong = check_key(each)
            if wrong is not None:
                return ("a key of", *wrong[1:])
        return _first((f"[{each!r}]", check_item(item)) for each, item in value.items())

    return check


def _check_fields(kind: type) -> _Check:
    hints = get_type_hints(kind, include_extras=True)
    checks = [(field.name, _check_of(hints[field.name])) for field in fields(kind)]

    def check(value: object) -> _Misfit | None:
        for name, check in checks:  # as `_first`, without a generator, which takes twice the time
            wrong = check(getattr(value, name))
            if wrong is not None:
                return wrong[0], f".{name}{wrong[1]}", wrong[2]
        return None

    return check


def _first(found: Iterable[tuple[str, _Misfit | None]]) -> _Misfit | None:
    """Return the first misfit of the parts, whose paths precede it."""
    return next(((wrong[0], path + wrong[1], wrong[2]) for path, wrong in found if wrong is not None), None)


def _arms(annotation: Any) -> tuple[Any, ...]:  # noqa: ANN401 - annotations have no common type
    """Return the alternatives of an annotation, without the names of aliases."""
    if isinstance(annotation, NewType):
        return _arms(annotation.__supertype__)
    if isinstance(annotation, UnionType) or get_origin(annotation) is Union:
        return tuple(arm for each in get_args(annotation) for arm in _arms(each))
    return (NoneType if annotation is None else annotation,)


def _takes(arm: Any, kind: type) -> bool:  # noqa: ANN401 - annotations have no common type
    """Return whether the values of a class are of the alternative's class, whatever their parts are."""
    wanted = get_origin(arm) or arm
    if wanted is Any or getattr(wanted, "_is_protocol", False):
        return True
    if (wanted is Sequence and issubclass(kind, str)) or (wanted in _ALSO and wanted is not bool and kind is bool):
        return False
    return issubclass(kind, _ALSO.get(wanted, wanted))


def _expected(arms: tuple[Any, ...]) -> str:
    names = [_name(arm) for arm in arms]
    rest = [f"{len(names) - _NAMED} other types"] if len(names) > _NAMED + 1 else names[_NAMED:]
    shown = [*names[:_NAMED], *rest]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


def _name(arm: Any) -> str:  # noqa: ANN401 - annotations have no common type
    if arm is NoneType:
        return "None"
    if get_origin(arm) is Callable:
        return "a function"
    if get_origin(arm) is tuple and get_args(arm)[-1:] != (...,):
        return f"a tuple of {len(get_args(arm))}"
    return str(getattr(get_origin(arm) or arm, "__name__", arm))
