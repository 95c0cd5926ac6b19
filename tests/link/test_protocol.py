# SPDX-License-Identifier: Apache-2.0
"""A response has exactly the length of its fields."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from ferrule.link import LinkError
from ferrule.link.protocol import BuildInfo, Hello, LinkTensor, decode_model

TEXT = b"\x02ab"
DECODERS: dict[str, tuple[Callable[[bytes], object], bytes]] = {
    "HELLO": (Hello.decode, struct.pack("<H", 64) + TEXT + TEXT),
    "BUILD_INFO": (BuildInfo.decode, bytes(48) + struct.pack("<B7I", 7, *range(7)) + TEXT * 4),
    "TENSOR_INFO": (LinkTensor.decode, struct.pack("<BBI2I", 3, 2, 24, 2, 3) + TEXT),
    "MODEL_INFO": (decode_model, struct.pack("<IIIIIB", 1, 1, 3, 64, 64, 0) + TEXT + TEXT),
}


@pytest.mark.parametrize("message", DECODERS)
def test_a_response_is_as_long_as_its_fields(message: str) -> None:
    decode, payload = DECODERS[message]
    decode(payload)
    with pytest.raises(LinkError, match=f"{message} response is malformed: it has {len(payload) + 1} bytes, expected"):
        decode(payload + b"\0")
    for length in range(len(payload)):
        with pytest.raises(LinkError, match=f"{message} response is malformed"):
            decode(payload[:length])
