# SPDX-License-Identifier: Apache-2.0
"""Standard output, which belongs to the reports of commands, and the console for the tables that they print."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from ferrule._typing import override
from ferrule.errors import COMMAND, FerruleError, without_commands

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer
    from rich.console import Console

    from ferrule.report.sections import Column, Value

STDOUT = Path("-")
"""In place of a file: standard output."""
_WIDTH_ELSEWHERE = 160
_STDOUT, _STDERR = 1, 2

_streams: list[TextIO] = []
"""The stream of reports, while a command runs."""


def report_stream() -> TextIO:
    """Return the stream for reports: standard output, which other code cannot write to while a command runs."""
    return _streams[-1] if _streams else sys.stdout


def echo(text: str, *, nl: bool = True) -> None:
    """Print a part of the command's report."""
    click.echo(text, file=report_stream(), nl=nl)


def echo_document(text: str) -> None:
    """Print a document that other programs read; it is not changed as other lines are, so its writer quotes texts."""
    stream = report_stream()
    if isinstance(stream, _Log):
        stream.write_verbatim(text)
    else:
        click.echo(text, file=stream, nl=False)


def log_safe(json: str) -> str:
    """Return JSON of the same values in which a CI runner finds no command, as in `without_commands`."""
    return COMMAND.sub(r"\\u0023", json)


def console() -> Console:
    """Return a console on standard output: as wide as the terminal, or wide enough for most tables in a file or pipe.

    COLUMNS overrides the width, and NO_COLOR turns colours off.
    """
    from rich.console import Console

    class Output(Console):
        """Leaves a closed pipe to `main`, since rich's exit code for it, 1, means different outputs here."""

        @override
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    stream = report_stream()
    return Output(file=stream, width=None if stream.isatty() or "COLUMNS" in os.environ else _WIDTH_ELSEWHERE)


def print_rows(columns: Sequence[Column | str], rows: Sequence[Sequence[Value]], title: str = "") -> None:
    """Print a table."""
    from ferrule.report.console import print_section
    from ferrule.report.sections import Table

    print_section(Table(title, columns, rows), console())


def print_notes(notes: Sequence[str], most: int, where: str = "") -> None:
    """Print notes on standard error, and how many are left out, which are `where`."""
    from ferrule.rendering import shown

    for note in notes[:most]:
        click.echo(f"note: {shown(note)}", err=True)
    if len(notes) > most:
        click.echo(f"note: and {len(notes) - most} more{where}", err=True)


def print_json(document: object) -> None:
    """Print a document of dataclasses or msgspec structs as indented JSON."""
    write_json(STDOUT, document)


def write_json(path: Path | None, document: object) -> None:
    """Write a document as indented JSON to a file or `STDOUT`; None writes nothing. FerruleError if that fails."""
    from ferrule.cli.arrays import save
    from ferrule.documents import json_text

    text = json_text(document) + "\n"
    if path == STDOUT:
        echo_document(log_safe(text))
    elif path is not None:
        save(path, text.encode())


def reserve_output(command: click.Command) -> None:
    """Make a command run inside `output_reserved`; a second call changes nothing."""
    callback = command.callback
    if callback is None or getattr(callback, "reserves_output", False):
        return

    @wraps(callback)
    def reserving(*arguments: Any, **keywords: Any) -> Any:  # noqa: ANN401 click's types
        with output_reserved():
            return callback(*arguments, **keywords)

    reserving.reserves_output = True  # type: ignore[attr-defined]
    command.callback = reserving


@contextmanager
def output_reserved() -> Iterator[None]:
    """Keep standard output for `report_stream` alone.

    What anything else prints, or writes to the file descriptor in C or in a child process, goes to standard error.
    """
    stdout = sys.stdout
    stdout.flush()
    kept = os.dup(_STDOUT)
    try:
        os.dup2(_STDERR, _STDOUT)
        own = _is_descriptor(stdout, _STDOUT)
        stream = _reopened(stdout, kept) if own else stdout
        _streams.append(stream)
        sys.stdout = sys.stderr
        try:
            yield
            stream.flush()
        finally:
            sys.stdout = stdout
            _streams.pop()
            if own:
                _close(stream)
    finally:
        _flush_c()
        os.dup2(kept, _STDOUT)
        os.close(kept)


