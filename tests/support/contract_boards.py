# SPDX-License-Identifier: Apache-2.0
"""One board for each way of attaching a device model, all with the same methods; see test_device_contracts.py."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fake_renode
from contract_device import CLEAR, ContractDevice

from ferrule._typing import override
from ferrule.boards import load_board
from ferrule.devices import DeviceModel, MemoryBus, Range
from ferrule.emulation import AttachedDevice, EngineOptions, Machine
from ferrule.emulation.gdb.packets import frame
from ferrule.emulation.renode.attachment import Attachment, BridgeAttachment, CosimulationAttachment
from ferrule.emulation.unicorn.session import UnicornSession
from ferrule.errors import FerruleError
from ferrule.firmware import read_image
from ferrule.testing import Adapter, build_driver

NAME, BASE, LINE = "npu0", 0x4F00_0000, 26
RAM, RAM_BYTES = 0x2000_0000, 64
NOWHERE = 0x3000_0000
"""An address without memory, outside of all buffers of the device."""
SUPPORT = Path(__file__).parent


class Board(ABC):
    """A core with an interrupt handler that clears the device's interrupt, and memory for the device's DMA."""

    memory = RAM
    """Address of the memory that the device may access."""

    @abstractmethod
    def read(self, offset: int) -> int:
        """Read a register; raise what the run would raise."""

    @abstractmethod
    def write(self, offset: int, value: int) -> None:
        """Write a register; raise what the run would raise."""

    @abstractmethod
    def let_pass(self, cycles: int) -> None:
        """Let at least this time pass."""

    @property
    @abstractmethod
    def interrupts(self) -> int:
        """The number of interrupts that the core has taken."""

    @abstractmethod
    def byte(self, address: int) -> int:
        """Return a byte of the memory."""

    @abstractmethod
    def report(self) -> str:
        """Return the report on a run that did not end."""


class UnicornBoard(Board):
    """The engine unicorn, whose firmware obeys commands."""

    PATIENCE_S = 20.0

    def __init__(self, session: UnicornSession) -> None:
        self._session = session
        self._channel = session.channel()
        self.memory = self._ask("m")

    @override
    def read(self, offset: int) -> int:
        return self._ask("r", offset)

    @override
    def write(self, offset: int, value: int) -> None:
        self._ask("w", offset, value)

    @override
    def let_pass(self, cycles: int) -> None:
        self._ask("p", cycles)

    @property
    @override
    def interrupts(self) -> int:
        return self._ask("i")

    @override
    def byte(self, address: int) -> int:
        return self._session._guest.read_memory(address, 1)[0]

    @override
    def report(self) -> str:
        return str(self._session.crash_report("no end"))

    def _ask(self, command: str, *words: int) -> int:
        self._channel.write(command.encode() + struct.pack(f"<{max(len(words), 1)}I", *(words or (0,))))
        data = b""
        while len(data) < 4:
            more = self._channel.read(4 - len(data), self.PATIENCE_S)
            if not more:
                raise TimeoutError(command)
            data += more
        return int.from_bytes(data, "little")


@contextlib.contextmanager
def unicorn(machine: Machine, model: ContractDevice, *, gdb: bool = False) -> Iterator[Board]:
    """Attach the model to the bus of the engine unicorn; with `gdb`, a debugger lets the firmware run."""
    ranges = (Range(name="buffer", address=read_image(machine.elf).address_of("buffer"), size_bytes=RAM_BYTES),)
    device = AttachedDevice(name=NAME, model=model, address=BASE, interrupt=LINE, ranges=ranges)
    options = EngineOptions(gdb=0 if gdb else None)
    with UnicornSession(replace(machine, devices=(device,), options=options)) as session:
        if session._debugger is not None:
            threading.Thread(target=_continue, args=(session._debugger._connection.port,), daemon=True).start()
        yield UnicornBoard(session)


def _continue(port: int) -> None:
    """Act as a GDB that lets the firmware run whenever it halts, until it has ended."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)) as gdb:
        gdb.sendall(frame(b"c"))
        while data := gdb.recv(4096):
            if b"$X" in data:
                return
            if b"$S" in data:
                gdb.sendall(b"+" + frame(b"c"))


class HostBoard(Board):
    """A driver compiled for this machine."""

    def __init__(self, driver: Adapter[Any], model: ContractDevice) -> None:
        self._driver = driver
        self._count = 0
        driver.reset()
        driver.attach(BASE, model, interrupt=self._interrupt)
        self._memory = driver.memory(RAM, RAM_BYTES)

    def _interrupt(self) -> None:
        self._count += 1
        self._driver.lib.contract_write(BASE + CLEAR, 1)

    @override
    def read(self, offset: int) -> int:
        return int(self._driver.lib.contract_read(BASE + offset))

    @override
    def write(self, offset: int, value: int) -> None:
        self._driver.lib.contract_write(BASE + offset, value)

    @override
    def let_pass(self, cycles: int) -> None:
        self._driver.fakes.advance_ms(cycles / 1000)

    @property
    @override
    def interrupts(self) -> int:
        return self._count

    @override
    def byte(self, address: int) -> int:
        return int(self._memory[address - RAM])

    @override
    def report(self) -> str:
        return ""  # a unit test has no report: the storm itself is an error


