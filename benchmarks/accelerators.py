# SPDX-License-Identifier: Apache-2.0
"""The speed of a driver's access to a device model, for each way of attaching one: register reads, DMA bandwidth.

The model has a register that is read repeatedly, and copies blocks of 64 KiB, reading and writing each byte once. On
unicorn the driver is a firmware; on the host it is compiled for this machine. For Renode's co-simulation socket and for
the bridge, this program acts as Renode over a local socket, so Renode's own time is not included. Times are wall-clock
times of this machine. Run it from a checkout: python benchmarks/accelerators.py
"""

from __future__ import annotations

import select
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from guest import build_guest

from ferrule import override
from ferrule.boards import load_board
from ferrule.devices import Register, RegisterModel, RegisterTable
from ferrule.emulation import AttachedDevice
from ferrule.emulation.renode import (
    GETS,
    HEADER,
    Action,
    BridgeMessage,
    BridgeServer,
    CosimulationPeer,
    Kind,
    Message,
    Stream,
    WireFormat,
    receive,
)
from ferrule.emulation.unicorn.session import UnicornSession
from ferrule.testing import build_driver

HERE = Path(__file__).resolve().parent
BOARD = "mps2-an386"
BASE = 0x4F00_0000
BLOCK_BYTES = 1 << 16
VALUE, SOURCE, TARGET, BYTES, START = range(0, 20, 4)
NAMES = ("VALUE", "SOURCE", "TARGET", "BYTES", "START")
TABLE = RegisterTable(
    name="copier",
    registers=tuple(Register(name=name, offset=4 * index) for index, name in enumerate(NAMES)),
    size_bytes=0x400,
)


