# SPDX-License-Identifier: Apache-2.0
"""The rows of a sweep as JSON lines and as a table: torn lines, full disks, two sweeps at once, hostile names."""

from __future__ import annotations

import resource
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from needs import require_module

from ferrule.errors import FerruleError, MissingToolError
from ferrule.evaluation.sweep import ResultsFile, write_parquet
from ferrule.report.evidence import Evidence
from ferrule.report.sweep_document import SweepRow

ROW = SweepRow(
    run="a",
    model="m.tflite",
    board="b",
    toolchain="zig",
    engine="unicorn",
    status="done",
    verdict="exact",
    evidence=Evidence(samples=1, elements=4, numbers=4, runs=1),
)
HOSTILE = ("=1+1", 'a,b\n"c"', "\u2028\x00", "</script>", "|", "été")


def kept(path: Path, *rows: SweepRow) -> list[SweepRow]:
    with ResultsFile(path) as results:
        for row in rows:
            results.append(row)
    with ResultsFile(path) as results:
        return list(results.rows())


@settings(max_examples=20)
@given(st.lists(st.builds(replace, st.just(ROW), run=st.text(), error=st.text(), metrics=st.dictionaries(
    st.text(), st.floats(allow_nan=False, allow_infinity=False)))), st.integers(0, 10_000))  # fmt: skip
def test_rows_before_a_torn_line_stay(tmp_path_factory: pytest.TempPathFactory, rows: list[SweepRow], cut: int) -> None:
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    assert kept(path, *rows) == rows
    data = path.read_bytes()
    cut = min(cut, len(data))
    path.write_bytes(data[:cut])
    whole = data[:cut].count(b"\n")
    with ResultsFile(path) as results:
        assert results.torn == (cut > 0 and not data[:cut].endswith(b"\n"))
        assert list(results.rows()) == rows[:whole]
        results.append(ROW)
        assert list(results.rows()) == [*rows[:whole], ROW]


def test_the_last_row_of_a_run_counts(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    kept(path, replace(ROW, status="failed"), ROW)
    with ResultsFile(path) as results:
        assert results.statuses == {"a": "done"}


@pytest.mark.parametrize("line", ["{}", "[", '{"run": 3}', "\xff"])
def test_a_line_that_is_no_row_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(msgspec.json.encode(ROW) + b"\n" + line.encode("latin-1") + b"\n")
    with pytest.raises(FerruleError, match=r"rows\.jsonl: line 2 is not a row of a sweep"):
        ResultsFile(path)


def test_two_sweeps_do_not_write_one_file(tmp_path: Path) -> None:
    with ResultsFile(tmp_path / "rows.jsonl"), pytest.raises(FerruleError, match="another sweep is writing"):
        ResultsFile(tmp_path / "rows.jsonl")


@pytest.mark.parametrize("name", ["", "none/rows.jsonl"])
def test_a_place_that_cannot_hold_results_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(FerruleError, match="cannot be used: "):
        ResultsFile(tmp_path / name)


def test_without_space_the_rows_before_stay_whole(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    size = len(msgspec.json.encode(ROW)) + 1
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with ResultsFile(path) as results:
        results.append(ROW)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + size // 2, hard))
        try:
            with pytest.raises(FerruleError, match="cannot be written: the disk is full"):
                results.append(ROW)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == msgspec.json.encode(ROW) + b"\n"


def test_parquet_has_every_field(tmp_path: Path) -> None:
    require_module("pyarrow", "pip install 'ferrule[tables]'")
    from pyarrow import parquet

    rows = [
        replace(ROW, model=name, options={name: name}, backends=(name,), metrics={name: 0.5}, count=1 << 40)
        for name in HOSTILE
    ]
    rows.append(replace(ROW, started="2026-01-02T03:04:05.678+00:00", seconds=1.5))
    path = tmp_path / "rows.parquet"
    write_parquet(path, rows, name="mine")
    table = parquet.read_table(path)
    assert table.schema.metadata[b"ferrule.name"] == b"mine"
    found = table.to_pylist()
    assert [list(row) for row in found] == [list(SweepRow.__dataclass_fields__)] * len(rows)
    for row, record in zip(rows, found, strict=True):
        expected: dict[str, Any] = msgspec.to_builtins(row)
        started = record["started"].isoformat(timespec="milliseconds") if record["started"] else ""
        told = record | {"options": dict(record["options"]), "metrics": dict(record["metrics"]), "started": started}
        assert told == expected | {"backends": list(row.backends)}
    assert [each.name for each in tmp_path.iterdir()] == ["rows.parquet"]


def test_without_pyarrow_the_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    with pytest.raises(MissingToolError, match="pyarrow is missing") as caught:
        write_parquet(tmp_path / "rows.parquet", [ROW], name="mine")
    assert caught.value.hint == "pip install 'ferrule[tables]'"
