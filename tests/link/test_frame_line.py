# SPDX-License-Identifier: Apache-2.0
"""The firmware's frames on a wire of their own, in a buffer between guards."""

from __future__ import annotations

import re
import zlib
from typing import Any

import pytest
from host_link import HostFirmware

from ferrule import resources
from ferrule.link import cobs

pytestmark = pytest.mark.cc

DECLARED = re.compile(r"^struct \w+ \{.*?^\};|^\w+ ferrule_frame_\w+\([^;]*\);", re.DOTALL | re.MULTILINE)
"""The structures and functions of frame.h."""
GUARD = b"\x5a" * 16
"""Before and after the buffer; without zeros, so that reading on past its end is seen, too."""


class Line:
    """One end of a wire: `incoming` are the bytes that it can read, `sent` those that it wrote."""

    def __init__(self, firmware: HostFirmware, capacity: int) -> None:
        from cffi import FFI

        self._ffi = FFI()
        header = (resources.root() / "include/ferrule/frame.h").read_text(encoding="utf-8")
        self._ffi.cdef("\n".join(DECLARED.findall(header)))
        self._library: Any = self._ffi.dlopen(str(firmware.path))
        self.incoming = bytearray()
        self.sent = bytearray()
        self._read = self._ffi.callback("int32_t(void *)", lambda _: self.incoming.pop(0) if self.incoming else -1)
        self._write = self._ffi.callback("void(void *, uint8_t)", lambda _, byte: self.sent.append(byte))
        self._port = self._ffi.new("struct ferrule_link_port *", {"read_byte": self._read, "write_byte": self._write})
        self._memory = self._ffi.new("uint8_t[]", [*GUARD, *GUARD[:1] * capacity, *GUARD])
        self._line = self._ffi.new(
            "struct ferrule_frame_line *",
            {"port": self._port, "frame": self._memory + len(GUARD), "capacity": capacity},
        )

    def receive(self, wire: bytes) -> bytes | None:
        """Return the next frame without its CRC, None if there is none; the guards must be as they were."""
        self.incoming += wire
        count = self._ffi.new("uint32_t *")
        found = self._library.ferrule_frame_receive(self._line, count)
        memory = bytes(self._memory)
        size = self._line.capacity
        assert (memory[: len(GUARD)], memory[len(GUARD) + size :]) == (GUARD, GUARD)
        return memory[len(GUARD) :][: count[0]] if found else None

    def send(self, body: bytes) -> bytes:
        """Send a frame, and return its bytes on the wire."""
        self._ffi.memmove(self._line.frame, body, len(body))
        self._library.ferrule_frame_send(self._line, len(body))
        sent, self.sent[:] = bytes(self.sent), b""
        return sent


def with_crc(body: bytes) -> bytes:
    return body + zlib.crc32(body).to_bytes(4, "little")


def wire_of(body: bytes) -> bytes:
    return cobs.encode(with_crc(body)) + b"\0"


def body_of(size: int) -> bytes:
    return bytes(1 + index % 255 for index in range(size))


@pytest.mark.parametrize("size", [5, 12, 296])
def test_a_frame_of_the_whole_buffer_is_received_and_no_byte_more_is_written(
    compiled_firmware: HostFirmware, size: int
) -> None:
    body, short = body_of(size), body_of(4)
    for capacity, expected in ((size + 5, body), (size + 4, body), (size + 3, None)):
        line = Line(compiled_firmware, capacity)
        assert line.receive(wire_of(body)) == expected
        assert line.receive(wire_of(short)) == short, "the line goes on"


def test_a_header_is_the_shortest_frame(compiled_firmware: HostFirmware) -> None:
    line = Line(compiled_firmware, 32)
    for size in range(4):
        assert line.receive(wire_of(body_of(size))) is None
    assert line.receive(wire_of(body_of(4))) == body_of(4)


def test_a_frame_may_come_in_pieces_and_two_at_once(compiled_firmware: HostFirmware) -> None:
    first, second = b"\0\0\0\0", body_of(7) + b"\0"
    wire = wire_of(first) + wire_of(second)
    line = Line(compiled_firmware, 32)
    for cut in range(len(wire)):
        found = [line.receive(wire[:cut]), line.receive(b""), line.receive(wire[cut:]), line.receive(b"")]
        assert [each for each in found if each is not None] == [first, second]


@pytest.mark.parametrize("zero_at", [None, 0, 4, 252, 253, 254, 255])
@pytest.mark.parametrize("size", [4, 249, 250, 251, 254, 504, 505])
def test_blocks_up_to_the_longest(compiled_firmware: HostFirmware, size: int, zero_at: int | None) -> None:
    """With the four bytes of the CRC, these end one byte before, with and one byte after a block of 254 bytes."""
    body = bytearray(body_of(size))
    if zero_at is not None and zero_at < size:
        body[zero_at] = 0
    line = Line(compiled_firmware, 512)
    sent = line.send(bytes(body))
    assert sent == b"\0" + wire_of(bytes(body))
    assert line.receive(sent) == bytes(body)


@pytest.mark.parametrize("damaged", [b"", b"\x02", wire_of(body_of(8))[:-2], wire_of(body_of(8))[1:-1]])
def test_what_is_no_frame_is_dropped(compiled_firmware: HostFirmware, damaged: bytes) -> None:
    line = Line(compiled_firmware, 32)
    assert line.receive(damaged + b"\0") is None
    assert line.receive(wire_of(body_of(4))) == body_of(4)
