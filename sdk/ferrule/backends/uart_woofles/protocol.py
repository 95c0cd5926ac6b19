# SPDX-License-Identifier: Apache-2.0
"""The messages on the serial line and their little-endian layouts; `docs/uart_accelerator.md` describes them.

A message is a frame in the link's format (`ferrule.link.frame`), with its own version and message types.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct

from ferrule.backends.woofles.command import COMMAND_BYTES
from ferrule.link.frame import Frame

VERSION = 1
MAX_PAYLOAD_BYTES = 1024
RESPONSE = 0x80
"""The type of a response is that of its request plus this."""
SEQUENCES = 1 << 16

HELLO = Struct("<I")
"""Payload of HELLO: the token of the memory that the client knows, 0 for none."""
GREETING = Struct("<HHII")
"""Response to HELLO: largest payload in bytes, zero, size of the memory in bytes, token of the memory."""
ADDRESS = Struct("<I")
"""Payload of WRITE before the data: address."""
RANGE = Struct("<II")
"""Payload of READ: address, and number of bytes."""
EXECUTED = Struct("<II")
"""Response to EXECUTE: the command's sequence number, and the number of commands executed since HELLO."""
CHECKED = Struct("<I")
"""Response to CHECK: token of the memory."""


class MessageType(IntEnum):
    """Requests, and the response to a refused one. The numbers differ from those of the link's requests."""

    HELLO = 0x20
    WRITE = 0x21
    READ = 0x22
    EXECUTE = 0x23
    CHECK = 0x24
    ERROR = 0xFF


class ErrorCode(IntEnum):
    """The reason for a refusal: the first byte of ERROR, before a text."""

    VERSION = 1
    TYPE = 2
    LENGTH = 3
    RANGE = 4
    """An address is outside the memory."""
    SEQUENCE = 5
    """The number is neither that of the last request nor the next one: requests were lost."""
    STATE = 6
    """There was no HELLO since the start."""
    COMMAND = 7
    SHAPE = 8


LENGTHS = {
    MessageType.HELLO: (HELLO.size, HELLO.size),
    MessageType.WRITE: (ADDRESS.size, MAX_PAYLOAD_BYTES),
    MessageType.READ: (RANGE.size, RANGE.size),
    MessageType.EXECUTE: (COMMAND_BYTES, COMMAND_BYTES),
    MessageType.CHECK: (0, 0),
}
"""Smallest and largest payload of each request, in bytes."""


def request(kind: MessageType, sequence: int, payload: bytes = b"") -> Frame:
    """Return the frame of a request."""
    return Frame(version=VERSION, type=kind, sequence=sequence % SEQUENCES, payload=payload)


def error_payload(code: ErrorCode, text: str) -> bytes:
    """Return the payload of ERROR, with the text cut to fit."""
    return bytes([code]) + text.encode()[: MAX_PAYLOAD_BYTES - 1]
