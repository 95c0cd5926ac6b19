# SPDX-License-Identifier: Apache-2.0
"""Models of opsets below 13: onnxruntime runs those from 7 on, and the others are compared with their present form."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from numpy.testing import assert_array_equal
from onnx_models import agrees, drawn, load, model, node
from rich.console import Console

import ferrule
from ferrule.errors import FerruleError, ModelError, UnsupportedError
from ferrule.formats.onnx.legacy import CHANGES
from ferrule.formats.onnx.operators import OPERATORS
from ferrule.report.console import print_report

IMAGE = {"x": ("float32", [1, 4, 6, 5])}


def one(
    opset: int,
    op: str,
    constants: Mapping[str, npt.ArrayLike] | None = None,
    shape: Sequence[int] = (1, 4, 6, 5),
    outputs: str = "y",
    **attributes: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Return a model of one node that reads x and constants."""
    names = " ".join(["x", *(constants or {})])
    nodes = [node(op, names, outputs, **attributes)]
    return model(nodes, {"x": ("float32", shape)}, outputs.split(), constants, opset)


def floats(*shape: int) -> Any:  # noqa: ANN401
    return np.random.default_rng(3).normal(size=shape).astype(np.float32)


PER_CHANNEL = {"scale": floats(4), "offset": floats(4), "mean": floats(4), "variance": np.abs(floats(4)) + 1}
RUN: Mapping[str, Any] = {
    "Clip": one(10, "Clip", min=-0.5, max=0.25),
    "Clip, above": one(7, "Clip", max=0.25),
    "Clip, nothing": one(9, "Clip"),
    "Pad": one(10, "Pad", pads=[0, 0, 1, 2, 0, 0, 0, 1], value=1.5),
    "Pad, zeros": one(10, "Pad", pads=[0, 0, 1, 2, 0, 0, 0, 1]),
    "Pad, reflected": one(7, "Pad", pads=[0, 0, 1, 2, 0, 0, 0, 1], mode="reflect"),
    "Slice": one(9, "Slice", starts=[1, -3], ends=[3, 9], axes=[1, 3]),
    "Slice, first axes": one(9, "Slice", starts=[0, 1], ends=[1, 3]),
    "Split": one(12, "Split", split=[1, 3], axis=1, outputs="y z"),
    "Split, equal": one(11, "Split", axis=2, outputs="y z"),
    "Squeeze": one(12, "Squeeze", axes=[0]),
    "Squeeze, all": one(9, "Squeeze", shape=(1, 4, 1, 5)),
    "Unsqueeze": one(11, "Unsqueeze", axes=[0, 3]),
    **{
        f"{op}, {axis} of {shape}": one(12, op, shape=shape, **({} if axis is None else {"axis": axis}))
        for op in ("Softmax", "LogSoftmax")
        for axis, shape in ((None, (2, 3, 2, 2)), (2, (1, 4, 6, 5)), (-1, (1, 4, 6, 5)), (None, (2, 5, 1, 1)))
    },
    "Upsample": one(7, "Upsample", scales=[1.0, 1.0, 2.0, 3.0]),
    "Upsample, from an input": one(9, "Upsample", {"s": np.array([1, 1, 2, 1.5], np.float32)}),
    "Upsample, linear": one(9, "Upsample", {"s": np.array([1, 1, 2, 2], np.float32)}, mode="linear"),
    "Resize": one(10, "Resize", {"s": np.array([1, 1, 2, 1.5], np.float32)}),
    "Resize, smaller": one(10, "Resize", {"s": np.array([1, 1, 0.5, 0.6], np.float32)}),
    "Resize, both": one(10, "Resize", {"s": np.array([1, 1, 0.7, 1.6], np.float32)}),
    "Resize, linear": one(10, "Resize", {"s": np.array([1, 1, 2, 3], np.float32)}, mode="linear"),
    "Resize, by the centres": one(
        11,
        "Resize",
        {"r": np.zeros(0, np.float32), "s": np.array([1, 1, 1.5, 0.6], np.float32)},
        coordinate_transformation_mode="tf_half_pixel_for_nn",
        nearest_mode="floor",
    ),
    "TopK": one(9, "TopK", k=3, axis=2, outputs="y z"),
    "Dropout": one(10, "Dropout", ratio=0.3),
    "BatchNormalization": one(8, "BatchNormalization", PER_CHANNEL, epsilon=0.01),
    "Gemm": one(9, "Gemm", {"w": floats(5, 3), "c": floats(3)}, shape=(2, 5)),
    "Reshape": one(7, "Reshape", {"s": np.array([0, -1])}),
    "Cast": model([node("Cast", "x", "y", to=6)], IMAGE, opset=9),
}
"""Models that onnxruntime runs as they are."""


@pytest.mark.parametrize("name", RUN)
def test_old_nodes_agree_with_onnxruntime(name: str) -> None:
    agrees(RUN[name], exact=name.startswith(("Pad", "Slice", "Split", "Squeeze", "Clip", "Resize, smaller")))


