# SPDX-License-Identifier: Apache-2.0
"""Constants that TFLM_DECODE decodes: the reader's values are those of TensorFlow Lite Micro."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracle
import pytest
from flatbuffer_tree import Table, quantization
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from stored_weights import SHAPE, bits_of, code_words, decode_model, header, huffman_tables, packed

from ferrule import formats
from ferrule.errors import FerruleError, ModelError, UnsupportedError
from ferrule.formats.tflite.node import Node
from ferrule.formats.tflite.records import read_model
from ferrule.formats.tflite.tensors import Tensors
from ferrule.formats.tflite.tflm_decode import decoded
from ferrule.graph import Array, LayerType
from ferrule.testing.backends.comparison import random_inputs


def values(data: bytes) -> Array:
    """Return the output of the TFLM_DECODE of a file, after comparing it with the wheel's."""
    (subgraph,) = read_model(data)
    (got,) = decoded(Node(subgraph.operators[0], Tensors(subgraph)))
    (wanted,) = oracle.tflm(data, [np.zeros((1, 15), np.int8)])
    assert got.dtype == wanted.dtype
    assert got.tobytes() == wanted.tobytes()
    return got


CHANNELS = {
    "whole": (lambda: quantization([0.5], [0]), 1),
    "first axis": (lambda: quantization([0.5, 1, 2, 4], [0] * 4), 4),
    "last axis": (lambda: quantization([0.5, 1, 2, 4, 8], [0] * 5, axis=2), 5),
}


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("width", range(1, 8))
def test_look_up_tables(width: int, channels: str) -> None:
    random = np.random.default_rng(width)
    scale, count = CHANNELS[channels]
    indices, stride = random.integers(0, 1 << width, SHAPE), 1 << width
    tables = random.integers(-128, 128, (count, stride)).astype(np.int8)
    data = decode_model(packed(bits_of(indices, width)), header(0, width, stride) + tables.tobytes(), "INT8", scale())
    channel = {1: 0 * indices, 4: np.indices(SHAPE)[0], 5: np.indices(SHAPE)[2]}[count]
    assert_array_equal(values(data), tables[channel, indices])


@pytest.mark.parametrize("channels", CHANNELS)
def test_look_up_tables_of_float32_have_channels(channels: str) -> None:
    random = np.random.default_rng(2)
    scale, count = CHANNELS[channels]
    indices, tables = random.integers(0, 4, SHAPE), random.normal(size=(count, 4)).astype(np.float32)
    data = decode_model(packed(bits_of(indices, 2)), header(0, 2, 4) + tables.tobytes(), "FLOAT32", scale())
    channel = {1: 0 * indices, 4: np.indices(SHAPE)[0], 5: np.indices(SHAPE)[2]}[count]
    assert_array_equal(values(data), tables[channel, indices])


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        (quantization([1, 1], [0, 0], axis=1), "2 scales on axis 1, but its shape is"),
        (quantization([1, 1, 1], [0, 0, 0], axis=1), "scales are on axis 1, expected the first or the last"),
        (quantization([1, 1, 1, 1], [0, 0], axis=0), "2 zero points, expected 1, or one for each of its scales"),
    ],
)
def test_channels_that_are_refused(scale: Table, message: str) -> None:
    method = 2 if "zero points" in message else 0
    data = decode_model(bytes(60), header(method, 1, 2) + bytes(32), "FLOAT32", scale)
    (subgraph,) = read_model(data)
    with pytest.raises(FerruleError, match=message):
        decoded(Node(subgraph.operators[0], Tensors(subgraph)))


@pytest.mark.parametrize("type_", ["FLOAT32", "INT16", "INT32", "INT64", "BOOL"])
@pytest.mark.parametrize("method", [0, 2], ids=["look-up table", "pruned"])
def test_other_types(method: int, type_: str) -> None:
    random = np.random.default_rng(3)
    dtype = np.dtype(type_.lower().replace("bool", "bool_"))
    bits = random.integers(0, 2, SHAPE)
    elements = random.integers(1, 2, 2 if method == 0 else int(bits.sum())).astype(dtype)
    ancillary = header(method, *((1, 2) if method == 0 else ())) + elements.tobytes()
    got = values(decode_model(packed(bits.reshape(-1)), ancillary, type_))
    if method == 0:
        assert_array_equal(got, elements[bits])
    else:
        assert_array_equal(got, np.where(bits, dtype.type(1), dtype.type(0)))


@pytest.mark.parametrize("zero_points", [[0], [-7], [1, -2, 3, 4]])
def test_pruned_elements_are_zero_points(zero_points: list[int]) -> None:
    random = np.random.default_rng(4)
    bits, count = random.integers(0, 2, SHAPE), len(zero_points)
    elements = random.integers(-128, 128, int(bits.sum())).astype(np.int8)
    scale = quantization([0.5 + index for index in range(count)], zero_points)
    got = values(decode_model(packed(bits.reshape(-1)), header(2) + elements.tobytes(), "INT8", scale))
    wanted = np.broadcast_to(np.array(zero_points, np.int8).reshape(-1, 1, 1), SHAPE).copy()
    wanted[bits.astype(bool)] = elements
    assert_array_equal(got, wanted)


