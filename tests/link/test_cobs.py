# SPDX-License-Identifier: Apache-2.0
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.link import cobs

# Examples as in the COBS paper, worked out by hand: a code is the distance to the next zero; 255 means no zero.
RUN = bytes(range(1, 255))
VECTORS = [
    (b"", "01"),
    (b"\x00", "0101"),
    (b"\x00\x00", "010101"),
    (b"\x00\x11\x00", "01021101"),
    (b"\x11\x22\x00\x33", "0311220233"),
    (b"\x11\x22\x33\x44", "0511223344"),
    (b"\x11\x00\x00\x00", "0211010101"),
    (RUN, "ff" + RUN.hex()),
    (b"\x00" + RUN, "01ff" + RUN.hex()),
    (RUN + b"\xff", "ff" + RUN.hex() + "02ff"),
    (RUN + b"\x00", "ff" + RUN.hex() + "0101"),
    (RUN[1:] + b"\xff\x00", "ff" + RUN[1:].hex() + "ff" + "0101"),
    (RUN[1:] + b"\x00\x01", "fe" + RUN[1:].hex() + "0201"),
]


@pytest.mark.parametrize(("data", "encoded"), VECTORS)
def test_known_vectors(data: bytes, encoded: str) -> None:
    assert cobs.encode(data).hex() == encoded
    assert cobs.decode(bytes.fromhex(encoded)) == data


blocks = st.lists(st.one_of(st.binary(max_size=600), st.sampled_from([RUN, b"\0", RUN * 3])), max_size=5).map(b"".join)


@given(blocks)
def test_round_trip_without_zero_bytes(data: bytes) -> None:
    encoded = cobs.encode(data)
    assert 0 not in encoded
    assert len(encoded) <= len(data) + 1 + len(data) // 254
    assert cobs.decode(encoded) == data


@given(st.binary(max_size=600))
def test_decoding_garbage_gives_none_or_bytes(data: bytes) -> None:
    decoded = cobs.decode(data)
    assert decoded is None or len(decoded) < len(data)


@pytest.mark.parametrize("damaged", [b"", b"\x00", b"\x02", b"\x03\x11", b"\x03\x11\x00", b"\xff" + RUN[1:]])
def test_damage_is_seen(damaged: bytes) -> None:
    assert cobs.decode(damaged) is None
