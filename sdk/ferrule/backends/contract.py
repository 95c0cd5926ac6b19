# SPDX-License-Identifier: Apache-2.0
"""What becomes of a backend's own faults: an error that names the backend and the question it was asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from ferrule.errors import FerruleError

_HINT = "a fault of the backend: --debug shows where; or leave it out of the preferences"

T = TypeVar("T")


class BrokenBackendError(FerruleError):
    """A backend raised what it may not raise, or answered something that is no answer."""


@contextmanager
def asking(name: str, question: str, *, what: str = "backend") -> Iterator[None]:
    """Turn what a backend (or `what`) raises by mistake into a BrokenBackendError; a FerruleError passes."""
    try:
        yield
    except FerruleError:
        raise
    except Exception as error:
        raise BrokenBackendError(
            f"{what} '{name}' failed in {question}: {type(error).__name__}: {error}", hint=_HINT
        ) from error


def answer(value: object, kind: type[T], backend: str, question: str) -> T:
    """Return a backend's answer; BrokenBackendError if it is none."""
    if not isinstance(value, kind):
        raise BrokenBackendError(
            f"backend '{backend}' returned {_named(value)} from {question}, expected {kind.__name__}", hint=_HINT
        )
    return value


def answer_with(value: T, methods: tuple[str, ...], name: str, question: str, *, what: str = "backend") -> T:
    """Return a backend's answer, an object with some methods; BrokenBackendError if it lacks one."""
    for method in methods:
        if not callable(getattr(value, method, None)):
            raise BrokenBackendError(
                f"{what} '{name}' returned {_named(value)} from {question}, expected an object with {method}()",
                hint=_HINT,
            )
    return value


def _named(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