@pytest.mark.parametrize("type_", ["INT8", "INT16"])
@pytest.mark.parametrize("first", [1, 3, 5])
@pytest.mark.parametrize("wide", [False, True], ids=["16 bits", "32 bits"])
def test_huffman(type_: str, first: int, wide: bool) -> None:
    if type_ == "INT16" and not wide:
        with pytest.raises(UnsupportedError, match="it is int16, expected int8, or int16 with tables of 32 bits"):
            values(decode_model(bytes(8), header(1, 0) + bytes(8), type_))
        return
    random = np.random.default_rng(first)
    symbols = np.clip(np.round(random.normal(0, 3, SHAPE)), -20, 20).astype(type_.lower())
    words = code_words(symbols.reshape(-1).tolist())
    stream = [int(bit) for symbol in symbols.reshape(-1).tolist() for bit in words[symbol]]
    tables = huffman_tables(words, first, wide)
    data = decode_model(packed(stream), header(1, int(wide) | first - 1 << 4) + tables, type_, quantization([0.5], [0]))
    assert_array_equal(values(data), symbols)


TABLE = header(0, 1, 2) + bytes(2)


@pytest.mark.parametrize(
    ("encoded", "ancillary", "kind", "message"),
    [
        (bytes(8), TABLE[:15], ModelError, "ancillary data has 15 bytes, expected a header of 16"),
        (bytes(8), header(0, 1, 2, version=2) + bytes(2), UnsupportedError, "the version, is 2, expected 1"),
        (
            bytes(8),
            header(0, 1, 2, method_version=3) + bytes(2),
            UnsupportedError,
            "method's version, is 3, expected 1",
        ),
        (bytes(8), header(3), UnsupportedError, "the method, is 3, expected 0"),
        (bytes(8), header(200), UnsupportedError, "the method, is 200, expected 0"),
        (bytes(8), header(0, 0, 2) + bytes(2), ModelError, "the width of an index, is 0, expected 1 to 7"),
        (bytes(7), TABLE, ModelError, "7 encoded bytes, expected at least 8"),
        (b"\xff" * 8, TABLE[:-1], ModelError, "the index 1, but its tables have 1 elements"),
        (b"\xff" * 8, header(2) + bytes(9), ModelError, "table has 9 elements, expected 60"),
        (bytes(8), header(1, 0) + b"\x01\x80", ModelError, "element 0 needs entry"),
        (b"\xff" * 2, header(1, 0) + b"\x01\x88" * 2, ModelError, "2 bytes end before element 16 of 60"),
    ],
)
def test_refusals(encoded: bytes, ancillary: bytes, kind: type[FerruleError], message: str) -> None:
    if "entry" in message:
        encoded = b"\xff" * 8
    with pytest.raises(kind, match=rf"operator 0 CUSTOM 'TFLM_DECODE'.*output 'decoded'.*{message}"):
        formats.load(decode_model(encoded, ancillary, "INT8", quantization([0.5], [0]), dense=True), name="m")


def test_options_and_shapes_of_a_record() -> None:
    (subgraph,) = read_model(decode_model(bytes(8), TABLE, "INT8", dense=True))
    custom, dense = (Node(each, Tensors(subgraph)) for each in subgraph.operators)
    assert not dense.options("FullyConnectedOptions").keep_num_dims
    with pytest.raises(ModelError, match="it has no options, expected FullyConnectedOptions"):
        custom.options("FullyConnectedOptions")
    empty = replace(subgraph, tensors=(replace(subgraph.tensors[0], shape=(1, 0)),))
    with pytest.raises(ModelError, match=r"its shape is \[1, 0\], expected positive extents"):
        Tensors(empty).info(0)


def test_decoded_weights() -> None:
    random = np.random.default_rng(9)
    indices, elements = random.integers(0, 16, (4, 15)), random.integers(-128, 128, 16).astype(np.int8)
    ancillary = header(0, 4, 16) + elements.tobytes()
    data = decode_model(packed(bits_of(indices, 4)), ancillary, "INT8", quantization([0.5], [0]), dense=True)
    network = formats.load(data, name="m")
    assert [layer.type for layer in network.layers] == [LayerType.FULLY_CONNECTED]
    assert_array_equal(network.tensor("decoded").data, elements[indices])
    inputs = random_inputs(network)
    assert_array_equal(network.run(inputs)[0], oracle.tflm(data, inputs)[0])


@given(
    st.binary(min_size=1, max_size=40),
    st.tuples(st.sampled_from([0, 1, 1, 2, 3]), st.integers(0, 255), st.integers(0, 255)),
    st.binary(max_size=64),
)
@example(b"\0" * 8, (1, 0, 0), b"\0\0" * 2)
@settings(max_examples=150)
def test_bad_bytes_are_errors(encoded: bytes, start: tuple[int, int, int], tables: bytes) -> None:
    data = decode_model(encoded, header(*start) + tables, "INT8", quantization([0.5], [0]), dense=True)
    try:
        network = formats.load(data, name="m")
    except FerruleError as error:
        assert "operator 0 CUSTOM 'TFLM_DECODE'" in str(error)  # noqa: PT017 - most inputs are errors, and some load
    else:
        assert network.tensor("decoded").data is not None
