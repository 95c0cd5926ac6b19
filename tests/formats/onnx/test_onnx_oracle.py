# SPDX-License-Identifier: Apache-2.0
"""`benchmarks/onnx_oracle.py`: models divided at their 8-bit tensors, and compared with onnxruntime part by part."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from needs import require_module

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))

import onnx_oracle
from onnx_cases import OPERATORS, case_of

NEAR = {"Conv + Clip", "ConvTranspose"}
"""What onnxruntime computes by other steps of float32: results next to ties differ by 1."""


@pytest.mark.parametrize("operator", OPERATORS)
def test_random_models_equal_onnxruntime(operator: str) -> None:
    require_module("onnxruntime", "pip install onnxruntime")
    counts: dict[str, onnx_oracle.Count] = defaultdict(onnx_oracle.Count)
    random = np.random.default_rng(0)
    onnx_oracle.compare(case_of(operator, random), random, 1, counts)
    for name, count in counts.items():
        assert not count.refused
        assert count.values > 0
        assert count.largest <= (1 if name in NEAR else 0)


def test_only_the_promised_operators_must_be_exact(capsys: pytest.CaptureFixture[str]) -> None:
    counts = {
        "Softmax": onnx_oracle.Count(values=10, differences=2, largest=1),
        "QLinearConv": onnx_oracle.Count(values=10),
    }
    assert onnx_oracle.report(counts)
    counts["DequantizeLinear + QuantizeLinear"] = onnx_oracle.Count(values=10, differences=1, largest=1)
    assert not onnx_oracle.report(counts)
    assert "QLinearConv" in capsys.readouterr().out


def test_an_exact_operator_must_have_been_compared() -> None:
    assert not onnx_oracle.report({"QLinearAdd": onnx_oracle.Count(refused={"part.onnx: no"})})
