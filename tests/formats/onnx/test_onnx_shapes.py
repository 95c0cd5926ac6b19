# SPDX-License-Identifier: Apache-2.0
"""Shapes that an ONNX file declares, compared with those that its nodes make; and extents that SAME leaves open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx_models import agrees, load, model, node

from ferrule.errors import FerruleError, ModelError, UnsupportedError

IMAGE = {"x": ("float32", [1, 2, 6, 5])}


def declared(made: Any, name: str, shape: Sequence[int | str | None]) -> Any:  # noqa: ANN401
    """Return a model that states a shape of a tensor, which may be an output."""
    from onnx import TensorProto, helper

    info = helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    for output in made.graph.output:
        if output.name == name:
            output.CopyFrom(info)
            return made
    made.graph.value_info.append(info)
    return made


def two_nodes() -> Any:  # noqa: ANN401
    return model([node("Relu", "x", "a"), node("Transpose", "a", "y", perm=[0, 2, 3, 1])], IMAGE)


@pytest.mark.parametrize(
    ("name", "shape", "where"),
    [
        ("y", [1, 6, 5, 3], "node 1 'Transpose_y' Transpose -> tensor 'y': its shape is [1, 6, 5, 2]"),
        ("y", [1, 6, 10], "the file states [1, 6, 10]"),
        ("y", [], "the file states []"),
        ("y", ["N", 6, 5, 1], "the file states [N, 6, 5, 1]"),
        ("y", [0, 6, 5, 2], "the file states [0, 6, 5, 2]"),
        ("a", [1, 2, 5, 6], "node 0 'Relu_a' Relu -> tensor 'a': its shape is [1, 2, 6, 5]"),
    ],
)
def test_a_shape_that_contradicts_its_node_is_refused(name: str, shape: Sequence[int | str], where: str) -> None:
    with pytest.raises(ModelError) as caught:
        load(declared(two_nodes(), name, shape))
    assert where in str(caught.value)
    assert "infer_shapes" in str(caught.value.hint)


@pytest.mark.parametrize("shape", [[1, 6, 5, 2], ["N", "h", "w", 2], [None, 6, 5, 2], [-1, 6, -1, 2]])
def test_a_shape_that_fits_is_read(shape: Sequence[int | str | None]) -> None:
    assert load(declared(two_nodes(), "y", shape)).outputs[0].shape == (1, 6, 5, 2)


def test_several_contradictions_are_listed_together() -> None:
    with pytest.raises(ModelError, match="2 nodes cannot be used") as caught:
        load(declared(declared(two_nodes(), "a", [7]), "y", [8]))
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize("name", ["q", "d", "r", "c", "p", "i"])
def test_shapes_of_tensors_that_become_part_of_a_layer_are_compared(name: str) -> None:
    """The float32 tensors round an operator between conversions, and those of Identity, are in no network."""
    from onnx import TensorProto, helper

    nodes = [
        node("QuantizeLinear", "x s z", "q"),
        node("DequantizeLinear", "q s z", "d"),
        node("Identity", "d", "i"),
        node("AveragePool", "i", "r", kernel_shape=[2, 2]),
        node("Relu", "r", "c"),
        node("QuantizeLinear", "c s z", "p"),
        node("DequantizeLinear", "p s z", "y"),
    ]
    made = model(nodes, IMAGE, ["y"], {"s": np.float32(0.1), "z": np.int8(3)})
    kind = TensorProto.INT8 if name in {"q", "p"} else TensorProto.FLOAT
    right = [1, 2, 6, 5] if name in {"q", "d", "i"} else [1, 2, 5, 4]
    made.graph.value_info.append(helper.make_tensor_value_info(name, kind, right))
    load(made)
    made.graph.value_info[0].type.tensor_type.shape.dim[3].dim_value += 1
    with pytest.raises(ModelError, match=rf"tensor '{name}'.*the file states \[1, 2, "):
        load(made)


def test_shapes_inside_of_a_graph_that_always_runs_are_compared() -> None:
    from onnx import TensorProto, helper

    def branch(extent: int) -> Any:  # noqa: ANN401
        result = helper.make_tensor_value_info("inner", TensorProto.FLOAT, [1, 2, 6, extent])
        return helper.make_graph([node("Relu", "x", "inner")], "branch", [], [result])

    def made(extent: int) -> Any:  # noqa: ANN401
        chosen = node("If", "c", "y", then_branch=branch(extent), else_branch=branch(5))
        return model([chosen], IMAGE, ["y"], {"c": np.array(True)})

    assert load(made(5)).outputs[0].shape == (1, 2, 6, 5)
    with pytest.raises(ModelError, match=r"tensor 'If_y/inner'.*states \[1, 2, 6, 4\]"):
        load(made(4))


@pytest.mark.parametrize("shape", [[0, 3], [3, 0], [1, 0, 0]])
@pytest.mark.parametrize("operator", ["Relu", "Reshape"])
def test_an_extent_of_0_is_not_1(shape: Sequence[int], operator: str) -> None:
    nodes = [node("Relu", "x", "y") if operator == "Relu" else node("Reshape", "x s", "y", allowzero=1)]
    made = model(nodes, {"x": ("float32", shape)}, ["y"], {"s": [3, 0]})
    with pytest.raises(UnsupportedError, match=rf"graph input 'x': the extent of its axis {shape.index(0)} is 0"):
        load(made)


def test_more_axes_than_networks_have_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="has 33 axes, expected at most 8"):
        load(model([node("Expand", "x s", "y")], IMAGE, ["y"], {"s": [1] * 33}))


def test_without_axes_squeeze_removes_those_of_extent_1() -> None:
    assert load(model([node("Squeeze", "x", "y")], {"x": ("float32", [1, 2, 1, 5])})).outputs[0].shape == (2, 5)


def test_a_shape_of_0_is_refused_where_nothing_is_empty() -> None:
    with pytest.raises(ModelError, match=r"its shape \[6, 0\] does not fit \[2, 3\]"):
        load(model([node("Reshape", "x s", "y", allowzero=1)], {"x": ("float32", [2, 3])}, ["y"], {"s": [6, 0]}))


@pytest.mark.parametrize("auto", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize(("stride", "extra"), [(1, 0), (2, 0), (2, 1), (3, 0), (3, 1), (4, 2)])
@pytest.mark.parametrize("kernel", [1, 2, 3])
def test_transposed_convolutions_equal_onnxruntime(auto: str, stride: int, kernel: int, extra: int) -> None:
    """With a window below its stride, the extent is what the windows reach, not the input's times the stride."""
    constants = {"w": np.random.default_rng(0).normal(size=(2, 3, kernel, kernel)).astype(np.float32)}
    attributes = {"auto_pad": auto, "strides": [stride, stride], "output_padding": [extra, extra]}
    made = model([node("ConvTranspose", "x w", "y", **attributes)], IMAGE, ["y"], constants)
    shape = agrees(made).outputs[0].shape
    assert shape[2:] == tuple(min(each * stride, (each - 1) * stride + kernel + extra) for each in (6, 5))
    with pytest.raises(ModelError, match="the file states"):
        load(declared(made, "y", [1, 3, shape[2] + 1, shape[3]]))


