# SPDX-License-Identifier: Apache-2.0
"""Errors that the user can fix."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from difflib import get_close_matches
from types import TracebackType

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.interface import MARKS, option, spelled


@frozen
class Problem:
    """One of the reasons why a model is refused."""

    place: str
    """The operator or layer, and what of it."""
    type: str
    """The type of the operator or layer; empty if the place is none."""
    reason: str
    hint: str | None
    """What would unblock it; None if the error states nothing."""


class FerruleError(Exception):
    """A problem the user can fix, with the remedy in `hint`; the command line prints both and exits with 2.

    Messages quote what files and peers contain, so what a terminal or a CI runner would obey becomes escapes.
    `problems` has the single problems of a model that is refused, and is empty for other errors.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(visible(message))
        self._hint = None if hint is None else visible(hint)
        self.problems: tuple[Problem, ...] = ()
        self._reason = visible(message)
        self._places: tuple[str, ...] = ()
        self._kind = ""

    @override
    def __str__(self) -> str:
        return spelled(super().__str__())

    @override
    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    @property
    def hint(self) -> str | None:
        """The remedy, in the words of the caller's interface; None if there is none."""
        return None if self._hint is None else spelled(self._hint)

    @hint.setter
    def hint(self, hint: str | None) -> None:
        self._hint = None if hint is None else visible(hint)

    def at(self, where: str, kind: str = "") -> None:
        """Prefix the message with a place; `kind` is the type of the operator or layer there."""
        where = visible(where).replace("\n", "\\n")
        self.args = (f"{where}: {super().__str__()}",)
        self._places = (where, *self._places)
        self._kind = kind or self._kind
        self.problems = tuple(replace(each, place=f"{where}: {each.place}") for each in self.problems)

    def as_problem(self) -> Problem:
        """Return the error as one of the problems of a model."""
        reason = spelled(self._reason)
        return Problem(place=": ".join(self._places), type=self._kind, reason=reason, hint=self.hint)


class ModelError(FerruleError):
    """A model, or a network built by hand, is malformed; the message states where."""


class UnsupportedError(FerruleError):
    """A layer, type or option is well-formed but not supported; the message names it and the reason."""


class InputError(FerruleError):
    """An input array has the wrong name, shape or dtype."""


class NothingComparedError(FerruleError):
    """A check has compared nothing, which is no success; the command line exits with 3."""


class BudgetError(FerruleError):
    """Something that an input states takes more memory or work than the budget has; the hint says how to raise it."""