def with_second(opset: int, op: str, shape: Sequence[int], **attributes: Any) -> Any:  # noqa: ANN401
    """Return a model of one node that reads two inputs."""
    inputs = {**IMAGE, "b": ("float32", shape)}
    return model([node(op, "x b", "y", **attributes)], inputs, opset=opset)


def lstm(opset: int) -> Any:  # noqa: ANN401
    constants = {"w": floats(1, 12, 2), "r": floats(1, 12, 3), "b": floats(1, 24)}
    more = {"output_sequence": 1} if opset < 7 else {}
    nodes = [node("LSTM", "x w r b", "y", hidden_size=3, **more)]
    return model(nodes, {"x": ("float32", [4, 1, 2])}, ["y"], constants, opset)


OLDER: Mapping[str, tuple[Any, Any]] = {
    "Add": (
        one(6, "Add", {"b": floats(4)}, broadcast=1, axis=1),
        one(13, "Add", {"b": floats(4).reshape(4, 1, 1)}),
    ),
    "Add, an axis from behind": (
        one(6, "Add", {"b": floats(4, 6)}, broadcast=1, axis=-3),
        one(13, "Add", {"b": floats(4, 6, 1)}),
    ),
    "Sub, the last axes": (one(6, "Sub", {"b": floats(6, 5)}, broadcast=1), one(13, "Sub", {"b": floats(6, 5)})),
    "Mul, at run time": (with_second(6, "Mul", (4, 6), broadcast=1, axis=1), with_second(13, "Mul", (4, 6, 1))),
    "Div, one number": (one(6, "Div", {"b": np.float32(3)}, broadcast=1), one(13, "Div", {"b": np.float32(3)})),
    "Reshape": (
        model([node("Reshape", "x", "y", shape=[2, -1])], IMAGE, opset=4),
        one(13, "Reshape", {"s": np.array([2, -1])}),
    ),
    "Concat": (
        model([node("Concat", "x x", "y")], IMAGE, opset=3),
        model([node("Concat", "x x", "y", axis=1)], IMAGE, opset=13),
    ),
    "Cast": (one(5, "Cast", to="int32"), one(13, "Cast", to=6)),
    "Selu": (one(5, "Selu"), one(13, "Selu", alpha=1.6732, gamma=1.0507)),
    "PRelu": (one(6, "PRelu", {"s": floats(4)}), one(13, "PRelu", {"s": floats(4).reshape(4, 1, 1)})),
    "PRelu, one slope": (one(6, "PRelu", {"s": floats(1)}), one(13, "PRelu", {"s": floats(1)})),
    "Pad": (one(1, "Pad", paddings=[0, 0, 1, 0, 0, 0, 1, 2]), one(13, "Pad", {"p": [0, 0, 1, 0, 0, 0, 1, 2]})),
    "Upsample": (
        one(1, "Upsample", height_scale=2.0, width_scale=3.0),
        one(9, "Upsample", {"s": np.array([1, 1, 2, 3], np.float32)}),
    ),
    "Upsample, linear": (
        one(1, "Upsample", height_scale=2.0, width_scale=2.0, mode="bilinear"),
        one(9, "Upsample", {"s": np.array([1, 1, 2, 2], np.float32)}, mode="linear"),
    ),
    "BatchNormalization": (
        one(6, "BatchNormalization", PER_CHANNEL, is_test=1),
        one(13, "BatchNormalization", PER_CHANNEL),
    ),
    "Gemm": (
        one(6, "Gemm", {"w": floats(5, 3), "c": floats(3)}, shape=(2, 5), broadcast=1),
        one(13, "Gemm", {"w": floats(5, 3), "c": floats(3)}, shape=(2, 5)),
    ),
    "LSTM": (lstm(6), lstm(13)),
}
"""Models that onnxruntime does not run, and what they are in an opset that it runs."""


@pytest.mark.parametrize("name", OLDER)
def test_older_nodes_are_those_of_a_present_model(name: str) -> None:
    old, present = OLDER[name]
    expected, found = agrees(present), load(old)
    given = {info.name: drawn(expected)[info.name].reshape(info.shape) for info in found.inputs}
    assert [layer.type for layer in found.layers] == [layer.type for layer in expected.layers]
    assert_array_equal(found.run(given)[0], expected.run(drawn(expected))[0])


def test_every_change_is_tested() -> None:
    tested = {each.graph.node[0].op_type for each in (*RUN.values(), *(old for old, _ in OLDER.values()))}
    alike = {"And", "Equal", "Greater", "Less", "Or", "Pow", "Xor"}  # which broadcast as Add does
    assert tested >= {op for op in CHANGES if op in OPERATORS} - alike


