# SPDX-License-Identifier: Apache-2.0
"""Data sets in CSV files, and labels from every kind of file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ferrule.budget import limits
from ferrule.errors import BudgetError, FerruleError, InputError
from ferrule.evaluation.data import DataSet, DataSettings, open_data
from ferrule.evaluation.data import table as tables
from ferrule.graph import DataType, Quantization, TensorInfo

INPUT = TensorInfo("x", (1, 3), DataType.INT8, quantization=Quantization.of(0.5, 10))
OUTPUT = TensorInfo("out", (1, 2), DataType.FLOAT32)
TABLE = "a,b,c,label,run\n1,2,3,no,first\n4,5,6,yes,first\n-7,8.5,1e1,no,second\n"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def opened(
    text: str, labels: str | None = None, *, sequence: str | None = None, limit: int | None = None, **settings: object
) -> DataSet:
    Path("data.csv").write_text(text, encoding="utf-8")
    table = DataSettings(**settings)  # type: ignore[arg-type]
    return open_data("data.csv", labels, [INPUT], [OUTPUT], table, limit, sequence=sequence)


def labels_of(data: DataSet) -> list[object]:
    (chunk,) = data.chunks(1000)
    assert chunk.labels is not None
    return list(chunk.labels.tolist())


def test_a_table_has_real_values_labels_and_sequences() -> None:
    data = opened(TABLE, "label", sequence="run")
    (chunk,) = data.chunks(10)
    assert_array_equal(chunk.inputs[0], INPUT.quantize(np.array([[1.0, 2, 3], [4, 5, 6], [-7, 8.5, 10]])))
    assert chunk.labels is not None
    assert chunk.sequences is not None
    assert (chunk.labels.tolist(), chunk.sequences.tolist()) == ([0, 1, 0], [0, 0, 1])
    assert (data.classes, chunk.names) == (("no", "yes"), ("0", "1", "2"))
    assert (data.part.form, data.part.labels, data.part.samples) == ("csv", "column 'label'", 3)


def test_the_settings_name_columns() -> None:
    data = opened(TABLE, label="label", features=("c", "b", "a"), classes=("yes", "no"))
    assert labels_of(data) == [1, 0, 1]
    assert_array_equal(data.take([0]).inputs[0], INPUT.quantize(np.array([[3.0, 2, 1]])))


def test_stored_values_are_whole_and_in_range() -> None:
    text = "a,b,c\n1,2,3\n-128,127,0\n"
    assert opened(text, integers="stored").take([1]).inputs[0].tolist() == [[-128, 127, 0]]
    assert opened("a,b,c\n0,128,255\n", integers="shift").take([0]).inputs[0].tolist() == [[-128, 0, 127]]
    for cell in ("1.5", "128"):
        with pytest.raises(InputError, match=f"data.csv, line 2, column 'b': {cell} is no stored value"):
            opened(f"a,b,c\n1,{cell},3\n", integers="stored")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty, expected a header"),
        ("a,b,c\n", "has a header and no rows"),
        ("1,2,3\n1,2,3\n", "line 1: has numbers only"),
        ("a,a,c\n1,2,3\n", "two columns 'a'"),
        ("a,b\n1,2\n", "has 2 columns of values, expected 3"),
        ("a,b,c\n1,2,3\n\n1,2\n", "line 4: 2 cells, expected 3"),
        ("a,b,c\n1,two,3\n", "line 2, column 'b': 'two', expected a finite number"),
        ("a,b,c\n1,,3\n", "line 2, column 'b': ''"),
        ("a,b,c\n1,nan,3\n", "line 2, column 'b': 'nan'"),
        ("a,b,c\n1,=1+1,3\n", "'=1\\+1', expected a finite number"),
        ('a,b,c\n1,"2,3\n', "line 2: unexpected end of data"),
        ('a,b,c\n1,"2"x,3\n', "line 2: ',' expected after '\"'"),
        ("a,b,c\n1,2," + "9" * 200_000 + "\n", "line 2: field larger than field limit"),
    ],
)  # fmt: skip
def test_a_malformed_row_is_named_by_its_line(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        opened(text)
    assert "data.csv" in str(caught.value)


def test_the_file_itself_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("data.csv").write_bytes(b"a,b,c\n1,2,\xff\n")
    with pytest.raises(InputError, match="is not UTF-8 after line 1: UnicodeDecodeError"):
        open_data("data.csv", None, [INPUT], [OUTPUT], DataSettings(), None)
    with pytest.raises(InputError, match="there is no column 'd'"):
        opened(TABLE, features=("a", "b", "d"))
    monkeypatch.setattr(tables, "_PIECE_CHARACTERS", 4)
    opened("a,b,c\n1,2,3.33333333333\n")
    with limits(bytes=70), pytest.raises(BudgetError, match="a line of up to 20 characters takes 80 bytes"):
        opened("a,b,c\n1,2,3.33333333333\n")
    monkeypatch.undo()


@pytest.mark.parametrize(
    ("name", "content", "labels", "classes"),
    [
        ("l.txt", "1\n0\n1\n", [1, 0, 1], ()),
        ("l.txt", "yes\r\nno\r\nyes\r\n\r\n", [1, 0, 1], ("no", "yes")),
        ("l.txt", "0.5\n-1\n2\n", [0.5, -1.0, 2.0], ()),
        ("l.csv", "class\nb\na\nb\n", [1, 0, 1], ("a", "b")),
        ("l.csv", "file,class\n2,0\n0,1\n1,1\n", [1, 1, 0], ()),
        ("l.csv", "u,v\n1,2\n3,4\n5,6.5\n", [[1.0, 2.0], [3.0, 4.0], [5.0, 6.5]], ()),
        ("l.csv", "u,name,v\n1,2,2\n3,1,4\n5,0,6\n", [[5.0, 6.0], [3.0, 4.0], [1.0, 2.0]], ()),
        ("l.npy", np.array([1, 0, 1], np.uint8), [1, 0, 1], ()),
        ("l.npy", np.array([[1], [0], [1]]), [1, 0, 1], ()),
        ("l.npy", np.array(["b", "a", "b"]), [1, 0, 1], ("a", "b")),
        ("l.npy", np.array([0.5, 1, 2], np.float32), [0.5, 1.0, 2.0], ()),
        ("l.npy", np.array([[1, 2], [3, 4], [5, 6]]), [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], ()),
    ],
)  # fmt: skip
def test_labels_come_from_any_file(name: str, content: object, labels: list[object], classes: tuple[str, ...]) -> None:
    if isinstance(content, np.ndarray):
        np.save(name, content)
    else:
        Path(name).write_bytes(str(content).encode())
    data = opened("a,b,c\n1,2,3\n1,2,3\n1,2,3\n", name)
    assert labels_of(data) == labels
    assert data.classes == classes


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("l.txt", "1\n0\n", "has 2 labels, and there are 3 samples"),
        ("l.txt", "1\n\n0\n", "line 2: there is no label"),
        ("l.txt", "1\ninf\n0.5\n", "line 2: the target is not a finite number"),
        ("l.txt", "a\nb\nc\n", "l.txt has 3 classes, and the model's output has 2 values"),
        ("l.txt", "99999999999\n1\n1\n", None),
        ("l.txt", b"\xff\n", "is not UTF-8"),
        ("l.json", "[]", "ends with '.json', expected .npy, .csv, .txt"),
        ("l.csv", "file\n0\n1\n2\n", "has no column of labels"),
        ("l.csv", "file,class\n0,1\n0,1\n1,1\n", "line 3: '0' has a label in line 2 already"),
        ("l.csv", "file,class\n0,1\n1,1\n", "has no label for the sample '2'"),
        ("l.csv", "file,class\n0,1\n1,1\n2,1\n3,1\n", "line 5: there is no sample '3'"),
        ("l.npy", np.array([1, -1, 0]), "row 1: -1 is no class"),
        ("l.npy", np.array([1, np.nan, 0]), "row 1: a target is not a finite number"),
        ("l.npy", np.array(3), "one value without a shape"),
        ("l.npy", np.array([1j, 2, 3]), "expected numbers or names"),
    ],
)  # fmt: skip
def test_wrong_labels_are_named(name: str, content: object, message: str | None) -> None:
    if isinstance(content, np.ndarray):
        np.save(name, content)
    else:
        Path(name).write_bytes(content if isinstance(content, bytes) else str(content).encode())
    text = "a,b,c\n1,2,3\n1,2,3\n1,2,3\n"
    if message is None:  # too large for a class: a target
        assert labels_of(opened(text, name)) == [99999999999.0, 1.0, 1.0]
        return
    with pytest.raises(FerruleError, match=message):
        opened(text, name)


def test_classes_come_from_the_table_or_a_file() -> None:
    text = "a,b,c,label\n1,2,3,dog\n1,2,3,cat\n"
    Path("classes.txt").write_text("dog\ncat\n", encoding="utf-8")
    for classes in (("dog", "cat"), "classes.txt"):
        data = opened(text, "label", classes=classes)
        assert (labels_of(data), data.classes) == ([0, 1], ("dog", "cat"))
    Path("labels.txt").write_text("1\n0\n", encoding="utf-8")
    assert opened("a,b,c\n1,2,3\n1,2,3\n", "labels.txt", classes=("dog", "cat")).classes == ("dog", "cat")
    for classes, message in [
        (("dog", "cow"), "there is no class 'cat' in .data. classes"),
        (("dog", "dog"), "has the name 'dog' twice"),
        (("dog", ""), "has an empty name at place 1"),
        ((), "has no names"),
        ("none.txt", "none.txt cannot be read"),
    ]:
        with pytest.raises(FerruleError, match=message):
            opened(text, "label", classes=classes)
    Path("labels.txt").write_text("1\n2\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"has the label 2, and .data. classes has the names of 0 to 1"):
        opened("a,b,c\n1,2,3\n1,2,3\n", "labels.txt", classes=("dog", "cat"))
