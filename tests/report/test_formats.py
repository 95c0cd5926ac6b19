# SPDX-License-Identifier: Apache-2.0
"""Every format of every document: well-formed, complete, and with names that no reader takes for something else."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest
from hostile import HOSTILE, UNSHOWN
from report_formats import check_csv, check_junit, check_markdown, check_node_data, check_sarif, check_trace
from saved_documents import (
    comparison_document,
    documents,
    evaluation_document,
    failure_document,
    inspection_document,
    run_document,
    sweep_document,
)

from ferrule.errors import FerruleError, MissingToolError
from ferrule.rendering import shown
from ferrule.report import RunReport, Verdict
from ferrule.report.base import Document
from ferrule.report.evidence import NO_EVIDENCE, Evidence
from ferrule.report.run_document import ReportDocument
from ferrule.report.writers import FOLDERS, WRITERS
from ferrule.report.writers.markdown import SUMMARY_BYTES

CHECKS: dict[str, Callable[[str], object]] = {
    "csv": check_csv,
    "markdown": check_markdown,
    "job-summary": check_markdown,
    "trace": check_trace,
    "junit": check_junit,
    "sarif": check_sarif,
    "json": json.loads,
}
FAILURES = {"failure", "refusal"}
QUANTIZED = {"quantization", "search", "search without a choice"}
UNFIT = {
    "csv": FAILURES,
    "markdown": set[str](),
    "job-summary": set[str](),
    "trace": {"inspection", "evaluation without a board", "sweep", "comparison", *QUANTIZED, *FAILURES},
    "junit": {"inspection", "quantization"},
    "sarif": {"inspection", "quantization"},
    "json": set[str](),
    "node-data": {"evaluation without a board", "sweep", "comparison", *QUANTIZED, *FAILURES},
}
"""By format: the documents that lack what it shows."""
NAMES = [
    *HOSTILE,
    *UNSHOWN,
    "=cmd|' /C calc'!A0",
    "+1",
    " @SUM(A1)",
    "\t=1",
    "\r\n=1",
    "](javascript:alert(1))",
    "![x](http://x/y.png)",
    "</text><script>alert(1)</script>",
    "]]>",
    "{0} {{x}}",
    "a | b\\| c",
    "\ud800",
    "results",
    "__proto__",
    "../../etc/passwd",
    "http://example.org/x?y#z",
    "``` ````",
    "# heading",
]


def written(form: str, document: Document) -> list[str]:
    """Return the files of a document in a format."""
    if form in FOLDERS:
        return list(FOLDERS[form]([document]).values())
    return [WRITERS[form]([document])]


@pytest.mark.parametrize("form", [*CHECKS, "node-data"])
def test_a_format_writes_the_documents_that_fit_and_refuses_the_others(form: str) -> None:
    for name, document in documents().items():
        if name in UNFIT[form]:
            with pytest.raises(FerruleError) as caught:
                written(form, document)
            assert document.kind in str(caught.value)
        else:
            for text in written(form, document):
                assert text.endswith("\n")
                CHECKS.get(form, check_node_data)(text)


@pytest.mark.parametrize("form", [*sorted(CHECKS.keys() - {"job-summary"}), "node-data"])
def test_no_name_breaks_a_format(form: str) -> None:
    for text in NAMES:
        if form == "json" and text == "\ud800":
            continue  # neither a model nor a document can have it: UTF-8 has no surrogates
        for name, document in documents(text).items():
            if name not in UNFIT[form]:
                for each in written(form, document):
                    each.encode()
                    CHECKS.get(form, check_node_data)(each)


@pytest.mark.parametrize("text", [name for name in NAMES if name.strip() and name != "\ud800"])
def test_names_are_shown_as_they_are(text: str) -> None:
    document = run_document(text, verdict=Verdict.DIFFERENT)
    row = check_csv(WRITERS["csv"]([document]))[0]
    assert row["layer"].removeprefix("'") == shown(text).replace("\n", "\\n")
    line = " ".join(shown(text).replace("\n", " ").split())
    assert any(line in " ".join(found.split()) for found in check_markdown(WRITERS["markdown"]([document])))
    suite = check_junit(WRITERS["junit"]([document])).find("testsuite")
    assert suite is not None
    assert suite.attrib["name"] == f"{shown(text)} on {shown(text)} by {shown(text)}"
    places = [place for found in check_sarif(WRITERS["sarif"]([document])) for place in found["locations"]]
    assert shown(text) in {place["logicalLocations"][0]["name"] for place in places}
    spans = [event for event in check_trace(WRITERS["trace"]([document])) if event["ph"] == "X"]
    assert spans[0]["name"] == text
    values = check_node_data(FOLDERS["node-data"]([document]).popitem()[1])
    assert text in values


def test_a_run_is_a_row_per_layer() -> None:
    rows = check_csv(WRITERS["csv"]([run_document()]))
    layers = [row for row in rows if row["row"] == "layer"]
    assert [(row["layer"], row["count"], row["share"]) for row in layers] == [
        ("conv_2d_0", "300", "0.75"),
        ("fully_connected_1", "100", "0.25"),
    ]
    assert (rows[0]["read_bytes"], rows[1]["read_bytes"]) == ("4096", "")
    assert rows[1]["beside"] == "conv_2d_0"
    both = check_csv(WRITERS["csv"]([run_document(), run_document("b")]))
    assert [row["model"] for row in both if row["row"] == "layer"] == ["kws.v1", "kws.v1", "b", "b"]


def without_estimates(document: ReportDocument) -> ReportDocument:
    return replace(document, layers=tuple(replace(layer, estimate=None) for layer in document.layers))


@pytest.mark.parametrize(
    ("document", "name"), [(run_document(), "conv_2d_0"), (inspection_document(), "while_0")], ids=["run", "inspection"]
)
def test_an_estimate_has_rows_of_its_own(document: Document, name: str) -> None:
    rows = check_csv(WRITERS["csv"]([document]))
    kinds = [row["row"] for row in rows]
    whole, first, second, memory = (row for row in rows if row["row"] != "layer")
    assert kinds == ["layer"] * (len(rows) - 4) + ["estimate", "estimated layer", "estimated layer", "estimated memory"]
    assert (whole["layer"], whole["estimated_cycles"], whole["estimated_clock_hz"]) == (name, "2000", "100000000")
    assert whole["warnings"] == "slow [memory]"
    assert [(row["layer"], row["estimated_cycles"], row["estimated_share"]) for row in (first, second)] == [
        ("first", "1500", "0.75"),
        ("second", "500", "0.25"),
    ]
    moved = [memory[key] for key in ("memory", "estimated_cycles", "estimated_read_bytes", "estimated_written_bytes")]
    assert moved == ["SRAM", "70", "4097", "12"]
    for row in (first, second, memory):
        assert (row["part_of"], row["estimated_by"]) == (name, "Acme 1.0 for [large]")
    assert all(not row["macs"] for row in rows if row["row"] != "layer"), "a sum over a column counts a layer once"


def test_without_estimates_there_is_nothing_of_them() -> None:
    document = without_estimates(run_document())
    assert "estimate" not in WRITERS["csv"]([document])
    assert "stimated" not in WRITERS["markdown"]([document])


def test_markdown_has_the_estimates_and_marks_them() -> None:
    for document, level in ((run_document(), "#"), (inspection_document(), "#"), (evaluation_document(), "##")):
        text = WRITERS["markdown"]([document])
        texts = check_markdown(text)
        begin = texts.index("Estimates of compilers")
        assert f"\n\n{level}# Estimates of compilers\n\n" in text
        assert texts[begin + 1] == "What compilers expect of pre-compiled layers. None of these numbers is measured."
        assert texts[begin + 3] == "Estimated by Acme 1.0 for [large]: 2,000 cycles, 0.020 ms at 100 MHz"
        assert texts[begin + 4 : begin + 13] == [
            *("in place of", "estimated cycles", "share"),
            *("first", "1,500", "75.0%"),
            *("second", "500", "25.0%"),
        ]
        assert texts[begin + 17 : begin + 22] == ["SRAM", "4,097", "12", "70", "⚠️ Note: slow [memory]"]


def test_a_summary_leaves_out_estimates_and_says_so() -> None:
    document = run_document()
    layer = document.layers[0]
    assert layer.estimate is not None
    large = replace(layer.estimate, layers={f"layer {index}": index for index in range(150)})
    many = replace(document, layers=tuple(replace(layer, name=str(index), estimate=large) for index in range(130)))
    text = WRITERS["job-summary"]([many])
    check_markdown(text)
    assert "And 30 more, which the format `markdown` lists." in text
    assert text.count("And 50 more, which the format `markdown` lists.") == 100
    assert WRITERS["markdown"]([many]).count("| layer 149 |") == 130


def test_an_evaluation_is_a_row_per_metric_and_label() -> None:
    rows = check_csv(WRITERS["csv"]([evaluation_document()]))
    assert [row["row"] for row in rows] == ["metric", "metric", "float metric", "label", "label"]
    assert (rows[0]["value"], rows[1]["value"], rows[3]["recall"]) == ("0.9", "", "0.9")


def test_a_sweep_is_a_row_per_run() -> None:
    rows = check_csv(WRITERS["csv"]([sweep_document()]))
    assert [row["status"] for row in rows] == ["done", "done", "failed"]
    assert (rows[0]["option goal"], rows[0]["metric accuracy"], rows[2]["metric accuracy"]) == ("speed", "0.5", "")
    assert rows[2]["error"] == "EngineError: the firmware hung\\nat 0x1000"


def test_an_inspection_has_the_layers_of_inner_graphs() -> None:
    rows = check_csv(WRITERS["csv"]([inspection_document()]))
    assert [row["layer"] for row in rows if row["row"] == "layer"] == ["while_0", "body/add_0"]
    assert "rounding" not in WRITERS["markdown"]([inspection_document()]), "TFLM's is not stated"


def outcomes(document: Document) -> list[tuple[str | None, list[str]]]:
    cases = check_junit(WRITERS["junit"]([document])).iter("testcase")
    return [(case.get("name"), [child.tag for child in case]) for case in cases]


def test_junit_has_a_case_for_everything_that_can_fail() -> None:
    said = ["system-out"]
    assert outcomes(run_document()) == [("sample 0", said), ("sample 1", said), ("device calls", [])]
    assert outcomes(run_document(verdict=Verdict.DIFFERENT))[1:] == [
        ("sample 1", ["failure"]),
        ("device calls", ["failure"]),
    ]
    assert outcomes(evaluation_document()) == [("accuracy", said), ("auc", ["skipped"]), ("proof", said)]
    assert [kinds for _, kinds in outcomes(sweep_document())] == [said, ["failure"], ["error"], ["skipped"]]
    assert [kinds for _, kinds in outcomes(comparison_document())][:3] == [said, ["failure"], said]
    assert outcomes(failure_document()) == [("models/kws.tflite", ["error"])]


def test_no_format_shows_a_success_where_nothing_was_compared() -> None:
    nothing = Evidence(samples=1, elements=10, layers=2)
    run = run_document(verdict=Verdict.NOTHING_COMPARED)
    sample = replace(run.samples[0], verdict=Verdict.NOTHING_COMPARED, evidence=nothing)
    run = replace(run, samples=(sample,), evidence=nothing)
    whole, sweep = evaluation_document(), sweep_document()
    assert whole.proof is not None
    claimed = replace(sweep.rows[0], evidence=NO_EVIDENCE)
    empty = [
        run,
        replace(whole, metrics=(), evidence=NO_EVIDENCE, proof=None),
        replace(whole, metrics=(), proof=replace(whole.proof, verdict=Verdict.NOTHING_COMPARED, report=run)),
        replace(sweep, rows=(), planned=0),
        replace(comparison_document(), changes=(), uncompared=("No proof is in both documents.",)),
        replace(sweep, rows=(claimed, replace(claimed, run="b", engine="qemu", verdict="")), planned=2),
    ]
    for document in empty:
        assert any("failure" in kinds for _, kinds in outcomes(document)), document.kind
        assert "ferrule/nothing-compared" in {each["ruleId"] for each in check_sarif(WRITERS["sarif"]([document]))}
        assert re.search("(nothing|not|not everything was) compared", WRITERS["html"]([document]))
        assert "✅" not in WRITERS["markdown"]([document])


def test_a_metric_that_fails_its_limit_fails_everywhere() -> None:
    whole = evaluation_document()
    known, undefined = whole.metrics
    low = replace(whole, metrics=(replace(known, at_least=0.95, failed=True), undefined))
    assert outcomes(low)[0] == ("accuracy", ["failure"])
    assert "accuracy is 0.9, below 0.95" in WRITERS["markdown"]([low])
    rules = [result["ruleId"] for result in check_sarif(WRITERS["sarif"]([low]))]
    assert rules == ["ferrule/over-budget", "ferrule/undefined-metric"]
    high = replace(whole, metrics=(replace(known, at_least=0.5, at_most=0.8, failed=True), undefined))
    assert "accuracy is 0.9, above 0.8" in WRITERS["junit"]([high])
    lost = replace(whole, metrics=(known, replace(undefined, at_least=0.5, failed=True)))
    assert outcomes(lost)[1] == ("auc", ["failure"])
    assert [result["level"] for result in check_sarif(WRITERS["sarif"]([lost]))] == ["error"]


def test_sarif_has_a_result_for_everything_that_is_wrong() -> None:
    found = {
        name: [result["ruleId"] for result in check_sarif(WRITERS["sarif"]([document]))]
        for name, document in documents().items()
        if name not in UNFIT["sarif"]
    }
    assert found == {
        "run": [],
        "different run": ["ferrule/different", "ferrule/device-calls"],
        "evaluation": ["ferrule/undefined-metric"],
        "evaluation without a board": ["ferrule/undefined-metric"],
        "sweep": ["ferrule/different", "ferrule/failed-run"],
        "search": [],
        "search without a choice": ["ferrule/over-budget"],
        "comparison": ["ferrule/over-budget"],
        "failure": ["ferrule/crash"],
        "refusal": ["ferrule/refused", "ferrule/refused"],
    }
    (over,) = check_sarif(WRITERS["sarif"]([comparison_document()]))
    assert over["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "kws.tflite"
    (result, _) = check_sarif(WRITERS["sarif"]([run_document(verdict=Verdict.DIFFERENT)]))
    place = result["locations"][0]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "models/kws.tflite"
    assert place["logicalLocations"][0]["name"] == "conv_2d_0"


def test_a_fingerprint_is_that_of_the_place_and_not_of_the_run() -> None:
    document = run_document(verdict=Verdict.DIFFERENT)
    later = replace(document, run_s=99.0, samples=document.samples[1:], model=replace(document.model, digest="ff" * 32))
    elsewhere = replace(document, engine="qemu")

    def prints(each: Document) -> list[str]:
        return [result["partialFingerprints"]["ferrule/v1"] for result in check_sarif(WRITERS["sarif"]([each]))]

    assert prints(document) == prints(later)
    assert not set(prints(document)) & set(prints(elsewhere))


def test_a_failed_command_was_not_successful() -> None:
    for document, successful in ((failure_document(), False), (run_document(verdict=Verdict.DIFFERENT), True)):
        (run,) = json.loads(WRITERS["sarif"]([document]))["runs"]
        assert run["invocations"] == [{"executionSuccessful": successful}]


@pytest.mark.parametrize("name", sorted(documents().keys() - UNFIT["sarif"]))
def test_sarif_keeps_to_its_schema(name: str) -> None:
    from needs import lacking_variable, require_variable

    path = require_variable("FERRULE_SCHEMAS") / "sarif-schema-2.1.0.json"
    if not path.is_file():
        lacking_variable("FERRULE_SCHEMAS", path.name)
    import jsonschema

    schema = json.loads(path.read_text(encoding="utf-8"))
    for text in ("", *NAMES):
        jsonschema.Draft4Validator(schema).validate(json.loads(WRITERS["sarif"]([documents(text)[name]])))


def test_node_data_have_a_file_per_counter() -> None:
    files = FOLDERS["node-data"]([run_document()])
    counters = ("instructions", "share", "macs", "constant-bytes", "scratch-bytes", "transferred-bytes")
    assert list(files) == [f"kws.v1.{counter}.json" for counter in counters]
    assert check_node_data(files["kws.v1.instructions.json"]) == {"conv/Relu;bias": 300, "Identity": 100}
    assert check_node_data(files["kws.v1.transferred-bytes.json"]) == {"conv/Relu;bias": 4224}


def test_node_data_of_equal_names_have_files_of_their_own() -> None:
    files = FOLDERS["node-data"]([run_document("a b"), run_document("a/b"), run_document("../x")])
    assert {name for name in files if name.endswith(".share.json")} == {
        "a_b.share.json",
        "a_b-2.share.json",
        "_x.share.json",
    }


def test_node_data_need_the_tensors_that_layers_write() -> None:
    document = run_document()
    old = replace(document, layers=tuple(replace(layer, outputs=()) for layer in document.layers))
    with pytest.raises(FerruleError, match="does not name them"):
        FOLDERS["node-data"]([old])


def test_a_trace_has_the_core_the_devices_and_the_memory() -> None:
    events = check_trace(WRITERS["trace"]([run_document(), run_document("b")]))
    names = [event["args"]["name"] for event in events if event["ph"] == "M"]
    assert names[:3] == ["kws.v1 on mps2-an386 by unicorn, instructions", "core", "npu0"]
    spans = [(event["name"], event["tid"], event["ts"], event["dur"]) for event in events if event["ph"] == "X"]
    assert spans[:3] == [("conv_2d_0", 0, 0, 300), ("conv_2d_0", 1, 50, 250), ("fully_connected_1", 0, 300, 100)]
    memory = [(event["ts"], event["args"]["bytes"]) for event in events if event["ph"] == "C" and event["pid"] == 1]
    assert memory == [(0, 16_256), (300, 8_256)]
    assert {event["pid"] for event in events} == {1, 2}


def test_buffers_that_lie_upon_one_another_are_counted_once() -> None:
    document = run_document()
    (region,) = document.plan[:1]
    one = replace(region.buffers[0], offset=0, size_bytes=100, first=0, last=0)
    buffers = (one, replace(one, offset=90, size_bytes=20), replace(one, offset=10, size_bytes=5))
    events = check_trace(WRITERS["trace"]([replace(document, plan=(replace(region, buffers=buffers),))]))
    assert [event["args"]["bytes"] for event in events if event["ph"] == "C"] == [110, 0]


def test_a_trace_needs_a_timeline() -> None:
    with pytest.raises(FerruleError, match=r"report of 'kws\.v1' lacks one"):
        WRITERS["trace"]([replace(run_document(), timeline=())])


def test_a_summary_of_a_job_states_what_it_leaves_out() -> None:
    document = sweep_document()
    many = replace(document, rows=document.rows[:1] * 500, planned=500)
    assert "And 400 more, which the format `markdown` lists." in WRITERS["job-summary"]([many])
    assert WRITERS["markdown"]([many]).count("\n| kws.tflite | mps2-an386 | unicorn |") == 500
    long = replace(document.rows[0], options={"a": "é" * 150_000})
    text = WRITERS["job-summary"]([replace(document, rows=(long,) * 4)])
    assert len(text.encode()) <= SUMMARY_BYTES
    check_markdown(text)


def test_markdown_says_what_matters() -> None:
    text = " ".join(check_markdown(WRITERS["markdown"]([run_document(verdict=Verdict.DIFFERENT)])))
    assert "Verdict: ❌ different. 1 of 2 samples differs from the numpy reference." in text
    assert "ferrule run kws.tflite --json run.json" in text
    text = " ".join(check_markdown(WRITERS["markdown"]([comparison_document()])))
    assert "❌ 1 value worse than allowed" in text


def test_json_is_a_list_for_several_models() -> None:
    one, two = run_document(), run_document("b")
    assert json.loads(WRITERS["json"]([one, two])) == [json.loads(WRITERS["json"]([each])) for each in (one, two)]


def test_a_page_is_shown_in_notebooks() -> None:
    document = run_document()
    for shown_there in (document, RunReport.of(document, [])):
        page = shown_there._repr_html_()
        assert "conv_2d_0" in page
        assert "<html" not in page


def test_documents_are_data_frames_where_pandas_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingToolError, match="data frames need the Python package pandas") as caught:
        run_document().to_dataframe()
    assert caught.value.hint == "pip install 'ferrule[pandas]'"
    with pytest.raises(FerruleError, match="a failure has no rows"):
        failure_document().to_dataframe()


def test_a_data_frame_has_the_columns_of_csv() -> None:
    from needs import lacking

    try:
        import pandas  # noqa: F401
    except ImportError:
        lacking("the Python package pandas", "pip install 'ferrule[pandas]'", rare=True)
    frame = run_document("=x").to_dataframe()
    assert list(frame[frame["row"] == "layer"]["layer"]) == ["=x", "=x 2"]
    assert int(frame["count"].sum()) == 400
    assert list(frame.columns) == list(check_csv(WRITERS["csv"]([run_document()]))[0])