def _is_descriptor(stream: TextIO, descriptor: int) -> bool:
    try:
        return stream.fileno() == descriptor
    except (OSError, ValueError):  # a stream without a file
        return False


class _Checked(io.FileIO):
    """A file that raises FerruleError if it cannot be written, except for a closed pipe."""

    @override
    def write(self, data: ReadableBuffer, /) -> int | None:  # type: ignore[override]  # None if it would block
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise FerruleError(f"standard output cannot be written: {error.strerror or error}") from error


class _Dropping(io.FileIO):
    """A file for errors: what it cannot write is dropped, since there is no place for the error about it."""

    @override
    def write(self, data: ReadableBuffer, /) -> int | None:  # type: ignore[override]  # as above
        with suppress(OSError):
            super().write(data)
        return memoryview(data).nbytes


class _Log(io.TextIOWrapper):
    """A stream that a person or a CI runner may read: what the latter would obey is written as escapes."""

    _within_line = False

    @override
    def write(self, text: str, /) -> int:
        super().write(without_commands(text, within_line=self._within_line))
        line = text.rpartition("\n")[2]
        self._within_line = bool(line.strip()) or (self._within_line and "\n" not in text)
        return len(text)

    def write_verbatim(self, text: str) -> None:
        """Write a text as it is."""
        super().write(text)


def _reopened(stream: TextIO, descriptor: int) -> TextIO:
    """Return a checked stream like the given one that writes to a duplicate of the descriptor; the caller closes it."""
    return _Log(
        io.BufferedWriter(_Checked(os.dup(descriptor), "wb")),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.isatty(),
    )


@contextmanager
def output_checked() -> Iterator[None]:
    """Make `sys.stdout` raise FerruleError, at the end of the block at the latest, if it cannot be written."""
    stdout = sys.stdout
    if not _is_descriptor(stdout, _STDOUT):
        yield
        return
    sys.stdout = checked = _reopened(stdout, _STDOUT)
    try:
        yield
        checked.flush()
    finally:
        sys.stdout = stdout
        _close(checked)


@contextmanager
def standard_streams() -> Iterator[None]:
    """Give the process the standard streams that it was started without, and quote what it writes to standard error.

    Writing to a standard output that was closed is an error, as if its file were open for reading only; what is written
    to a closed standard error is dropped.
    """
    for descriptor, flags in ((0, os.O_RDONLY), (_STDOUT, os.O_RDONLY), (_STDERR, os.O_WRONLY)):
        _occupy(descriptor, flags)
    sys.stdout = sys.stdout or _writer(_STDOUT)
    sys.stderr = stderr = sys.stderr or _writer(_STDERR)
    if not _is_descriptor(stderr, _STDERR):
        yield
        return
    sys.stderr = _Log(
        _Dropping(_STDERR, "wb", closefd=False),
        encoding=stderr.encoding,
        errors=stderr.errors,
        write_through=True,
    )
    try:
        yield
    finally:
        sys.stderr = stderr


def _occupy(descriptor: int, flags: int) -> None:
    """Open the null device at a descriptor that is closed, which the next file would get otherwise."""
    try:
        os.fstat(descriptor)
    except OSError:
        opened = os.open(os.devnull, flags)
        if opened != descriptor:
            os.dup2(opened, descriptor)
            os.close(opened)
        os.set_inheritable(descriptor, True)


def _writer(descriptor: int) -> TextIO:
    return io.TextIOWrapper(io.FileIO(descriptor, "wb", closefd=False), "utf-8", "replace", write_through=True)


def _flush_c() -> None:
    """Write what the buffers of C's streams hold."""
    if sys.platform == "win32":
        return
    import ctypes

    ctypes.CDLL(None).fflush(None)


def _close(stream: TextIO) -> None:
    """Close a stream; what it cannot write is dropped, since the error about it has been raised."""
    with suppress(OSError, FerruleError):
        stream.close()
