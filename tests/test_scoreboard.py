# SPDX-License-Identifier: Apache-2.0
"""The scoreboard: how cases are judged, and how its suites read their sources, which are not in the repository."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import score_cmsis
import score_onnx
import score_table
import score_tflm
from onnx import TensorProto, helper
from score_cases import Case, Run, SourceError, pinned

from ferrule import DataType, Network, Quantization, TensorInfo
from ferrule.errors import UnsupportedError
from ferrule.formats import to_tflite
from ferrule.graph import Array
from ferrule.runtime import Runtime

INPUT = np.array([[-3, 0, 100]], np.int8)


def onnx_model(nodes: Sequence[Any], inputs: Mapping[str, Array]) -> Any:  # noqa: ANN401 - onnx has no types
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in inputs.items()
    ]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "graph", infos, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


def network() -> Network:
    result = Network("rectifier")
    info = TensorInfo("x", (1, 3), DataType.INT8, quantization=Quantization(scales=(1.0,)))
    result.add_input(info)
    result.set_outputs([result.add_relu_layer("x")])
    return result


def judged(expected: Sequence[int], *, tolerance: int = 0, invalid: bool = False) -> score_table.Outcome:
    run = Run([INPUT], [np.array(expected, np.int8)])
    case = Case(name="case", make=lambda: (network(), [run]), tolerance=tolerance, invalid=invalid)
    with Runtime() as runtime:
        return score_table.outcome_of(case, runtime)


def test_a_case_passes_only_with_equal_outputs() -> None:
    assert judged([0, 0, 100]).result == score_table.PASS
    wrong = judged([0, 0, 101])
    assert (wrong.result, wrong.reason) == (
        score_table.FAIL,
        "numpy, run 0: output 0: 1 of 3 differ; [2] is 100, expected 101",
    )
    assert judged([0, 0, 101], tolerance=1).result == score_table.PASS
    assert judged([0, 0, 100], invalid=True).result == score_table.FAIL


def test_a_refusal_is_a_pass_only_if_the_suite_expects_an_error() -> None:
    def refuse() -> tuple[Network, list[Run]]:
        raise UnsupportedError("operator 4 SVDF -> tensor 'x': rank 17 is refused")

    with Runtime() as runtime:
        refused = score_table.outcome_of(Case(name="case", make=refuse), runtime)
        expected = score_table.outcome_of(Case(name="case", make=refuse, invalid=True), runtime)
    assert (refused.result, refused.reason) == (score_table.REFUSED, "SVDF: rank N is refused")
    assert expected.result == score_table.PASS


def test_without_sources_the_variables_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    suites = [suite for suite in score_table.SUITES if suite.variable]
    for suite in suites:
        monkeypatch.delenv(suite.variable, raising=False)
    assert score_table.main(None, [suite.name for suite in suites]) == 1
    printed = capsys.readouterr().out
    assert all(f"set {suite.variable} to " in printed for suite in suites)


@pytest.mark.nightly
def test_onnx_node_tests() -> None:
    score = score_table.score(score_onnx.NODES)
    assert [each for each in score.outcomes if each.result == score_table.FAIL] == []
    assert score.counts[score_table.PASS] >= 500


def test_inputs_that_must_be_constants_are_those_of_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    model = onnx_model(
        [helper.make_node("Reshape", ["x", "shape"], ["y"])],
        {"x": np.zeros((2, 3), np.float32), "shape": np.array([3, 2])},
    )
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    test = SimpleNamespace(name="reshape", model=model, data_sets=[([x, np.array([3, 2])], [x.reshape(3, 2)])])
    monkeypatch.setattr(score_onnx, "packaged_tests", lambda: (test,))
    (case,) = score_onnx.node_tests(Path())
    with Runtime() as runtime:
        assert score_table.outcome_of(case, runtime).result == score_table.PASS


def test_an_empty_corpus_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cases.json").write_text(json.dumps({"commit": score_tflm.COMMIT, "cases": []}))
    monkeypatch.setenv("FERRULE_TFLM_CASES", str(tmp_path))
    assert score_table.main(None, ["kernels"]) == 1
    assert "0 cases, expected at least 800" in capsys.readouterr().out


def test_another_version_of_a_source_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text("int a;")
    with pytest.raises(SourceError, match="expected 0000 "):
        pinned(tmp_path.glob("*"), tmp_path, "0000", "version 1")


def test_recorded_cases_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "relu.tflite").write_bytes(to_tflite(network()))
    outputs = np.array([0, 0, 100], np.int8)
    np.savez(tmp_path / "relu.npz", allow_pickle=False, **{"0_inputs0": INPUT, "0_outputs0": outputs})
    files = {"model": "relu.tflite", "data": "relu.npz", "runs": 1, "inputs": 1, "outputs": 1}
    cases = [{"name": "relu", **files}, {"name": "other", "reason": "the test runs no kernel"}]
    (tmp_path / "cases.json").write_text(json.dumps({"commit": score_tflm.COMMIT, "cases": cases}))
    monkeypatch.setenv("FERRULE_TFLM_CASES", str(tmp_path))
    score = score_table.score(score_tflm.KERNELS)
    assert [each.result for each in score.outcomes] == [score_table.PASS, score_table.REFUSED]
    assert "| the test runs no kernel | 1 |" in score_table.table([score])


def test_a_data_set_in_c_becomes_a_network(tmp_path: Path) -> None:
    """The factor of the sums is 1/4, with an input of zero point -1 and a clamp to at most 20."""
    folder = tmp_path / "fc"
    folder.mkdir()
    values = {"IN_CH": 2, "OUT_CH": 2, "INPUT_BATCHES": 1, "ACCUMULATION_DEPTH": 2, "INPUT_OFFSET": 1}
    values |= {"OUTPUT_OFFSET": -3, "OUTPUT_MULTIPLIER": 1 << 30, "OUTPUT_SHIFT": -1}
    values |= {"OUT_ACTIVATION_MIN": -128, "OUT_ACTIVATION_MAX": 20}
    (folder / "config.h").write_text("".join(f"#define FC_{name} {value}\n" for name, value in values.items()))
    (folder / "test_data.h").write_text(
        '#pragma once\n#include "config.h"\n#include <stdint.h>\n'
        "const int8_t fc_input[2] = {3, -5};\nconst int8_t fc_w[4] = {10, -2, 50, 0};\n"
        "const int8_t *const fc_weights = fc_w;\nconst int32_t *const fc_biases = NULL;\n"
        "const int8_t fc_output_ref[2] = {9, 20};\n"
    )
    case = Case(name="fc", make=lambda: score_cmsis._translated(folder, ["fully_connected_s8"]))
    with Runtime() as runtime:
        assert score_table.outcome_of(case, runtime) == score_table.Outcome("fc", score_table.PASS)
    with pytest.raises(UnsupportedError, match="not translated: svdf_s8"):
        score_cmsis._translated(folder, ["svdf_s8"])


def test_a_data_set_of_float32_becomes_a_network(tmp_path: Path) -> None:
    folder = tmp_path / "fc"
    folder.mkdir()
    limits = "#define FC_OUT_ACTIVATION_MIN -1.5f\n#define FC_OUT_ACTIVATION_MAX 2.0f\n"
    sizes = "#define FC_INPUT_BATCHES 1\n#define FC_INPUT_SIZE 2\n#define FC_OUT_CH 2\n#define FC_HAS_BIAS 1\n"
    arrays = {"input_data": (0.5, -1), "weights_data": (1, 0.25, -8, 0), "biases_data": (0.25, 0)}
    arrays["output_ref_data"] = (0.5, -1.5)
    (folder / "test_data.h").write_text(
        limits
        + sizes
        + "".join(
            f"const float32_t fc_{name}[{len(values)}] = {{{', '.join(f'{float(each)}f' for each in values)}}};\n"
            for name, values in arrays.items()
        )
    )
    case = Case(name="fc", make=lambda: score_cmsis._translated(folder, ["fully_connected_f32"]))
    with Runtime() as runtime:
        assert score_table.outcome_of(case, runtime) == score_table.Outcome("fc", score_table.PASS)
