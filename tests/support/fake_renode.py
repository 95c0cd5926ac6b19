# SPDX-License-Identifier: Apache-2.0
"""A stand-in for Renode: a process with Renode's servers, whose firmware runs in the engine unicorn.

It knows the options, keywords and Monitor commands that Ferrule uses and refuses all others, as Renode does. Its wire
formats are written independently of the code under test. Environment variables choose the release (FAKE_RENODE_VERSION)
and the command that fails (FAKE_RENODE_FAILS).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import select
import socket
import struct
import sys
import tempfile
import threading
import time
import xmlrpc.server
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from ferrule._typing import override
from ferrule.boards import Board, Entry, load_board, read_platform
from ferrule.devices import BusError, DeviceModel
from ferrule.emulation import AttachedDevice, EngineError, Machine, engine
from ferrule.emulation.unicorn.session import UnicornChannel, UnicornSession

VERSION = os.environ.get("FAKE_RENODE_VERSION", "1.16.1")
NEW = tuple(int(part) for part in VERSION.split(".")[:2]) >= (1, 16)


class RefusedError(Exception):
    """The refusal of a Monitor command."""


def log(*words: object) -> None:
    """Write a line to standard output."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def read_exactly(connected: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connected.recv(size - len(data))
        if not more:
            raise OSError("the peer closed the connection")
        data += more
    return data


class Bridge(DeviceModel):
    """The stand-in for FerruleBridge.cs."""

    HEADER = struct.Struct("<IIIIQ")

    def __init__(self, port: int, size: int) -> None:
        super().__init__()
        self._size = size
        self._armed = self._elapsed = 0
        self._connected = socket.create_connection(("127.0.0.1", port), 60)
        self._exchange(1, 1, size, 0)

    def close(self) -> None:
        self._connected.close()

    @property
    @override
    def size_bytes(self) -> int:
        return self._size

    @override
    def reset(self) -> None:
        self._exchange(4, 0, 0, 0)

    @override
    def read(self, offset: int, width: int) -> int:
        return self._exchange(2, offset, width, 0)

    @override
    def write(self, offset: int, width: int, value: int) -> None:
        self._exchange(3, offset, width, value)

    @override
    def advance(self, cycles: int) -> None:
        self._elapsed += cycles
        if self._armed and self._elapsed >= self._armed:
            self._exchange(5, 0, 0, 0)

    @override
    def next_event(self) -> int | None:
        return max(1, self._armed - self._elapsed) if self._armed else None

    def _send(self, kind: int, a: int, b: int, c: int, d: int = 0, data: bytes = b"") -> None:
        self._connected.sendall(self.HEADER.pack(kind, a, b, c, d) + data)

    def _exchange(self, kind: int, a: int, b: int, c: int) -> int:
        self._send(kind, a, b, c, min(self._elapsed, self._armed) if self._armed else 0)
        while True:
            message, first, second, third, fourth = self.HEADER.unpack(read_exactly(self._connected, 24))
            match message:
                case 16:
                    self._dma(partial(self.bus.read, first, second))
                case 17:
                    data = read_exactly(self._connected, third)
                    self._dma(partial(self._write, first, data))
                case 19:
                    self.irq.set(bool(first))
                case 20:
                    read_exactly(self._connected, third)
                case 32:
                    if first:
                        log("[ERROR]", read_exactly(self._connected, third).decode())
                    self._armed, self._elapsed = fourth, 0
                    return int(second)
                case _:
                    raise AssertionError(message)

    def _write(self, address: int, data: bytes) -> bytes:
        self.bus.write(address, data)
        return b""

    def _dma(self, access: Callable[[], bytes]) -> None:
        try:
            data = access()
        except BusError as error:
            reason = str(error).encode()
            self._send(18, 1, 0, len(reason), data=reason)
        else:
            self._send(18, 0, 0, len(data), data=data)


WIDTHS = {1: 0, 2: 1, 4: 2, 8: 3}
GETS = {16: 1, 14: 2, 12: 4, 30: 8}
PUSHES = {15: 1, 13: 2, 11: 4, 29: 8}


