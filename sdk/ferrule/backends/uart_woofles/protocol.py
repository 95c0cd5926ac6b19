# SPDX-License-Identifier: Apache-2.0
"""What goes over the wire: the messages and their layouts, little-endian; `docs/uart_accelerator.md` describes them.

A message is a frame of the link's format (`ferrule.link.frame`), with a version and types of its own.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct

from ferrule.backends.woofles.command import COMMAND_BYTES
from ferrule.link.frame import Frame

VERSION = 1
MAX_PAYLOAD_BYTES = 1024
RESPONSE = 0x80
"""Added to a request's type by its response."""
SEQUENCES = 1 << 16

HELLO = Struct("<I")
"""The token that the client knows, 0 for none."""
GREETING = Struct("<HHII")
"""Largest payload, zero, bytes of memory, token of the memory."""
ADDRESS = Struct("<I")
"""Before the data of WRITE."""
RANGE = Struct("<II")
"""Address and bytes of READ."""
EXECUTED = Struct("<II")
"""The command's own sequence number, and how many commands were executed since HELLO."""
CHECKED = Struct("<I")
"""Token of the memory."""


class MessageType(IntEnum):
    """Requests, and the answer to one that is refused. No number is one of the link's requests."""

    HELLO = 0x20
    WRITE = 0x21
    READ = 0x22
    EXECUTE = 0x23
    CHECK = 0x24
    ERROR = 0xFF


class ErrorCode(IntEnum):
    """Why a request was refused; the first byte of ERROR, before a text."""

    VERSION = 1
    TYPE = 2
    LENGTH = 3
    RANGE = 4
    """Outside of the memory."""
    SEQUENCE = 5
    """Neither the last request once more nor the next one: requests were missed."""
    STATE = 6
    """No HELLO since the start."""
    COMMAND = 7
    SHAPE = 8


LENGTHS = {
    MessageType.HELLO: (HELLO.size, HELLO.size),
    MessageType.WRITE: (ADDRESS.size, MAX_PAYLOAD_BYTES),
    MessageType.READ: (RANGE.size, RANGE.size),
    MessageType.EXECUTE: (COMMAND_BYTES, COMMAND_BYTES),
    MessageType.CHECK: (0, 0),
}
"""The least and the most bytes of each request's payload."""


def request(kind: MessageType, sequence: int, payload: bytes = b"") -> Frame:
    """Return a request."""
    return Frame(version=VERSION, type=kind, sequence=sequence % SEQUENCES, payload=payload)


def error_payload(code: ErrorCode, text: str) -> bytes:
    """Return the payload of ERROR."""
    return bytes([code]) + text.encode()[: MAX_PAYLOAD_BYTES - 1]
