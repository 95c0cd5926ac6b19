# SPDX-License-Identifier: Apache-2.0
"""Serves a device model to Renode's co-simulation socket, as the peripheral's end of CoSimulationPlugin.

Renode listens on two ports, and the peripheral connects to both: first to `main` (requests, their replies and the
replies to DMA), then to `async` (messages that the peripheral initiates: DMA, interrupts, log lines, acknowledged
ticks). The messages are those of Renode 1.16 (24 bytes) and of 1.15 and earlier (20 bytes, without the index).
"""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass, replace
from enum import Enum, IntEnum

import numpy as np

from ferrule._frozen import frozen
from ferrule.devices import BusError, Bytes, DeviceFaultError, DeviceModel
from ferrule.devices.hosting import HostedModel, hosted
from ferrule.emulation.renode.errors import RenodeConnectionError, RenodeError
from ferrule.emulation.renode.stream import Stream

_MASK64 = (1 << 64) - 1


class Action(IntEnum):
    """The action of a message."""

    INVALID = 0
    TICK_CLOCK = 1
    WRITE_TO_BUS = 2
    """Also the reply to a GET."""
    READ_FROM_BUS = 3
    """Also the reply to a read."""
    RESET_PERIPHERAL = 4
    LOG_MESSAGE = 5
    INTERRUPT = 6
    DISCONNECT = 7
    ERROR = 8
    OK = 9
    HANDSHAKE = 10
    PUSH_DOUBLE_WORD = 11
    GET_DOUBLE_WORD = 12
    PUSH_WORD = 13
    GET_WORD = 14
    PUSH_BYTE = 15
    GET_BYTE = 16
    READ_BYTE = 21
    READ_WORD = 22
    READ_DOUBLE_WORD = 23
    READ_QUAD_WORD = 24
    WRITE_BYTE = 25
    WRITE_WORD = 26
    WRITE_DOUBLE_WORD = 27
    WRITE_QUAD_WORD = 28
    PUSH_QUAD_WORD = 29
    GET_QUAD_WORD = 30
    PUSH_CONFIRMATION = 31
    STEP = 100


READS = {
    Action.READ_FROM_BUS: 4,
    Action.READ_BYTE: 1,
    Action.READ_WORD: 2,
    Action.READ_DOUBLE_WORD: 4,
    Action.READ_QUAD_WORD: 8,
}
"""Width in bytes by read request; WRITES has the same for write requests."""
WRITES = {
    Action.WRITE_TO_BUS: 4,
    Action.WRITE_BYTE: 1,
    Action.WRITE_WORD: 2,
    Action.WRITE_DOUBLE_WORD: 4,
    Action.WRITE_QUAD_WORD: 8,
}
GETS = {1: Action.GET_BYTE, 2: Action.GET_WORD, 4: Action.GET_DOUBLE_WORD, 8: Action.GET_QUAD_WORD}
"""DMA reads by width in bytes; PUSHES has the same for DMA writes."""
PUSHES = {1: Action.PUSH_BYTE, 2: Action.PUSH_WORD, 4: Action.PUSH_DOUBLE_WORD, 8: Action.PUSH_QUAD_WORD}


class UntimelyInterruptError(RenodeError):
    """An interrupt rose within a tick, where Renode cannot accept it; it was not sent, and serving may continue."""


SYSTICK_RELOAD = 0xE000_E014
"""Address of SYST_RVR, in Armv7-M and Armv8-M."""


class WireFormat(Enum):
    """The layouts of a message, both little-endian and packed."""

    V1_15 = "<iQQ"
    """Releases up to 1.15: action, address, data."""
    V1_16 = "<iQQi"
    """1.16 and later: action, address, data, index of the peripheral."""

    @property
    def size_bytes(self) -> int:
        """Size of a message in bytes."""
        return struct.calcsize(self.value)


@frozen
class Message:
    """One message of the co-simulation protocol."""

    action: int
    address: int = 0
    data: int = 0
    index: int = -1

    def encode(self, wire: WireFormat) -> bytes:
        """Return the message's bytes in a wire format."""
        fields = (self.action, self.address & _MASK64, self.data & _MASK64)
        return struct.pack(wire.value, *fields, *((self.index,) if wire is WireFormat.V1_16 else ()))

    @classmethod
    def decode(cls, data: bytes, wire: WireFormat) -> Message:
        """Return the message in `data`, whose size is that of the wire format."""
        action, address, value, *index = struct.unpack(wire.value, data)
        return cls(action=action, address=address, data=value, index=index[0] if index else -1)


class LogLevel(IntEnum):
    """The levels of Renode's log."""

    NOISY = -1
    DEBUG = 0
    INFO = 1
    WARNING = 2
    ERROR = 3