class Copier(RegisterModel):
    """Copies a block when START is written."""

    table = TABLE

    def __init__(self) -> None:
        super().__init__()
        self.reset()

    @override
    def on_write(self, register: Register, old: int, new: int) -> None:
        if register.name == "START":
            data = self.bus.read(self.value("SOURCE"), self.value("BYTES"))
            self.bus.write(self.value("TARGET"), data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result for one way of attaching."""

    way: str
    accesses: float
    """Register reads per second."""
    bandwidth: float
    """Bytes per second, read and written."""


def timed(work: Callable[[], object], times: int = 1) -> float:
    """Return the seconds that a number of calls take together."""
    start = time.perf_counter()
    for _ in range(times):
        work()
    return time.perf_counter() - start


def rate(way: str, reads: int, read_s: float, copies: int, copy_s: float) -> Result:
    """Return the result of two measurements."""
    return Result(way=way, accesses=reads / read_s, bandwidth=2 * BLOCK_BYTES * copies / copy_s)


def on_unicorn(reads: int = 200_000, copies: int = 20_000) -> Result:
    """Measure a firmware on the embedded engine's bus."""
    values = {"BASE": BASE, "READS": reads, "COPIES": copies, "BYTES": BLOCK_BYTES}
    flags = [*(f"-DBENCH_{name}={value}u" for name, value in values.items()), f"-I{HERE}"]
    with tempfile.TemporaryDirectory() as folder:
        machine = build_guest(
            "arm-none-eabi-gcc", "accelerators", load_board(BOARD), Path(folder) / "a.elf", HERE, flags
        )
        device = AttachedDevice(name="copier", model=Copier(), address=BASE)
        with UnicornSession(replace(machine, devices=(device,))) as session:
            channel = session.channel()
            word(channel.read)
            read_s = timed(lambda: word(channel.read))
            copy_s = timed(lambda: word(channel.read))
    return rate("unicorn", reads, read_s, copies, copy_s)


def word(read: Callable[[int, float], bytes]) -> None:
    """Wait for the next word from the firmware."""
    data = b""
    while len(data) < 4:
        data += read(4 - len(data), 600)


def on_the_host(reads: int = 50_000, copies: int = 20_000) -> Result:
    """Measure the driver in a unit test."""
    driver = build_driver(sources=[HERE / "accelerators.c"], headers=["accelerators.h"], include_dirs=[HERE])
    driver.attach(BASE, Copier())
    driver.memory(0x1000_0000, BLOCK_BYTES)
    driver.memory(0x2000_0000, BLOCK_BYTES)
    lib = driver.lib
    read_s = timed(lambda: lib.bench_read(BASE, reads))
    copy_s = timed(lambda: lib.bench_copy(BASE, 0x1000_0000, 0x2000_0000, BLOCK_BYTES, copies))
    return rate("unit test", reads, read_s, copies, copy_s)


class CosimulationSide:
    """Renode's end of the co-simulation socket, with memory that reads as zero."""

    def __init__(self) -> None:
        ours, theirs = zip(socket.socketpair(), socket.socketpair(), strict=True)
        self._main, self._async = ours
        self._peer = CosimulationPeer(Copier(), *(Stream(end, name="peer", timeout_s=60) for end in theirs))
        self._thread = threading.Thread(target=self._peer.serve)
        self._thread.start()

    def access(self, action: Action, offset: int, value: int = 0) -> None:
        """Read or write a register, and serve the DMA that it triggers."""
        self._send(Message(action=action, address=offset, data=value))
        while True:
            ready, _, _ = select.select([self._main, self._async], [], [], 60)
            if self._async not in ready:
                self._receive(self._main)
                return
            asked = self._receive(self._async)
            if asked.action in GETS.values():
                self._send(Message(action=Action.WRITE_TO_BUS))
            elif asked.action != Action.INTERRUPT:
                self._send(Message(action=Action.PUSH_CONFIRMATION))

    def close(self) -> None:
        """End the session."""
        self._send(Message(action=Action.DISCONNECT))
        self._thread.join()
        self._peer.close()
        self._main.close()
        self._async.close()

    def _send(self, message: Message) -> None:
        self._main.sendall(message.encode(WireFormat.V1_16))

    @staticmethod
    def _receive(end: socket.socket) -> Message:
        return Message.decode(end.recv(WireFormat.V1_16.size_bytes, socket.MSG_WAITALL), WireFormat.V1_16)


def behind_cosimulation(reads: int = 5000, copies: int = 2) -> Result:
    """Measure the model behind the co-simulation socket."""
    side = CosimulationSide()
    for offset, value in ((SOURCE, 0x1000_0000), (TARGET, 0x2000_0000), (BYTES, BLOCK_BYTES)):
        side.access(Action.WRITE_DOUBLE_WORD, offset, value)
    read_s = timed(lambda: side.access(Action.READ_DOUBLE_WORD, VALUE), reads)
    copy_s = timed(lambda: side.access(Action.WRITE_DOUBLE_WORD, START, 1), copies)
    side.close()
    return rate("co-simulation socket", reads, read_s, copies, copy_s)


class BridgeSide:
    """The bridge's end of its connection, with memory that reads as zero."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self._stream = Stream(ours, name="bridge", timeout_s=60)
        self._server = BridgeServer(Copier(), Stream(theirs, name="model", timeout_s=60))
        self._thread = threading.Thread(target=self._server.serve)
        self._thread.start()

    def access(self, kind: Kind, offset: int, value: int = 0) -> None:
        """Read or write a register, and serve the DMA that it triggers."""
        self._stream.send(HEADER.pack(kind, offset, 4, value, 0))
        while (asked := receive(self._stream)).kind != Kind.ANSWER:
            if asked.kind == Kind.GET:
                self._stream.send(BridgeMessage(kind=Kind.DATA, data=bytes(asked.b)).encode())
            elif asked.kind == Kind.PUT:
                self._stream.read(asked.c)
                self._stream.send(BridgeMessage(kind=Kind.DATA).encode())

    def close(self) -> None:
        """End the session."""
        self._stream.close()
        self._thread.join()
        self._server.close()


def behind_the_bridge(reads: int = 5000, copies: int = 2000) -> Result:
    """Measure the model behind the peripheral that Renode compiles."""
    side = BridgeSide()
    for offset, value in ((SOURCE, 0x1000_0000), (TARGET, 0x2000_0000), (BYTES, BLOCK_BYTES)):
        side.access(Kind.WRITE, offset, value)
    read_s = timed(lambda: side.access(Kind.READ, VALUE), reads)
    copy_s = timed(lambda: side.access(Kind.WRITE, START, 1), copies)
    side.close()
    return rate("Renode bridge", reads, read_s, copies, copy_s)


def main() -> None:
    """Print a table."""
    print(f"{'attachment':<22}{'register reads/s':>18}{'DMA MB/s':>12}")
    for measure in (on_unicorn, on_the_host, behind_cosimulation, behind_the_bridge):
        result = measure()
        print(f"{result.way:<22}{result.accesses:>18,.0f}{result.bandwidth / 1e6:>12,.2f}", flush=True)


if __name__ == "__main__":
    main()
