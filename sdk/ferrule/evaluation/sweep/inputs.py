# SPDX-License-Identifier: Apache-2.0
"""What was read for each row of a sweep: records in a file beside the results, each question and answer once."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from ferrule.errors import FerruleError
from ferrule.reading import read_bytes
from ferrule.record import Places, Read, Reads, digest_of
from ferrule.report.sweep_rows import whole_size

SUFFIX = ".inputs"
_HINT = "delete the file: all runs are then done again"


class _Record(msgspec.Struct, frozen=True):
    """A record: its digest, and the numbers of its questions, as pairs of the first and the last."""

    record: str
    reads: tuple[tuple[int, int], ...]


class Inputs:
    """The file of records; whoever writes it holds the lock of the results.

    A line is a question with its answer, or a record. A last line that was torn is removed.

    Raises:
        FerruleError: a line is malformed, with its number.
        OSError: the file cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._numbers: dict[Read, int] = {}
        self._reads: list[Read] = []
        self._records: dict[str, _Record] = {}
        self._held: dict[Read, bool] = {}
        if path.exists():
            self._read()

    def keep(self, reads: Reads) -> str:
        """Add a record, unless the file has it, and return its digest."""
        digest = digest_of(reads)
        if digest in self._records:
            return digest
        new = [each for each in reads if each not in self._numbers]
        for each in new:
            self._add(each)
        record = _Record(record=digest, reads=_ranges(self._numbers[each] for each in reads))
        lines = b"".join(msgspec.json.encode(line) + b"\n" for line in (*map(tuple, new), record))
        with self.path.open("ab") as file:
            file.write(lines)
        self._records[digest] = record
        return digest

    def changed(self, digest: str, places: Places) -> str | None:
        """Return the first path of a record about which something has changed; None if all is as it was."""
        record = self._records.get(digest)
        if record is None:
            return "what was read for it is not recorded"
        reads = [self._reads[number] for first, last in record.reads for number in range(first, last + 1)]
        for each in reads:
            if each not in self._held:
                self._held[each] = each.holds(places)
            if not self._held[each]:
                return f"{each.path} has changed"
        return None

    def _add(self, read: Read) -> None:
        self._numbers[read] = len(self._reads)
        self._reads.append(read)

    def _read(self) -> None:
        data = read_bytes(self.path)
        whole = whole_size(data)
        if whole < len(data):
            os.truncate(self.path, whole)
        decoder = msgspec.json.Decoder(_Record | tuple[str, str, str])
        for number, line in enumerate(data[:whole].splitlines(), start=1):
            try:
                found = decoder.decode(line)
                if isinstance(found, tuple):
                    self._add(Read(*found))
                else:
                    self._records[self._checked(found)] = found
            except (ValueError, msgspec.MsgspecError, RecursionError) as error:
                raise FerruleError(f"{self.path}: line {number} is no record: {error}", hint=_HINT) from error

    def _checked(self, found: _Record) -> str:
        """Return the digest of a record; ValueError if it is another one's."""
        bounds = [number for pair in found.reads for number in pair]
        if bounds != sorted(bounds) or (bounds and not 0 <= bounds[0] <= bounds[-1] < len(self._reads)):
            raise ValueError("it names questions that the file does not have")
        listed = tuple(sorted(self._reads[number] for first, last in found.reads for number in range(first, last + 1)))
        if digest_of(listed) != found.record:
            raise ValueError("its digest is that of another record")
        return found.record


def _ranges(numbers: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Return sorted numbers as pairs of the first and the last of each run."""
    found: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if found and found[-1][1] == number - 1:
            found[-1] = found[-1][0], number
        else:
            found.append((number, number))
    return tuple(found)
