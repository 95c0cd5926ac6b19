# SPDX-License-Identifier: Apache-2.0
"""The rows of a sweep as a table in Parquet, for tools that analyse data."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from ferrule._version import VERSION
from ferrule.errors import MissingToolError
from ferrule.report.evidence import Evidence
from ferrule.report.sweep_document import SWEEP_SCHEMA_VERSION, SweepRow
from ferrule.scratch import ScratchFolder, writing

if TYPE_CHECKING:
    import pyarrow

REMEDY = "pip install 'ferrule[tables]'"
_BATCH = 10_000
"""Rows that are in memory at once."""
_INTEGERS = ("count", "elapsed", "flash_bytes", "ram_bytes", "stack_bytes", "samples", "attempts")
_REALS = ("milliseconds", "least_ms", "most_ms", "seconds", "cpu_s")


def require_parquet() -> None:
    """Raise MissingToolError if Parquet files cannot be written."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise MissingToolError(
            "the Python package pyarrow is missing, which Parquet files need", hint=REMEDY
        ) from error


def write_parquet(path: Path, rows: Iterable[SweepRow], *, name: str) -> None:
    """Write rows as a Parquet file with a column for each field of SweepRow; an older file stays if that fails.

    `options` and `metrics` are maps, `backends` is a list, `evidence` a struct. The file's metadata have the sweep's
    name, the version of Ferrule and that of the rows.

    Raises:
        MissingToolError: pyarrow is not installed.
        FerruleError: the file cannot be written.
    """
    require_parquet()
    import pyarrow
    from pyarrow import parquet

    schema = _schema().with_metadata(
        {"ferrule.kind": "sweep", "ferrule.name": name, "ferrule.version": VERSION}
        | {"ferrule.schema_version": str(SWEEP_SCHEMA_VERSION)}
    )
    remaining = iter(rows)
    with writing(path), ScratchFolder(path.absolute().parent) as scratch:
        written = scratch.path / "rows.parquet"
        with parquet.ParquetWriter(written, schema, compression="zstd") as writer:
            while batch := list(itertools.islice(remaining, _BATCH)):
                writer.write_table(pyarrow.Table.from_pylist([_record(row) for row in batch], schema=schema))
        with contextlib.suppress(FileNotFoundError):  # a file that is replaced keeps its rights
            written.chmod(path.stat().st_mode)
        written.replace(path)


def _schema() -> pyarrow.Schema:
    import pyarrow

    kinds = {
        **dict.fromkeys(_INTEGERS, pyarrow.int64()),
        **dict.fromkeys(_REALS, pyarrow.float64()),
        "backends": pyarrow.list_(pyarrow.string()),
        "options": pyarrow.map_(pyarrow.string(), pyarrow.string()),
        "metrics": pyarrow.map_(pyarrow.string(), pyarrow.float64()),
        "evidence": pyarrow.struct([(name, pyarrow.int64()) for name in Evidence.__dataclass_fields__]),
        "started": pyarrow.timestamp("ms", tz="UTC"),
    }
    return pyarrow.schema([(name, kinds.get(name, pyarrow.string())) for name in SweepRow.__dataclass_fields__])


def _record(row: SweepRow) -> dict[str, object]:
    from datetime import datetime

    return {name: getattr(row, name) for name in SweepRow.__dataclass_fields__} | {
        "options": list(row.options.items()),
        "metrics": list(row.metrics.items()),
        "evidence": asdict(row.evidence),
        "started": datetime.fromisoformat(row.started) if row.started else None,
    }
