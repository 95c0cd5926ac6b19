# SPDX-License-Identifier: Apache-2.0
"""Frames: a header, a payload and a CRC-32, encoded with COBS and delimited by zero bytes."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from struct import Struct

from ferrule._frozen import frozen
from ferrule.link import cobs

DELIMITER = b"\0"
_HEADER = Struct("<BBH")
_TRAILER = Struct("<I")
_LONGEST_ENCODED = 8192
"""The receiver drops its buffer after this many bytes without a delimiter; every frame is far shorter."""


@frozen
class Frame:
    """One message; `sequence`, 0 to 65535, identifies the request and is repeated in its response."""

    version: int
    type: int
    sequence: int
    payload: bytes

    def encode(self) -> bytes:
        """Return the bytes on the wire, with a delimiter before and after."""
        body = _HEADER.pack(self.version, self.type, self.sequence) + self.payload
        return DELIMITER + cobs.encode(body + _TRAILER.pack(zlib.crc32(body))) + DELIMITER

    @classmethod
    def decode(cls, encoded: bytes) -> Frame | None:
        """Return the frame decoded from the bytes between two delimiters, or None if it is damaged."""
        whole = cobs.decode(encoded)
        if whole is None or len(whole) < _HEADER.size + _TRAILER.size:
            return None
        body = whole[: -_TRAILER.size]
        (crc,) = _TRAILER.unpack(whole[-_TRAILER.size :])
        if zlib.crc32(body) != crc:
            return None
        version, kind, sequence = _HEADER.unpack_from(body)
        return cls(version=version, type=kind, sequence=sequence, payload=body[_HEADER.size :])


class FrameReceiver:
    """Finds the frames in a stream of bytes; damaged frames and noise are counted and dropped."""

    def __init__(self) -> None:
        self.damaged = 0
        """The number of pieces between delimiters that were not valid frames."""
        self._pending = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the frames completed by `data`."""
        self._pending += data
        *pieces, rest = self._pending.split(DELIMITER)
        self._pending = rest
        if len(rest) > _LONGEST_ENCODED:
            self.damaged += 1
            self._pending = bytearray()
        for piece in pieces:
            frame = Frame.decode(bytes(piece))
            if frame is not None:
                yield frame
            elif piece:
                self.damaged += 1
