# SPDX-License-Identifier: Apache-2.0
"""Parameters in forms that files have and networks do not: the reader's networks compute what the file does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compare import assert_arrays_equal
from flatbuffer_tree import Table, one_operator_model, quantization, table, tensor, write
from numpy.testing import assert_array_equal
from oracle import litert_reference, tflm

from ferrule import formats
from ferrule.errors import ModelError, UnsupportedError
from ferrule.graph import Array, LayerType


def assert_same_as_tflm(model: Table, inputs: list[Array]) -> None:
    """Compare the outputs of a file's network with the wheel's."""
    data = write(model)
    got = formats.load(data).run(inputs)
    assert_arrays_equal(got, tflm(data, inputs))


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


def strided_slice(shape: tuple[int, ...], places: tuple[Any, ...], output: tuple[int, ...]) -> bytes:
    """Return a STRIDED_SLICE of float32 with numpy's index."""
    masks = dict.fromkeys(("BeginMask", "EndMask", "EllipsisMask", "NewAxisMask", "ShrinkAxisMask"), 0)
    vectors: list[tuple[int, int, int]] = []
    for index, place in enumerate(places):
        bit = 1 << index
        if isinstance(place, slice):
            masks["BeginMask"] |= bit * (place.start is None)
            masks["EndMask"] |= bit * (place.stop is None)
            vectors.append((place.start or 0, place.stop or 0, place.step or 1))
        elif isinstance(place, int):
            masks["ShrinkAxisMask"] |= bit
            vectors.append((place, place + 1, 1))
        else:
            masks["NewAxisMask" if place is None else "EllipsisMask"] |= bit
            vectors.append((1, 3, 2))
    parameters = [tensor(name, (len(places),), "INT32", buffer) for buffer, name in enumerate("bes", 1)]
    tensors = [tensor("x", shape), *parameters, tensor("y", output)]
    buffers = tuple(np.array(each, "<i4").tobytes() for each in zip(*vectors, strict=True))
    options = table("StridedSliceOptions", **masks)
    return write(
        one_operator_model("STRIDED_SLICE", tensors, range(4), [4], options, graph_inputs=[0], buffers=buffers)
    )


@pytest.mark.parametrize(
    "places",
    [
        (..., slice(0, 2)),
        (1, ..., -1),
        (slice(None, None, -1), ...),
        (None, slice(1, None), ..., None),
        (..., None, 0),
        (None, 1, None, slice(None, None, 2)),
        (slice(0, 2), slice(1, 3), slice(None), slice(None), slice(None, None, -1)),
        (0, ..., None, slice(-3, None), slice(0, 1)),
    ],
)
def test_strided_slice_has_ellipsis_and_new_axes(places: tuple[Any, ...]) -> None:
    """The indices of numpy are those of TensorFlow; LiteRT counts the new axes among its 5, and TFLM ignores both."""
    shape = (2, 3, 1, 2, 4) if len(places) == 5 else (2, 3, 4)
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    wanted = values[places]
    data = strided_slice(shape, places, wanted.shape)
    (got,) = formats.load(data).run([values])
    assert_array_equal(got, wanted)
    if None not in places or len(shape) == 3:
        assert_array_equal(got, litert_reference(data, [values])[0])


@pytest.mark.parametrize(
    ("places", "output", "message"),
    [
        ((..., ..., 1), (2, 3), "with 2 ellipses, expected at most 3 and one ellipsis"),
        ((0, 0, 0, ..., 0), (1,), "it selects from 4 axes"),
        ((None, 0), (3, 1, 4), r"output 'y' has shape \[3, 1, 4\], expected \[1, 3, 4\]"),
    ],
)
def test_strided_slices_that_are_refused(places: tuple[Any, ...], output: tuple[int, ...], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        formats.load(strided_slice((2, 3, 4), places, output))


def test_an_output_may_have_another_shape_with_as_many_elements() -> None:
    """TensorFlow Lite Micro's kernel writes 2 elements, and the tests of it give them this shape."""
    tensors = [tensor("x", (2, 3)), tensor("axes", (1,), "INT32", buffer=1), tensor("y", (1, 2))]
    buffers, options = (np.array([1], "<i4").tobytes(),), table("ReducerOptions", KeepDims=True)
    model = one_operator_model("MEAN", tensors, [0, 1], [2], options, graph_inputs=[0], buffers=buffers)
    assert [layer.type for layer in formats.load(write(model)).layers] == [LayerType.MEAN, LayerType.RESHAPE]
    assert_same_as_tflm(model, [np.arange(6, dtype=np.float32).reshape(2, 3)])
    model["Subgraphs"][0]["Tensors"][2] = tensor("y", (1, 3))
    with pytest.raises(ModelError, match=r"output 'y' has shape \[1, 3\], expected \[2, 1\]"):
        formats.load(write(model))


def embedding(zero_point: int) -> Table:
    """Return an EMBEDDING_LOOKUP of int8 rows that become float32."""
    tensors = [
        tensor("indices", (3,), "INT32"),
        tensor("rows", (4, 2), "INT8", 1, quantization([0.3], [zero_point])),
        tensor("y", (3, 2)),
    ]
    buffers = (np.arange(-4, 4, dtype=np.int8).tobytes(),)
    return one_operator_model("EMBEDDING_LOOKUP", tensors, [0, 1], [2], graph_inputs=[0], buffers=buffers)


def test_an_embedding_of_int8_may_be_float32() -> None:
    assert_same_as_tflm(embedding(0), [np.array([3, 0, 1], np.int32)])
    with pytest.raises(UnsupportedError, match=r"the rows .rows. become float32 and have scale 0\.3, zero point 5"):
        formats.load(write(embedding(5)))
