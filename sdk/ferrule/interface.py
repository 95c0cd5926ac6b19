# SPDX-License-Identifier: Apache-2.0
"""The caller's own interface: a message names `--signature NAME` on the command line, and `signature=NAME` in Python.

What raises an error does not know who reads it, so a message keeps both spellings, and `spelled` chooses when it is
read. `FerruleError` does so for its message and its hint.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

MARKS = _BEGIN, _BETWEEN, _END = "\ufdd0\ufdd1\ufdd2"
"""Around the two spellings: code points that are no characters, which no text has."""
_SPELLINGS = re.compile(f"{_BEGIN}([^{_BEGIN}{_BETWEEN}{_END}]*){_BETWEEN}([^{_BEGIN}{_BETWEEN}{_END}]*){_END}")


class _Process:
    """The interface by which this process was called."""

    on_command_line = False


@contextmanager
def command_line() -> Iterator[None]:
    """Spell messages for the command line while the block runs, in all threads."""
    before, _Process.on_command_line = _Process.on_command_line, True
    try:
        yield
    finally:
        _Process.on_command_line = before


def spell_for(*, command_line: bool) -> None:
    """Spell messages for the command line from now on, or for Python, whose names the files of settings have, too."""
    _Process.on_command_line = command_line


def is_command_line() -> bool:
    """Return whether messages are spelled for the command line."""
    return _Process.on_command_line


def either(on_command_line: str, in_python: str) -> str:
    """Return a part of a message that has another spelling in each interface."""
    return f"{_BEGIN}{on_command_line}{_BETWEEN}{in_python}{_END}"


def option(name: str, value: str | None = None) -> str:
    """Return an option that has one name in both interfaces, which is that of Python; without a value, it is a flag.

    A value in capitals stands for one of the user's.
    """
    flag = f"--{name.replace('_', '-')}"
    if value is None:
        return either(flag, f"{name}=True")
    return either(f"{flag} {value}", f"{name}={value}" if value.isupper() else f'{name}="{value}"')


def name_of(name: str) -> str:
    """Return the name alone of an option that has one name in both interfaces."""
    return either(f"--{name.replace('_', '-')}", name)


def spelled(text: str) -> str:
    """Return a message as the caller's interface spells it."""
    if not any(mark in text for mark in MARKS):
        return text
    chosen = _SPELLINGS.sub(r"\1" if _Process.on_command_line else r"\2", text)
    return "".join(ascii(each)[1:-1] if each in MARKS else each for each in chosen)
