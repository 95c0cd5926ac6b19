# SPDX-License-Identifier: Apache-2.0
"""Compares values with type annotations, down to the fields of dataclasses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, NewType, Union, get_args, get_origin, get_type_hints

import numpy as np

_ALSO: Mapping[type, tuple[type, ...]] = {
    bool: (bool, np.bool_),
    int: (int, np.integer),
    float: (float, int, np.floating, np.integer),
}
"""The types of values that stand for a built-in type."""
_NAMED = 3
"""The number of types that a message names."""


_Test = Callable[[object], bool]


def fits(value: object, annotation: Any) -> bool:  # noqa: ANN401 - annotations have no common type
    """Return whether `misfit` finds nothing; it is much quicker."""
    return _test_of(annotation)(value)


def misfit(value: object, annotation: Any, path: str = "") -> str:  # noqa: ANN401 - annotations have no common type
    """Return the first part of a value that has the wrong type, such as "blobs[0].data is None, expected ndarray".

    Returns "" if every part fits. The parts are the items of tuples, sequences and mappings, and the fields of
    dataclasses. `path` names the value in the message. A protocol fits every value.
    """
    arms = _arms(annotation)
    arm = next((arm for arm in arms if _is(value, arm)), None)
    if arm is None:
        return f"{path} is {named(value)}, expected {_expected(arms)}".lstrip()
    if arm is Any or arm is object:
        return ""
    if isinstance(value, str) and not _is_text(value):
        return f"{path} is {value!a}, expected text that UTF-8 can encode".lstrip()
    origin, arguments = get_origin(arm), get_args(arm)
    if origin is tuple and arguments[-1:] != (...,):
        return _first(misfit(item, kind, f"{path}[{i}]") for i, (item, kind) in enumerate(zip(value, arguments)))  # type: ignore[call-overload] # noqa: B905 - _is compares the lengths
    if isinstance(value, Mapping):
        kinds = arguments or (object, object)
        return _first(
            wrong
            for key, item in value.items()
            for wrong in (misfit(key, kinds[0], f"a key of {path}".strip()), misfit(item, kinds[1], f"{path}[{key!r}]"))
        )
    if origin is not None and isinstance(value, tuple | list | frozenset | set):
        return _first(misfit(item, arguments[0], f"{path}[{i}]") for i, item in enumerate(value))
    if is_dataclass(value) and not isinstance(value, type):
        prefix = f"{path}." if path else ""
        return _first(misfit(getattr(value, name), kind, prefix + name) for name, kind in _fields(type(value)))
    return ""


@cache
def _test_of(annotation: Any) -> _Test:  # noqa: ANN401 - annotations have no common type
    """Return the quick test for an annotation, which asks `misfit` about what it does not know."""
    arms = _arms(annotation)
    tests = {_class_of(arm): _test_of_arm(arm) for arm in arms}

    def test(value: object) -> bool:
        quick = tests.get(type(value))
        if quick is None:
            return not misfit(value, annotation)
        return quick is _always or quick(value)

    return test


def _class_of(arm: Any) -> Any:  # noqa: ANN401 - annotations have no common type
    return NoneType if arm is None else get_origin(arm) or arm


def _test_of_arm(arm: Any) -> _Test:  # noqa: ANN401 - annotations have no common type
    """Return the quick test of a value that is exactly of the alternative's class."""
    kind, arguments = _class_of(arm), get_args(arm)
    if kind is str:
        return lambda value: _is_text(str(value))
    if kind in {int, float, bool, NoneType} or (isinstance(kind, type) and issubclass(kind, Enum)):
        return _always
    if kind is tuple and arguments[-1:] == (...,):
        return lambda value: all(map(_test_of(arguments[0]), value))  # type: ignore[call-overload] # a tuple
    if isinstance(kind, type) and is_dataclass(kind):
        own: type = kind

        def fields_fit(value: object) -> bool:
            for name, test in _tests_of_fields(own):  # noqa: SIM110 - a generator takes twice the time
                if not test(getattr(value, name)):
                    return False
            return True

        return fields_fit
    return lambda value: not misfit(value, arm)


def _always(value: object) -> bool:
    del value
    return True


@cache
def _tests_of_fields(kind: type) -> tuple[tuple[str, _Test], ...]:
    return tuple((name, _test_of(annotation)) for name, annotation in _fields(kind))


def named(value: object) -> str:
    """Return the description of a value in messages: None, or its type with an article."""
    kind = type(value).__name__
    return "None" if value is None else f"{'an' if kind[0] in 'aeiouAEIO' else 'a'} {kind}"


def _is_text(value: str) -> bool:
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)


def _first(found: Any) -> str:  # noqa: ANN401 - any iterable of texts
    return next(filter(None, found), "")


@cache
def _fields(kind: type) -> tuple[tuple[str, Any], ...]:
    hints = get_type_hints(kind)
    return tuple((field.name, hints[field.name]) for field in fields(kind))


def _arms(annotation: Any) -> tuple[Any, ...]:  # noqa: ANN401 - annotations have no common type
    """Return the alternatives of an annotation, without the names of aliases."""
    if isinstance(annotation, NewType):
        return _arms(annotation.__supertype__)
    if isinstance(annotation, UnionType) or get_origin(annotation) is Union:
        return tuple(arm for each in get_args(annotation) for arm in _arms(each))
    return (annotation,)


def _is(value: object, arm: Any) -> bool:  # noqa: ANN401 - annotations have no common type
    """Return whether a value is of the alternative's class, whatever its parts are."""
    if arm is Any or arm is object:
        return True
    if arm is None:
        return value is None
    origin = get_origin(arm)
    if origin is Callable:
        return callable(value)
    if origin is tuple and get_args(arm)[-1:] != (...,):
        return isinstance(value, tuple) and len(value) == len(get_args(arm))
    kind = origin or arm
    if kind is Sequence and isinstance(value, str):
        return False
    if kind is not bool and isinstance(value, bool) and kind in _ALSO:
        return False
    return bool(getattr(kind, "_is_protocol", False)) or isinstance(value, _ALSO.get(kind, kind))


def _expected(arms: tuple[Any, ...]) -> str:
    names = [_name(arm) for arm in arms]
    rest = [f"{len(names) - _NAMED} other types"] if len(names) > _NAMED + 1 else names[_NAMED:]
    shown = [*names[:_NAMED], *rest]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


def _name(arm: Any) -> str:  # noqa: ANN401 - annotations have no common type
    if arm in {None, NoneType}:
        return "None"
    if get_origin(arm) is Callable:
        return "a function"
    if get_origin(arm) is tuple and get_args(arm)[-1:] != (...,):
        return f"a tuple of {len(get_args(arm))}"
    return str(getattr(get_origin(arm) or arm, "__name__", arm))
