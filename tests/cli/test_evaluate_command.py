# SPDX-License-Identifier: Apache-2.0
"""`ferrule evaluate`: what it prints and writes, its exit codes, and wrong options."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import numpy as np
import pytest
from report_formats import check_node_data, check_trace

from ferrule.evaluation.host import HostRuns
from ferrule.formats import to_tflite
from ferrule.graph import Array, DataType, LayerType, TensorInfo
from ferrule.network import Network
from ferrule.report.evaluation_document import EvaluationDocument

Ferrule = Callable[..., Any]
pytestmark = pytest.mark.cc


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder with samples in x.npy and labels in y.npy."""
    random = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", random.integers(-128, 128, (50, 6)).astype(np.int8))
    np.save(tmp_path / "y.npy", random.integers(0, 4, 50))
    monkeypatch.chdir(tmp_path)
    return tmp_path


CALL = ("--data", "x.npy", "--labels", "y.npy")


def test_tables_fit_80_columns(ferrule: Ferrule, dense: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    (data / "ferrule.toml").write_text('[data]\nclasses = ["a[b]", "two", "three", "a very long name of a label"]\n')
    outcome = ferrule("evaluate", dense, *CALL, "--metric", "auc", "--metric", "accuracy")
    assert outcome.code == 0
    assert max(map(len, outcome.out.splitlines())) <= 80
    for text in ("dense on 50 samples of x.npy", "auc", "accuracy", "a[b]", "worst samples", "predicted label by #"):
        assert text in outcome.out
    assert "auc: mean over classes, one against the rest" in outcome.out
    assert "ran: 50 samples by CpuAcc on the host" in outcome.out
    assert "not compared with a board: --board names one" in outcome.out
    assert outcome.err.splitlines() == [f"importing {dense}", "computing 50 samples on the host"]


def test_an_evaluation_without_anything_to_compare_fails(ferrule: Ferrule, dense: Path, data: Path) -> None:
    outcome = ferrule("evaluate", dense, "--data", "x.npy", "--json", "e.json")
    assert outcome.code == 3
    assert "compared: nothing" in outcome.out
    assert not any(json.loads((data / "e.json").read_text())["evidence"].values())
    assert ferrule("evaluate", dense, *CALL, "-q").code == 0
    assert ferrule("evaluate", dense, *CALL, "--metric", "confusion", "-q").code == 0
    below = ferrule("evaluate", dense, *CALL, "--fail-below", "accuracy=1")
    assert below.code == 1


def test_outputs_that_are_all_nan_are_compared_with_nothing(ferrule: Ferrule, data: Path) -> None:
    network = Network("nan")
    network.add_input(TensorInfo("x", (1, 4), DataType.FLOAT32))
    network.add_elementwise_unary_layer(LayerType.LOG, "x", name="y")
    network.set_outputs(["y"])
    path = data / "nan.tflite"
    path.write_bytes(to_tflite(network))
    samples = np.full((50, 4), -1, np.float32)
    np.save(data / "x.npy", samples)
    files = ("--float", path, "--json", "e.json")
    outcome = ferrule("evaluate", path, *CALL, *files)
    assert outcome.code == 3
    assert "100.00%" not in outcome.out
    document = json.loads((data / "e.json").read_text())
    assert document["evidence"]["numbers"] == 0
    assert document["float_model"]["agreement"] is None
    assert document["labels"] == []
    samples[0] = 1
    np.save(data / "x.npy", samples)
    outcome = ferrule("evaluate", path, *CALL, *files)
    assert outcome.code == 0
    document = json.loads((data / "e.json").read_text())
    assert document["evidence"]["numbers"] == 4
    assert document["float_model"]["agreement"] == 1 / 50


@pytest.mark.emu
def test_json_and_the_verdict(
    ferrule: Ferrule, dense: Path, data: Path, zig: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = ferrule("evaluate", dense, *CALL, "--board", "mps2-an386", "--proof", 3, "--json", "e.json")
    assert outcome.code == 0
    assert "verdict: exact" in outcome.out
    document = json.loads((data / "e.json").read_text())
    jsonschema.validate(document, msgspec.json.schema(EvaluationDocument))
    assert (document["kind"], document["proof"]["verdict"], len(document["proof"]["samples"])) == (
        "evaluation",
        "exact",
        3,
    )
    run = HostRuns.run

    def wrong(self: HostRuns, inputs: list[Array], begins: list[bool]) -> list[Array]:
        return [~output for output in run(self, inputs, begins)]

    monkeypatch.setattr(HostRuns, "run", wrong)
    outcome = ferrule("evaluate", dense, *CALL, "--board", "mps2-an386", "--proof", 3)
    assert outcome.code == 1
    assert "verdict: different" in outcome.out
    assert "samples that differ: " in outcome.out


@pytest.mark.emu
def test_the_run_on_the_board_has_a_trace_and_node_data(ferrule: Ferrule, dense: Path, data: Path, zig: None) -> None:
    files = ("--json", "e.json", "--trace", "e.trace", "--node-data", "nodes")
    assert ferrule("evaluate", dense, *CALL, "--board", "mps2-an386", "--proof", 2, "-q", *files).code == 0
    written = {path.name: path.read_text(encoding="utf-8") for path in (data / "nodes").iterdir()}
    (layer,) = json.loads((data / "e.json").read_text(encoding="utf-8"))["proof"]["report"]["layers"]
    assert check_node_data(written["dense.instructions.json"]) == {"y": layer["count"]}
    trace = (data / "e.trace").read_text(encoding="utf-8")
    spans = [(event["name"], event["dur"]) for event in check_trace(trace) if event["ph"] == "X"]
    assert spans == [(layer["name"], layer["count"])]
    assert ferrule("report", "e.json", "--trace", "-", "--node-data", "again").out == trace
    assert {path.name: path.read_text(encoding="utf-8") for path in (data / "again").iterdir()} == written


@pytest.mark.parametrize("option", ["--trace", "--node-data"])
def test_without_a_board_there_is_no_run_to_show(ferrule: Ferrule, dense: Path, data: Path, option: str) -> None:
    before = set(data.iterdir())
    outcome = ferrule("evaluate", dense, *CALL, option, "e.out", "--html", "e.html")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == (
        f"error: {option}: it shows the run on a board, and no board is named\n"
        "hint: --board, or board = ... in ferrule.toml\n"
    ), "nothing is computed"
    assert set(data.iterdir()) == before
    assert ferrule("evaluate", dense, *CALL, "-q", "--json", "e.json").code == 0
    outcome = ferrule("report", "e.json", option, "e.out")
    assert outcome.code == 2
    assert outcome.err.endswith(
        "and an evaluation without a run on a board has none\nhint: evaluate it again on a board: --board NAME\n"
    )


def test_a_board_in_the_configuration_counts(ferrule: Ferrule, dense: Path, data: Path) -> None:
    (data / "ferrule.toml").write_text('board = "no-such-board"\n')
    outcome = ferrule("evaluate", dense, *CALL, "--trace", "e.trace")
    assert outcome.code == 2
    assert "no-such-board" in outcome.err


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--fail-below", "accuracy=0"), 0, ""),
        (("--fail-below", "accuracy=0.99"), 1, "failed: accuracy is 0.26, below 0.99"),
        (("--fail-above", "accuracy=0.2"), 1, "failed: accuracy is 0.26, above 0.2"),
        (("--metric", "top5", "--fail-below", "top5=0"), 1, "failed: top5 is undefined: the model has only 4 classes"),
        (("--fail-below", "auc=0.5"), 2, "error: there is no metric 'auc' in this evaluation\nhint: known: accuracy"),
        (("--fail-below", "accuracy"), 2, "error: --fail-below accuracy: expected METRIC=NUMBER"),
        (("--metric", "top1"), 2, "error: there is no metric 'top1'"),
        (("--on-board", "all"), 2, "hint: --board NAME"),
        (("--json", "no/e.json"), 2, "error: --json no/e.json:"),
        (("--platform", "zephyr", "--toolchain", "zig"), 2, "error: --toolchain zig: the tools of platform zephyr"),
        (("--confidence", "1"), 2, "1.0 is not in the range 0<x<1"),
    ],
)
def test_exit_codes(
    ferrule: Ferrule, dense: Path, data: Path, options: tuple[str, ...], code: int, message: str
) -> None:
    outcome = ferrule("evaluate", dense, *CALL, *options)
    assert outcome.code == code
    assert message in outcome.err
    assert code != 2 or not outcome.out


