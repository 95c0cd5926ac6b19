# SPDX-License-Identifier: Apache-2.0
"""The file of a search's trials, a line of JSON each, from which a search that was stopped goes on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.closing import Closing
from ferrule.documents import decode
from ferrule.errors import FerruleError
from ferrule.reading import exists, read_bytes
from ferrule.report.search_document import TrialPart
from ferrule.report.sweep_rows import whole_size


@frozen
class _Line:
    """A trial, and the digest of all that it depends on but the setting."""

    key: str
    trial: TrialPart


class TrialsFile(Closing):
    """Trials by key and setting; a path of None keeps nothing.

    Raises:
        FerruleError: the file cannot be read or written, or a line of it is malformed.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._known: dict[tuple[str, tuple[str, ...]], TrialPart] = {}
        self._file = None
        if path is None:
            return
        try:
            data = read_bytes(path) if exists(path) else b""
            whole = whole_size(data)  # a torn last line, whose writer was killed, is removed
            for number, line in enumerate(data[:whole].splitlines(), 1):
                row = decode(f"{path}: line {number}", line, _Line, hint="name another file")
                self._known[row.key, row.trial.setting] = row.trial
            self._file = path.open("ab")
            if whole < len(data):
                self._file.truncate(whole)
        except OSError as error:
            raise FerruleError(f"{path} cannot be used: {error.strerror or error}") from error

    def known(self, key: str, setting: Sequence[str]) -> TrialPart | None:
        """Return the trial of a setting, if it has been made."""
        return self._known.get((key, tuple(setting)))

    def add(self, key: str, trial: TrialPart) -> None:
        """Add a trial; FerruleError if it cannot be written."""
        self._known[key, trial.setting] = trial
        if self._file is None:
            return
        try:
            self._file.write(msgspec.json.encode(_Line(key=key, trial=trial)) + b"\n")
            self._file.flush()
        except OSError as error:
            raise FerruleError(f"{self._path} cannot be written: {error.strerror or error}") from error

    @override
    def close(self) -> None:
        if self._file is not None:
            self._file.close()
