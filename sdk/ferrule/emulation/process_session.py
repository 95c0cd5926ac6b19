# SPDX-License-Identifier: Apache-2.0
"""The common part of sessions whose emulator is another process: its UARTs are sockets, and the firmware runs on."""

from __future__ import annotations

import select
import socket
import time
from abc import abstractmethod
from typing import ClassVar

from ferrule._typing import override
from ferrule.emulation.crash import CrashReport, EngineError
from ferrule.emulation.emulator_session import EmulatorSession
from ferrule.emulation.engine import Machine
from ferrule.emulation.socket_wire import SocketWire
from ferrule.link import Channel

CHUNK_BYTES = 65536


class ProcessSession(EmulatorSession):
    """A firmware in an emulator's process."""

    emulator: ClassVar[str]
    """The emulator's name."""
    silence_s: ClassVar[tuple[float, float]]
    """Times without a byte after which the emulator's state is queried; the wait doubles from the first to the second.
    """

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine)
        self._wires: list[SocketWire] = []
        self._channels: dict[str, SocketChannel] = {}

    def _connect(self, machine: Machine, sockets: dict[str, socket.socket]) -> None:
        """Use the connections to the UARTs, by name: those of the board's roles, and those with wires."""
        wired = {wire.uart: wire for wire in machine.wires}
        for name, connected in sockets.items():
            if name in wired:
                wire = wired[name]
                self._wires.append(SocketWire(wire.name, connected, wire.model, limit_s=machine.callback_s))
            else:
                self._channels[name] = SocketChannel(self, connected)

    @staticmethod
    def _uarts(machine: Machine) -> list[str]:
        """Return the names of the UARTs that are needed."""
        board = machine.board
        return sorted({board.link_uart.name, board.console_uart.name, *(wire.uart for wire in machine.wires)})

    @override
    def channel(self, name: str = "link") -> SocketChannel:
        return self._find_uart(name, self._channels, f"that is connected to {self.emulator}")

    def clock(self) -> float:
        """Return the seconds that pass for the emulator."""
        return time.monotonic()

    @override
    @abstractmethod
    def crash_report(self, reason: str) -> CrashReport: ...

    def run_on(self) -> None:
        """Let the emulator run on if an access to its memory has stopped it."""

    @abstractmethod
    def died(self) -> EngineError:
        """Return the error for an emulator that ended unexpectedly, and end the session."""

    def check_devices(self) -> None:
        """Raise EngineError if a device failed."""
        for wire in self._wires:
            wire.check()

    def check_health(self) -> bool:
        """Return whether the core runs; EngineError if the emulator has ended, a device or the firmware has failed."""
        self.check_devices()
        if self._recorded_fault() is not None:
            report = self.crash_report("the firmware faulted")
            self._failure = EngineError(report.reason, report=report)
            raise self._failure
        return True


class SocketChannel(Channel):
    """The bytes of one UART over a socket, which the session owns."""

    def __init__(self, session: ProcessSession, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._session = session
        self._connection = connection
        self._unsent = b""
        self._received = b""

    @override
    def read(self, max_bytes: int, timeout_s: float) -> bytes:
        """Return the bytes that the firmware has sent; empty on a time-out.

        Raises:
            EngineError: the firmware faulted, a device failed, or the emulator ended.
        """
        self._session.run_on()
        deadline = self.clock() + timeout_s
        silence, longest = self._session.silence_s
        while not self._received:
            remaining = deadline - self.clock()
            if not self._exchange(min(max(remaining, 0), silence)):
                if not self._session.check_health():
                    deadline = self.clock() + timeout_s  # halted by a debugger: the time-out does not run
                silence = min(2 * silence, longest)
            if remaining <= 0:
                break
        self._session.check_devices()
        data, self._received = self._received[:max_bytes], self._received[max_bytes:]
        return data

    @override
    def clock(self) -> float:
        return self._session.clock()

    @override
    def write(self, data: bytes) -> None:
        """Queue bytes; those that the emulator does not accept at once are sent during `read`."""
        self._session.run_on()
        self._unsent += data
        self._exchange(0)

    def _exchange(self, timeout_s: float) -> bool:
        """Transfer bytes in both directions, waiting up to `timeout_s`; return whether any were transferred."""
        self._session.require_running()
        senders = [self._connection] if self._unsent else []
        readable, writable, _ = select.select([self._connection], senders, [], timeout_s)
        try:
            if writable:
                self._unsent = self._unsent[self._connection.send(self._unsent) :]
            if readable:
                chunk = self._connection.recv(CHUNK_BYTES)
                if not chunk:
                    raise self._session.died()
                self._received += chunk
        except BlockingIOError:
            return False
        except OSError as error:
            raise self._session.died() from error
        return bool(readable or writable)

    @override
    def close(self) -> None:
        """Do nothing: the session owns the connection."""
