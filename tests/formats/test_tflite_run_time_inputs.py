# SPDX-License-Identifier: Apache-2.0
"""Operators whose indices, begins, conditions and weights are computed at run time, against other interpreters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from flatbuffer_tree import Table, quantization, table, tensor
from numpy.testing import assert_array_equal
from oracle import litert_reference, tflm
from run_time_models import (
    append,
    arg_select,
    constant,
    fully_connected,
    gather,
    operator_model,
    select,
    slice_from_int64,
    strided,
    transpose,
    write,
)

from ferrule import formats
from ferrule.errors import FerruleError, ModelError, UnsupportedError
from ferrule.formats import to_tflite
from ferrule.graph import Array, LayerType

GENERATOR = np.random.default_rng(5)


def types_of(model: bytes) -> list[LayerType]:
    return [layer.type for layer in formats.load(model).layers]


def check(model: Table, inputs: Sequence[Array], oracle: Callable[..., list[Array]] = litert_reference) -> bytes:
    """Check the outputs of a model, read and written again, against an oracle; return its bytes."""
    data = write(model)
    network = formats.load(data)
    wanted = oracle(data, inputs)
    for found in (network.run(inputs), formats.load(to_tflite(network)).run(inputs)):
        for one, other in zip(found, wanted, strict=True):
            assert one.dtype == other.dtype
            assert_array_equal(one, other)
    return data


def refusal(model: Table) -> FerruleError:
    with pytest.raises((UnsupportedError, ModelError)) as caught:
        formats.load(write(model))
    return caught.value


def of_type(dtype: str, shape: tuple[int, ...]) -> Array:
    if dtype == "FLOAT32":
        return GENERATOR.normal(0, 1, shape).astype(np.float32)
    if dtype == "BOOL":
        return GENERATOR.integers(0, 2, shape).astype(np.bool_)
    return GENERATOR.integers(-100, 100, shape).astype(dtype.lower())


# ARG_MAX and ARG_MIN to int64


@pytest.mark.parametrize("type_", ["ARG_MAX", "ARG_MIN"])
@pytest.mark.parametrize("dtype", ["INT8", "FLOAT32"])
def test_an_index_becomes_int64(type_: str, dtype: str) -> None:
    data = check(arg_select(type_, dtype), [of_type(dtype, (2, 3, 4))])
    assert types_of(data) == [LayerType[type_], LayerType.CAST]


# Indices of int64


@pytest.mark.parametrize("dtype", ["INT8", "INT16", "FLOAT32", "BOOL", "UINT8"])
def test_gather_takes_indices_of_int64(dtype: str) -> None:
    data = check(gather(dtype=dtype), [np.abs(of_type(dtype, (5, 3))), np.array([4, 0, 3, 3], np.int64)])
    assert types_of(data) == [LayerType.CAST, LayerType.GATHER]


def test_gather_nd_takes_indices_of_int64() -> None:
    tensors = [tensor("x", (5, 3)), tensor("i", (4, 2), "INT64"), tensor("y", (4,))]
    model = operator_model("GATHER_ND", tensors, [0, 1], [2], table("GatherNdOptions"))
    check(model, [of_type("FLOAT32", (5, 3)), np.array([[4, 0], [0, 2], [3, 1], [3, 1]], np.int64)])


def test_slice_takes_a_begin_of_int64() -> None:
    check(slice_from_int64(), [of_type("FLOAT32", (5, 3)), np.array([3, 1], np.int64)])


def test_constant_indices_of_int64_become_constants() -> None:
    tensors = [tensor("x", (5, 3)), constant("i", np.array([4, 0, 3], np.int64)), tensor("y", (3, 3))]
    model = operator_model("GATHER", tensors, [0, 1], [2], table("GatherOptions", Axis=0))
    assert types_of(check(model, [of_type("FLOAT32", (5, 3))])) == [LayerType.GATHER]


def test_a_gather_of_constants_is_computed() -> None:
    """Both as the data of a layer and as a parameter, for which the reader computes it."""
    tensors = [
        tensor("x", (2, 3)),
        constant("sizes", np.array([7, 3, 2], np.int32)),
        constant("i", np.array([1, 2], np.int64)),
        tensor("shape", (2,), "INT32"),
        tensor("y", (3, 2)),
    ]
    model = operator_model("GATHER", tensors, [1, 2], [3], table("GatherOptions", Axis=0))
    graph = model["Subgraphs"][0]
    graph["Inputs"], graph["Outputs"] = np.array([0], np.int32), np.array([4, 3], np.int32)
    append(model, "RESHAPE", [0, 3], [4])
    check(model, [of_type("FLOAT32", (2, 3))])


def test_other_types_of_indices_stay_refused() -> None:
    assert "the indices 'i' are int16, expected int32" in str(refusal(gather("INT16")))


# SELECT


@pytest.mark.parametrize("dtype", ["INT8", "INT16", "INT32", "INT64", "FLOAT32", "BOOL", "UINT8"])
@pytest.mark.parametrize(
    ("condition", "shape"),
    [((3, 3), (3, 3)), ((3,), (3, 3)), ((3,), (3, 2, 2)), ((3,), (3,)), ((), (3, 2)), ((1,), (1, 4))],
)
def test_select_chooses_elements_or_rows(condition: tuple[int, ...], shape: tuple[int, ...], dtype: str) -> None:
    chosen = np.asarray(GENERATOR.integers(0, 2, condition).astype(np.bool_))
    check(select(condition, shape, dtype), [chosen, np.abs(of_type(dtype, shape)), np.abs(of_type(dtype, shape))])


def test_a_select_of_constants_is_computed_by_rows() -> None:
    """The square is the case that would broadcast along the other axis."""
    values = [np.array([True, False, True]), np.arange(9, dtype=np.int32).reshape(3, 3), np.zeros((3, 3), np.int32)]
    tensors = [constant(name, value) for name, value in zip("cab", values, strict=True)]
    tensors += [tensor("s", (3, 3), "INT32"), tensor("x", (3, 3), "INT32"), tensor("y", (3, 3), "INT32")]
    model = operator_model("SELECT", tensors, [0, 1, 2], [3], table("SelectOptions"))
    graph = model["Subgraphs"][0]
    append(model, "ADD", [3, 4], [5], table("AddOptions"))
    graph["Inputs"], graph["Outputs"] = np.array([4], np.int32), np.array([5], np.int32)
    zeros = np.zeros((3, 3), np.int32)
    assert formats.load(write(model)).run([zeros])[0].tolist() == [[0, 1, 2], [0, 0, 0], [6, 7, 8]]
    check(model, [zeros])


@pytest.mark.parametrize(
    ("condition", "shape", "other", "part"),
    [
        ((2,), (3, 2), (3, 2), "the condition 'c' has shape [2], expected that of 'a'"),
        ((1, 2), (3, 2), (3, 2), "the condition 'c' has shape [1, 2]"),
        ((3, 2), (3, 2), (1, 2), "tensors 'a' and 'b' have shapes [3, 2] and [1, 2], expected the same"),
    ],
)
def test_select_does_not_broadcast(
    condition: tuple[int, ...], shape: tuple[int, ...], other: tuple[int, ...], part: str
) -> None:
    model = select(condition, shape)
    model["Subgraphs"][0]["Tensors"][2] = tensor("b", other)
    assert part in str(refusal(model))


# STRIDED_SLICE


STRIDED = {
    "one row": (strided((5, 3, 4), (3, 4), 1, 1, ShrinkAxisMask=1), [[2], [3]]),
    "the last row": (strided((5, 3, 4), (3, 4), 1, 1, ShrinkAxisMask=1), [[-1], [0]]),
    "far before the first": (strided((5, 3), (3,), 1, 1, ShrinkAxisMask=1), [[-9], [0]]),
    "a constant end": (strided((5, 3, 4), (3, 4), 1, [0], ShrinkAxisMask=1), [[4]]),
    "a constant begin": (strided((5, 3, 4), (3, 4), [-2], 1, ShrinkAxisMask=1), [[7]]),
    "one element": (strided((5, 3, 4), (), 3, 3, ShrinkAxisMask=7), [[1, 2, 3], [2, 3, 4]]),
    "one column": (strided((5, 3), (5,), 2, 2, BeginMask=1, EndMask=1, ShrinkAxisMask=2), [[0, 2], [0, 3]]),
    "behind an ellipsis": (strided((5, 3, 4), (5, 3), 2, 2, EllipsisMask=1, ShrinkAxisMask=2), [[0, 1], [0, 2]]),
    "a new axis": (strided((5, 3), (1, 3), 2, 2, NewAxisMask=1, ShrinkAxisMask=2), [[0, 3], [0, 4]]),
    "rows": (strided((5, 3), (2, 3), 1, 1), [[1], [3]]),
    "rows from the end": (strided((5, 3), (2, 3), 1, 1), [[-3], [-1]]),
    "a row and a masked begin": (strided((5, 6), (3,), 2, 2, BeginMask=2, ShrinkAxisMask=1), [[4, 1], [5, 3]]),
    "a masked begin and a constant end": (
        strided((5, 6), (3,), 2, [1, 3], BeginMask=2, ShrinkAxisMask=1),
        [[4, 1]],
    ),
}


@pytest.mark.parametrize("name", STRIDED)
def test_a_strided_slice_begins_where_a_run_says(name: str) -> None:
    model, vectors = STRIDED[name]
    shape = tuple(model["Subgraphs"][0]["Tensors"][0]["Shape"].tolist())
    check(model, [of_type("FLOAT32", shape), *(np.array(vector, np.int32) for vector in vectors)])


def test_a_slice_never_leaves_its_tensor() -> None:
    model = write(strided((5, 3), (2, 3), 1, 1))
    data = of_type("FLOAT32", (5, 3))
    for begin, first in ((4, 3), (100, 3), (-100, 0)):
        vectors = [np.array([begin], np.int32), np.array([begin + 2], np.int32)]
        assert_array_equal(formats.load(model).run([data, *vectors])[0], data[first : first + 2])


@pytest.mark.parametrize(
    ("model", "part"),
    [
        (strided((5, 3), (2, 3), 1, [4]), "the number of elements of axis 0 depends on a begin or an end"),
        (strided((5, 3), (2, 3), 1, [2], Offset=True), "the number of elements of axis 0 depends"),
        (strided((5, 3), (2, 3), 1, 1, EndMask=1), "the number of elements of axis 0 depends"),
        (strided((5, 3), (2, 3), [1], 1), "the number of elements of axis 0 depends"),
        (strided((5, 3), (2, 3), 1, 1, strides=[2]), "axis 0 has the stride 2 in a slice whose range is computed"),
        (strided((5, 3), (3,), 1, 1, strides=[-1], ShrinkAxisMask=1), "axis 0 is removed with a stride of -1"),
        (strided((5, 3), (7, 3), 1, 1), "the number of elements of axis 0 depends"),
        (strided((5, 3), (4,), 1, 1, ShrinkAxisMask=1), "output 'y' has shape [4], expected 3 elements"),
        (strided((5, 3), (3, 1), 1, 1, ShrinkAxisMask=1), "output 'y' has shape [3, 1], expected fewer axes"),
        (strided((5, 3), (3,), [5], 1, ShrinkAxisMask=1), "the index 5 is not on axis 0 of shape [5, 3]"),
        (strided((5, 3), (3,), 1, 2, ShrinkAxisMask=1), "its end 'end' has shape [2], expected 1 elements"),
        (strided((5,), (), 2, 2, ShrinkAxisMask=3), "it selects from 2 axes"),
    ],
)
def test_slices_whose_shape_a_run_decides_are_refused(model: Table, part: str) -> None:
    assert part in str(refusal(model))


def test_a_begin_of_another_type_and_computed_strides_are_refused() -> None:
    model = strided((5, 3), (3,), 1, 1, ShrinkAxisMask=1)
    model["Subgraphs"][0]["Tensors"][1] = tensor("begin", (1,), "INT64")
    assert "its begin 'begin' is int64, expected int32" in str(refusal(model))
    model = strided((5, 3), (3,), 1, 1, ShrinkAxisMask=1)
    model["Subgraphs"][0]["Tensors"][3] = tensor("strides", (1,), "INT32")
    model["Subgraphs"][0]["Inputs"] = np.array([0, 1, 2, 3], np.int32)
    assert "its strides are computed at run time" in str(refusal(model))


def test_a_shape_that_the_file_calls_dynamic_is_not_believed() -> None:
    model = strided((5, 3), (1, 3), 1, 1)
    model["Subgraphs"][0]["Tensors"][4]["ShapeSignature"] = np.array([-1, 3], np.int32)
    assert "the number of elements of axis 0 depends" in str(refusal(model))


# TRANSPOSE of 6 axes


@pytest.mark.parametrize("dtype", ["INT8", "INT16", "INT32", "INT64", "FLOAT32", "BOOL", "UINT8"])
@pytest.mark.parametrize("permutation", [(5, 4, 3, 2, 1, 0), (0, 2, 4, 1, 3, 5), (3, 0, 5, 1, 4, 2)])
def test_a_transpose_of_six_axes(dtype: str, permutation: tuple[int, ...]) -> None:
    check(transpose(permutation, dtype), [np.abs(of_type(dtype, (2, 3, 1, 2, 3, 2)))])


def test_a_transpose_of_seven_axes_is_refused() -> None:
    shape = (1, 2) * 3 + (2,)
    tensors = [tensor("x", shape), constant("p", np.arange(7, dtype=np.int32)), tensor("y", shape)]
    model = operator_model("TRANSPOSE", tensors, [0, 1], [2], table("TransposeOptions"))
    assert "has 7 axes, expected at most 6" in str(refusal(model))


# Weights and biases


@pytest.mark.parametrize(
    "model",
    [
        fully_connected("INT8"),
        fully_connected("INT8", 1),
        fully_connected("INT8", 3, zero_point=5),
        fully_connected("INT8", channels=3),
        fully_connected("INT16"),
    ],
)
def test_weights_from_run_time_give_the_reference_kernels_results(model: Table) -> None:
    dtype = np.int8 if model["Subgraphs"][0]["Tensors"][0]["Type"] == 9 else np.int16
    limits = np.iinfo(dtype)
    inputs = [
        GENERATOR.integers(limits.min, limits.max, (2, 8), endpoint=True).astype(dtype),
        GENERATOR.integers(-128, 127, (3, 8), endpoint=True).astype(np.int8),
    ]
    check(model, inputs, tflm)


def test_the_fill_of_padv2_has_the_quantisation_of_the_output() -> None:
    scales = [quantization([0.1], [5]), quantization([0.1], [5]), quantization([0.2], [0])]
    tensors = [
        tensor("x", (1, 3), "INT8", quantization=scales[0]),
        tensor("y", (1, 5), "INT8", quantization=scales[1]),
        constant("p", np.array([[0, 0], [1, 1]], np.int32)),
        constant("v", np.array([7], np.int8), scales[2]),
    ]
    error = refusal(operator_model("PADV2", tensors, [0, 2, 3], [1], table("PadV2Options")))
    assert "its fill 'v' has another quantisation than its output, expected the same" in str(error)
    assert error.hint == "quantise the fill as the output; TensorFlow Lite's kernels refuse another quantisation, too"
