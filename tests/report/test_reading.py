# SPDX-License-Identifier: Apache-2.0
"""Documents in files: every kind comes back as it was, and whatever is wrong is one error that names the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from saved_documents import documents, run_document

from ferrule.budget import limits
from ferrule.errors import BudgetError, FerruleError
from ferrule.report.reading import read_document, read_documents
from ferrule.report.writers import WRITERS


@pytest.mark.parametrize("name", documents())
@pytest.mark.parametrize("text", ["", "\x1b[31m\n", "\u202e é"])
def test_a_document_comes_back_as_it_was(tmp_path: Path, name: str, text: str) -> None:
    document = documents(text)[name]
    path = tmp_path / "document.json"
    path.write_text(WRITERS["json"]([document]), encoding="utf-8")
    assert read_document(path) == document


def test_the_documents_of_several_models_come_back(tmp_path: Path) -> None:
    listed = (run_document(), run_document("b"))
    path = tmp_path / "documents.json"
    path.write_text(WRITERS["json"](listed), encoding="utf-8")
    assert read_documents(path) == listed
    with pytest.raises(FerruleError, match=r"documents\.json: it has 2 documents, expected one"):
        read_document(path)


def test_a_document_without_a_kind_is_a_run(tmp_path: Path) -> None:
    data = json.loads(WRITERS["json"]([run_document()]))
    for added_later in ("kind", "plan", "timeline", "refusals", "environment"):
        del data[added_later]
    path = tmp_path / "old.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    document = read_document(path)
    assert (document.kind, getattr(document, "layers", ())) == ("run", run_document().layers)


def changed(**fields: Any) -> bytes:  # noqa: ANN401 any JSON
    """Return a run with other fields; None leaves a field out."""
    data = json.loads(WRITERS["json"]([run_document()])) | fields
    return json.dumps({name: value for name, value in data.items() if value is not None}).encode()


WRONG = {
    "empty": (b"", "malformed|truncated"),
    "not JSON": (b"not JSON", "malformed|invalid"),
    "not UTF-8": (b'{"kind": "\xff"}', "utf-8|UTF-8"),
    "another object": (b"{}", "it is not a document of Ferrule: it has no schema_version"),
    "a number": (b"7", "Expected `object`, got `int`"),
    "nested": (b"[" * 100_000, "nested too deep|malformed|truncated"),
    "an empty list": (b"[]", "it has no document"),
    "an unknown kind": (changed(kind="sbom"), "its kind is 'sbom', expected one of run, inspection, "),
    "a kind that is no text": (changed(kind=3), r"Expected `str`, got `int` - at `\$\.kind`"),
    "a later version": (changed(schema_version=99), "the schema_version of this run is 99, expected 4"),
    "an older version": (changed(schema_version=1), "the schema_version of this run is 1, expected 4"),
    "a missing field": (changed(verdict=None), "missing required field `verdict`"),
    "a wrong verdict": (changed(verdict="fine"), r"Invalid enum value 'fine' - at `\$\.verdict`"),
    "a wrong type": (changed(run_s="1"), r"Expected `float`, got `str` - at `\$\.run_s`"),
    "a list of something else": (b'[{"kind": "run"}]', "document 0: it is not a document of Ferrule"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_what_is_wrong_names_the_file(tmp_path: Path, fault: str) -> None:
    data, message = WRONG[fault]
    path = tmp_path / "wrong.json"
    path.write_bytes(data)
    with pytest.raises(FerruleError, match=message) as caught:
        read_document(path)
    assert str(caught.value).startswith(str(path))
    assert caught.value.hint


@pytest.mark.parametrize("name", ["nowhere.json", ".", "a\0b"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(FerruleError, match=r"No such file|Is a directory|null"):
        read_document(tmp_path / name)


def test_a_file_may_not_fill_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    path.write_bytes(b" " * 11)
    with limits(bytes=130), pytest.raises(BudgetError, match=r"large\.json takes 132 bytes .* limit is 130"):
        read_document(path)
    with limits(bytes=132), pytest.raises(FerruleError, match="truncated"):
        read_document(path)
