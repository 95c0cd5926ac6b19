# SPDX-License-Identifier: Apache-2.0
"""Guards for device models: they limit accesses to memory and record the first failure."""

from __future__ import annotations

from ferrule._typing import override
from ferrule.boards import Board, Memory, MemoryKind
from ferrule.devices import Bus, BusError, Bytes, DeviceModel, GuardedBus, InterruptLine, RegisterModel
from ferrule.emulation.crash import EngineError
from ferrule.emulation.engine import AttachedDevice


class BoardBus:
    """A bus that refuses accesses outside the board's memories and writes to its flash; Renode only warns of them."""

    def __init__(self, bus: Bus, board: Board) -> None:
        self._bus = bus
        self._board = board

    def read(self, address: int, size_bytes: int) -> bytes:
        """Return a copy of the bytes at an address; BusError outside the memories."""
        self._check(address, size_bytes)
        return self._bus.read(address, size_bytes)

    def write(self, address: int, data: bytes) -> None:
        """Write bytes at an address; BusError outside the memories or in flash."""
        if self._check(address, len(data)).kind is MemoryKind.FLASH:
            raise BusError(f"the memory at {address:#010x} is read-only", address=address)
        self._bus.write(address, data)

    def view(self, address: int, size_bytes: int, *, writable: bool = False) -> Bytes:
        """Return the bytes at an address as an array; BusError as for `read` and `write`."""
        memory = self._check(address, size_bytes)
        if writable and memory.kind is MemoryKind.FLASH:
            raise BusError(f"the memory at {address:#010x} is read-only", address=address)
        return self._bus.view(address, size_bytes, writable=writable)

    def _check(self, address: int, size_bytes: int) -> Memory:
        for memory in self._board.memories:
            for base in (memory.address, *memory.aliases):
                if base <= address and address + size_bytes <= base + memory.size_bytes:
                    return memory
        raise BusError(f"{size_bytes} B at {address:#010x} are not in one memory of the board", address=address)


class GuardedModel(DeviceModel):
    """Wraps a device model and records its first refused access or first DMA outside its buffers."""

    def __init__(self, device: AttachedDevice, board: Board) -> None:
        super().__init__()
        self._device = device
        self._model = device.model
        self._board = board
        self._guard: GuardedBus | None = None
        self.failure: EngineError | None = None
        """The first failure, which ends the run; None if there is none."""

    @override
    def attach(self, *, bus: Bus | None = None, irq: InterruptLine | None = None) -> None:
        if bus is not None:
            bus = BoardBus(bus, self._board)
            if self._device.ranges:
                bus = self._guard = GuardedBus(bus, self._device.ranges)
        self._model.attach(bus=bus, irq=irq if self._device.interrupt is not None else None)

    @property
    @override
    def size_bytes(self) -> int:
        return self._model.size_bytes

    @override
    def reset(self) -> None:
        self._model.reset()

    @override
    def read(self, offset: int, width: int) -> int:
        try:
            value = self._model.read(offset, width)
        except BusError as error:
            raise self._refused(error) from error
        self._check()
        return value

    @override
    def write(self, offset: int, width: int, value: int) -> None:
        if self._guard is not None:
            self._guard.cause = f"a write of {value:#x} to {self._register(offset)}"
        try:
            self._model.write(offset, width, value)
        except BusError as error:
            raise self._refused(error) from error
        self._check()

    @override
    def advance(self, cycles: int) -> None:
        self._model.advance(cycles)
        self._check()

    @override
    def next_event(self) -> int | None:
        return self._model.next_event()

    def _refused(self, error: BusError) -> BusError:
        self._fail(EngineError(f"device {self._device.name}: {error}"))
        return error

    def _check(self) -> None:
        if self._guard is not None and self._guard.escapes:
            escape = self._guard.escapes[0]
            self._fail(
                EngineError(
                    f"device {self._device.name}: DMA outside of its buffers: {escape}",
                    hint="it may reach the model's workspace and weights, and its driver's context",
                )
            )

    def _fail(self, error: EngineError) -> None:
        if self.failure is None:
            self.failure = error

    def _register(self, offset: int) -> str:
        register = self._model.table.at(offset) if isinstance(self._model, RegisterModel) else None
        return f"offset {offset:#x}" if register is None else register.name
