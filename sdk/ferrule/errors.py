# SPDX-License-Identifier: Apache-2.0
"""Errors that a person can act on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches


class FerruleError(Exception):
    """A problem the user can fix. `hint` says how; the command line prints both and exits with 2."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class ModelError(FerruleError):
    """A model, or a network built by hand, is malformed; the message names the place."""


class UnsupportedError(FerruleError):
    """A layer, type or option is well-formed but not supported; the message names it and why."""


class InputError(FerruleError):
    """An input array has the wrong name, shape or dtype."""


class MissingToolError(FerruleError):
    """A compiler, emulator or Python package is not installed; the hint has the command that installs it."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> FerruleError:
    """Return the error for a name that is not among `known`; it lists the near ones first, else all."""
    names = sorted(known)
    near = get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(near)}?" if near else f"known: {', '.join(names) or 'none'}"
    return FerruleError(f"there is no {kind} '{name}'", hint=hint)


@contextmanager
def place(where: str) -> Iterator[None]:
    """Put `where` before the message of every FerruleError that leaves the block."""
    try:
        yield
    except FerruleError as error:
        error.args = (f"{where}: {error}",)
        raise
