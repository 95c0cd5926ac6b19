# SPDX-License-Identifier: Apache-2.0
"""Channels, which transport the bytes: a serial port or a pipe in memory."""

from __future__ import annotations

import select
import socket
import threading
import time
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Protocol

from ferrule._typing import override
from ferrule.closing import Closing
from ferrule.errors import MissingToolError
from ferrule.link.errors import LinkError

DEFAULT_BAUD = 115_200


def arrives(source: socket.socket | int, timeout_s: float | None) -> bool:
    """Return whether a socket or a descriptor can be read within a time, also since it was closed; None waits."""
    return bool(select.select([source], [], [], timeout_s)[0])


class Channel(Protocol):
    """A stream of bytes in both directions; the channel may lose, alter and repeat bytes."""

    def read(self, max_bytes: int, timeout_s: float) -> bytes:
        """Return 1 to `max_bytes` received bytes, or b"" if none arrive within `timeout_s` seconds of `clock`."""
        ...

    def write(self, data: bytes) -> None:
        """Send all bytes of `data`."""
        ...

    def clock(self) -> float:
        """Return the seconds, from any start, that pass for the other end; all time-outs are in them.

        An emulator's seconds are those in which it works or sleeps, and not those in which it waits for a processor.
        """
        return time.monotonic()

    def close(self) -> None:
        """Release the channel; a second call does nothing."""
        ...


class SerialChannel(Channel, Closing):
    """A serial port, given by its device name or any URL that pyserial supports (`socket://host:port`).

    Raises:
        LinkError: the port cannot be opened, or a later read or write fails.
        MissingToolError: pyserial is not installed.
    """

    def __init__(self, url: str, *, baud: int = DEFAULT_BAUD) -> None:
        if find_spec("serial") is None:
            raise MissingToolError("the Python package pyserial is missing", hint="pip install 'ferrule[serial]'")
        import serial

        self._url = url
        self._failures = (serial.SerialException, OSError)
        try:
            self._port: Any = serial.serial_for_url(url, baudrate=baud, timeout=0)
        except (*self._failures, ValueError) as error:
            raise LinkError(
                f"the serial port '{url}' cannot be opened: {error}",
                hint="list the ports: python -m serial.tools.list_ports",
            ) from error

    @override
    def read(self, max_bytes: int, timeout_s: float) -> bytes:
        try:
            self._port.timeout = timeout_s
            data = bytes(self._port.read(1))
            waiting = min(self._port.in_waiting, max_bytes - 1) if data else 0
            self._port.timeout = 0
            return data + bytes(self._port.read(waiting)) if waiting else data
        except self._failures as error:
            raise LinkError(f"reading from the serial port '{self._url}' failed: {error}") from error

    @override
    def write(self, data: bytes) -> None:
        try:
            self._port.write(data)
        except self._failures as error:
            raise LinkError(f"writing to the serial port '{self._url}' failed: {error}") from error

    @override
    def close(self) -> None:
        self._port.close()


@dataclass(eq=False)
class PipeChannel(Channel):
    """One end of a pipe in memory, created by `channel_pair`; any thread may use either end."""

    _changed: threading.Condition
    _incoming: bytearray
    _outgoing: bytearray
    _closed: bool = False

    @override
    def read(self, max_bytes: int, timeout_s: float) -> bytes:
        with self._changed:
            self._changed.wait_for(lambda: bool(self._incoming) or self._closed, timeout_s)
            if self._closed:
                raise LinkError("the pipe is closed")
            data = bytes(self._incoming[:max_bytes])
            del self._incoming[:max_bytes]
            return data

    @override
    def write(self, data: bytes) -> None:
        with self._changed:
            self._outgoing += data
            self._changed.notify_all()

    @override
    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()


def channel_pair() -> tuple[PipeChannel, PipeChannel]:
    """Return the two ends of a pipe in memory: each end reads the bytes that the other end writes."""
    changed, there, back = threading.Condition(), bytearray(), bytearray()
    return PipeChannel(changed, there, back), PipeChannel(changed, back, there)
