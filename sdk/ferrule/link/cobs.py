# SPDX-License-Identifier: Apache-2.0
"""Consistent overhead byte stuffing (Cheshire and Baker, SIGCOMM 1997): encodes data without zero bytes."""

from __future__ import annotations

_LONGEST_BLOCK = 254
"""The most non-zero bytes that one code can announce."""


def encode(data: bytes) -> bytes:
    """Return `data` encoded without zero bytes; it becomes one byte longer, and one more per 254 non-zero bytes."""
    out = bytearray()
    parts = data.split(b"\0")
    for number, part in enumerate(parts):
        start = 0
        while len(part) - start > _LONGEST_BLOCK:
            out.append(_LONGEST_BLOCK + 1)
            out += part[start : start + _LONGEST_BLOCK]
            start += _LONGEST_BLOCK
        length = len(part) - start
        out.append(length + 1)
        out += part[start:]
        if length == _LONGEST_BLOCK and number < len(parts) - 1:
            out.append(1)  # a block of full length implies no zero after it
    return bytes(out)


def decode(data: bytes) -> bytes | None:
    """Return the decoded data, or None if `data` is not a complete encoding."""
    out = bytearray()
    at = 0
    while at < len(data):
        code = data[at]
        block = data[at + 1 : at + code]
        if code == 0 or len(block) != code - 1 or 0 in block:
            return None
        out += block
        at += code
        if code <= _LONGEST_BLOCK and at < len(data):
            out.append(0)
    return bytes(out) if data else None