def test_constants_broadcast_along_the_named_axis() -> None:
    """Both are constant: the sum is computed when the model is read."""
    nodes = [node("Add", "a b", "c", broadcast=1, axis=0), node("Mul", "x c", "y")]
    constants = {"a": floats(4, 4), "b": floats(4)}
    found = load(model(nodes, {"x": ("float32", [4, 4])}, ["y"], constants, opset=6))
    assert_array_equal(found.run([np.ones((4, 4), np.float32)])[0], constants["a"] + constants["b"][:, np.newaxis])


def test_the_network_notes_what_was_rewritten() -> None:
    nodes = [node("Clip", "x", "a", min=0.0, max=0.5), node("Clip", "a", "b", min=0.1), node("Softmax", "b", "c"),
             node("Relu", "c", "y")]  # fmt: skip
    old = load(model(nodes, IMAGE, opset=10))
    note = "opset 10: 2 Clip, 1 Softmax of a form older than that of opset 13, read with its old meaning"
    assert old.notes == (note,)
    inspection, stream = ferrule.inspect(old), io.StringIO()
    print_report(inspection, Console(file=stream, width=140))
    assert inspection.notes == (note,)
    assert note in stream.getvalue()
    assert not load(model([node("Relu", "x", "y")], IMAGE, opset=10)).notes
    assert not load(model([node("Softmax", "x", "y")], IMAGE, opset=13)).notes


def test_inner_graphs_are_rewritten_too() -> None:
    from onnx import TensorProto, helper

    def branch(limit: float) -> Any:  # noqa: ANN401
        result = helper.make_tensor_value_info("inner", TensorProto.FLOAT, [1, 4, 6, 5])
        return helper.make_graph([node("Clip", "x", "inner", max=limit)], "branch", [], [result])

    nodes = [node("If", "c", "y", then_branch=branch(0.1), else_branch=branch(-0.2))]
    found = agrees(model(nodes, {**IMAGE, "c": ("bool", [])}, opset=10))
    assert found.notes[0].startswith("opset 10: 2 Clip")


def test_a_model_without_operator_sets_has_the_first_one() -> None:
    made = model([node("Pad", "x", "y", paddings=[0, 0, 1, 0, 0, 0, 1, 2])], IMAGE, opset=1)
    del made.opset_import[:]
    made.ir_version = 2
    assert load(made).notes[0].startswith("opset 1: 1 Pad")
    made.ir_version = 3
    with pytest.raises(ModelError, match="imports no operator set"):
        load(made)


def test_initialisers_need_not_be_inputs_in_old_files() -> None:
    made = one(9, "Add", {"b": floats(4, 1, 1)})
    made.ir_version = 3
    assert [info.name for info in load(made).inputs] == ["x"]


def test_new_constants_have_names_of_their_own() -> None:
    nodes = [node("Clip", "x", "y", max=0.5), node("Clip", "x", "y_max", max=0.25)]
    found = load(model(nodes, IMAGE, ["y", "y_max"], opset=10))
    first, second = found.run([np.full((1, 4, 6, 5), 2, np.float32)])
    assert (first.max(), second.max()) == (0.5, 0.25)


@pytest.mark.parametrize(
    ("made", "error", "message"),
    [
        (one(5, "Cast", to="quaternion"), ModelError, "attribute 'to' is 'quaternion', expected one of FLOAT32"),
        (one(5, "Cast", to=1), ModelError, "attribute 'to' is 1, expected a text"),
        (one(10, "Pad"), ModelError, "attribute 'paddings' is absent"),
        (one(10, "Clip", max="x"), ModelError, "attribute 'max' is 'x', expected a finite number"),
        (one(9, "Slice", starts=[1.5], ends=[2]), ModelError, "attribute 'starts' is a value of type tuple"),
        (one(9, "Slice", starts=[1]), ModelError, "attribute 'ends' is absent"),
        (one(4, "Reshape"), ModelError, "attribute 'shape' is absent"),
        (one(12, "Unsqueeze"), ModelError, "attribute 'axes' is absent"),
        (one(9, "Upsample"), ModelError, "attribute 'height_scale' is absent"),
        (one(9, "Upsample", {"s": floats(4), "t": floats(4)}), ModelError, "it has 3 inputs, expected 1 or 2"),
        (one(9, "Upsample", {"s": floats(4)}, mode="cubic"), UnsupportedError, "'mode' is 'cubic'"),
        (one(6, "Add", {"b": floats(4)}, broadcast=1, axis=4), ModelError, "attribute 'axis' is 4, and its inputs"),
        (one(6, "Add", {"b": floats(4)}, broadcast=1, axis=-5), ModelError, "attribute 'axis' is -5, and its inputs"),
        (one(8, "BatchNormalization", PER_CHANNEL, spatial=0), UnsupportedError, "'spatial' is 0, expected 1"),
    ],
)
def test_what_old_nodes_cannot_be_is_refused(made: Any, error: type[FerruleError], message: str) -> None:  # noqa: ANN401
    with pytest.raises(error, match=message):
        load(made)