@pytest.mark.parametrize("size", [17, 18, 19, 20, 21])
def test_an_output_shape_beyond_the_last_window_is_refused(size: int) -> None:
    constants = {"w": np.ones((2, 3, 2, 2), np.float32)}  # 6 windows of 2, every 3, end at 17
    made = model([node("ConvTranspose", "x w", "y", strides=[3, 3], output_shape=[size, 14])], IMAGE, ["y"], constants)
    if size < 20:
        agrees(made)
    else:
        with pytest.raises(ModelError, match=rf"'output_shape' is {size} along spatial axis 0, expected less than 20"):
            load(made)


@pytest.mark.parametrize("auto", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("operator", ["Conv", "AveragePool", "MaxPool"])
@pytest.mark.parametrize(("kernel", "stride"), [(1, 2), (1, 3), (2, 3), (1, 4), (3, 2)])
def test_same_with_windows_below_their_stride_equals_onnxruntime_or_is_refused(
    auto: str, operator: str, kernel: int, stride: int
) -> None:
    attributes: dict[str, Any] = {"auto_pad": auto, "strides": [stride, stride]}
    names = "x w" if operator == "Conv" else "x"
    if operator != "Conv":
        attributes["kernel_shape"] = [kernel, kernel]
    constants = {"w": np.ones((3, 2, kernel, kernel), np.float32)}
    made = model([node(operator, names, "y", **attributes)], IMAGE, ["y"], constants if operator == "Conv" else {})
    left_out = max(each - (-(-each // stride) - 1) * stride - kernel for each in (6, 5))
    if operator != "Conv" and left_out > 1:
        with pytest.raises(UnsupportedError, match=f"leave out {left_out} of") as caught:
            load(made)
        assert "'pads'" in str(caught.value.hint)
    elif operator == "MaxPool" and left_out > 0:  # which onnxruntime does not run
        assert load(made).outputs[0].shape == (1, 2, *(-(-each // stride) for each in (6, 5)))
    else:
        agrees(made)


def test_a_refused_node_adds_no_contradiction() -> None:
    made = declared(model([node("Foo", "x", "a"), node("Relu", "a", "y")], IMAGE), "a", [7, 7])
    with pytest.raises(FerruleError) as caught:
        load(declared(made, "y", [8]))
    assert "the file states" not in str(caught.value)
