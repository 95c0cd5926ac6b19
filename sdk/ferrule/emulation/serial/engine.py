# SPDX-License-Identifier: Apache-2.0
"""The engine serial: a real board, with the firmware on it, behind a serial port."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ferrule._typing import override
from ferrule.boards import Board
from ferrule.emulation.engine import Clock, Counters, Engine, EngineOptions, Machine, Session
from ferrule.errors import FerruleError, unknown_name
from ferrule.interface import either
from ferrule.link import Channel, SerialChannel

ROLES = ("link", "console")
"""What the port of a real board may be; which of them it is depends on the firmware."""


@dataclass
class SerialSession(Session):
    """A real board, of which only the port is visible, be it the link or the console."""

    _channel: SerialChannel

    @override
    def channel(self, name: str = "link") -> Channel:
        if name not in ROLES:
            raise unknown_name("UART", name, ROLES, where="that is connected on a real board")
        return self._channel

    @override
    def counters(self) -> Counters:
        return Counters(instructions=None, resolution=1, unit="cycles")

    @override
    def stop(self) -> None:
        self._channel.close()


class SerialEngine(Engine):
    """Communicates with a board through pyserial: a port's name, or a URL such as socket://host:port."""

    name = "serial"

    @override
    def refuses(self, board: Board, devices: Sequence[str] = ()) -> str | None:
        if devices:
            names = ", ".join(devices)
            return f"device models ({names}) can't be put into a real board; the engines unicorn and renode have them"
        return None

    @override
    def refuses_clock(self, board: Board, clock: Clock) -> str | None:
        if clock is Clock.INSTRUCTIONS:
            return None
        return "a real board counts its own cycles, which the engine serial reports without a model"

    @override
    def lacks(self, options: EngineOptions) -> FerruleError | None:
        if options.port is not None:
            return None
        return FerruleError(
            "the engine serial needs the board's port",
            hint=f"{either('--port', 'EngineOptions(port=...)')} is /dev/ttyUSB0, COM3 or socket://host:port; list "
            "them: python -m serial.tools.list_ports",
        )

    @override
    def _start(self, machine: Machine) -> Session:
        return SerialSession(SerialChannel(machine.options.port or "", baud=machine.options.baud))
