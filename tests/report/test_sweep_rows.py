# SPDX-License-Identifier: Apache-2.0
"""Results files of sweeps as documents: the rows that a sweep itself would go on from, or one error with the line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from saved_documents import documents, sweep_document

from ferrule.errors import FerruleError
from ferrule.evaluation.sweep import ResultsFile
from ferrule.report.base import Document
from ferrule.report.comparison import compare_documents
from ferrule.report.comparison_document import Change
from ferrule.report.reading import read_comparable, read_documents
from ferrule.report.sweep_document import SweepDocument, SweepRow
from ferrule.report.writers import WRITERS

ROW = sweep_document().rows[0]


def lines(*rows: SweepRow) -> bytes:
    return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)


def read(path: Path) -> tuple[Document, list[str]]:
    said: list[str] = []
    (document,) = read_comparable(path, said.append)
    return document, said


def rows_of(document: Document) -> tuple[SweepRow, ...]:
    assert isinstance(document, SweepDocument)
    return document.rows


@pytest.mark.parametrize("name", ["sweep.jsonl", "SWEEP.JSONL", "rows", "63"])
def test_rows_equal_the_document_of_the_same_runs(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    saved = sweep_document("a name")
    path.write_bytes(lines(*saved.rows))
    document, said = read(path)
    assert (rows_of(document), said) == (saved.rows, [])
    assert (document.kind, getattr(document, "name", "")) == ("sweep", path.stem)
    for old, new in ((saved, document), (document, saved)):
        comparison = compare_documents(old, new)
        assert {each.change for each in comparison.changes} == {Change.EQUAL}
        assert not any("model" in each for each in comparison.differences)


@pytest.mark.parametrize("name", documents())
def test_documents_are_read_as_before(tmp_path: Path, name: str) -> None:
    text = WRITERS["json"]([documents()[name]])
    compact = msgspec.json.encode(documents()[name])
    for suffix in ("json", "jsonl"):
        path = tmp_path / f"document.{suffix}"
        for data in (text.encode(), compact, b"[" + compact + b"]", f"[\n{text}]".encode()):
            path.write_bytes(data)
            assert read_comparable(path, pytest.fail) == read_documents(path) == (documents()[name],)


@settings(max_examples=20)
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["done", "failed"]))), st.integers(0, 3_000))
def test_a_torn_line_and_repeated_runs_are_as_when_the_sweep_goes_on(
    tmp_path_factory: pytest.TempPathFactory, runs: list[tuple[int, str]], cut: int
) -> None:
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    rows = [replace(ROW, run=str(run), board=f"board {run}", status=status) for run, status in runs]
    data = lines(*rows)[:cut]
    path.write_bytes(data)
    if b"\n" in data:
        document, said = read(path)
        found = {row.run: row.status for row in rows_of(document)}
        torn = not data.endswith(b"\n")
        assert said == [f"{path}: the last line is torn and is left out"] * torn
    else:
        with pytest.raises(FerruleError, match="it has no whole row of a sweep"):
            read(path)
        found, torn = {}, bool(data)
    assert path.read_bytes() == data, "a comparison changes no file"
    with ResultsFile(path) as results:
        assert (results.statuses, results.torn) == (found, torn)


def test_a_last_line_is_torn_though_it_could_be_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(lines(ROW, replace(ROW, run="b", board="b")).rstrip(b"\n"))
    document, said = read(path)
    assert (rows_of(document), said) == ((ROW,), [f"{path}: the last line is torn and is left out"])


def test_of_runs_with_the_same_choices_the_last_counts(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    late = replace(ROW, run="after an update", ferrule_version="0.2.0", count=300)
    other = replace(ROW, run="c", engine="qemu", ferrule_version="0.1.0")
    again = replace(ROW, run="b", status="failed")
    path.write_bytes(lines(ROW, again, other, late))
    document, said = read(path)
    assert sorted(row.run for row in rows_of(document)) == ["after an update", "c"]
    assert said == [
        f"{path}: 2 rows of runs with the choices of later ones, of other versions or contents, are left out"
    ]
    assert getattr(document, "ferrule_version", "") == "0.1.0, 0.2.0"
    path.write_bytes(lines(ROW, late, ROW))
    assert rows_of(read(path)[0]) == (ROW,), "a run that was repeated is as late as its last row"


def test_rows_are_no_document(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(lines(ROW, ROW))
    with pytest.raises(FerruleError, match=r"rows\.jsonl: it has the rows of a sweep, and is no document") as caught:
        read_documents(path)
    assert "ferrule compare reads it" in str(caught.value.hint)


WRONG = {
    "empty": (b"", "it has no whole row of a sweep"),
    "torn only": (b'{"run": "a', "it has no whole row of a sweep"),
    "not JSON": (lines(ROW) + b"<html>\n", "line 2 is not a row of a sweep: JSON is malformed"),
    "not JSON at once": (b"{no\n" + lines(ROW), "line 1 is not a row of a sweep: JSON is malformed"),
    "an empty line": (lines(ROW, ROW) + b"\n" + lines(ROW), "line 3 is not a row of a sweep: Input data was truncated"),
    "not UTF-8": (lines(ROW) + b'{"run": "\xff"}\n', "line 2 is not a row of a sweep: it is not UTF-8"),
    "a wrong type": (
        lines(ROW).replace(b'"count":400', b'"count":"x"'),
        r"line 1 is not a row of a sweep: Expected `int \| null`, got `str` - at `\$\.count`",
    ),
    "nested unknown": (
        lines(ROW) + b'{"x":' + b"[" * 100_000 + b"\n",
        "line 2 is not a row of a sweep: its values are nested too deep",
    ),
    "a row with a document": (
        lines(ROW) + msgspec.json.encode(sweep_document()) + b"\n",
        "line 2 is not a row of a sweep: Object missing required field `run`",
    ),
}


@pytest.mark.parametrize("fault", WRONG)
def test_what_is_wrong_names_file_and_line(tmp_path: Path, fault: str) -> None:
    data, message = WRONG[fault]
    path = tmp_path / "rows.jsonl"
    path.write_bytes(data)
    with pytest.raises(FerruleError, match=message) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert caught.value.hint
