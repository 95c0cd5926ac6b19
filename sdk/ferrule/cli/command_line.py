# SPDX-License-Identifier: Apache-2.0
"""The command that is running, as a document may state it: without the folders and the hosts of this machine."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

_HINT = "--hint"
"""The option whose values have names of layers, which may look like paths."""
_ABSOLUTE = re.compile(r"[/~\\]|[A-Za-z]:[/\\]")
_UPWARDS = re.compile(r"(?:^|[/\\])\.\.(?:[/\\]|$)")
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://.*", re.DOTALL)


def this_command() -> tuple[str, ...]:
    """Return the command that is running as a shell would read it; empty outside of the command line.

    A file below the working folder has its relative path, and any other file only its name; the place in a URL is left
    out.
    """
    context = click.get_current_context(silent=True)
    arguments = None if context is None else context.find_root().obj
    if not isinstance(arguments, tuple):
        return ()
    return (shlex.join(["ferrule", *_shared(arguments)]),)


def _shared(arguments: Sequence[str]) -> Iterator[str]:
    before = ""
    for word in arguments:
        yield word if before == _HINT or word.startswith(f"{_HINT}=") else _without_place(word)
        before = word


def _without_place(word: str) -> str:
    url = _URL.search(word)
    if url is not None:
        return f"{word[: url.start()]}{url[1]}://..."
    head, equals, value = word.rpartition("=")
    if _ABSOLUTE.match(value) is None and _UPWARDS.search(value) is None:
        return word
    from ferrule.report.naming import shared_name

    named = shared_name(Path(value)) if value.startswith("/") else re.split(r"[/\\]", value)[-1]
    return f"{head}{equals}{named}"