class Cosimulated(DeviceModel):
    """Renode's end of the co-simulation socket, in one thread."""

    def __init__(self, size: int, limit: int, tick_cycles: int) -> None:
        super().__init__()
        self._size = size
        self._limit = limit
        self._tick_cycles, self._elapsed = tick_cycles, 0
        self._listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
        self._struct = struct.Struct("<iQQi" if NEW else "<iQQ")

    def close(self) -> None:
        for end in (self._main, self._async, *self._listeners):
            end.close()

    @property
    def parameters(self) -> str:
        main, other = (listener.getsockname()[1] for listener in self._listeners)
        return f"{main} {other} 127.0.0.1"

    def connect(self) -> None:
        for listener in self._listeners:
            listener.settimeout(5)
        try:
            self._main, self._async = (listener.accept()[0] for listener in self._listeners)
        except TimeoutError:
            raise RefusedError("Connection to the cosimulated peripheral failed!") from None
        self._send(10)
        if self._receive(self._main)[0] != 10:
            raise RefusedError("Connection to the cosimulated peripheral failed!")

    @property
    @override
    def size_bytes(self) -> int:
        return self._size

    @override
    def reset(self) -> None:
        """Do nothing: the machine is never reset here."""

    @override
    def read(self, offset: int, width: int) -> int:
        return self._exchange(21 + WIDTHS[width], offset, 0) & ((1 << 8 * width) - 1)

    @override
    def write(self, offset: int, width: int, value: int) -> None:
        self._exchange(25 + WIDTHS[width], offset, value)

    @override
    def advance(self, cycles: int) -> None:
        self._elapsed += cycles
        while 0 < self._tick_cycles <= self._elapsed:
            self._elapsed -= self._tick_cycles
            self._send(1, 0, self._limit)
            while self._serve(*self._receive(self._async)):
                pass

    @override
    def next_event(self) -> int | None:
        return self._tick_cycles - self._elapsed if self._tick_cycles else None

    def _send(self, action: int, address: int = 0, data: int = 0, index: int = -1) -> None:
        fields = (action, address, data, index) if NEW else (action, address, data)
        self._main.sendall(self._struct.pack(*fields))

    def _receive(self, connected: socket.socket) -> tuple[int, int, int]:
        action, address, data, *_ = self._struct.unpack(read_exactly(connected, self._struct.size))
        return action, address, data

    def _exchange(self, action: int, offset: int, value: int) -> int:
        self._send(action, offset, value, 0)
        while True:
            readable, _, _ = select.select([self._main, self._async], [], [], 60)
            if self._async in readable:
                self._serve(*self._receive(self._async))
            elif self._main in readable:
                return self._receive(self._main)[2]
            else:
                raise AssertionError("Receive error!")

    def _serve(self, action: int, address: int, data: int) -> bool:
        """Carry out a request of the peripheral; return False if it was the end of a tick."""
        if action == 6:
            self.irq.set(bool(data))
        elif action in GETS:
            self._send(2, 0, self._peek(address, GETS[action]))
        elif action in PUSHES:
            with contextlib.suppress(BusError):
                self.bus.write(address, data.to_bytes(8, "little")[: PUSHES[action]])
            self._send(31)
        elif action != 1:
            raise AssertionError(action)
        return action != 1

    def _peek(self, address: int, width: int) -> int:
        try:
            return int.from_bytes(self.bus.read(address, width), "little")
        except BusError:
            return 0


