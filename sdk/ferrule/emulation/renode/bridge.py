# SPDX-License-Identifier: Apache-2.0
"""Serves a device model to FerruleBridge.cs, a peripheral that Renode compiles when it loads a script.

The bridge connects to this process and sends a message for each register access; before it answers, the model can
read and write whole blocks of the guest's memory and set its interrupt line. A message is a header of 24 bytes (kind,
a, b and c of 32 bits each and d of 64 bits, all little-endian), followed by c bytes where the table says so::

    | from | kind | a, b, c, d | answered by |
    |---|---|---|---|
    | bridge | 1 HELLO | version 1, size of the window | ANSWER |
    | bridge | 2 READ | offset, width, 0, cycles since the last answer | ANSWER, b = value |
    | bridge | 3 WRITE | offset, width, value, cycles since the last answer | ANSWER |
    | bridge | 4 RESET | | ANSWER |
    | bridge | 5 EVENT | d = cycles since the last answer | ANSWER |
    | model | 16 GET | address, size | DATA, c bytes follow |
    | model | 17 PUT | address, 0, size; the bytes follow | DATA |
    | bridge | 18 DATA | 0, or 1 for a refusal with its reason in c bytes | |
    | model | 19 LINE | level | nothing |
    | model | 20 TEXT | 1 for an error; c bytes of text follow | nothing |
    | model | 32 ANSWER | 0, or 1 for a refusal with its reason in c bytes; d = cycles to the next event, 0 for none | |
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import numpy as np

from ferrule._frozen import frozen
from ferrule.devices import BusError, Bytes, DeviceFaultError, DeviceModel
from ferrule.devices.hosting import HostedModel, hosted
from ferrule.emulation.renode.errors import RenodeConnectionError, RenodeError
from ferrule.emulation.renode.stream import Stream

SOURCE = Path(__file__).parent / "FerruleBridge.cs"
"""The peripheral's source, for Renode's `include`."""
CLASS = "Miscellaneous.FerruleBridge"
VERSION = 1
HEADER = struct.Struct("<IIIIQ")
MOST_BYTES = 64 << 20


class Kind(IntEnum):
    """The kinds of messages; see the module's table."""

    HELLO = 1
    READ = 2
    WRITE = 3
    RESET = 4
    EVENT = 5
    GET = 16
    PUT = 17
    DATA = 18
    LINE = 19
    TEXT = 20
    ANSWER = 32


@frozen
class BridgeMessage:
    """One message of the bridge's protocol."""

    kind: int
    a: int = 0
    b: int = 0
    c: int = 0
    d: int = 0
    data: bytes = b""

    def encode(self) -> bytes:
        """Return the message's bytes."""
        return HEADER.pack(self.kind, self.a, self.b, len(self.data) or self.c, self.d) + self.data


def receive(stream: Stream, first: bytes = b"") -> BridgeMessage:
    """Read the header of the next message, without the data that follows it; `first` was read before."""
    kind, a, b, c, d = HEADER.unpack(first + stream.read(HEADER.size - len(first)))
    return BridgeMessage(kind=kind, a=a, b=b, c=c, d=d)


class BridgeServer:
    """Serves a device model to one FerruleBridge, in one thread."""

    def __init__(self, model: DeviceModel | HostedModel, stream: Stream) -> None:
        self._model = hosted(model)
        self._stream = stream
        self._model.attach(bus=BridgeBus(stream), irq=_Line(stream))

    def serve(self) -> None:
        """Answer requests until Renode closes the connection.

        Raises:
            RenodeConnectionError: the connection broke within a message.
            DeviceFaultError: the model broke its contract; the access was answered as refused.
            RenodeError: the bridge sent a message that the protocol does not have.
        """
        while self.serve_one():
            pass

    def serve_one(self) -> bool:
        """Wait for one request and answer it; return False once the connection is closed."""
        first = self._stream.read_some(HEADER.size)
        if not first:
            return False
        request = receive(self._stream, first)
        value, event, refusal, fault = 0, 0, "", None
        try:
            value = self._perform(request)
        except BusError as error:
            refusal = str(error) or "refused"
        except DeviceFaultError as error:
            fault = error
        try:
            event = self._model.next_event() or 0
        except DeviceFaultError as error:
            fault = error
        if fault is not None:
            refusal = str(fault)
        answer = BridgeMessage(kind=Kind.ANSWER, a=int(bool(refusal)), b=value, d=event, data=refusal.encode())
        self._stream.send(answer.encode())
        if fault is not None:
            raise fault
        return True

    def _perform(self, request: BridgeMessage) -> int:
        model = self._model
        if request.d:
            model.advance(request.d)
        match request.kind:
            case Kind.READ if request.b in {1, 2, 4}:
                return model.read(request.a, request.b)
            case Kind.WRITE if request.b in {1, 2, 4}:
                model.write(request.a, request.b, request.c)
            case Kind.RESET:
                model.reset()
            case Kind.EVENT:
                pass
            case Kind.HELLO if (request.a, request.b) == (VERSION, model.size_bytes):
                model.reset()
            case Kind.HELLO:
                raise RenodeError(
                    f"the bridge has version {request.a} and a window of {request.b:#x} B, "
                    f"expected {VERSION} and {model.size_bytes:#x}"
                )
            case _:
                raise RenodeError(f"the bridge requests {request.kind} ({request.b}), which the protocol does not have")
        return 0

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()


@dataclass
class BridgeBus:
    """The guest's memory through the bridge: one round trip per block of any size."""

    _stream: Stream

    def read(self, address: int, size_bytes: int) -> bytes:
        """Return a copy of the bytes at an address."""
        self._stream.send(BridgeMessage(kind=Kind.GET, a=address, b=size_bytes).encode())
        data = self._reply(address)
        if len(data) != size_bytes:
            raise RenodeConnectionError(f"the bridge returned {len(data)} B, {size_bytes} were requested")
        return data

    def write(self, address: int, data: bytes) -> None:
        """Write bytes at an address."""
        self._stream.send(BridgeMessage(kind=Kind.PUT, a=address, data=data).encode())
        self._reply(address)

    def view(self, address: int, size_bytes: int, *, writable: bool = False) -> Bytes:
        """Return a copy of the bytes; BusError if `writable`, which a connection cannot provide."""
        if writable:
            raise BusError("a view through the bridge is a copy, which can't be written", address=address)
        return np.frombuffer(self.read(address, size_bytes), np.uint8)

    def _reply(self, address: int) -> bytes:
        reply = receive(self._stream)
        if reply.kind != Kind.DATA:
            raise RenodeError(f"the bridge sent {reply.kind} where DATA was expected")
        if reply.c > MOST_BYTES:
            raise RenodeError(f"a message of {reply.c} B, at most {MOST_BYTES} are allowed")
        data = self._stream.read(reply.c)
        if reply.a:
            raise BusError(data.decode("utf-8", "replace"), address=address)
        return data


@dataclass
class _Line:
    """Sends every change of the interrupt line to the bridge, ahead of the next answer."""

    _stream: Stream
    _level: bool = False

    def set(self, level: bool) -> None:
        """Raise or lower the line; setting the current level again sends nothing."""
        if level is not self._level:
            self._level = level
            self._stream.send(BridgeMessage(kind=Kind.LINE, a=int(level)).encode())
