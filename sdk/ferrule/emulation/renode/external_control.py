# SPDX-License-Identifier: Apache-2.0
"""Renode's External Control API: run for a time, read the time, access buses, pins and converters.

Two protocols have this name: that of the releases 1.16.x (`LegacyControl`) and the one after 1.16.1 (`FramedControl`).
Renode serves one client at a time and listens on all interfaces: run it in a separate network namespace.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

from ferrule._frozen import positional
from ferrule._typing import override
from ferrule.closing import Closing
from ferrule.emulation.renode.errors import RenodeError
from ferrule.emulation.renode.stream import Stream

_NEW_INSTANCE = -1
_US_PER_S = 1_000_000
_NS_PER_US = 1_000


class Command(IntEnum):
    """The commands of both protocols."""

    RUN_FOR = 1
    GET_TIME = 2
    GET_MACHINE = 3
    ADC = 4
    GPIO = 5
    SYSTEM_BUS = 6


class ControlError(RenodeError):
    """Renode refused a command or violated the protocol; the message quotes Renode's reason, if any."""


class Width(IntEnum):
    """The width of bus accesses, in bytes."""

    BLOCK = 0
    """A block of any size; the bus chooses the width."""
    BYTE = 1
    WORD = 2
    DOUBLE_WORD = 4
    QUAD_WORD = 8


@dataclass
class Transport(ABC):
    """A protocol that carries commands to Renode."""

    us_per_count: ClassVar[float]
    """Microseconds per count of a time on the wire."""
    _stream: Stream

    @abstractmethod
    def ask(self, command: int, payload: bytes) -> bytes:
        """Send a command and return the data of the answer.

        Raises:
            ControlError: Renode refused the command.
            RenodeConnectionError: the connection broke, or no answer arrived in time.
        """

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()


class LegacyControl(Transport):
    """The protocol of Renode 1.16.0 and 1.16.1."""

    us_per_count = 1.0
    VERSIONS: Mapping[Command, int] = {**dict.fromkeys(Command, 0), Command.GPIO: 1}
    _FAILED, _FATAL, _INVALID, _DATA, _DONE, _READY, _EVENT = range(7)

    def __init__(self, stream: Stream, versions: Mapping[Command, int] = VERSIONS) -> None:
        """Perform the handshake; ControlError if Renode has other versions of the commands."""
        super().__init__(stream)
        pairs = b"".join(struct.pack("<BB", command, version) for command, version in versions.items())
        stream.send(struct.pack("<H", len(versions)) + pairs)
        code = self._byte()
        if code == self._FATAL:
            raise ControlError(f"Renode refuses the handshake: {self._text()}")
        if code != self._READY:
            raise ControlError(f"Renode answers the handshake with code {code}, expected {self._READY}")

    @override
    def ask(self, command: int, payload: bytes) -> bytes:
        self._stream.send(b"RE" + struct.pack("<BI", command, len(payload)) + payload)
        while True:
            code = self._byte()
            if code == self._EVENT:
                self._byte()
                self._stream.read(4)
                self._stream.read(self._size())
                continue
            return self._answer(command, code)

    def _answer(self, command: int, code: int) -> bytes:
        if code == self._FATAL:
            raise ControlError(f"Renode ends the connection: {self._text()}")
        if code not in {self._FAILED, self._INVALID, self._DATA, self._DONE}:
            raise ControlError(f"Renode answers with the unknown code {code}")
        answered = self._byte()
        if code == self._INVALID:
            raise ControlError(f"Renode does not know the command {answered}")
        if code == self._FAILED:
            raise ControlError(f"Renode refuses {_name(answered)}: {self._text()}")
        if answered != command:
            raise ControlError(f"Renode answers {_name(answered)}, {_name(command)} was requested")
        return self._stream.read(self._size()) if code == self._DATA else b""

    def _byte(self) -> int:
        return self._stream.read(1)[0]

    def _size(self) -> int:
        (size,) = struct.unpack("<I", self._stream.read(4))
        if size > MAX_DATA_BYTES:
            raise ControlError(f"Renode announces {size} B of data, expected at most {MAX_DATA_BYTES}")
        return int(size)

    def _text(self) -> str:
        return self._stream.read(self._size()).decode("utf-8", "replace")


class FramedControl(Transport):
    """The protocol after 1.16.1: frames with ids, times in nanoseconds; not tested with a release of Renode."""

    us_per_count = 1 / _NS_PER_US
    PROTOCOL_VERSION = 0
    _REQUEST, _EVENT, _DONE, _INVALID, _ERROR = range(5)
    _CHECK_VERSION = 0
    _BY_CLIENT = 0x8000

    def __init__(self, stream: Stream) -> None:
        """Check the version of the protocol; ControlError if Renode has another."""
        super().__init__(stream)
        self._next = 0
        self.ask(self._CHECK_VERSION, struct.pack("<I", self.PROTOCOL_VERSION))

    @override
    def ask(self, command: int, payload: bytes) -> bytes:
        number = self._BY_CLIENT | self._next
        self._next = (self._next + 1) % self._BY_CLIENT
        self._send(number, command, self._REQUEST, payload)
        while True:
            answered, replied, kind, data = self._receive()
            if not answered & self._BY_CLIENT:
                self._send(answered, replied, self._DONE, b"")  # an event, which is not used here
                continue
            if answered != number or replied != command:
                raise ControlError(
                    f"Renode answers request {answered:#x} ({replied}), expected {number:#x} ({command})"
                )
            if kind == self._INVALID:
                raise ControlError(f"Renode does not know the command {command}")
            if kind == self._ERROR:
                raise ControlError(f"Renode refuses {_name(command)}: {data.decode('utf-8', 'replace')}")
            if kind != self._DONE:
                raise ControlError(f"Renode answers with the unknown type {kind}")
            return data

    def _send(self, number: int, command: int, kind: int, data: bytes) -> None:
        self._stream.send(struct.pack("<HIHB", number, 3 + len(data), command, kind) + data)

    def _receive(self) -> tuple[int, int, int, bytes]:
        number, size = struct.unpack("<HI", self._stream.read(6))
        if not 3 <= size <= MAX_DATA_BYTES:
            raise ControlError(f"Renode announces a frame of {size} B, expected 3 to {MAX_DATA_BYTES}")
        command, kind = struct.unpack("<HB", self._stream.read(3))
        return number, command, kind, self._stream.read(size - 3)