class Emulation:
    """The stand-in for Renode's emulation, with one machine."""

    def __init__(self, included: Sequence[str] = ()) -> None:
        self.lock = threading.RLock()
        self.closed = False
        self.board: Board | None = None
        self.devices: list[AttachedDevice] = []
        self.elf: Path | None = None
        self.session: UnicornSession | None = None
        self.listeners: dict[str, socket.socket] = {}
        self.uarts: dict[str, str] = {}
        self.running = False
        self.included = list(included)
        self.connections: list[socket.socket] = []

    def close(self) -> None:
        """End the machine; what has been compiled stays, as in Renode."""
        self.closed = True
        for each in (*self.listeners.values(), *self.connections):
            each.close()
        for device in self.devices:
            if isinstance(device.model, Bridge | Cosimulated):
                device.model.close()

    # ---- commands of the Monitor

    def execute(self, command: str) -> str:
        for pattern, function in self.COMMANDS:
            match = re.fullmatch(pattern, command)
            if match is not None:
                return function(self, *match.groups()) or ""
        raise RefusedError(f"No such command or device: {command.split(maxsplit=1)[0]}")

    def version(self) -> str:
        return f"Renode, version {VERSION} (stand-in)\r\n"

    def nothing(self, *_arguments: str) -> None:
        """Accept a command that has no effect here."""

    def include(self, name: str) -> None:
        if not Path(name).is_file():
            raise RefusedError(f"No such file {name}")
        if name in self.included:
            raise RefusedError(f"the classes of {name} exist already")
        self.included.append(name)

    def load_platform(self, name: str) -> None:
        using = re.match(r'using "(.+)\.repl"', Path(name).read_text(encoding="utf-8"))
        if using is None:
            raise RefusedError("a platform of Ferrule's was expected")
        self.board = load_board(using[1])
        for entry in read_platform(Path(name)).entries.values():
            model = self._model(entry)
            if model is not None:
                (place,), lines = entry.registrations, entry.interrupts
                line = lines[0].index if lines else None
                self.devices.append(
                    AttachedDevice(name=entry.name, model=model, address=place.address or 0, interrupt=line)
                )

    def _model(self, entry: Entry) -> DeviceModel | None:
        if entry.type == "Miscellaneous.FerruleBridge":
            if "FerruleBridge.cs" not in self.included:
                raise RefusedError(f"Could not resolve type: '{entry.type}'")
            return Bridge(entry.integer("port") or 0, entry.integer("size") or 0)
        if entry.type == ("CoSimulated.CoSimulatedPeripheral" if NEW else "Verilated.VerilatedPeripheral"):
            return self._cosimulated_model(entry)
        if entry.type.startswith(("Verilated.", "CoSimulated.")):
            raise RefusedError(f"Could not resolve type: '{entry.type}'")
        return None

    def _cosimulated_model(self, entry: Entry) -> Cosimulated:
        assert self.board is not None
        frequency, limit = entry.integer("frequency"), entry.integer("limitBuffer") or 1_000_000
        assert frequency is not None
        tick_cycles = limit * self.board.clock_hz // frequency if frequency else 0
        return Cosimulated(entry.registrations[0].point.size, limit, tick_cycles)  # type: ignore[union-attr]

    def _cosimulated(self, name: str) -> Cosimulated:
        for device in self.devices:
            if device.name == name and isinstance(device.model, Cosimulated):
                return device.model
        raise RefusedError(f"No such command or device: sysbus.{name}")

    def parameters(self, name: str) -> str:
        return self._cosimulated(name).parameters + "\r\r\n"

    def connect_device(self, name: str) -> None:
        self._cosimulated(name).connect()

    def load_elf(self, name: str) -> None:
        self.elf = Path(name)

    def terminal(self, port: str, name: str) -> None:
        self.listeners[name] = socket.create_server(("127.0.0.1", int(port)))

    def connect_terminal(self, uart: str, name: str) -> None:
        if name not in self.listeners:
            raise RefusedError(f"{name} is not an external")
        self.uarts[uart] = name

    def executed(self) -> str:
        return f"0x{self._running.counters().instructions:016X}\r\r\n"

    def word(self, address: str) -> str:
        data = self._running._guest.read_memory(int(address, 0), 4)
        return f"0x{int.from_bytes(data, 'little'):08X}\r\r\n"

    def register(self, number: str) -> str:
        names = [*(f"r{index}" for index in range(13)), "sp", "lr", "pc"]
        return f"0x{self._running._guest.registers()[names[int(number)]]:08X}\r\r\n"

    def pause(self) -> str:
        self.running = False
        return "Pausing emulation...\r\n\r"

    def start(self) -> str:
        self.running = True
        return "Starting emulation...\r\n\r"

    COMMANDS: ClassVar[list[tuple[str, Callable[..., str | None]]]] = [
        (r"version", version),
        (r"emulation (SetSeed \d+|SetGlobalQuantum \"[\d.]+\"|SetGlobalAdvanceImmediately true)", nothing),
        (r'mach create "\w+"', nothing),
        (r"include @(\S+)", include),
        (r"machine LoadPlatformDescription @(\S+)", load_platform),
        (r"sysbus\.\w+ (PerformanceInMips \d+|VectorTableOffset 0x[0-9a-f]+)", nothing),
        (r"sysbus LoadELF @(\S+)", load_elf),
        (r"sysbus\.(\w+) ConnectionParameters", parameters),
        (r"sysbus\.(\w+) Connect", connect_device),
        (r'emulation CreateServerSocketTerminal (\d+) "(\w+)" false', terminal),
        (r"connector Connect sysbus\.(\w+) (\w+)", connect_terminal),
        (r"sysbus\.\w+ ExecutedInstructions", executed),
        (r"sysbus ReadDoubleWord (0x[0-9a-f]+)", word),
        (r"sysbus\.\w+ GetRegister (\d+)", register),
        (r"pause", pause),
        (r"start", start),
    ]

    # ---- the firmware

    @property
    def _running(self) -> UnicornSession:
        if self.session is None:
            raise RefusedError("the machine has not started")
        return self.session

    def start_all(self) -> None:
        if self.board is None or self.elf is None:
            raise RefusedError("there is nothing to start")
        session = engine("unicorn").start(Machine(board=self.board, elf=self.elf, devices=tuple(self.devices)))
        assert isinstance(session, UnicornSession)
        self.session, self.running = session, True
        threading.Thread(target=self._run, args=(session,), daemon=True).start()

    def _run(self, session: UnicornSession) -> None:
        channels = {self.listeners[name].accept()[0]: session.channel(uart) for uart, name in self.uarts.items()}
        self.connections = list(channels)
        while True:
            with self.lock:
                if self.closed:
                    return
                for connected, channel in channels.items():
                    self._move(connected, channel)
            time.sleep(0.001)  # give a keyword the chance to take the lock

    def _move(self, connected: socket.socket, channel: UnicornChannel) -> None:
        """Carry bytes both ways; once the firmware has failed, nothing more is read from it."""
        readable, _, _ = select.select([connected], [], [], 0 if self.running else 0.01)
        if readable:
            channel.write(connected.recv(65536))
        if not self.running:
            return
        try:
            data = channel.read(65536, 0.02)
        except EngineError as error:
            log("[ERROR]", error)
            self.running = False
            return
        if data:
            connected.sendall(data)