class CosimulationPeer:
    """Serves a device model to one of Renode's peripherals, in one thread.

    The model's `bus` transfers up to 8 bytes per message, and its `irq` is line 0; both work only while a request is
    being served, during which Renode's core is halted.
    """

    def __init__(
        self,
        model: DeviceModel | HostedModel,
        main: Stream,
        asynchronous: Stream,
        *,
        wire: WireFormat = WireFormat.V1_16,
        index: int = 0,
    ) -> None:
        self._model = hosted(model)
        self._main = main
        self._async = asynchronous
        self._wire = wire
        self._index = index if wire is WireFormat.V1_16 else -1
        self._level: bool | None = None
        self._edges: list[bool] = []
        self._resetting = False
        self._ticks = False
        self._deferred: deque[Message] = deque()
        self.warnings: list[str] = []
        """The reasons of refused register accesses, which Renode only logs."""
        self._model.attach(bus=CosimulationBus(self), irq=self)

    @classmethod
    def connect(
        cls,
        model: DeviceModel,
        main_port: int,
        async_port: int,
        host: str = "127.0.0.1",
        *,
        wire: WireFormat = WireFormat.V1_16,
        index: int = 0,
        timeout_s: float = 60.0,
    ) -> CosimulationPeer:
        """Connect to a waiting peripheral, `main` first, and return the peer, which owns the connections."""
        main = Stream.connect(host, main_port, name="co-simulation, main", timeout_s=timeout_s)
        try:
            other = Stream.connect(host, async_port, name="co-simulation, async", timeout_s=timeout_s)
        except RenodeConnectionError:
            main.close()
            raise
        return cls(model, main, other, wire=wire, index=index)

    def serve(self) -> None:
        """Answer requests until Renode disconnects.

        Raises:
            RenodeConnectionError: the connection broke, or was idle for longer than its time-out.
            UntimelyInterruptError: an interrupt rose within a tick.
            DeviceFaultError: the model broke its contract; the access was answered as refused.
            RenodeError: Renode sent a message that the protocol does not have.
        """
        while self.serve_one():
            pass

    def serve_one(self) -> bool:
        """Wait for one request and answer it; return False once Renode disconnects."""
        request = self._deferred.popleft() if self._deferred else self._receive()
        match request.action:
            case Action.HANDSHAKE:
                self._reply(Message(action=Action.HANDSHAKE))
            case Action.DISCONNECT:
                return False
            case Action.RESET_PERIPHERAL:
                self._serve_reset()
            case Action.TICK_CLOCK:
                self._serve_tick(request.data)
            case Action.INTERRUPT:
                self._reply(Message(action=Action.OK))  # models have no inputs
            case action if action in READS:
                self._serve_access(request, READS[Action(action)], write=False)
            case action if action in WRITES:
                self._serve_access(request, WRITES[Action(action)], write=True)
            case _:
                raise RenodeError(f"Renode requests the action {request.action}, which a peripheral does not have")
        return True

    def close(self) -> None:
        """Close both connections."""
        self._main.close()
        self._async.close()

    def log(self, text: str, level: LogLevel = LogLevel.INFO) -> None:
        """Write a line to Renode's log."""
        data = text.encode("ascii", "replace")
        self._send(Message(action=Action.LOG_MESSAGE, address=len(data), data=level))
        self._async.send(data)

    # ---- DMA, used by the bus

    def get(self, address: int, width: int) -> int:
        """Read `width` bytes (1, 2, 4 or 8) of the guest's memory as a little-endian number."""
        self._send(Message(action=GETS[width], address=address, index=self._index))
        reply = self._await(Action.WRITE_TO_BUS)
        return reply.data & ((1 << 8 * width) - 1)

    def push(self, address: int, width: int, value: int) -> None:
        """Write `width` bytes (1, 2, 4 or 8) of the guest's memory."""
        self._send(Message(action=PUSHES[width], address=address, data=value, index=self._index))
        self._await(Action.PUSH_CONFIRMATION)

    def set(self, level: bool) -> None:
        """Raise or lower the interrupt line: a model gets the peer as its line. Changes are sent before the next reply.

        The core is halted until then and its interrupt controller takes several rises as one, so a fall and a rise that
        follow a rise which is not sent yet are left out.
        """
        if level is self._level:
            return
        self._level = level
        self._edges.append(level)
        if self._edges[-3:] == [True, False, True]:
            del self._edges[-2:]

    # ---- requests

    def _serve_reset(self) -> None:
        self._resetting = True
        try:
            self._model.reset()  # it has no reply
            self._flush_interrupt()
        finally:
            self._resetting = False

    def _serve_access(self, request: Message, width: int, *, write: bool) -> None:
        reply = Message(action=Action.OK, index=request.index)
        if not write:
            reply = replace(reply, action=Action.READ_FROM_BUS, address=request.address)
        try:
            if not write:
                reply = replace(reply, data=self._model.read(request.address, width))
            else:
                self._model.write(request.address, width, request.data & ((1 << 8 * width) - 1))
                if self._ticks:
                    self._model.next_event()  # not needed here, but checked as everywhere else
                else:
                    self._model.settle()
        except BusError as error:
            self.warnings.append(str(error))
            reply = replace(reply, action=Action.ERROR)
        except DeviceFaultError:
            self._reply(replace(reply, action=Action.ERROR))  # Renode waits for each answer, the last one too
            raise
        self._flush_interrupt()
        self._reply(reply)

    def _serve_tick(self, cycles: int) -> None:
        try:
            self._model.advance(cycles)
        except DeviceFaultError:
            self._send(Message(action=Action.TICK_CLOCK))
            raise
        possible = self._line_can_change()
        if possible:
            self._flush_interrupt()
        self._send(Message(action=Action.TICK_CLOCK))
        if not possible:
            raise UntimelyInterruptError(
                "its interrupt rose within a tick, where it would deadlock Renode: SysTick is in use, "
                "or Renode is older than 1.16",
                hint="let its driver poll, or put it behind the bridge with the engine renode",
            )

    def _line_can_change(self) -> bool:
        """Return whether Renode can accept the unsent change of the interrupt line within a tick.

        A rising interrupt makes Renode's NVIC modify the SysTick timer if SysTick has a reload value; before 1.16 the
        NVIC accesses the timer in any case. Renode, however, holds the lock of all timers until the tick is
        acknowledged.
        """
        if True not in self._edges:
            return True
        return self._wire is WireFormat.V1_16 and self.get(SYSTICK_RELOAD, 4) == 0

    def use_ticks(self) -> None:
        """Let the model's time pass with Renode's ticks; otherwise it needs no time, and writes complete at once."""
        self._ticks = True

    def _flush_interrupt(self) -> None:
        """Send the changes of the line, and make sure that Renode has processed them before the core continues.

        Renode handles asynchronous messages in order, so a read of memory after the messages is a barrier.
        """
        if not self._edges:
            return
        edges, self._edges = self._edges, []
        for level in edges:
            self._send(Message(action=Action.INTERRUPT, data=int(level), index=self._index))
        self.get(0, 4)

    # ---- messages

    def _await(self, action: Action) -> Message:
        """Return the reply to DMA; requests that arrive before it are served later.

        A reset has no reply, so it may arrive at any time, directly followed by a request.
        """
        while True:
            message = self._receive()
            if message.action == action:
                return message
            if message.action == Action.RESET_PERIPHERAL or self._after_reset(message):
                self._deferred.append(message)
                continue
            raise RenodeError(f"Renode sent the action {message.action} where {action.name} was expected")

    def _after_reset(self, message: Message) -> bool:
        resets = self._resetting or any(each.action == Action.RESET_PERIPHERAL for each in self._deferred)
        return resets and (message.action in READS or message.action in WRITES or message.action == Action.TICK_CLOCK)

    def _receive(self) -> Message:
        return Message.decode(self._main.read(self._wire.size_bytes), self._wire)

    def _reply(self, message: Message) -> None:
        self._main.send(message.encode(self._wire))

    def _send(self, message: Message) -> None:
        self._async.send(message.encode(self._wire))