def test_every_format_states_a_limit_that_is_not_kept(ferrule: Ferrule, dense: Path, data: Path) -> None:
    limits = ("--fail-below", "accuracy=0.99", "--fail-below", "auc=0")
    files = ("--json", "e.json", "--junit", "e.xml", "--sarif", "e.sarif", "--markdown", "e.md", "--html", "e.html")
    outcome = ferrule("evaluate", dense, *CALL, "--metric", "accuracy", "--metric", "auc", *limits, *files)
    assert outcome.code == 1
    accuracy, auc = json.loads((data / "e.json").read_text())["metrics"]
    assert (accuracy["at_least"], accuracy["at_most"], accuracy["failed"]) == (0.99, None, True)
    assert (auc["at_least"], auc["failed"]) == (0.0, False)
    for name in ("e.xml", "e.sarif", "e.md", "e.html"):
        text = (data / name).read_text(encoding="utf-8")
        assert text.count("accuracy is 0.26, below 0.99") == 1, name
        assert "below 0," not in text
    assert 'failures="1"' in (data / "e.xml").read_text()


def test_a_limit_of_another_metric_is_refused_before_anything_is_computed(
    ferrule: Ferrule, dense: Path, data: Path
) -> None:
    for options in (("--metric", "accuracy", "--fail-below", "auc=1"), ("--fail-above", "acuracy=1")):
        outcome = ferrule("evaluate", dense, *CALL, *options)
        assert outcome.code == 2
        assert outcome.err.startswith("error: there is no metric")
        assert "importing" not in outcome.err


def test_without_labels(ferrule: Ferrule, dense: Path, data: Path) -> None:
    outcome = ferrule("evaluate", dense, "--data", "x.npy")
    assert outcome.code == 3
    assert "no metrics, since there are no labels" in outcome.out
    refused = ferrule("evaluate", dense, "--data", "x.npy", "--metric", "accuracy")
    assert refused.code == 2
    assert refused.err.endswith("error: x.npy has no labels, and metrics compare with labels\nhint: give --labels\n")
