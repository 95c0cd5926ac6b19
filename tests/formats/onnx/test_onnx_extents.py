# SPDX-License-Identifier: Apache-2.0
"""Inputs whose extents the file leaves open, and nodes in another order than that of their results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from onnx_models import load, model, node
from oracle import onnxruntime_outputs
from small_networks import dense

from ferrule import formats
from ferrule.errors import FerruleError, ModelError, UnsupportedError

OPEN = {"x": ("float32", ["N", 4, "H", "W"])}


def pooled() -> Any:  # noqa: ANN401
    return model([node("MaxPool", "x", "y", kernel_shape=[2, 2])], OPEN)


def test_a_given_shape_replaces_open_extents() -> None:
    with pytest.raises(UnsupportedError, match="the extent of its axis 2 is 'H'") as caught:
        load(pooled())
    assert "shapes={" in str(caught.value.hint)
    network = formats.load(pooled().SerializeToString(), shapes={"x": (2, 4, 6, 5)})
    assert network.notes == ("input 'x': [N, 4, H, W] in the file, read as [2, 4, 6, 5]",)
    x = np.random.default_rng(0).normal(size=(2, 4, 6, 5)).astype(np.float32)
    assert_allclose(network.run([x])[0], onnxruntime_outputs(pooled(), {"x": x})[0], rtol=0)


def test_a_name_has_one_number_in_all_inputs() -> None:
    inputs = {"x": ("float32", ["N", "length"]), "z": ("float32", ["N", "length"])}
    made = model([node("Add", "x z", "y")], inputs).SerializeToString()
    network = formats.load(made, shapes={"z": [3, 7]})
    assert [info.shape for info in network.inputs] == [(3, 7), (3, 7)]
    assert len(network.notes) == 2
    with pytest.raises(FerruleError, match="the extent 'length' is 7 in 'x' and 8 in 'z'"):
        formats.load(made, shapes={"x": [3, 7], "z": [3, 8]})


def test_extents_without_a_name_are_each_their_own() -> None:
    inputs = {"x": ("float32", ["?", 2]), "z": ("float32", [1, "?"])}
    made = model([node("Add", "x z", "y")], inputs).SerializeToString()
    assert formats.load(made, shapes={"x": [5, 2], "z": [1, 2]}).outputs[0].shape == (5, 2)


def test_an_input_may_state_no_axes() -> None:
    made = model([node("Relu", "x", "y")], {"x": ("float32", [1])})
    made.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(UnsupportedError, match="number of axes is not known"):
        load(made)
    network = formats.load(made.SerializeToString(), shapes={"x": [2, 3]})
    assert network.notes == ("input 'x': no shape in the file, read as [2, 3]",)


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ({"image": [1, 4, 6, 5]}, "input 'image'"),
        ({"x": [1, 4, 6]}, r"input 'x' is given as \[1, 4, 6\], and the file states \[N, 4, H, W\]"),
        ({"x": [1, 3, 6, 5]}, r"input 'x' is given as \[1, 3, 6, 5\]"),
        ({"x": [1, 4, 0, 5]}, "input 'x' is .*expected integers of 1 or more"),
        ({"x": [True, 4, 6, 5]}, "expected integers of 1 or more"),
        ({"x": "1,4,6,5"}, "expected integers of 1 or more"),
        ({"x": [1 << 20, 4, 1 << 20, 1]}, "expected at most"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(shapes: Any, words: str) -> None:  # noqa: ANN401
    with pytest.raises(FerruleError, match=words):
        formats.load(pooled().SerializeToString(), shapes=shapes)


def test_initialisers_have_their_shapes() -> None:
    made = model([node("Add", "x b", "y")], {"x": ("float32", [2]), "b": ("float32", [2])}, ["y"], {"b": np.ones(2)})
    with pytest.raises(FerruleError, match="input 'b'"):
        formats.load(made.SerializeToString(), shapes={"b": [2]})


def test_other_formats_have_no_open_extents() -> None:
    with pytest.raises(FerruleError, match="a TensorFlow Lite model states them all"):
        formats.load(formats.to_tflite(dense()), shapes={"x": [1, 6]})


def test_nodes_may_stand_before_those_whose_results_they_read() -> None:
    nodes = [node("Relu", "b", "y"), node("Neg", "a", "b"), node("Abs", "x", "a"), node("Exp", "y", "z")]
    network = load(model(nodes, {"x": ("float32", [3])}, ["y", "z"]))
    x = np.array([1, -2, 3], np.float32)
    assert [layer.type for layer in network.layers] == ["ABS", "NEG", "RELU", "EXP"]
    assert_allclose(network.run([x])[0], np.zeros(3))
    assert network.notes == ("2 of 4 nodes stand before one whose result they read: read in another order",)
    assert not load(model([*nodes[2:0:-1], nodes[0], nodes[3]], {"x": ("float32", [3])}, ["y", "z"])).notes


def test_nodes_that_read_each_other_are_refused() -> None:
    nodes = [node("Add", "x b", "a"), node("Neg", "a", "b"), node("Relu", "c", "y"), node("Abs", "x", "c")]
    with pytest.raises(ModelError, match=r"'Add_a'.*tensor 'b' is read before anything writes it"):
        load(model(nodes, {"x": ("float32", [3])}))


def test_inner_graphs_are_put_in_order_too() -> None:
    from onnx import TensorProto, helper

    result = helper.make_tensor_value_info("inner", TensorProto.FLOAT, [3])
    branch = helper.make_graph([node("Neg", "a", "inner"), node("Relu", "x", "a")], "branch", [], [result])
    chosen = node("If", "c", "y", then_branch=branch, else_branch=branch)
    network = load(model([chosen], {"x": ("float32", [3]), "c": ("bool", [])}))
    assert_allclose(network.run([np.array([1, -2, 3], np.float32), np.array(True)])[0], [-1, 0, -3])