@dataclass
class CosimulationBus:
    """The guest's memory through the co-simulation socket; slow, with a round trip for every 8 bytes."""

    _peer: CosimulationPeer

    def read(self, address: int, size_bytes: int) -> bytes:
        """Return a copy of the bytes at an address."""
        return b"".join(
            self._peer.get(at, width).to_bytes(width, "little") for at, width in _pieces(address, size_bytes)
        )

    def write(self, address: int, data: bytes) -> None:
        """Write bytes at an address."""
        for at, width in _pieces(address, len(data)):
            piece = data[at - address : at - address + width]
            self._peer.push(at, width, int.from_bytes(piece, "little"))

    def view(self, address: int, size_bytes: int, *, writable: bool = False) -> Bytes:
        """Return a copy of the bytes; BusError if `writable`, which a connection cannot provide."""
        if writable:
            raise BusError("a view through the co-simulation socket is a copy, which can't be written", address=address)
        return np.frombuffer(self.read(address, size_bytes), np.uint8)


def _pieces(address: int, size_bytes: int) -> list[tuple[int, int]]:
    """Return the widest possible aligned accesses that cover a range, as pairs (address, width)."""
    pieces, end = [], address + size_bytes
    while address < end:
        width = next(w for w in (8, 4, 2, 1) if address % w == 0 and address + w <= end)
        pieces.append((address, width))
        address += width
    return pieces