def host_driver() -> Adapter[Any]:
    """Return the driver of one access, compiled for this machine."""
    return build_driver(sources=[SUPPORT / "contract_driver.c"], headers=["contract_driver.h"], include_dirs=[SUPPORT])


@contextlib.contextmanager
def host(driver: Adapter[Any], model: ContractDevice) -> Iterator[Board]:
    """Attach the model to a driver under test on the host."""
    yield HostBoard(driver, model)


class RenodeBoard(Board):
    """Ferrule's end of a connection to Renode, whose end and core the stand-in plays in this process."""

    MOST = 1000

    def __init__(self, attachment: Attachment, end: DeviceModel) -> None:
        self._attachment = attachment
        self._end = end
        self._count = 0
        self._level = self._pending = False
        self._memory = MemoryBus()
        self._bytes = self._memory.add(RAM, RAM_BYTES)
        end.attach(bus=self._memory, irq=self)

    def set(self, level: bool) -> None:
        """Latch a rise, as the interrupt controller does."""
        self._pending = self._pending or (level and not self._level)
        self._level = level

    @override
    def read(self, offset: int) -> int:
        return self._served(self._end.read(offset, 4))

    @override
    def write(self, offset: int, value: int) -> None:
        self._end.write(offset, 4, value)
        self._served()

    @override
    def let_pass(self, cycles: int) -> None:
        event = self._end.next_event()
        while event is not None and event <= cycles:
            self._end.advance(event)
            self._served()
            cycles -= event
            event = self._end.next_event()
        self._end.advance(cycles)
        self._served()

    @property
    @override
    def interrupts(self) -> int:
        return self._count

    @override
    def byte(self, address: int) -> int:
        return int(self._bytes[address - RAM])

    @override
    def report(self) -> str:
        return "\n".join(self._attachment.model.notes)

    def _served(self, value: int = 0) -> int:
        """Run the handler while an interrupt is pending; raise the attachment's failure, as the session does."""
        for _ in range(self.MOST):
            if self._attachment.failure is not None:
                raise self._attachment.failure
            if not self._pending and not self._level:
                return value
            self._pending = False
            self._count += 1
            self._end.write(CLEAR, 4, 1)
        raise TimeoutError("the handler does not end")


def _device(model: ContractDevice) -> AttachedDevice:
    ranges = (Range(name="buffer", address=RAM, size_bytes=RAM_BYTES),)
    return AttachedDevice(name=NAME, model=model, address=BASE, interrupt=LINE, ranges=ranges)


def _listen() -> tuple[socket.socket, int]:
    listener = socket.create_server(("127.0.0.1", 0))
    return listener, int(listener.getsockname()[1])


@contextlib.contextmanager
def bridge(model: ContractDevice) -> Iterator[Board]:
    """Attach the model behind FerruleBridge.cs."""
    process: Any = SimpleNamespace(listen=_listen)
    attachment = BridgeAttachment(_device(model), load_board("mps2-an386"), process)
    end = fake_renode.Bridge(attachment._port, model.size_bytes)
    try:
        yield RenodeBoard(attachment, end)
    finally:
        attachment.ending()
        end.close()
        attachment.stop()


@contextlib.contextmanager
def cosimulation(model: ContractDevice, *, ticks: bool = False) -> Iterator[Board]:
    """Attach the model behind the co-simulation socket."""
    process: Any = SimpleNamespace(connect=lambda port: socket.create_connection(("127.0.0.1", port)))
    attachment = CosimulationAttachment(_device(model), load_board("mps2-an386"), process, (1, 16), ticks=ticks)
    end = fake_renode.Cosimulated(model.size_bytes, 100, 100 if ticks else 0)

    def execute(command: str) -> str:
        if command.endswith("ConnectionParameters"):
            return end.parameters
        end.connect()
        return ""

    robot: Any = SimpleNamespace(execute=execute)
    try:
        attachment.connect(robot)
        yield RenodeBoard(attachment, end)
    finally:
        attachment.ending()
        end.close()
        attachment.stop()


def raised(board: Board, *accesses: tuple[str, int, int]) -> FerruleError | None:
    """Make accesses (`read` or `write`, offset, value) and let time pass; return the error, None if there is none."""
    try:
        for kind, offset, value in accesses:
            if kind == "read":
                board.read(offset)
            else:
                board.write(offset, value)
        board.let_pass(1000)
    except FerruleError as error:
        return error
    return None
