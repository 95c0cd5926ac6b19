# SPDX-License-Identifier: Apache-2.0
"""ONNX models that are refused: the message names the place and the reason, and the hint the way out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from onnx_models import load, model, node

from ferrule import formats
from ferrule.errors import BudgetError, FerruleError, MissingToolError, ModelError, UnsupportedError
from ferrule.formats.onnx.parse import REMEDY

IMAGE = ("float32", [1, 4, 6, 5])


def one(op: str, inputs: str = "x", constants: dict[str, Any] | None = None, **attributes: Any) -> Any:  # noqa: ANN401
    """Return a model of one node that reads an image x."""
    return model([node(op, inputs, "y", **attributes)], {"x": IMAGE}, ["y"], constants)


def fused(inputs: str = "x k", **attributes: Any) -> Any:  # noqa: ANN401
    """Return a model of one FusedConv with two filters of one pixel."""
    kernel = {"k": np.ones((2, 4, 1, 1), np.float32)}
    return one("FusedConv", inputs, kernel, domain="com.microsoft", **attributes)


REFUSED: list[tuple[Callable[[], Any], type[FerruleError], str, str]] = [
    (lambda: one("Einsum", equation="abcc->ab"), UnsupportedError, "repeats an axis in one input", "mask"),
    (lambda: one("Einsum", equation="abc->ab"), ModelError, "names other numbers of axes", ""),
    (lambda: one("Einsum", equation="abcd->abe"), ModelError, "output whose axes are not those", ""),
    (lambda: one("Einsum", equation="abcd->aab"), ModelError, "output whose axes are not those", ""),
    (lambda: one("Einsum", equation="ab-cd->ab"), ModelError, "its equation 'ab-cd->ab' does not fit 1 inputs", ""),
    (lambda: one("Einsum", equation="abcd,a->ab"), ModelError, "does not fit 1 inputs", ""),
    (lambda: one("Einsum", "x x", equation="abcd,abdc->a"), UnsupportedError, "has the extents 5 and 6", "expand"),
    (lambda: one("Det"), UnsupportedError, "Det -> tensor 'y': this operator is not supported", "docs/onnx.md"),
    (
        lambda: model([node("LRN", "x", "y", size=1)], {"x": ("float32", [1, 3, 4])}),
        UnsupportedError,
        "its input has shape [1, 3, 4], expected 4 axes",
        "",
    ),
    (lambda: one("LRN", size=2), UnsupportedError, "its size is 2 and its beta 0.75, expected an odd size", ""),
    (
        lambda: one("TopK", "x k", {"k": np.array([6])}),
        ModelError,
        "its k is (6,), expected one number from 1 to 5",
        "",
    ),
    (lambda: one("TopK", "x k", {"k": np.array([2, 3])}), ModelError, "its k is (2, 3), expected one number", ""),
    (
        lambda: model([node("TopK", "x k", "y i")], {"x": ("float32", [99])}, ["y"], {"k": np.array([33])}),
        UnsupportedError,
        "its k is 33, expected at most 32",
        "outside of the model",
    ),
    (
        lambda: model([node("TopK", "x k", "y i")], {"x": ("int32", [9])}, ["y"], {"k": np.array([3])}),
        UnsupportedError,
        "its data is int32, expected float32",
        "float32",
    ),
    (lambda: one("LpPool", kernel_shape=[2, 2], p=3), UnsupportedError, "attribute 'p' is 3, expected 1 or 2", ""),
    (lambda: one("GlobalLpPool", p=3), UnsupportedError, "attribute 'p' is 3, expected 1 or 2", ""),
    (lambda: one("Foo"), UnsupportedError, "node 0 'Foo_y' Foo -> tensor 'y': this operator is not", "docs/onnx.md"),
    (lambda: one("DynamicQuantizeLinear"), UnsupportedError, "quantises its input anew", "quantize_static"),
    (lambda: one("Scale", domain="my.npu"), UnsupportedError, "my.npu::Scale", "inline_local_functions"),
    (
        lambda: model([node("Constant", "", "y", value_string="t")], {}),
        UnsupportedError,
        "no tensor of numbers",
        "texts",
    ),
    (lambda: one("Relu", "x x"), ModelError, "it has 2 inputs, expected 1", ""),
    (lambda: one("Relu", "nothing"), ModelError, "tensor 'nothing' is read before anything writes it", ""),
    (lambda: one("Elu", alpha=float("inf")), ModelError, "attribute 'alpha' is inf, expected a finite number", ""),
    (lambda: one("Elu", alpha="x"), ModelError, "attribute 'alpha' is 'x', expected a finite number", ""),
    (lambda: one("Softmax", axis=4), ModelError, "its axis is 4, expected -4 to 3", ""),
    (lambda: one("Softmax", axis=[1]), ModelError, "attribute 'axis' is a value of type tuple", ""),
    (lambda: one("Transpose", perm=[0, 0, 1, 2]), ModelError, "attribute 'perm' is [0, 0, 1, 2]", ""),
    (lambda: one("MaxPool"), ModelError, "attribute 'kernel_shape' is absent", ""),
    (lambda: one("MaxPool", kernel_shape=[1 << 40, 1]), UnsupportedError, "exceed 16384 pixels", ""),
    (
        lambda: one("MaxPool", kernel_shape=[4, 2], dilations=[2, 2]),
        ModelError,
        "a window of 7 pixels does not fit into 6",
        "",
    ),
    (
        lambda: one("AveragePool", kernel_shape=[2, 2], dilations=[2, 2], pads=[1, 0, 0, 0]),
        UnsupportedError,
        "it has dilations, and padding that does not count",
        "count_include_pad",
    ),
    (lambda: one("Cast", to=11), UnsupportedError, "it converts to float64", "float32"),
    (lambda: one("Reshape", "x s", {"s": [7, -1]}), ModelError, "its shape [7, -1] does not fit [1, 4, 6, 5]", ""),
    (lambda: one("Reshape", "x x"), UnsupportedError, "its shape, tensor 'x', is computed at run time", "fixed shapes"),
    (lambda: one("Conv", "x w", {"w": np.zeros((2, 3, 1, 1), np.float32)}), ModelError, "do not fit an image", ""),
    (lambda: one("Pad", "x p", {"p": [0, 0, 0, -3, 0, 0, 0, -2]}), UnsupportedError, "expected extents of 1", ""),
    (lambda: one("Pad", "x p", {"p": [0, 0, 0, -(1 << 15)] * 2}), UnsupportedError, "from -16384 to 16384", ""),
    (lambda: one("Pad", "x p", {"p": [1] * 8}, mode="fold"), UnsupportedError, "'mode' is 'fold'", ""),
    (
        lambda: one("Resize", "x - s", {"s": np.ones(4, np.float32)}, mode="cubic"),
        UnsupportedError,
        "'cubic'",
        "linear",
    ),
    (lambda: one("Gather", "x i", {"i": [4]}, axis=1), ModelError, "its indices are not within -4 to 3", ""),
    (lambda: one("Slice", "x a a", {"a": [1]}), UnsupportedError, "expected extents of 1 or more", ""),
    (lambda: one("Pow", "x e", {"e": np.float32(0)}), UnsupportedError, "its exponent is 0.0, expected a finite", ""),
    (lambda: one("Pow", "x e", {"e": np.float32("inf")}), UnsupportedError, "its exponent is inf, expected", ""),
    (
        lambda: model([node("Pow", "x e", "y")], {"x": ("int32", [4])}, ["y"], {"e": np.int32(5)}),
        UnsupportedError,
        "its exponent is 5.0 and its data are integers, expected 1, 2 or 3",
        "",
    ),
    (lambda: one("Add", "x k", {"k": np.ones(7)}), ModelError, "[1, 4, 6, 5], [7]", ""),
    (lambda: one("Add", "x k", {"k": np.ones(5)}), UnsupportedError, "constant 'k' is float64", "float32"),
    (
        lambda: model([node("Relu", "x", "y")], {"x": ("float32", ["N", "T"])}),
        UnsupportedError,
        "graph input 'x': the extent of its axis 1 is 'T', expected a number",
        "shapes={",
    ),
    (
        lambda: model([node("Relu", "x", "y")], {"x": ("float16", [2])}),
        UnsupportedError,
        "graph input 'x': tensor 'x' is float16 and computed at run time, expected float32",
        "model.float()",
    ),
    (lambda: one("Cast", to=10), UnsupportedError, "tensor 'y' is float16 and computed at run time", "float32"),
    (
        lambda: model([node("Relu", "x", "y")], {"x": ("float64", [2])}),
        UnsupportedError,
        "graph input 'x': it is float64",
        "float32",
    ),
    (lambda: model([node("Relu", "x", "y")], {"x": ("float32", [2])}, opset=0), UnsupportedError, "opset 0", "28"),
    (lambda: model([node("Relu", "x", "y")], {"x": ("float32", [2])}, opset=99), UnsupportedError, "opset 99", "28"),
    (
        lambda: model([node("Relu", "x", "y")], {"x": ("float32", [2])}, []),
        ModelError,
        "graph outputs: there is none",
        "",
    ),
    (
        lambda: model([node("Relu", "x", "y"), node("Abs", "x", "y")], {"x": ("float32", [2])}),
        ModelError,
        "tensor 'y' is written twice",
        "",
    ),
    (
        lambda: model([node("Trilu", "x", "y")], {"x": ("float32", [1 << 13, 1 << 13])}),
        BudgetError,
        "the mask takes 2,147,483,648 bytes of memory",
        "",
    ),
    (
        lambda: one("ScatterND", "x i u", {"i": [[0, 4]], "u": np.ones((1, 6, 5), np.float32)}),
        ModelError,
        "its indices are not within -4 to 3",
        "",
    ),
    (
        lambda: one("ScatterND", "x i u", {"i": [[0, 3]], "u": np.ones((1, 5), np.float32)}),
        ModelError,
        "its updates have the shape [1, 5], which does not fit its indices",
        "",
    ),
    (
        lambda: one("ScatterND", "x i u", {"i": [[0] * 5], "u": np.ones(1, np.float32)}),
        ModelError,
        "its indices have the shape [1, 5], and its input [1, 4, 6, 5]",
        "",
    ),
    (
        lambda: one("ScatterND", "x i u", {"i": [[0]], "u": np.ones((1, 4, 6, 5), np.float32)}, reduction="add"),
        UnsupportedError,
        "its attribute 'reduction' is 'add', expected none",
        "",
    ),
    (
        lambda: one("ScatterElements", "x i u", {"i": [[[[0, 1]]]], "u": np.ones((1, 1, 1, 3), np.float32)}),
        ModelError,
        "its indices do not have the axes of its input, or not the shape of its updates",
        "",
    ),
    (
        lambda: one("ScatterElements", "x i u", {"i": [[[[0] * 6]]], "u": np.ones((1, 1, 1, 6), np.float32)}),
        ModelError,
        "its indices [1, 1, 1, 6] exceed its input [1, 4, 6, 5]",
        "",
    ),
    (lambda: one("GatherElements", "x i", {"i": [0, 1]}), ModelError, "its indices [2] do not have the axes", ""),
    (
        lambda: one("BatchNormalization", "x x x x x"),
        ModelError,
        "its parameters do not have one number for each of 4 channels",
        "",
    ),
    (lambda: fused(activation="Elu"), UnsupportedError, "its attribute 'activation' is 'Elu', expected Clip", ""),
    (
        lambda: fused(activation="Clip", activation_params=[1.0]),
        ModelError,
        "its attribute 'activation_params' has 1 numbers, expected 2 for Clip",
        "",
    ),
    (lambda: fused("x k - x"), ModelError, "its addend has shape [1, 4, 6, 5], expected [1, 2, 6, 5]", ""),
    (lambda: one("Expand", "x s", {"s": [1 << 40, 4, 6, 5]}), UnsupportedError, "its output has", ""),
    (
        lambda: one("CastLike", "x k", {"k": np.zeros(1, ml_dtypes.bfloat16)}),
        UnsupportedError,
        "it converts to the type of 'k'",
        "float32",
    ),
    (lambda: one("CumSum", "x a", {"a": np.float32("nan")}), ModelError, "its axis is float32[]", ""),
    (
        lambda: model([node("ConstantOfShape", "s", "y")], {}, ["y"], {"s": [1 << 40, 1 << 40]}),
        BudgetError,
        "a constant of the shape [1099511627776, 1099511627776] takes",
        "",
    ),
]


@pytest.mark.parametrize(("made", "kind", "words", "hint"), REFUSED, ids=[row[2] for row in REFUSED])
def test_a_model_is_refused(made: Callable[[], Any], kind: type[FerruleError], words: str, hint: str) -> None:
    with pytest.raises(kind) as caught:
        load(made())
    assert words in str(caught.value)
    assert hint in (caught.value.hint or "")


def test_all_nodes_that_block_are_listed() -> None:
    nodes = [node("Unique", "x", "a"), node("Relu", "a", "b"), node("Bernoulli", "b", "c")]
    made = model([*nodes, node("Det", "x", "y")], {"x": ("float32", [2, 3])}, ["y"], {"k": [1]})
    with pytest.raises(UnsupportedError) as caught:
        load(made)
    assert [problem.type for problem in caught.value.problems] == ["Unique", "Bernoulli", "Det"]
    assert all(problem.hint for problem in caught.value.problems)
    assert "3 nodes cannot be used" in str(caught.value)


def test_nodes_with_integers_are_listed_with_the_others() -> None:
    constants: dict[str, Any] = {"s": np.array(0.5, np.float32), "z": np.array(128, np.uint8)}
    nodes = [
        node("QuantizeLinear", "x s z", "q"),
        node("QLinearConv", "q s", "r"),
        node("Unique", "x", "y"),
    ]
    with pytest.raises(FerruleError) as caught:
        load(model(nodes, {"x": ("float32", [2, 3])}, ["y"], constants))
    assert {"QLinearConv", "Unique"} <= {problem.type for problem in caught.value.problems}


def with_external(tmp_path: Path, location: str, **entries: str) -> Path:
    """Write a model whose factor is in another file, and return its path."""
    from onnx import TensorProto

    made = model([node("Mul", "x k", "y")], {"x": ("float32", [3])}, ["y"], {"k": np.ones(3, np.float32)})
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=value)
    path = tmp_path / "folder" / "model.onnx"
    path.parent.mkdir()
    path.write_bytes(made.SerializeToString())
    return path


def test_data_beside_the_model_is_read(tmp_path: Path) -> None:
    path = with_external(tmp_path, "weights.bin", offset="4")
    (path.parent / "weights.bin").write_bytes(np.arange(4, dtype=np.float32).tobytes())
    (output,) = formats.load(path).run([np.ones(3, np.float32)])
    assert_array_equal(output, [1, 2, 3])
    with pytest.raises(UnsupportedError, match=r"the file 'weights.bin', but the model has no folder"):
        formats.load(path.read_bytes())


@pytest.mark.parametrize(
    ("location", "entries", "words"),
    [
        ("../weights.bin", {}, "outside of the model's folder"),
        ("/etc/hostname", {}, "outside of the model's folder"),
        ("link.bin", {}, "outside of the model's folder"),
        ("missing.bin", {}, "cannot be read: No such file"),
        ("model.onnx", {"offset": "-1"}, "which has"),
        ("model.onnx", {"offset": "x"}, "malformed"),
        ("model.onnx", {"length": "1000000"}, "which has"),
        ("model.onnx", {"length": "8"}, "it has 8 bytes, expected 12 for float32[3]"),
        ("model.onnx", {"length": "0"}, "it has 0 bytes, expected 12 for float32[3]"),
        ("model\0.onnx", {}, "cannot be read"),
    ],
)
def test_data_elsewhere_is_refused(tmp_path: Path, location: str, entries: dict[str, str], words: str) -> None:
    path = with_external(tmp_path, location, **entries)
    (tmp_path / "weights.bin").write_bytes(bytes(12))
    (path.parent / "link.bin").symlink_to(tmp_path / "weights.bin")
    with pytest.raises(FerruleError) as caught:
        formats.load(path)
    assert words in str(caught.value)
    assert "initialiser 'k'" in str(caught.value)


@pytest.mark.parametrize("data", [b"\x08", b"\x08\xff\xff", b"\x08\x0a", b"\x08\x0a:\x00", b"\x08" + bytes(50)])
def test_a_file_that_is_no_model_is_refused(data: bytes) -> None:
    with pytest.raises(ModelError):
        formats.load(data)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    data = one("Relu").SerializeToString()
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingToolError) as caught:
        formats.load(data)
    assert "the Python package onnx is missing" in str(caught.value)
    assert caught.value.hint == REMEDY == "pip install 'ferrule[onnx]'"
