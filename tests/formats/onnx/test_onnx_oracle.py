# SPDX-License-Identifier: Apache-2.0
"""`benchmarks/onnx_oracle.py`: models divided at their 8-bit tensors, and compared with onnxruntime part by part."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from children import ran
from needs import require_module, require_program

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))

import onnx_oracle
from onnx_cases import OPERATORS, case_of, edges_of

PARTS = ("Conv", "Conv, Relu", "MatMul", "Add", "Mul", "AveragePool", "Concat", "Sigmoid", "Resize")
"""Operators of models from files, which are compared tensor by tensor."""


@pytest.fixture(autouse=True)
def _installed() -> None:
    require_module("onnxruntime", "pip install 'ferrule[oracle]'")


@pytest.mark.parametrize("operator", OPERATORS)
def test_random_models_equal_onnxruntime_between_all_edges(operator: str) -> None:
    for edges in edges_of(operator):
        for dtype in ("int8", "uint8"):
            random, count = np.random.default_rng(0), onnx_oracle.Count()
            onnx_oracle.compare_case(case_of(operator, random, edges, dtype), random, count, optimised=True)
            assert not count.refused
            assert count.values > 0
            near = not onnx_oracle.NEAR.keys().isdisjoint(operator.split(", "))
            assert count.largest <= near, (edges, dtype)
            assert near or not count.others, (edges, dtype)


@pytest.mark.parametrize("operator", ["Add", "Mul", "AveragePool", "GlobalAveragePool", "Softmax"])
def test_arithmetic_as_written_equals_an_unoptimised_session(operator: str) -> None:
    for edges in edges_of(operator):
        random, count = np.random.default_rng(1), onnx_oracle.Count()
        onnx_oracle.compare_case(case_of(operator, random, edges), random, count, optimised=False)
        assert count.values > 0
        assert not count.differences


@pytest.mark.parametrize("operator", PARTS)
def test_models_from_files_are_compared_part_by_part(operator: str) -> None:
    counts: dict[str, onnx_oracle.Count] = defaultdict(onnx_oracle.Count)
    random = np.random.default_rng(0)
    onnx_oracle.compare(case_of(operator, random), random, 1, counts)
    assert counts
    for count in counts.values():
        assert not count.refused
        assert count.values > 0
        assert not count.differences


def test_operators_may_differ_only_for_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    counts = {
        "Conv: 8 bits to float32": onnx_oracle.Count(values=10, differences=2, largest=1),
        "QLinearConv": onnx_oracle.Count(values=10),
    }
    assert onnx_oracle.report(counts)
    assert onnx_oracle.NEAR["Conv"] in capsys.readouterr().out
    counts["Conv: 8 bits to float32"].largest = 2
    assert not onnx_oracle.report(counts)
    assert not onnx_oracle.report({"Softmax": onnx_oracle.Count(values=10, differences=1, largest=1)})


def test_saturated_values_are_told_from_other_differences(capsys: pytest.CaptureFixture[str]) -> None:
    count = onnx_oracle.Count()
    count.add(np.array([0, 3, 2]), np.array([False, True, True]), np.array([True, True, True]))
    assert (count.values, count.differences, count.saturated, count.others, count.largest) == (3, 2, 2, 0, 0)
    assert onnx_oracle.report({"QGemm": count})
    assert "compared 3 values: different 2, of which saturated 2," in capsys.readouterr().out
    count.add(np.array([4, 1]), np.array([True, True]), np.array([False, True]))
    assert (count.differences, count.saturated, count.others, count.largest) == (4, 3, 1, 4)
    assert not onnx_oracle.report({"QGemm": count})
    assert capsys.readouterr().out.endswith("unexplained 1\n")


@pytest.mark.slow
def test_all_that_differs_without_vnni_is_saturation() -> None:
    """An emulated processor with AVX2 alone has the saturation that is explained, value by value."""
    emulator = require_program("qemu-x86_64", "apt install qemu-user", rare=True)
    operators = ("QGemm", "QLinearConv", "QLinearMatMul")
    script = [str(onnx_oracle.__file__), "--as-written", "--cases", "1", "--operators", *operators]
    done = ran([emulator, "-cpu", "max", sys.executable, *script])
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"different ([0-9,]+), of which saturated ([0-9,]+), .* unexplained 0\n", done.stdout)
    assert found is not None, done.stdout
    assert found[1] == found[2] != "0"


def test_each_operator_must_have_been_compared() -> None:
    assert not onnx_oracle.report({"QLinearAdd": onnx_oracle.Count(refused={"part.onnx: no"})})