class Keywords:
    """The robot server."""

    def __init__(self, server: xmlrpc.server.SimpleXMLRPCServer) -> None:
        self._server = server
        self._emulation = Emulation()
        self._fails = os.environ.get("FAKE_RENODE_FAILS", "nothing at all")

    def get_keyword_names(self) -> list[str]:
        return ["ExecuteCommand", "StartEmulation"]

    def run_keyword(self, name: str, arguments: list[object]) -> dict[str, object]:
        try:
            with self._emulation.lock:
                return {"status": "PASS", "return": self._run(name, [str(argument) for argument in arguments])}
        except (RefusedError, EngineError, OSError) as error:
            text = f"KeywordException: Could not execute command '{arguments}': {error}\n"
            return {"status": "FAIL", "error": text, "traceback": "at Antmicro.Renode"}

    def _run(self, name: str, arguments: list[str]) -> str:
        match name, arguments:
            case "ExecuteCommand", [command]:
                if self._fails in command:
                    raise RefusedError("it fails on purpose")
                if os.environ.get("FAKE_RENODE_DIES", "nothing at all") in command:
                    log("a last word")
                    os._exit(3)
                return self._emulation.execute(command)
            case "ResetEmulation", []:
                self._emulation.close()
                self._emulation = Emulation(self._emulation.included)
                return ""
            case "StartEmulation", []:
                self._emulation.start_all()
                return ""
        raise xmlrpc.client.Fault(1, f'Keyword "{name}" not found')

    def stop_remote_server(self) -> str:
        threading.Thread(target=self._server.shutdown, daemon=True).start()
        return ""


def main() -> int:
    """Run the stand-in."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--version", action="store_true")
    parser.add_argument("--disable-gui", action="store_true")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--robot-server-port", type=int)
    parser.add_argument("--config")
    options = parser.parse_args()
    if options.version:
        log(f"Renode v{VERSION}.0\n  build: stand-in")
        return 0
    with xmlrpc.server.SimpleXMLRPCServer(
        ("127.0.0.1", options.robot_server_port), logRequests=False, allow_none=True
    ) as server:
        server.register_instance(Keywords(server))
        folder = Path(tempfile.gettempdir()) / f"renode-{os.getpid()}"
        folder.mkdir()
        (folder / "robot_port").write_text(str(server.server_address[1]))
        server.serve_forever(poll_interval=0.05)
    os._exit(0)  # the core's thread must not outlive the interpreter's shutdown


if __name__ == "__main__":
    sys.exit(main())
