# SPDX-License-Identifier: Apache-2.0
"""LiteRT still follows the rules that docs/operators.md lists, where it follows one of ours."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from needs import require_module

from ferrule.graph import DataType

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from rounding_rules import Builder, measure, operators

CASES = 4
XNNPACK = {
    "CONV_2D": "onnx",
    "DEPTHWISE_CONV_2D": "onnx",
    "FULLY_CONNECTED": "onnx",
    "TRANSPOSE_CONV": "onnx",
    "BATCH_MATMUL": "tflm",
    "AVERAGE_POOL_2D": "tflm",
    "RELU": "tflm",
    "PRELU": "tflm",
    "SOFTMAX": "tflm",
}
REFERENCE = {**dict.fromkeys(XNNPACK, "tflm"), "FULLY_CONNECTED": "float64"}
ROWS = [row for row in operators() if row[0] in XNNPACK and row[1].value == "int8"]


@pytest.mark.parametrize(("operator", "dtype", "build"), ROWS, ids=[row[0] for row in ROWS])
def test_litert_follows_the_listed_rule(operator: str, dtype: DataType, build: Builder) -> None:
    require_module("ai_edge_litert", "pip install ai-edge-litert")
    values, differences = measure(operator, dtype, build, CASES)
    assert values > 1000
    assert differences["XNNPACK"][XNNPACK[operator]] == 0
    assert differences["reference"][REFERENCE[operator]] == 0


def test_the_cases_tell_our_rules_apart() -> None:
    require_module("ai_edge_litert", "pip install ai-edge-litert")
    for operator, dtype, build in ROWS[:4]:
        _, differences = measure(operator, dtype, build, CASES)
        assert min(differences["XNNPACK"][rule] for rule in ("tflm", "single")) > 0
        assert differences["reference"]["onnx"] > 0
