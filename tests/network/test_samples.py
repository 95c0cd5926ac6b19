# SPDX-License-Identifier: Apache-2.0
"""The inputs of a run: the default pattern, and samples."""

from __future__ import annotations

import numpy as np
import pytest

from ferrule import DataType, TensorInfo
from ferrule.errors import InputError
from ferrule.network.samples import pattern, pattern_sample, random_sample, split


def info(name: str = "x", shape: tuple[int, ...] = (2, 3), dtype: DataType = DataType.INT8) -> TensorInfo:
    return TensorInfo(name, shape, dtype)


@pytest.mark.parametrize(
    ("dtype", "first", "later"),
    [
        (DataType.INT8, [-128, -91, -54], {7: 37 * 7 - 256 - 128, 255: (37 * 255) % 256 - 128}),
        (DataType.INT16, [-32768, -32731, -32694], {1771: 37 * 1771 - 32768, 1772: 37 * 1772 - 65536 - 32768}),
        (DataType.INT32, [-(2**31), -(2**31) + 37, -(2**31) + 74], {4000: 148_000 - 2**31}),
        (DataType.INT64, [-(2**31), -(2**31) + 37, -(2**31) + 74], {4000: 148_000 - 2**31}),
        (DataType.UINT8, [0, 37, 74], {7: 3, 4000: 148_000 % 256}),
        (DataType.BOOL, [False, True, False], {7: True, 4000: False}),
        (DataType.FLOAT32, [-1.0, -0.7109375, -0.421875], {7: (3 - 128) / 128}),
    ],
)
def test_pattern_is_as_documented(dtype: DataType, first: list[float], later: dict[int, float]) -> None:
    values = pattern(info(shape=(4001,), dtype=dtype))
    assert values.dtype == dtype.numpy
    assert values[:3].tolist() == first
    assert {index: values[index].item() for index in later} == later


def test_pattern_counts_in_c_order() -> None:
    assert pattern(info(shape=(2, 3))).tolist() == [[-128, -91, -54], [-17, 20, 57]]
    assert pattern(info(shape=())).shape == ()
    assert [array.shape for array in pattern_sample([info("a", (1,)), info("b", (2, 2))])] == [(1,), (2, 2)]


def test_one_sample_keeps_its_shape() -> None:
    array = np.arange(6, dtype=np.int8).reshape(2, 3)
    ((sample,),) = split([info()], [array])
    assert sample.tolist() == array.tolist()


def test_samples_divide_the_first_axis() -> None:
    array = np.arange(24, dtype=np.int8).reshape(8, 3)
    samples = split([info()], [array])
    assert [sample[0].shape for sample in samples] == [(2, 3)] * 4
    assert [sample[0][0, 0] for sample in samples] == [0, 6, 12, 18]
    assert all(sample[0].flags.c_contiguous for sample in samples)


def test_samples_of_arrays_in_another_order_of_memory() -> None:
    array = np.asfortranarray(np.arange(24, dtype=np.int8).reshape(8, 3))
    assert np.concatenate([sample[0] for sample in split([info()], [array])]).tolist() == array.tolist()


def test_inputs_by_name() -> None:
    inputs = [info("a", (1, 2)), info("b", (3,))]
    by_name = {"b": np.zeros(6, np.int8), "a": np.ones((2, 2), np.int8)}
    samples = split(inputs, by_name)
    assert [[array.shape for array in sample] for sample in samples] == [[(1, 2), (3,)]] * 2
    assert samples[1][0].tolist() == [[1, 1]]


def test_a_scalar_is_one_sample() -> None:
    ((sample,),) = split([info(shape=())], [np.int8(5)])
    assert sample.shape == ()
    with pytest.raises(InputError, match=r"'x' is int8\[2\], expected int8\[\]$"):
        split([info(shape=())], [np.zeros(2, np.int8)])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([], "the model got 0 inputs, expected 2"),
        ([np.zeros((1, 2), np.int8)], "got 1 inputs, expected 2"),
        ({"a": np.zeros((1, 2), np.int8)}, "input 'b' is missing"),
        ({"c": np.zeros(1)}, "the model has no input 'c'"),
        ([np.zeros((1, 2)), np.zeros(3, np.int8)], r"'a' is float64\[1, 2\], expected int8\[1, 2\]"),
        ([np.zeros((1, 2), np.uint8), np.zeros(3, np.int8)], "'a' is uint8"),
        ([np.zeros((1, 3), np.int8), np.zeros(3, np.int8)], r"'a' is int8\[1, 3\].*multiple of 1"),
        ([np.zeros(2, np.int8), np.zeros(3, np.int8)], r"'a' is int8\[2\]"),
        ([np.zeros((0, 2), np.int8), np.zeros(3, np.int8)], r"'a' is int8\[0, 2\]"),
        ([np.zeros((1, 2), np.int8), np.zeros(4, np.int8)], r"'b' is int8\[4\].*multiple of 3"),
        ([np.zeros((2, 2), np.int8), np.zeros(9, np.int8)], r"different numbers of samples \('a' 2, 'b' 3\)"),
    ],
)
def test_arrays_that_do_not_fit(arrays: list[np.ndarray] | dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(InputError, match=message):
        split([info("a", (1, 2)), info("b", (3,))], arrays)


def test_another_byte_order_is_another_type() -> None:
    with pytest.raises(InputError, match=r"'x' is >i2\[2, 3\]"):
        split([info(dtype=DataType.INT16)], [np.zeros((2, 3), ">i2")])


@pytest.mark.parametrize(
    ("dtype", "least", "most"),
    [(DataType.BOOL, 0, 1), (DataType.INT8, -128, 127), (DataType.UINT8, 0, 255), (DataType.FLOAT32, -9, 9)],
)
def test_random_samples_have_values_of_each_type(dtype: DataType, least: int, most: int) -> None:
    (array,) = random_sample([TensorInfo("x", (4096,), dtype)], seed=3)
    assert array.dtype == dtype.numpy
    assert (float(array.min()) >= least, float(array.max()) <= most) == (True, True)
    if not dtype.is_float:
        assert (int(array.min()), int(array.max())) == (least, most)
