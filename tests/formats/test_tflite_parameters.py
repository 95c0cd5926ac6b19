# SPDX-License-Identifier: Apache-2.0
"""Parameters in forms that files have and networks do not: the reader's networks compute what the file does."""

from __future__ import annotations

import numpy as np
import pytest
from flatbuffer_tree import Table, one_operator_model, table, tensor, write
from oracle import tflm

from ferrule import formats
from ferrule.graph import Array


def assert_same_as_tflm(model: Table, inputs: list[Array]) -> None:
    """Compare the outputs of a file's network with the wheel's."""
    data = write(model)
    got = formats.load(data).run(inputs)
    for one, wanted in zip(got, tflm(data, inputs), strict=True):
        np.testing.assert_array_equal(one, wanted)


@pytest.mark.parametrize("shape", ["computed", "empty"])
def test_transpose_conv_takes_the_shape_of_its_output(shape: str) -> None:
    """The integration tests of TensorFlow Lite Micro have the shape as an input, which its kernel does not read."""
    size = tensor("shape", (4,) if shape == "computed" else (0,), "INT32")
    tensors = [size, tensor("w", (1, 3, 3, 2), buffer=1), tensor("x", (1, 2, 3, 2)), tensor("y", (1, 4, 6, 1))]
    options = table("TransposeConvOptions", Padding=0, StrideW=2, StrideH=2)
    weights = np.arange(18, dtype="<f4").tobytes()
    inputs = [0, 2] if shape == "computed" else [2]
    model = one_operator_model(
        "TRANSPOSE_CONV", tensors, [0, 1, 2], [3], options, graph_inputs=inputs, buffers=(weights,)
    )
    image = np.arange(12, dtype=np.float32).reshape(1, 2, 3, 2)
    assert_same_as_tflm(model, [np.array([1, 4, 6, 1], np.int32), image] if shape == "computed" else [image])


def test_sides_may_be_a_vector() -> None:
    """A test of TensorFlow Lite Micro has them; its kernel reads the elements in their order."""
    tensors = [
        tensor("x", (4, 2, 2, 1)),
        tensor("block", (2,), "INT32", buffer=1),
        tensor("crops", (4,), "INT32", buffer=2),
        tensor("y", (1, 3, 4, 1)),
    ]
    buffers = tuple(np.array(each, "<i4").tobytes() for each in ([2, 2], [1, 0, 0, 0]))
    model = one_operator_model("BATCH_TO_SPACE_ND", tensors, [0, 1, 2], [3], graph_inputs=[0], buffers=buffers)
    assert_same_as_tflm(model, [np.arange(16, dtype=np.float32).reshape(4, 2, 2, 1)])


def test_a_shape_of_0_is_that_of_a_scalar() -> None:
    tensors = [tensor("x", (1,)), tensor("shape", (1,), "INT32", buffer=1), tensor("y", ())]
    buffers = (np.array([0], "<i4").tobytes(),)
    model = one_operator_model("RESHAPE", tensors, [0, 1], [2], graph_inputs=[0], buffers=buffers)
    assert_same_as_tflm(model, [np.array([3], np.float32)])
