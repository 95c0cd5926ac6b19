# SPDX-License-Identifier: Apache-2.0
"""The files that commands write: asked for before anything is built, complete or as they were, and also of failures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from report_formats import check_csv, check_junit, check_markdown, check_node_data, check_sarif, check_trace
from saved_documents import documents, evaluation_document, run_document, sweep_document

from ferrule import running
from ferrule.emulation import EngineError
from ferrule.report import Verdict
from ferrule.report.base import Document
from ferrule.report.reading import read_document
from ferrule.report.writers import WRITERS

Ferrule = Callable[..., Any]


@pytest.fixture
def saved(tmp_path: Path) -> Callable[[Document], Path]:
    """A function that writes a document to a file as --json does."""

    def save(document: Document) -> Path:
        path = tmp_path / f"{document.kind}{len(list(tmp_path.iterdir()))}.json"
        path.write_text(WRITERS["json"]([document]), encoding="utf-8")
        return path

    return save


def text(name: str) -> str:
    return Path(name).read_text(encoding="utf-8")


def refused(*_: object, **__: object) -> None:
    raise EngineError("the firmware did\nnot answer", hint="look at it")


@pytest.mark.cc
def test_a_run_writes_every_format(
    ferrule: Ferrule, dense: Path, zig: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    (tmp_path / "summary.md").write_text("before\n", encoding="utf-8")
    (tmp_path / "dense.tflite").write_bytes(dense.read_bytes())
    files = ("--json", "r.json", "--html", "r.html", "--csv", "r.csv", "--markdown", "r.md", "--trace", "r.trace")
    files += ("--junit", "r.xml", "--sarif", "r.sarif", "--node-data", "nodes", "--job-summary")
    assert ferrule("run", "dense.tflite", "-q", *files).code == 0
    report = read_document(tmp_path / "r.json")
    (row,) = check_csv(text("r.csv"))
    (layer,) = report.layers  # type: ignore[union-attr]
    assert (row["layer"], row["count"]) == (layer.name, str(layer.count))
    assert check_junit(text("r.xml")).attrib["failures"] == "0"
    assert check_sarif(text("r.sarif")) == []
    assert check_trace(text("r.trace"))
    assert check_node_data(text("nodes/dense.instructions.json")) == {"y": layer.count}
    summary = text("summary.md")
    assert summary.startswith("before\n")
    page = text("r.md")
    check_markdown(page)
    assert "# Run: dense\n\non mps2-an386 (" in summary
    assert "# Run: dense\n\non mps2-an386 (" in page
    assert text("r.html").startswith("<!")
    assert report.model.file == "dense.tflite"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--csv", "nowhere/r.csv"), "--csv nowhere/r.csv: there is no folder"),
        (("--markdown", "."), "--markdown .: is a folder, expected a file"),
        (("--junit", "r.x", "--sarif", "./r.x"), "r.x: --junit writes to it already"),
        (("--json", "-", "--trace", "-"), "--trace -: --json writes to it already"),
        (("--node-data", "-"), "--node-data -: it is several files, expected a folder"),
        (("--node-data", "no/where"), "--node-data no/where: there is no folder"),
        (("--job-summary",), "--job-summary: GITHUB_STEP_SUMMARY is not set"),
    ],
)
def test_what_cannot_be_written_is_refused_before_anything_is_built(
    ferrule: Ferrule,
    dense: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.setattr(running, "compile", refused)
    outcome = ferrule("run", dense, *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err
    assert list(tmp_path.iterdir()) == []


def test_the_summary_of_a_job_needs_a_place(
    ferrule: Ferrule, dense: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "none" / "summary.md"))
    outcome = ferrule("run", dense, "--job-summary")
    assert (outcome.code, outcome.out) == (2, "")
    assert "error: GITHUB_STEP_SUMMARY: " in outcome.err


def test_a_command_that_fails_writes_the_formats_for_failures(
    ferrule: Ferrule, dense: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(running, "compile", refused)
    files = ("--json", "r.json", "--csv", "r.csv", "--junit", "r.xml", "--sarif", "r.sarif", "--markdown", "r.md")
    outcome = ferrule("run", dense, "-q", *files, "--html", "r.html")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == "error: the firmware did\nnot answer\nhint: look at it\n"
    assert {path.name for path in tmp_path.iterdir()} == {"r.xml", "r.sarif", "r.md", "r.html"}
    (case,) = check_junit(text("r.xml")).iter("testcase")
    assert [(child.tag, child.get("type"), child.get("message"), child.text) for child in case] == [
        ("error", "EngineError", "the firmware did", "not answer\nhint: look at it")
    ]
    (result,) = check_sarif(text("r.sarif"))
    assert result["ruleId"] == "ferrule/error"
    assert "the firmware did" in text("r.html")


def test_a_failure_on_standard_output_is_alone(ferrule: Ferrule, dense: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "compile", refused)
    outcome = ferrule("run", dense, "--junit", "-")
    assert outcome.code == 2
    assert check_junit(outcome.out).attrib["errors"] == "1"


def test_a_failure_that_cannot_be_written_hides_nothing(
    ferrule: Ferrule, dense: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()

    def remove(*_: object, **__: object) -> None:
        folder.rmdir()
        refused()

    monkeypatch.setattr(running, "compile", remove)
    outcome = ferrule("run", dense, "-q", "--junit", folder / "r.xml")
    assert outcome.code == 2
    assert "warning: the failure is not written to a file: " in outcome.err
    assert "error: the firmware did" in outcome.err


def test_an_inspection_is_written(ferrule: Ferrule, dense: Path, tmp_path: Path) -> None:
    outcome = ferrule("inspect", dense, "--csv", "-", "--node-data", tmp_path / "nodes", "--html", tmp_path / "i.html")
    assert (outcome.code, outcome.err) == (0, "")
    assert [row["type"] for row in check_csv(outcome.out)] == ["FULLY_CONNECTED"]
    assert {path.name for path in (tmp_path / "nodes").iterdir()} == {"dense.macs.json", "dense.constant-bytes.json"}
    assert json.loads(ferrule("inspect", dense, "--json").out)["kind"] == "inspection"
    assert ferrule("inspect", dense, "--junit", tmp_path / "x").code == 2


def test_an_inspection_that_is_refused_is_written(ferrule: Ferrule, tmp_path: Path) -> None:
    (tmp_path / "bad.tflite").write_bytes(b"no model")
    outcome = ferrule("inspect", tmp_path / "bad.tflite", "--markdown", tmp_path / "i.md", "--csv", tmp_path / "i.csv")
    assert (outcome.code, outcome.out) == (2, "")
    text = (tmp_path / "i.md").read_text(encoding="utf-8")
    assert "Failure of ferrule inspect: bad.tflite" in check_markdown(text)[0]
    assert not (tmp_path / "i.csv").exists()


@pytest.mark.parametrize("name", documents())
def test_a_saved_document_is_written_in_other_formats(
    ferrule: Ferrule, saved: Callable[[Document], Path], tmp_path: Path, name: str
) -> None:
    document = documents()[name]
    path = saved(document)
    outcome = ferrule("report", path, "--markdown", "-", "--html", tmp_path / "r.html", "--json", tmp_path / "again")
    assert (outcome.code, outcome.err) == (0, "")
    check_markdown(outcome.out)
    assert read_document(tmp_path / "again") == document
    outcome = ferrule("report", path)
    assert outcome.code == 0
    assert len(outcome.out.splitlines()) > 2


def test_a_format_that_a_document_lacks_writes_no_file(
    ferrule: Ferrule, saved: Callable[[Document], Path], tmp_path: Path
) -> None:
    path = saved(sweep_document())
    outcome = ferrule("report", path, "--csv", tmp_path / "s.csv", "--trace", tmp_path / "s.trace")
    assert (outcome.code, outcome.out) == (2, "")
    assert "error: a trace needs a timeline, and a sweep has none" in outcome.err
    assert list(tmp_path.iterdir()) == [path]


def test_a_comparison_fails_if_something_is_worse_than_allowed(
    ferrule: Ferrule, saved: Callable[[Document], Path], tmp_path: Path
) -> None:
    old, new = saved(evaluation_document()), saved(evaluation_document(accuracy=0.8))
    outcome = ferrule("compare", old, new)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines()[-1] == "comparison: within the limits"
    outcome = ferrule("compare", old, new, "--fail-on", "accuracy=1%", "--junit", tmp_path / "c.xml")
    assert outcome.code == 1
    assert outcome.out.splitlines()[-1] == "comparison: 1 value worse than allowed"
    assert check_junit((tmp_path / "c.xml").read_text(encoding="utf-8")).attrib["failures"] == "1"
    outcome = ferrule("compare", old, new, "-q", "--fail-on", "1%", "--json", "-")
    assert (outcome.code, json.loads(outcome.out)["kind"]) == (1, "comparison")
    assert ferrule("compare", new, old, "-q", "--fail-on", "0").code == 0
    assert ferrule("compare", old, new, "--fail-on", "some").code == 2


def test_a_comparison_of_documents_that_do_not_go_together_is_an_error(
    ferrule: Ferrule, saved: Callable[[Document], Path], tmp_path: Path
) -> None:
    outcome = ferrule("compare", saved(run_document()), saved(sweep_document()))
    assert outcome.code == 2
    assert "is of kind 'run', the new one of kind 'sweep'" in outcome.err
    outcome = ferrule("compare", tmp_path / "none.json", tmp_path / "none.json")
    assert outcome.code == 2
    assert "none.json: No such file or directory" in outcome.err


def test_the_rows_of_sweeps_are_compared(ferrule: Ferrule, saved: Callable[[Document], Path], tmp_path: Path) -> None:
    document = sweep_document()
    done, different, failed = map(msgspec.json.encode, document.rows)
    old, new, bad = (tmp_path / f"{name}.jsonl" for name in ("old", "new", "bad"))
    old.write_bytes(b"\n".join([done, different, failed, b'{"run": "to']))
    new.write_bytes(b"\n".join([failed, different.replace(b"different", b"exact"), done, b""]))
    bad.write_bytes(b"\n".join([failed, done.replace(b'"run"', b'"walk"'), b""]))
    torn = f"warning: {old}: the last line is torn and is left out\n"
    outcome = ferrule("compare", old, new)
    assert (outcome.code, outcome.err) == (0, torn)
    end = ["15 values are equal", "compared: 3 runs, 16 values", "comparison: within the limits"]
    assert outcome.out.splitlines()[-3:] == end
    assert ferrule("compare", new, old).code == 1, "a run differs now"
    for given in ((old, saved(document)), (saved(document), old)):
        outcome = ferrule("compare", *given, "--json", "-")
        assert (outcome.code, outcome.err) == (0, torn)
        assert {change["change"] for change in json.loads(outcome.out)["changes"]} == {"equal"}
    for given in ((bad, new), (new, bad)):
        outcome = ferrule("compare", *given)
        assert (outcome.code, outcome.out) == (2, "")
        assert outcome.err.startswith(f"error: {bad}: line 2 is not a row of a sweep: Object missing required field")
        assert outcome.err.count("error") == 1
    outcome = ferrule("compare", saved(run_document()), new)
    assert "is of kind 'run', the new one of kind 'sweep'" in outcome.err


def test_the_models_of_one_firmware_are_compared_one_by_one(ferrule: Ferrule, tmp_path: Path) -> None:
    old, new, fewer = (tmp_path / f"{name}.json" for name in ("old", "new", "fewer"))
    second = run_document("b", verdict=Verdict.DIFFERENT)
    old.write_text(WRITERS["json"]([run_document(), run_document("b")]), encoding="utf-8")
    new.write_text(WRITERS["json"]([run_document(), second]), encoding="utf-8")
    fewer.write_text(WRITERS["json"]([run_document()]), encoding="utf-8")
    outcome = ferrule("compare", old, new)
    assert (outcome.code, outcome.out.count("comparison: ")) == (1, 2)
    assert "expected as many" in ferrule("compare", old, fewer).err
