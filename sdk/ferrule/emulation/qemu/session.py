# SPDX-License-Identifier: Apache-2.0
"""Sessions with a firmware in a QEMU process."""

from __future__ import annotations

import select
import socket

from ferrule._typing import override
from ferrule.emulation.crash import CrashReport, EngineError
from ferrule.emulation.emulator_session import EmulatorSession
from ferrule.emulation.engine import Counters, Machine
from ferrule.emulation.fault_record import FIELDS
from ferrule.emulation.qemu.monitor import Monitor
from ferrule.emulation.qemu.process import QemuProcess
from ferrule.emulation.socket_wire import SocketWire
from ferrule.link import Channel

FIRST_SILENCE_S, SILENCE_S = 0.01, 0.5
"""Times without a byte after which QEMU's state is queried; the wait doubles from the first to the second. The query
also wakes QEMU's main loop, which may otherwise miss that the firmware has enabled its receiver."""
CHUNK_BYTES = 65536


class QemuChannel(Channel):
    """The bytes of one UART over a socket."""

    def __init__(self, session: QemuSession, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._session = session
        self._connection = connection
        self._unsent = b""
        self._received = b""

    @override
    def read(self, max_bytes: int, timeout_s: float) -> bytes:
        """Return the bytes that the firmware has sent; empty on a time-out.

        Raises:
            EngineError: the firmware faulted, or QEMU ended.
        """
        deadline = self.clock() + timeout_s
        silence = FIRST_SILENCE_S
        while not self._received:
            remaining = deadline - self.clock()
            moved = self._exchange(min(max(remaining, 0), silence))
            if not moved:
                if not self._session.check_health():
                    deadline = self.clock() + timeout_s  # halted by a debugger: the time-out does not run
                silence = min(2 * silence, SILENCE_S)
            if remaining <= 0:
                break
        data, self._received = self._received[:max_bytes], self._received[max_bytes:]
        return data

    @override
    def clock(self) -> float:
        return self._session.clock()

    @override
    def write(self, data: bytes) -> None:
        """Queue bytes; those that QEMU does not accept at once are sent during `read`."""
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


class QemuSession(EmulatorSession):
    """A firmware in QEMU, which runs concurrently."""

    def __init__(self, program: str, machine: Machine) -> None:
        super().__init__(machine)
        uarts = {machine.board.link_uart.name, machine.board.console_uart.name}
        wired = {wire.uart: wire for wire in machine.wires}
        names = sorted(uarts | set(wired))
        self._process = QemuProcess(program, machine.board, machine.elf, names, machine.options.gdb)
        self.clock = self._process.clock
        """The seconds that pass for QEMU: its processor time, and the host's time while it sleeps."""
        self._monitor = Monitor(self._process.monitor, self.clock)
        sockets = self._process.uarts
        self._channels = {name: QemuChannel(self, link) for name, link in sockets.items() if name in uarts}
        self._wires = [
            SocketWire(wire.name, sockets[uart], wire.model, limit_s=machine.callback_s) for uart, wire in wired.items()
        ]
        self._ask("query-status")

    @override
    def channel(self, name: str = "link") -> QemuChannel:
        return self._find_uart(name, self._channels, "that QEMU connects")

    @override
    def counters(self) -> Counters:
        qemu = self._board.qemu
        tick = qemu.instructions_per_tick if qemu else 1
        return Counters(instructions=None, resolution=tick, per_tick=tick)

    def died(self) -> EngineError:
        """Return the error for a QEMU that ended unexpectedly, and end the session."""
        self._failure = self._process.died()
        return self._failure

    def _ask(self, command: str) -> object:
        try:
            return self._monitor.command(command)
        except EngineError as error:
            raise self.died() from error

    def check_health(self) -> bool:
        """Return whether the core runs; EngineError if QEMU has ended or the firmware has recorded a fault."""
        status = self._ask("query-status")
        for wire in self._wires:
            wire.check()
        if self._recorded_fault() is not None:
            report = self.crash_report("the firmware faulted")
            self._failure = EngineError(report.reason, report=report)
            raise self._failure
        return not isinstance(status, dict) or bool(status.get("running", True))

    @override
    def _record_words(self, address: int) -> list[int]:
        return self._monitor.words(address, len(FIELDS))

    @override
    def crash_report(self, reason: str) -> CrashReport:
        self.require_running()
        self._ask("stop")  # only a halted core has consistent registers
        registers = self._monitor.registers()
        record = self._recorded_fault()
        self._ask("cont")
        if record is not None:
            reason, registers = record.reason, record.registers
        return self._report(reason, registers)

    @override
    def _end(self) -> None:
        for wire in self._wires:
            wire.stop()
        self._process.stop()