class IterationLimitError(FerruleError):
    """A WHILE layer has run its limit of iterations, and its condition still holds."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"the loop has not ended after {limit:,} iterations",
            hint=f"if the model is right, load it with a higher limit: {option('max_iterations', 'NUMBER')}",
        )
        self.limit = limit


_LISTED = 20
_NAMED = 40
_NAME_LETTERS = 100
_COMPARED = 10_000
"""Names among which similar ones are searched."""
_KEPT = frozenset(("\n", "\t", *MARKS))


def visible(text: str) -> str:
    """Return a text in which what a terminal or a CI runner would obey is written as escapes.

    These are unprintable characters, other than line breaks, tabs and the marks of `ferrule.interface`, and the
    commands of `without_commands`.
    """
    if not text.isprintable():
        text = "".join(c if c.isprintable() or c in _KEPT else ascii(c)[1:-1] for c in text)
    return without_commands(text)


COMMAND = re.compile(r"#(?=#(?:\[|vso\[|teamcity\[))", re.IGNORECASE)
"""The first character of a command that a CI runner obeys anywhere in a line."""
_COMMAND_LINE = re.compile(r"^(\s*):(?=:)", re.MULTILINE)


def without_commands(text: str, *, within_line: bool = False) -> str:
    """Return a text in which a CI runner that reads it in a log finds no command; `within_line` if it begins no line.

    GitHub's runner obeys lines that begin with "::" and, as Azure's and TeamCity's do, "##[", "##vso[" and
    "##teamcity[" anywhere in a line. The first character of these becomes an escape.
    """
    if "::" not in text and "##" not in text:
        return text
    if within_line:
        return without_commands(f"-{text}")[1:]
    return _COMMAND_LINE.sub(r"\1\\x3a", COMMAND.sub(r"\\x23", text))


class MissingToolError(FerruleError):
    """A compiler, emulator or Python package is not installed; the hint gives the command that installs it."""


def unknown_name(kind: str, name: str, known: Iterable[str], *, where: str = "") -> FerruleError:
    """Return the error for a name that is not in `known`; the hint lists similar names or, if there are none, all.

    The names may be those of a file: of very many, the first are listed, and long ones are cut.

    `where` follows the name in the message, such as "on board mps2-an386".
    """
    names = sorted(_cut(each) for each in known)
    near = get_close_matches(name, names, n=3, cutoff=0.5) if len(names) <= _COMPARED else []
    hint = f"did you mean {', '.join(near)}?" if near else f"known: {some_of(names, _NAMED) or 'none'}"
    return FerruleError(f"there is no {kind} '{_cut(name)}'{where and f' {where}'}", hint=hint)


def some_of(texts: Sequence[str], limit: int) -> str:
    """Return a list of the first texts, and how many others there are."""
    listed = ", ".join(texts[:limit])
    return listed if len(texts) <= limit else f"{listed} and {len(texts) - limit:,} more"


def _cut(name: str) -> str:
    return name if len(name) <= _NAME_LETTERS else f"{name[:_NAME_LETTERS]}..."


def caused_by_signal(error: BaseException) -> bool:
    """Return whether an exception is a SystemExit or KeyboardInterrupt that a signal caused, such as Ctrl-C.

    Python's own handler of SIGINT has no frame: its KeyboardInterrupt begins at an instruction that does not raise.
    """
    import dis
    import signal

    if not isinstance(error, (KeyboardInterrupt, SystemExit)):
        return False
    frames = list(_frames(error.__traceback__))
    handlers = {getattr(signal.getsignal(number), "__code__", None) for number in signal.valid_signals()}
    if any(frame.tb_frame.f_code in handlers for frame in frames):
        return True
    if isinstance(error, SystemExit) or not frames:
        return False
    last = frames[-1]
    return dis.opname[last.tb_frame.f_code.co_code[last.tb_lasti]] not in {"RAISE_VARARGS", "RERAISE"}


def _frames(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def together(problems: Sequence[FerruleError], what: str) -> FerruleError:
    """Return one error for several problems of a model, one line each; a single problem is returned unchanged.

    `what` names the places with a problem, such as "layers". The error is an UnsupportedError if all problems are. Its
    `problems` are these; one that has several itself counts as these.
    """
    single = [each for problem in problems for each in problem.problems or (problem.as_problem(),)]
    if len(problems) == 1:
        problems[0].problems = tuple(single)
        return problems[0]
    lines = [f"{len(single)} {what} cannot be used:", *(f"  {each.place}: {each.reason}" for each in single[:_LISTED])]
    if len(single) > _LISTED:
        lines.append(f"  and {len(single) - _LISTED} more")
    hints = dict.fromkeys(each.hint for each in single[:_LISTED] if each.hint)
    unsupported = all(isinstance(problem, UnsupportedError) for problem in problems)
    kind = UnsupportedError if unsupported else ModelError
    error = kind("\n".join(lines), hint="; ".join(hints) or None)
    error.problems = tuple(single)
    return error


class _Place:
    """A context manager; one made of a generator would take a tenth of the time in which a file is read."""

    def __init__(self, where: str, kind: str) -> None:
        self._where, self._kind = where, kind

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, FerruleError):
            error.at(self._where, self._kind)


def place(where: str, kind: str = "") -> AbstractContextManager[None]:
    """Prefix the message of every FerruleError that leaves the block with `where`; `kind` is as for `at`."""
    return _Place(where, kind)
