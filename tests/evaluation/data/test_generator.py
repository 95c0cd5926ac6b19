# SPDX-License-Identifier: Apache-2.0
"""Samples from a Python function of the user's."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from imported import forget
from numpy.testing import assert_array_equal

from ferrule.budget import limits
from ferrule.errors import BudgetError, FerruleError, InputError
from ferrule.evaluation.data import DataSet, DataSettings, open_data
from ferrule.graph import DataType, Quantization, TensorInfo

INPUT = TensorInfo("x", (1, 2, 1), DataType.INT8, quantization=Quantization.of(0.5))
OTHER = TensorInfo("y", (), DataType.FLOAT32)
OUTPUT = TensorInfo("out", (1, 2), DataType.FLOAT32)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def opened(
    body: str, *, inputs: tuple[TensorInfo, ...] = (INPUT,), limit: int | None = None, labels: str | None = None
) -> DataSet:
    Path("data.py").write_text(f"import numpy as np\n\n{body}\n", encoding="utf-8")
    return open_data("data.py:samples", labels, inputs, [OUTPUT], DataSettings(), limit)


def test_samples_and_labels_are_yielded() -> None:
    data = opened("def samples():\n    for i in range(5):\n        yield np.array([i, -i / 2]), i % 2")
    (chunk,) = data.chunks(10)
    assert_array_equal(chunk.inputs[0], INPUT.quantize(np.array([[[i], [-i / 2]] for i in range(5)])))
    assert chunk.labels is not None
    assert chunk.labels.tolist() == [0, 1, 0, 1, 0]
    assert (data.part.form, data.part.labels, data.part.source) == ("generator", "data.py:samples", "data.py:samples")
    assert_array_equal(data.take([3]).inputs[0], chunk.inputs[0][3:4])
    Path("l.txt").write_text("1\n" * 5, encoding="utf-8")
    again = opened("def samples():\n    return [([1.0, 2.0], 'no')] * 5", labels="l.txt")
    assert again.part.labels == "l.txt"


def test_a_limit_stops_the_function() -> None:
    data = opened(
        "def samples():\n    while True:\n        yield np.zeros(2), 'a'\n        yield np.ones(2), 'b'", limit=4
    )
    assert (len(data), data.classes) == (4, ("a", "b"))
    assert data.part.preparation[0] == "the first 4 samples"
    assert opened("def samples():\n    return [np.zeros(2)] * 4", limit=4).part.preparation == ("quantise to int8",)


def test_several_inputs_and_targets() -> None:
    data = opened("def samples():\n    return [({'y': 3.5, 'x': [0.5, 1.0]}, [0.5, 2])] * 2", inputs=(INPUT, OTHER))
    (chunk,) = data.chunks(10)
    assert [array.tolist() for array in chunk.inputs] == [[[[1], [2]]] * 2, [3.5, 3.5]]
    assert chunk.labels is not None
    assert chunk.labels.tolist() == [[0.5, 2.0]] * 2


def test_modules_beside_the_file_can_be_imported() -> None:
    Path("beside_the_data.py").write_text("VALUE = 2.5\n", encoding="utf-8")
    before = list(sys.path)
    opened("from beside_the_data import VALUE\ndef samples():\n    yield np.full(2, VALUE)")
    assert sys.path == before
    forget("beside_the_data")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("samples = 3", "data.py has no function 'samples'"),
        ("def samples():\n    return 3", "returns int, expected samples one after another"),
        ("def samples():\n    return []", "yields no samples"),
        (
            "def samples():\n    yield np.zeros(2)\n    raise ValueError('lost')",
            r"sample 1: ValueError: lost \(.*line 5",
        ),
        ("1 / 0", r"data.py:samples: ZeroDivisionError: division by zero \(.*data.py, line 3"),
        ("def samples(:", "data.py:samples: SyntaxError"),
        ("def samples():\n    yield np.zeros(3)", r"sample 0 has the shape \[3\], expected \[1, 2, 1\]"),
        ("def samples():\n    yield np.zeros(2, np.uint8)", "sample 0 is uint8, and the input 'x' is int8"),
        ("def samples():\n    yield [0.0, np.nan]", "sample 0: row 0 has a value that is not a number"),
        ("def samples():\n    yield [0.0, 'one']", "sample 0 has values of type <U"),
        ("def samples():\n    yield [0.0, [1]]", "sample 0: ValueError"),
        ("def samples():\n    yield np.zeros(2), 1, 2", "sample 0 is a tuple of 3, expected values, or"),
        ("def samples():\n    yield np.zeros(2), 1\n    yield np.zeros(2)", "sample 1 has no label, unlike"),
        ("def samples():\n    yield np.zeros(2)\n    yield np.zeros(2), 1", "sample 1 has a label, unlike"),
        ("def samples():\n    yield {'z': np.zeros(2)}", "sample 0 has values for z, expected x"),
        ("def samples():\n    yield np.zeros(2), -1", "labels, row 0: -1 is no class"),
        ("def samples():\n    yield np.zeros(2), 1\n    yield np.zeros(2), 'a'", "labels are of different kinds"),
        ("def samples():\n    yield np.zeros(2), np.inf", "a target is not a finite number"),
    ],
)
def test_what_is_wrong_is_named(body: str, text: str) -> None:
    with pytest.raises(InputError, match=text):
        opened(body)


def test_memory_is_bounded() -> None:
    text = r"sample 50 takes 2 bytes of memory beside 100 .* limit is 101"
    with limits(bytes=101), pytest.raises(BudgetError, match=text):
        opened("def samples():\n    while True:\n        yield np.zeros(2)")
    with limits(bytes=100):
        assert len(opened("def samples():\n    for _ in range(50):\n        yield np.zeros(2)")) == 50


def test_a_missing_file_is_named() -> None:
    with pytest.raises(FerruleError, match=r"none.py: there is no such file"):
        open_data("none.py:samples", None, [INPUT], [OUTPUT], DataSettings(), None)
