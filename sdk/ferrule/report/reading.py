# SPDX-License-Identifier: Apache-2.0
"""Reads documents that commands have written with `--json`, and the results files of sweeps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from ferrule.documents import decode, file_bytes
from ferrule.errors import FerruleError
from ferrule.interface import either
from ferrule.recognition import recognised
from ferrule.report.base import Document
from ferrule.report.comparison_document import Comparison
from ferrule.report.evaluation_document import EvaluationDocument
from ferrule.report.failure_document import FailureDocument
from ferrule.report.inspection import Inspection
from ferrule.report.quantization_document import QuantizationDocument
from ferrule.report.run_document import ReportDocument
from ferrule.report.search_document import SearchDocument
from ferrule.report.sweep_document import SweepDocument
from ferrule.report.sweep_rows import has_rows, sweep_of_rows

_HELD_PER_BYTE = 12
"""The most bytes of memory that a byte of a document takes once it is read; a sweep of 100,000 runs has about 60 MB."""
_KINDS: dict[str, tuple[type[Document], int]] = {
    each.__dataclass_fields__["kind"].default: (each, each.__dataclass_fields__["schema_version"].default)
    for each in (
        ReportDocument,
        Inspection,
        EvaluationDocument,
        QuantizationDocument,
        SearchDocument,
        SweepDocument,
        Comparison,
        FailureDocument,
    )
}
_HINT = either(
    "ferrule run, inspect, evaluate, quantize, sweep and compare write documents with --json",
    "documents are what ferrule run, inspect, evaluate, quantize, sweep and compare write as JSON",
)


class _Head(msgspec.Struct):
    """The fields that tell what a document is."""

    kind: str = "run"  # documents of the versions before `kind` are runs
    schema_version: int | None = None


def read_document(path: Path) -> Document:
    """Return the document in a file.

    Raises:
        FerruleError: the file cannot be read, has no document or several, or one of a later version of Ferrule.
    """
    documents = read_documents(path)
    if len(documents) != 1:
        raise FerruleError(f"{path}: it has {len(documents)} documents, expected one")
    return documents[0]


def read_documents(path: Path) -> tuple[Document, ...]:
    """Return the documents in a file: one, or a list of one for each model of a firmware.

    Raises:
        FerruleError: the file cannot be read, or what it has is not a document, or is one of a later version.
    """
    data = _contents(path)
    if has_rows(path, data):
        raise FerruleError(
            f"{path}: it has the rows of a sweep, and is no document",
            hint="the same ferrule sweep writes all formats from it, and repeats no run; ferrule compare reads it",
        )
    return _documents(path, data)


def read_comparable(path: Path, warn: Callable[[str], None]) -> tuple[Document, ...]:
    """Return the documents in a file, or the runs of a sweep's results file as one document.

    `warn` gets a sentence about each kind of row that is left out; see `ferrule.report.sweep_rows`.

    Raises:
        FerruleError: as `read_documents`, or a line of the results file is not a row, or it has none.
    """
    data = _contents(path)
    return (sweep_of_rows(path, data, warn),) if has_rows(path, data) else _documents(path, data)


def _documents(path: Path, data: bytes) -> tuple[Document, ...]:
    if data.lstrip()[:1] != b"[":
        return (_document(str(path), data),)
    parts = decode(str(path), data, list[msgspec.Raw], hint=_HINT)
    listed = tuple(_document(f"{path}: document {index}", bytes(raw)) for index, raw in enumerate(parts))
    if not listed:
        raise FerruleError(f"{path}: it has no document", hint=_HINT)
    return listed


def _contents(path: Path) -> bytes:
    data = file_bytes(path, _HELD_PER_BYTE)
    other = recognised(data)
    if other is not None:
        raise FerruleError(f"{path}: it is {other.what}, expected a document of Ferrule", hint=other.remedy or _HINT)
    return data


def _document(where: str, data: bytes) -> Document:
    head = decode(where, data, _Head, hint=_HINT)
    if head.kind not in _KINDS:
        raise FerruleError(f"{where}: its kind is '{head.kind}', expected one of {', '.join(_KINDS)}", hint=_HINT)
    kind, version = _KINDS[head.kind]
    if head.schema_version is None:
        raise FerruleError(f"{where}: it is not a document of Ferrule: it has no schema_version", hint=_HINT)
    if head.schema_version != version:
        raise FerruleError(
            f"{where}: the schema_version of this {head.kind} is {head.schema_version}, expected {version}",
            hint="make it again, or read it with the version of Ferrule that wrote it",
        )
    return decode(where, data, kind, hint=_HINT)
