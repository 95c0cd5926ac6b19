# SPDX-License-Identifier: Apache-2.0
"""Tensors that are computed when a file is read, because they depend on constants and shapes only."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from compare import graph_differences
from computed_parameters import Step, int32s, model_of, reshape_to_a_computed_shape
from flatbuffer_tree import table
from numpy.testing import assert_array_equal

from ferrule import formats
from ferrule.budget import limits
from ferrule.errors import BudgetError, ModelError, UnsupportedError
from ferrule.formats import to_tflite
from ferrule.graph import LayerType
from ferrule.testing.backends.comparison import random_inputs


def test_a_parameter_may_be_computed_from_a_shape() -> None:
    data = reshape_to_a_computed_shape()
    network = formats.load(data)
    assert [layer.type for layer in network.layers] == [LayerType.RESHAPE]
    assert [info.name for info in (tensor.info for tensor in network.tensors)] == ["x", "y"]
    inputs = random_inputs(network)
    assert_array_equal(network.run(inputs)[0], oracle.tflm(data, inputs)[0])
    assert graph_differences(network, formats.load(to_tflite(network), name=network.name)) == []


def test_what_a_layer_reads_is_a_layer_and_what_nothing_reads_is_dropped() -> None:
    values = np.array([[-1, 2]], np.float32)
    tensors = {"x": (1, 2), "c": values, "d": (1, 2), "e": (2,), "unread": (1, 2), "y": (1, 2)}
    steps: list[Step] = [
        ("RELU", ["c"], ["d"], None),
        ("SQUEEZE", ["d"], ["e"], None),
        ("NEG", ["d"], ["unread"], None),
        ("MAXIMUM", ["x", "e"], ["y"], None),
    ]
    network = formats.load(model_of(tensors, steps))
    assert [layer.name for layer in network.layers] == ["relu_0", "squeeze_1", "maximum_3"]
    x = np.array([[1, 1]], np.float32)
    assert_array_equal(network.run([x])[0], np.array([[1, 2]], np.float32))


def test_a_shape_that_a_layer_reads_is_a_constant() -> None:
    tensors = {"x": ((4,), "INT32"), "s": ((1,), "INT32"), "y": ((4,), "INT32")}
    data = model_of(tensors, [("SHAPE", ["x"], ["s"], None), ("MAXIMUM", ["x", "s"], ["y"], None)])
    network = formats.load(data)
    assert [layer.type for layer in network.layers] == [LayerType.MAXIMUM]
    inputs = random_inputs(network)
    assert_array_equal(network.run(inputs)[0], oracle.tflm(data, inputs)[0])


def test_the_output_gives_the_shape_of_a_transposed_convolution_if_the_parameter_is_an_input() -> None:
    weights = np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2)
    tensors = {"x": (1, 2, 2, 2), "shape": ((4,), "INT32"), "w": weights, "y": (1, 4, 4, 1)}
    options = table("TransposeConvOptions", Padding=0, StrideW=2, StrideH=2)
    data = model_of(tensors, [("TRANSPOSE_CONV", ["shape", "w", "x"], ["y"], options)], inputs="x shape")
    network = formats.load(data)
    inputs = [np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2), int32s(0, 0, 0, 0)]
    assert_array_equal(network.run(inputs)[0], oracle.tflm(data, inputs)[0])
    assert graph_differences(network, formats.load(to_tflite(network), name=network.name)) == []


@pytest.mark.parametrize(
    ("first", "second", "wanted"), [((2, 1), (3,), (2, 3)), ((1,), (2, 1, 3), (2, 1, 3)), ((6,), (1,), (6,))]
)
def test_shapes_broadcast(first: tuple[int, ...], second: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    tensors = {"x": (6,), "a": int32s(*first), "b": int32s(*second), "s": ((len(wanted),), "INT32"), "y": wanted}
    data = model_of(tensors, [("BROADCAST_ARGS", ["a", "b"], ["s"], None), ("RESHAPE", ["x", "s"], ["y"], None)])
    assert formats.load(data).outputs[0].shape == wanted


def test_shapes_that_do_not_broadcast_or_are_not_known() -> None:
    tensors = {"x": (6,), "a": int32s(2), "b": int32s(3), "s": ((1,), "INT32"), "y": (6,)}
    steps: list[Step] = [("BROADCAST_ARGS", ["a", "b"], ["s"], None), ("RESHAPE", ["x", "s"], ["y"], None)]
    with pytest.raises(ModelError, match=r"the shapes \[2\] and \[3\] do not broadcast"):
        formats.load(model_of(tensors, steps))
    with pytest.raises(UnsupportedError, match=r"operator 0 BROADCAST_ARGS .*computed at run time"):
        formats.load(model_of(tensors | {"a": ((1,), "INT32")}, steps, inputs="a"))


def test_a_computed_shape_has_the_type_and_extents_of_its_tensor() -> None:
    tensors = {"x": (2, 3), "s": ((3,), "INT32"), "y": (3, 2)}
    with pytest.raises(ModelError, match=r"tensor 's' is int32\[3\], but operator 0 SHAPE computes int32\[2\]"):
        formats.load(model_of(tensors, [("SHAPE", ["x"], ["s"], None), ("RESHAPE", ["x", "s"], ["y"], None)]))


def test_a_computed_index_may_have_64_bits() -> None:
    rows = np.eye(4, dtype=np.float32)[[3, 2]]
    tensors = {"x": (2, 3), "rows": rows, "axis": int32s(1), "s": ((2,), "INT64"), "y": (3, 2)}
    found = ("ARG_MAX", ["rows", "axis"], ["s"], table("ArgMaxOptions", OutputType=4))
    data = model_of(tensors, [found, ("RESHAPE", ["x", "s"], ["y"], None)])
    assert formats.load(data).outputs[0].shape == (3, 2)


def test_a_long_chain_is_computed_without_recursion() -> None:
    count = 3000
    tensors = {"x": (2, 3), "n0": int32s(3, 2)} | {f"n{i}": ((2,), "INT32") for i in range(1, count)} | {"y": (3, 2)}
    steps: list[Step] = [("SQUEEZE", [f"n{i - 1}"], [f"n{i}"], None) for i in range(1, count)]
    network = formats.load(model_of(tensors, [*steps, ("RESHAPE", ["x", f"n{count - 1}"], ["y"], None)]))
    assert len(network.layers) == 1


def test_computed_constants_are_limited() -> None:
    """Each operator doubles its input, as a small file may claim to need gigabytes."""
    doublings = 26
    tensors = {"x": (2,), "n0": int32s(1, 2)} | {f"n{i}": ((2 << i,), "INT32") for i in range(1, doublings)}
    options = table("ConcatenationOptions", Axis=0)
    steps: list[Step] = [("CONCATENATION", [f"n{i - 1}"] * 2, [f"n{i}"], options) for i in range(1, doublings)]
    last = ("RESHAPE", ["x", f"n{doublings - 1}"], ["y"], None)
    text = r"computing the constants up to operator \d+ CONCATENATION takes .* and the limit is 1,048,576"
    with limits(elements=1 << 20), pytest.raises(BudgetError, match=text):
        formats.load(model_of(tensors | {"y": (2,)}, [*steps, last]))
