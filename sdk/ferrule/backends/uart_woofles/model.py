# SPDX-License-Identifier: Apache-2.0
"""The model of the accelerator at the other end of the serial line: it receives and returns bytes."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping

import numpy as np

from ferrule._typing import override
from ferrule.backends.uart_woofles.protocol import (
    ADDRESS,
    CHECKED,
    EXECUTED,
    GREETING,
    HELLO,
    LENGTHS,
    MAX_PAYLOAD_BYTES,
    RANGE,
    RESPONSE,
    SEQUENCES,
    VERSION,
    ErrorCode,
    MessageType,
    error_payload,
)
from ferrule.backends.woofles import arithmetic
from ferrule.backends.woofles.command import Command, CommandError, Operation, ShapeError
from ferrule.backends.woofles.model import DEFAULT_TIMING
from ferrule.devices import BusError, MemoryBus, SerialModel
from ferrule.link.frame import Frame, FrameReceiver

DEFAULT_MEMORY_BYTES = 1 << 20


_CODES: Mapping[type[Exception], ErrorCode] = {
    BusError: ErrorCode.RANGE,
    ShapeError: ErrorCode.SHAPE,
    CommandError: ErrorCode.COMMAND,
}


class RefusedError(Exception):
    """A request is answered with ERROR."""

    def __init__(self, code: ErrorCode, text: str) -> None:
        super().__init__(text)
        self.code = code


class UartWooflesModel(SerialModel):
    """A memory that requests read and write, with Woofles's arithmetic; it answers as soon as a request is complete.

    Requests have sequence numbers. A repetition of the last request gets the same response without a second effect, and
    the request with the next number is executed. Any other number is refused, since requests between them are missing.

    With a `clock_hz` other than 0, a command takes as many cycles as on Woofles, and no answer is sent meanwhile;
    `now_s` returns the time.
    """

    def __init__(
        self,
        *,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
        clock_hz: int = 0,
        seed: int | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._clock_hz = clock_hz
        self._now_s = now_s
        self._busy_until_s = 0.0
        self._waiting = b""
        self._tokens = np.random.default_rng(secrets.randbits(64) if seed is None else seed)
        self._memory_bytes = memory_bytes
        self._bus = MemoryBus()
        self._receiver = FrameReceiver()
        self._last: tuple[Frame, bytes] | None = None
        """The last request and its response, which is returned again if the request is repeated."""
        self._forget()
        self._executed = 0

    @property
    def executed(self) -> int:
        """Number of commands executed since the last HELLO."""
        return self._executed

    @property
    def damaged_frames(self) -> int:
        """Number of damaged frames and pieces of noise that were dropped."""
        return self._receiver.damaged

    @override
    def receive(self, data: bytes) -> bytes:
        """Process received bytes, and return the bytes to send."""
        before = self._receiver.damaged
        self._waiting += b"".join(self._answer(frame) for frame in self._receiver.feed(data))
        if self._receiver.damaged != before:
            self.log(f"dropped {self._receiver.damaged - before} damaged frame(s)")
        if self._waiting and self._now_s() < self._busy_until_s:
            return b""
        answers, self._waiting = self._waiting, b""
        return answers

    def _forget(self) -> None:
        """Replace the memory with a new one of zeros, and give it a new token."""
        self._token = int(self._tokens.integers(1, 1 << 32))
        self._bus = MemoryBus()
        self._bus.add(0, self._memory_bytes)

    def _answer(self, frame: Frame) -> bytes:
        if self._last is not None and frame == self._last[0]:
            self.log(f"{_name(frame)} once more")
            return self._last[1]
        try:
            payload = self._handle(frame)
        except (RefusedError, BusError, CommandError) as error:
            code = error.code if isinstance(error, RefusedError) else _CODES[type(error)]
            self.log(f"{_name(frame)} refused: {error} ({code.name})")
            payload = error_payload(code, str(error))
            kind = int(MessageType.ERROR)
            if code in {ErrorCode.SEQUENCE, ErrorCode.STATE, ErrorCode.VERSION}:
                return _encoded(kind, frame.sequence, payload)  # not kept as the last request
        else:
            kind = frame.type | RESPONSE
        response = _encoded(kind, frame.sequence, payload)
        self._last = frame, response
        return response

    def _handle(self, frame: Frame) -> bytes:
        """Execute a request, and return the payload of the response.

        Raises:
            RefusedError: the request is invalid.
            BusError: an address is outside the memory.
            CommandError: a command is invalid.
        """
        if frame.version != VERSION:
            raise RefusedError(ErrorCode.VERSION, f"version {frame.version} of the protocol, this is {VERSION}")
        if frame.type != MessageType.HELLO:
            self._check_order(frame)
        if frame.type not in {int(kind) for kind in LENGTHS}:
            raise RefusedError(ErrorCode.TYPE, f"there is no request {frame.type:#04x}")
        kind = MessageType(frame.type)
        least, most = LENGTHS[kind]
        if not least <= len(frame.payload) <= most:
            raise RefusedError(ErrorCode.LENGTH, f"{len(frame.payload)} bytes, expected {least} to {most}")
        match kind:
            case MessageType.HELLO:
                return self._hello(frame.payload)
            case MessageType.WRITE:
                return self._write(frame.payload)
            case MessageType.READ:
                return self._read(frame.payload)
            case MessageType.EXECUTE:
                return self._execute(frame.payload)
            case _:
                return CHECKED.pack(self._token)

    def _check_order(self, frame: Frame) -> None:
        if self._last is None:
            raise RefusedError(ErrorCode.STATE, "say hello first")
        expected = (self._last[0].sequence + 1) % SEQUENCES
        if frame.sequence != expected:
            raise RefusedError(ErrorCode.SEQUENCE, f"request {frame.sequence}, expected {expected}")

    def _hello(self, payload: bytes) -> bytes:
        (known,) = HELLO.unpack(payload)
        resumed = known == self._token
        if not resumed:
            self._forget()
        self._executed = 0
        self.log(f"HELLO: {'the memory is still known' if resumed else 'a new memory'}, token {self._token:08x}")
        return GREETING.pack(MAX_PAYLOAD_BYTES, 0, self._memory_bytes, self._token)

    def _write(self, payload: bytes) -> bytes:
        (address,) = ADDRESS.unpack_from(payload)
        self._bus.write(address, payload[ADDRESS.size :])
        return b""

    def _read(self, payload: bytes) -> bytes:
        address, size = RANGE.unpack(payload)
        if size > MAX_PAYLOAD_BYTES:
            raise RefusedError(ErrorCode.LENGTH, f"{size} bytes are wanted, {MAX_PAYLOAD_BYTES} fit a frame")
        return self._bus.read(address, size)

    def _execute(self, payload: bytes) -> bytes:
        command = Command.decode(payload)
        arithmetic.check(command)
        arithmetic.execute(command, self._bus)
        self._executed += 1
        if self._clock_hz:
            self._busy_until_s = self._now_s() + DEFAULT_TIMING.cycles(command) / self._clock_hz
        self.log(f"executed {Operation(command.operation).name}, {arithmetic.macs(command):,} MACs")
        return EXECUTED.pack(command.sequence, self._executed)


def _encoded(kind: int, sequence: int, payload: bytes) -> bytes:
    return Frame(version=VERSION, type=kind, sequence=sequence, payload=payload).encode()


def _name(frame: Frame) -> str:
    known = {int(kind): kind.name for kind in MessageType}
    return f"{known.get(frame.type, hex(frame.type))} {frame.sequence}"
