# SPDX-License-Identifier: Apache-2.0
"""`ferrule convert`, and the change of a rule of rounding."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_networks
from onnx_models import model, node

from ferrule import formats
from ferrule.errors import FerruleError, UnsupportedError
from ferrule.graph import Array, Graph, GraphEditor, Rounding

Ferrule = Callable[..., Any]


@pytest.fixture(scope="module")
def quantised(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An ONNX model with one QLinearMatMul of int8, many of whose results are close to halves."""
    scales = {"s": 0.5, "t": 0.25, "u": 0.25}
    constants: dict[str, Any] = {name: np.array(value, np.float32) for name, value in scales.items()}
    constants |= {"z": np.array(0, np.int8), "w": np.arange(-18, 18, dtype=np.int8).reshape(6, 6)}
    made = model([node("QLinearMatMul", "x s z w t z u z", "y")], {"x": ("int8", [4, 6])}, ["y"], constants)
    path = tmp_path_factory.mktemp("convert") / "halves.onnx"
    path.write_bytes(made.SerializeToString())
    return path


def test_another_rule_is_refused_unless_the_change_is_asked_for(
    ferrule: Ferrule, quantised: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out.tflite"
    refused = ferrule("convert", quantised, output)
    assert refused.code == 2
    assert "FULLY_CONNECTED rounds by ONNX's rule ('onnx')" in refused.err
    assert "--rounding tflm" in refused.err
    assert not output.exists()
    done = ferrule("convert", quantised, output, "--rounding", "tflm", "--json")
    assert done.code == 0, done.err
    network, written = formats.load(quantised), formats.load(output)
    assert [each.rounding for each in written.layers] == [Rounding.TFLM] * len(written.layers)
    assert [each.type for each in written.layers] == [each.type for each in network.layers]
    report = json.loads(done.out)
    assert [each["rounding"] for each in report["layers"]] == ["onnx"]
    assert report["layers"][0]["results"] == 8 * 24


def test_the_report_counts_the_results_that_differ(ferrule: Ferrule, quantised: Path, tmp_path: Path) -> None:
    given = np.random.default_rng(0).integers(-20, 20, (12, 6)).astype(np.int8)
    np.save(tmp_path / "x.npy", given)
    done = ferrule(
        *("convert", quantised, tmp_path / "out.tflite", "--rounding", "tflm", "--input", tmp_path / "x.npy", "--json")
    )
    before, after = formats.load(quantised), formats.load(tmp_path / "out.tflite")
    differing = sum(int((before.run([part]) != np.array(after.run([part]))).sum()) for part in np.split(given, 3))
    assert differing > 0
    report = json.loads(done.out)
    assert report["outputs"] == [{"name": "y", "results": 72, "differing": differing}]
    assert report["layers"][0]["differing"] == differing
    table = ferrule("convert", quantised, tmp_path / "out.tflite", "--rounding", "tflm", "--input", tmp_path / "x.npy")
    assert f"{differing} of 72" in table.out
    assert f"output 'y': {differing} of 72 elements differ" in table.out


def test_a_model_without_other_rules_is_written_as_it_is(ferrule: Ferrule, dense: Path, tmp_path: Path) -> None:
    done = ferrule("convert", dense, tmp_path / "out.tflite")
    assert done.code == 0
    assert (tmp_path / "out.tflite").read_bytes() == dense.read_bytes()
    assert done.out.endswith(f"1 layers, {len(dense.read_bytes())} bytes\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("out.onnx",), "expected '.tflite'"),
        (("out.tflite", "--input", "x.npy"), "--input is given without --rounding"),
        (("none/out.tflite",), "there is no folder"),
    ],
)
def test_wrong_arguments(ferrule: Ferrule, dense: Path, tmp_path: Path, arguments: Any, message: str) -> None:  # noqa: ANN401
    first, *others = arguments
    outcome = ferrule("convert", dense, tmp_path / first, *others)
    assert outcome.code == 2
    assert message in outcome.err


def with_onnx(graph: Graph) -> Graph:
    editor = GraphEditor(graph)
    for layer in graph.layers:
        editor.replace_layer(replace(layer, rounding=Rounding.ONNX))
    return editor.finish()


def test_a_layer_that_cannot_have_the_rule_is_named() -> None:
    graph = with_onnx(small_networks.dense())
    with pytest.raises(FerruleError, match="the rule is 'single', expected 'tflm'"):
        formats.to_tflite(graph, rounding=Rounding.SINGLE)
    free = with_onnx(logistic())
    with pytest.raises(UnsupportedError, match=r"layer '.*' LOGISTIC: .* needs 0\.00390625"):
        formats.to_tflite(free, rounding=Rounding.TFLM)


def logistic() -> Graph:
    """Return a LOGISTIC whose output has a scale that only ONNX's rule allows."""
    made = model(
        [node("QLinearSigmoid", "x s z t z", "y", "com.microsoft")],
        {"x": ("int8", [4])},
        ["y"],
        {"s": scalar(0.1), "z": np.array(3, np.int8), "t": scalar(0.01)},
    )
    return formats.load(made.SerializeToString())


def scalar(value: float) -> Array:
    return np.array(value, np.float32)
