# SPDX-License-Identifier: Apache-2.0
"""The results of a sweep as JSON lines, to which each run adds one; a sweep that was stopped goes on from them."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec

from ferrule._typing import override
from ferrule.closing import Closing
from ferrule.errors import FerruleError
from ferrule.evaluation.sweep.inputs import SUFFIX, Inputs
from ferrule.record import Places, Reads
from ferrule.report.sweep_document import SweepRow
from ferrule.report.sweep_rows import read_rows, whole_size

_SYNC_S = 1.0
"""Rows of at most this many seconds are lost if the machine loses its power; none if only the process is killed."""


class ResultsFile(Closing):
    """A file with a row of JSON per line. Each row is written at once, so that only a torn last line can be lost.

    Raises:
        FerruleError: the file cannot be read or written, another sweep is writing it, or a line is malformed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.torn = False
        """Whether the last line was incomplete, since its writer was killed; it is removed."""
        self.statuses: dict[str, str] = {}
        """By digest of the run: the status of its last row that can be kept."""
        self._last: dict[str, str] = {}
        """By digest of the run: the record of its last row."""
        self._handle = -1
        self._synced = time.monotonic()
        try:
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
            self._lock()
            size = whole_size(path.read_bytes())
            self.torn = size < os.fstat(self._handle).st_size
            if self.torn:
                os.ftruncate(self._handle, size)
            self._inputs = Inputs(path.with_name(path.name + SUFFIX))
        except OSError as error:
            self.close()
            raise FerruleError(f"{path} cannot be used: {error.strerror or error}") from error
        except FerruleError:
            self.close()
            raise
        for row in self.rows():
            if row.is_kept:
                self.statuses[row.run], self._last[row.run] = row.status, row.inputs

    def changed(self, run: str, places: Places) -> str | None:
        """Return what has changed since the last row of a run was made; None if nothing has."""
        return self._inputs.changed(self._last[run], places)

    def rows(self) -> Iterator[SweepRow]:
        """Yield all rows, in the order of their ends; of a run that was repeated, the last row counts."""
        with self.path.open("rb") as file:
            yield from read_rows(self.path, file, "name another file by --results, or delete the line")

    def append(self, row: SweepRow, reads: Reads | None = None) -> None:
        """Add a row and the record of what was read for it; FerruleError if that fails, and then there is no row."""
        size = os.fstat(self._handle).st_size
        try:
            row = row if reads is None else replace(row, inputs=self._inputs.keep(reads))
            line = msgspec.json.encode(row) + b"\n"
            written = os.write(self._handle, line)
            if written < len(line):
                os.ftruncate(self._handle, size)
            elif time.monotonic() > self._synced + _SYNC_S:
                os.fsync(self._handle)
                self._synced = time.monotonic()
        except OSError as error:
            raise FerruleError(
                f"{self.path} cannot be written: {error.strerror or error}", hint="the rows before are kept"
            ) from error
        if written < len(line):
            raise FerruleError(f"{self.path} cannot be written: the disk is full", hint="the rows before are kept")
        self.statuses[row.run], self._last[row.run] = row.status, row.inputs

    @override
    def close(self) -> None:
        if self._handle >= 0:
            with contextlib.suppress(OSError):
                os.fsync(self._handle)
            os.close(self._handle)
            self._handle = -1

    def _lock(self) -> None:
        """Keep other sweeps away from the file; where there are no such locks, nothing does."""
        if sys.platform == "win32":
            return
        import fcntl

        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FerruleError(
                f"another sweep is writing {self.path}", hint="wait for it, or name another file by --results"
            ) from None
