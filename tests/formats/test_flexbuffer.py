# SPDX-License-Identifier: Apache-2.0
"""The options of custom operators: what is written is read again, and malformed bytes are refused."""

from __future__ import annotations

from typing import Any

import pytest
from flatbuffers import flexbuffers

from ferrule.budget import limits
from ferrule.errors import BudgetError, ModelError, UnsupportedError
from ferrule.formats.tflite.flexbuffer import FlexValue, read_map, write_map


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"shift": 12},
        {"T": 7, "fft_length": 512},
        {"a": -1, "b": 2**40, "c": -70000, "d": 0.5, "e": 0.1, "f": True, "g": False, "text": "h\u00e4llo"},
        {f"key_{index}": index for index in range(200)},
    ],
)
def test_what_is_written_is_read(values: dict[str, FlexValue]) -> None:
    found = read_map(write_map(values))
    assert found == values
    assert [type(found[key]) for key in sorted(values)] == [type(values[key]) for key in sorted(values)]


def test_the_package_s_other_encodings_are_read() -> None:

    builder = flexbuffers.Builder()
    with builder.Map():
        for key, value in (("a", -3), ("b", 2**33)):
            builder.Key(key)
            builder.IndirectInt(value)
        builder.Key("c")
        builder.IndirectFloat(1.5)
        builder.Key("d")
        builder.Key("name")
        builder.Key("e")
        builder.UInt(200)
    assert read_map(bytes(builder.Finish())) == {"a": -3, "b": 2**33, "c": 1.5, "d": "name", "e": 200}
    assert read_map(b"") == {}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\0", "root takes 0 bytes"),
        (b"\x24\x01", "root takes 1 bytes of 2"),
        (b"\x05\x04\x01", "expected a map"),
        (b"\x05\x24\x01", "before the start"),
        (b"\0\0\x01\xff\0\x24\x01", "bytes|entries|keys"),
    ],
)
def test_malformed_bytes(data: bytes, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        read_map(data)


def test_each_truncation_and_each_flipped_bit_is_read_or_refused() -> None:
    whole = write_map({"shift": 300, "scale": 0.5, "name": "x"})
    for end in range(1, len(whole)):
        with pytest.raises((ModelError, UnsupportedError)):
            read_map(whole[:end])
    refusals = 0
    for bit in range(8 * len(whole)):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        try:
            assert len(read_map(bytes(data))) == 3
        except (ModelError, UnsupportedError):
            refusals += 1
    assert refusals > 50


def test_vectors_are_refused_by_name() -> None:

    builder = flexbuffers.Builder()
    with builder.Map():
        builder.Key("list")
        builder.Add([1, 2])
    with pytest.raises(UnsupportedError, match="'list' has kind"):
        read_map(bytes(builder.Finish()))


def test_the_number_of_entries_is_limited_by_the_budget() -> None:
    many = {f"key {number}": number for number in range(1000)}
    data = write_map(many)
    assert read_map(data) == many
    with limits(bytes="64KiB"), pytest.raises(BudgetError, match=r"a map of options, up to entry \d+, takes"):
        read_map(data)


def test_texts_count_for_each_entry_that_leads_to_them() -> None:
    builder: Any = flexbuffers.Builder(share_strings=True)
    with builder.Map():
        for number in range(100):
            builder.Key(f"k{number}")
            builder.String("x" * 10_000)
    data = bytes(builder.Finish())
    assert len(data) < 20_000
    assert len(read_map(data)) == 100
    with limits(bytes="512KiB"), pytest.raises(BudgetError, match=r"a map of options, up to 'k\d+', takes"):
        read_map(data)
