# SPDX-License-Identifier: Apache-2.0
"""Faults of a backend, turned into errors that name the backend and the call that failed."""

from __future__ import annotations

from types import TracebackType
from typing import Any, TypeVar

from ferrule._typing import override
from ferrule.backends.conforming import misfit, named
from ferrule.backends.crash_note import noted
from ferrule.errors import FerruleError, caused_by_signal
from ferrule.interface import either

_SHOWN = either("--debug", "the cause of this error")
_HINT = f"a fault of the backend: {_SHOWN} shows where; or leave it out of the preferences"

PLUGIN_FAULTS = (Exception, SystemExit, KeyboardInterrupt)
"""What the code of a plug-in may raise; pass an exception of it to `pass_on_interrupts` before you handle it."""

T = TypeVar("T")


class BrokenBackendError(FerruleError):
    """A backend raised an unexpected exception, or returned a value of the wrong kind."""


class asking(noted):  # noqa: N801 used like a function
    """A context manager: a FerruleError passes through, other exceptions of a backend become BrokenBackendError.

    SystemExit and KeyboardInterrupt count as unexpected, too, unless a signal such as Ctrl-C caused them. In the
    message, `question` names the call, and `what` replaces the word "backend". Like `noted`, it can be entered again.
    It is a class, since a generator for each call of a workload would cost more than a small layer.
    """

    __slots__ = ("_subject", "question")

    def __init__(self, name: str, question: str, *, what: str = "backend") -> None:
        self._subject = f"{what} '{name}'"
        self.question = question
        super().__init__(f"{self._subject}, {question}")

    @override
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        if error is None or isinstance(error, FerruleError) or not isinstance(error, PLUGIN_FAULTS):
            return
        if not caused_by_signal(error):
            message = f"{self._subject} failed in {self.question}: {described(error)}"
            raise BrokenBackendError(message, hint=_HINT) from error


def described(error: BaseException) -> str:
    """Return the type and the message of an exception that a plug-in raised."""
    return f"{type(error).__name__}: {error}"


def pass_on_interrupts(error: BaseException) -> None:
    """Raise `error` again if a signal caused it, such as Ctrl-C: it is no fault of the code that was running."""
    if caused_by_signal(error):
        raise error


def broken(backend: str, question: str, value: object, wrong: str) -> BrokenBackendError:
    """Return the error for what a backend returned; `wrong` reads "is 3, expected ...", perhaps after a part's name."""
    if wrong.startswith("is "):
        found, comma, expected = wrong.removeprefix("is ").partition(", expected ")
        return BrokenBackendError(f"backend '{backend}' returned {found} from {question}{comma}{expected}", hint=_HINT)
    return BrokenBackendError(f"backend '{backend}' returned {named(value)} from {question}: {wrong}", hint=_HINT)


def fitting(value: object, annotation: Any, backend: str, question: str) -> None:  # noqa: ANN401 - as `misfit`
    """Check that what a backend returned fits an annotation; BrokenBackendError names the part that does not.

    See `ferrule.backends.conforming.misfit` for the parts that are compared.
    """
    try:
        wrong = misfit(value, annotation)
    except RecursionError:
        wrong = f"is {named(value)} of too many levels, expected one that can be printed"
    if wrong:
        raise broken(backend, question, value, wrong)


def answer_with(value: T, methods: tuple[str, ...], name: str, question: str) -> T:
    """Return `value`, an object that a backend returned; BrokenBackendError if it lacks one of `methods`."""
    for method in methods:
        if not callable(getattr(value, method, None)):
            raise broken(name, question, value, f"is {named(value)}, expected an object with {method}()")
    return value
