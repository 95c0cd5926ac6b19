# SPDX-License-Identifier: Apache-2.0
"""Reads the results file of a sweep: a row of JSON per line, of which the last line can be torn."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from ferrule.documents import decode
from ferrule.errors import FerruleError
from ferrule.report.sections import plural
from ferrule.report.sweep_document import SweepDocument, SweepRow

SUFFIX = ".jsonl"
_HINT = "delete the line, or compare the documents that ferrule sweep writes as JSON"


class _Head(msgspec.Struct):
    """The fields that tell that a line is a row."""

    run: str
    status: str
    model: str


def whole_size(data: bytes) -> int:
    """Return the bytes of the lines that are whole; a last line without its end was torn when its writer was killed."""
    return data.rfind(b"\n") + 1


def read_rows(path: Path, lines: Iterable[bytes], hint: str) -> Iterator[SweepRow]:
    """Yield the rows of whole lines; `path` is named in errors.

    Raises:
        FerruleError: a line is not a row, with its number and the given hint.
    """
    for number, line in enumerate(lines, start=1):
        yield decode(f"{path}: line {number} is not a row of a sweep", line, SweepRow, hint=hint)


def has_rows(path: Path, data: bytes) -> bool:
    """Return whether a file is one of rows, by its first line, or else by its name if it has no document."""
    first = data[: data.find(b"\n")] if b"\n" in data else data
    try:
        msgspec.json.decode(first, type=_Head)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        begins_document = first.strip() in {b"{", b"["} or b'"schema_version"' in first
        return path.suffix.lower() == SUFFIX and not begins_document
    return True


def sweep_of_rows(path: Path, data: bytes, warn: Callable[[str], None]) -> SweepDocument:
    """Return the runs of a results file as a document; `warn` gets a sentence about each kind of row that is left out.

    Of a run that was repeated, the last row counts, and so it does of runs with the same choices, which are those of
    other versions, or of a model that has changed since. A torn last line is left out. The document's name is that of
    the file, and the planned runs are those that the file has.

    Raises:
        FerruleError: a line is not a row, or there is none.
    """
    size = whole_size(data)
    if size < len(data):
        warn(f"{path}: the last line is torn and is left out")
    runs: dict[str, SweepRow] = {}
    for row in read_rows(path, io.BytesIO(data[:size]), _HINT):
        runs.pop(row.run, None)  # so that the order is that of the last rows
        runs[row.run] = row
    rows = {row.name: row for row in runs.values()}
    if not rows:
        raise FerruleError(f"{path}: it has no whole row of a sweep", hint="no run of the sweep has ended yet")
    if len(rows) < len(runs):
        left_out = plural(len(runs) - len(rows), "row")
        warn(f"{path}: {left_out} of runs with the choices of later ones, of other versions or contents, are left out")
    return SweepDocument(
        ferrule_version=", ".join(sorted({row.ferrule_version for row in rows.values() if row.ferrule_version})),
        name=path.stem,
        rows=tuple(rows.values()),
        planned=len(rows),
    )