MAX_DATA_BYTES = 64 << 20
"""Limit above the size of any answer; an answer that announces more is damaged."""


def _name(command: int) -> str:
    try:
        return Command(command).name
    except ValueError:
        return f"command {command}"


@positional
class RenodeMachine:
    """A machine in the emulation."""

    name: str
    id: int


class ExternalControl(Closing):
    """A client of the External Control API, with the same methods for both protocols."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._instances: dict[tuple[Command, int, str], int] = {}

    @classmethod
    def connect(
        cls, port: int, host: str = "127.0.0.1", *, framed: bool = False, timeout_s: float = 60.0
    ) -> ExternalControl:
        """Connect to a server created by `emulation CreateExternalControlServer`.

        `framed` selects the protocol after 1.16.1.
        """
        stream = Stream.connect(host, port, name="external control", timeout_s=timeout_s)
        try:
            return cls(FramedControl(stream) if framed else LegacyControl(stream))
        except BaseException:
            stream.close()
            raise

    def run_for(self, seconds: float) -> None:
        """Let virtual time pass, rounded to microseconds (after 1.16.1, nanoseconds)."""
        self._transport.ask(
            Command.RUN_FOR, struct.pack("<Q", round(seconds * _US_PER_S / self._transport.us_per_count))
        )

    def time_s(self) -> float:
        """Return the virtual time in seconds."""
        count = self._unpack("<Q", self._transport.ask(Command.GET_TIME, b""))
        return count * self._transport.us_per_count / _US_PER_S

    def machine(self, name: str) -> RenodeMachine:
        """Return a machine by name; ControlError if there is none."""
        data = name.encode()
        answer = self._transport.ask(Command.GET_MACHINE, struct.pack("<i", len(data)) + data)
        return RenodeMachine(name=name, id=self._unpack("<i", answer))

    def read(
        self, machine: RenodeMachine, address: int, count: int, *, width: Width = Width.BLOCK, bus: str = "sysbus"
    ) -> bytes:
        """Read `count` units of the given width (bytes for BLOCK) from a bus."""
        answer = self._on(Command.SYSTEM_BUS, machine, bus, struct.pack("<BBQI", 0, width, address, count))
        if len(answer) != count * max(width, 1):
            raise ControlError(f"Renode returned {len(answer)} B of {bus}, {count * max(width, 1)} were requested")
        return answer

    def write(
        self, machine: RenodeMachine, address: int, data: bytes, *, width: Width = Width.BLOCK, bus: str = "sysbus"
    ) -> None:
        """Write to a bus. On 1.16.1 the duration grows with the square of the size: 4 KiB take seconds."""
        if len(data) % max(width, 1):
            raise ControlError(f"{len(data)} B are not a whole number of units of {width}")
        payload = struct.pack("<BBQI", 1, width, address, len(data) // max(width, 1)) + data
        self._on(Command.SYSTEM_BUS, machine, bus, payload)

    def pin(self, machine: RenodeMachine, port: str, number: int) -> bool:
        """Return the level of a pin of a port such as `sysbus.gpioPortA`."""
        answer = self._on(Command.GPIO, machine, port, struct.pack("<Bi", 0, number))
        return bool(self._unpack("<B", answer))

    def set_pin(self, machine: RenodeMachine, port: str, number: int, *, level: bool) -> None:
        """Set the level of a pin."""
        self._on(Command.GPIO, machine, port, struct.pack("<BiB", 1, number, level))

    def adc_channels(self, machine: RenodeMachine, converter: str) -> int:
        """Return the number of channels of a converter."""
        return self._unpack("<i", self._on(Command.ADC, machine, converter, struct.pack("<B", 0)))

    def adc_value(self, machine: RenodeMachine, converter: str, channel: int) -> int:
        """Return the input value of a converter's channel."""
        return self._unpack("<I", self._on(Command.ADC, machine, converter, struct.pack("<Bi", 1, channel)))

    def set_adc_value(self, machine: RenodeMachine, converter: str, channel: int, value: int) -> None:
        """Set the input value of a converter's channel."""
        self._on(Command.ADC, machine, converter, struct.pack("<BiI", 2, channel, value))

    def _on(self, command: Command, machine: RenodeMachine, name: str, payload: bytes) -> bytes:
        """Send a command to an object by name; its number is queried on first use."""
        key = (command, machine.id, name)
        if key not in self._instances:
            data = name.encode()
            request = struct.pack("<iii", _NEW_INSTANCE, machine.id, len(data)) + data
            self._instances[key] = self._unpack("<i", self._transport.ask(command, request))
        return self._transport.ask(command, struct.pack("<i", self._instances[key]) + payload)

    @staticmethod
    def _unpack(layout: str, data: bytes) -> int:
        if len(data) < struct.calcsize(layout):
            raise ControlError(f"Renode answers with {len(data)} B, expected {struct.calcsize(layout)}")
        (value,) = struct.unpack_from(layout, data)
        return int(value)

    @override
    def close(self) -> None:
        """Close the connection."""
        self._transport.close()
