# SPDX-License-Identifier: Apache-2.0
"""Faults of a backend, turned into errors that name the backend and the call that failed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from ferrule.errors import FerruleError

_HINT = "a fault of the backend: --debug shows where; or leave it out of the preferences"

T = TypeVar("T")


class BrokenBackendError(FerruleError):
    """A backend raised an unexpected exception, or returned a value of the wrong kind."""


@contextmanager
def asking(name: str, question: str, *, what: str = "backend") -> Iterator[None]:
    """Turn unexpected exceptions of a backend into BrokenBackendError; a FerruleError passes through.

    In the message, `question` names the call, and `what` replaces the word "backend".
    """
    try:
        yield
    except FerruleError:
        raise
    except Exception as error:
        raise BrokenBackendError(
            f"{what} '{name}' failed in {question}: {type(error).__name__}: {error}", hint=_HINT
        ) from error


def answer(value: object, kind: type[T], backend: str, question: str) -> T:
    """Return `value`, which a backend returned; BrokenBackendError if it is not of type `kind`."""
    if not isinstance(value, kind):
        raise BrokenBackendError(
            f"backend '{backend}' returned {_named(value)} from {question}, expected {kind.__name__}", hint=_HINT
        )
    return value


def answer_with(value: T, methods: tuple[str, ...], name: str, question: str, *, what: str = "backend") -> T:
    """Return `value`, an object that a backend returned; BrokenBackendError if it lacks one of `methods`."""
    for method in methods:
        if not callable(getattr(value, method, None)):
            raise BrokenBackendError(
                f"{what} '{name}' returned {_named(value)} from {question}, expected an object with {method}()",
                hint=_HINT,
            )
    return value


def _named(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
