# SPDX-License-Identifier: Apache-2.0
"""Packets of GDB's remote serial protocol (GDB manual, E.1): `$payload#checksum`, acknowledged by `+` or `-`."""

from __future__ import annotations

import re
from enum import Enum, auto

from ferrule._frozen import frozen

LARGEST = 16384
"""Largest payload, in bytes, that a receiver must accept; longer packets may be dropped as damaged."""
INTERRUPT = 0x03
_START, _END, _ESCAPE = b"$#}"
_SPECIAL, _PAIR = re.compile(rb"[$#}*]"), re.compile(rb"\}(.?)", re.DOTALL)
"""The bytes to escape in a payload, and an escaped one."""
_ESCAPED = 0x20


class Event(Enum):
    """Received items other than packets."""

    INTERRUPT = auto()
    """Ctrl-C."""
    DAMAGED = auto()
    """A packet whose checksum is wrong."""


@frozen
class Packet:
    """A packet's payload, unescaped."""

    payload: bytes


def frame(payload: bytes) -> bytes:
    """Return the packet for a payload, escaped and with its checksum."""
    body = _SPECIAL.sub(lambda found: bytes([_ESCAPE, found[0][0] ^ _ESCAPED]), payload)
    return b"$%s#%02x" % (body, sum(body) & 0xFF)


class PacketReader:
    """Extracts packets from a stream; acknowledgements and noise between them are skipped."""

    def __init__(self) -> None:
        self._received = bytearray()

    def feed(self, data: bytes) -> list[Packet | Event]:
        """Return the packets and events that these bytes complete."""
        self._received += data
        return list(iter(self._next, None))

    def _next(self) -> Packet | Event | None:
        data = self._received
        while data and data[0] != _START:
            if data.pop(0) == INTERRUPT:
                return Event.INTERRUPT
        end = data.find(_END)
        if end < 0 or len(data) < end + 3:
            if len(data) > 2 * LARGEST:
                data.clear()
                return Event.DAMAGED
            return None
        body, digits = bytes(data[1:end]), bytes(data[end + 1 : end + 3])
        del data[: end + 3]
        if digits.lower() != b"%02x" % (sum(body) & 0xFF):
            return Event.DAMAGED
        payload = _PAIR.sub(lambda found: bytes(byte ^ _ESCAPED for byte in found[1]), body)
        return Packet(payload=payload)
