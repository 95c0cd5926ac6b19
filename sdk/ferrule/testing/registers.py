# SPDX-License-Identifier: Apache-2.0
"""Devices behind a driver's register accesses on the host: models or arrays, with a log of the accesses."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.devices import BusError, Bytes, DeviceFaultError, DeviceModel, MemoryBus
from ferrule.devices.hosting import Host, HostedModel
from ferrule.errors import FerruleError, unknown_name
from ferrule.testing.fakes import Fakes
from ferrule.testing.kit_contract import ACCESSES, Access, KitContract, Shared

_WORD_BYTES = 4
_FIRST_SHARED = 0x2000_0000
_GAP_BYTES = 64
"""At least, between memories that are shared."""
_PAGE_BYTES = 4096
"""A bus address has the alignment of its pointer up to this."""


@frozen
class RegisterAccess:
    """A read or write of a register."""

    offset: int
    name: str
    """Name from the table passed to `attach`, otherwise the offset."""
    write: bool
    value: int

    @override
    def __str__(self) -> str:
        return f"{self.name} {'<-' if self.write else '->'} {self.value:#x}"


class ArrayModel(DeviceModel):
    """Registers that store written values: an array of words that the test sets and inspects."""

    def __init__(self, words: npt.NDArray[np.uint32]) -> None:
        super().__init__()
        if words.dtype != np.uint32 or words.ndim != 1:
            raise FerruleError(
                f"registers are one row of uint32, not {words.dtype} of shape {words.shape}",
                hint="numpy.zeros(16, numpy.uint32)",
            )
        self._words = words

    @property
    @override
    def size_bytes(self) -> int:
        return int(self._words.size) * _WORD_BYTES

    @override
    def reset(self) -> None:
        self._words[:] = 0

    @override
    def read(self, offset: int, width: int) -> int:
        return int(self._words[self._index(offset, width)])

    @override
    def write(self, offset: int, width: int, value: int) -> None:
        self._words[self._index(offset, width)] = value

    @staticmethod
    def _index(offset: int, width: int) -> int:
        if width != _WORD_BYTES or offset % _WORD_BYTES:
            raise BusError(f"an access of {width} B at offset {offset:#x}: registers are words", address=offset)
        return offset // _WORD_BYTES


class Registers:
    """A device's register window, with a log of the accesses."""

    def __init__(
        self,
        *,
        base: int,
        model: DeviceModel,
        names: Mapping[int, str],
        fakes: Fakes,
        interrupt: Callable[[], object] | None,
        contract: KitContract,
    ) -> None:
        self.base = base
        self.model = HostedModel(model, name=f"{type(model).__name__} at {base:#x}", host=Host(judge=self._judge))
        self._contract = contract
        self.log: list[RegisterAccess] = []
        """Every access, in order."""
        self._names = names
        self._fakes = fakes
        self._line = _Line(interrupt, self.model.name)
        self._time_us = fakes.now_us
        self._event_us: int | None = None
        self._one_at_a_time = threading.RLock()
        self.model.attach(irq=self._line)
        self._size_bytes = self.model.size_bytes

    def _judge(self, address: int, size_bytes: int, *, write: bool) -> DeviceFaultError | None:
        return self._contract.judge(self.model.name, address, size_bytes, write=write, cause=lambda: self.model.cause)

    @property
    def trace(self) -> list[str]:
        """The accesses as text, such as "CONTROL <- 0x1"."""
        return [str(access) for access in self.log]

    def holds(self, address: int) -> bool:
        """Return whether an address is in the window."""
        return self.base <= address < self.base + self._size_bytes

    def access(self, address: int, width: int, *, write: bool, value: int) -> int:
        """Perform an access of the driver; an interrupt that it raises follows immediately."""
        with self._one_at_a_time:
            self._contract.accessed(self.model.name)
            self.advance()
            offset = address - self.base
            if write:
                self.model.write(offset, width, value)
            else:
                value = self.model.read(offset, width)
            name = self._names.get(offset, f"{offset:#x}")
            self.log.append(RegisterAccess(offset=offset, name=name, write=write, value=value))
            self._after()
            return value

    def advance(self) -> None:
        """Advance the model to the time of the fakes; a cycle is a microsecond."""
        now = self._fakes.now_us
        if now > self._time_us:
            passed, self._time_us = now - self._time_us, now
            self.model.advance(passed)

    def _after(self) -> None:
        event = self.model.next_event()
        due = None if event is None else self._time_us + event
        if due is not None and due != self._event_us:
            self._event_us = due
            self._fakes.at_ms((due - self._fakes.now_us) / 1000, self._happen)
        if self._line.wants_service:
            self._fakes.at_ms(0, self._line.serve)

    def _happen(self) -> None:
        with self._one_at_a_time:
            self._event_us = None
            self.advance()
            self._after()


@dataclass
class _Line:
    """An interrupt line into the C under test; the handler runs after a rise, and again if it leaves the line high."""

    _handler: Callable[[], object] | None
    _name: str
    _level: bool = False
    _pending: bool = False
    _serving: bool = False
    _masked: bool = False

    def set(self, level: bool) -> None:
        """Raise or lower the line."""
        self._pending = self._pending or (level and not self._level)
        self._level = level

    @property
    def wants_service(self) -> bool:
        """Whether the handler must run."""
        return (self._level or self._pending) and self._handler is not None and not self._serving and not self._masked

    def serve(self) -> None:
        """Run the handler until the line is low, or the handler returns False because it cannot lower the line."""
        if self._handler is None or self._serving or self._masked:
            return
        self._serving = True
        try:
            for _ in range(1000):
                if not (self._level or self._pending) or self._masked:
                    return
                self._pending = False
                self._masked = self._handler() is False
            raise FerruleError(
                f"interrupt storm: the handler ran a thousand times, and the line of {self._name} is still high",
                hint="the handler clears the cause of the interrupt in the device, or returns false to mask it",
            )
        finally:
            self._serving = False


class RegisterSpace:
    """All register windows of a library under test."""

    def __init__(self, fakes: Fakes) -> None:
        self._windows: list[Registers] = []
        self._fakes = fakes
        self.memory = MemoryBus()
        """The memory that devices access as bus masters."""
        self.contract = KitContract(fakes.keep_error)
        self._shared: list[Shared] = []
        self._callbacks = (
            fakes.ffi.callback("uint32_t (uintptr_t, uint32_t, uint32_t, uint32_t)", self._access),
            fakes.ffi.callback("uint32_t (uintptr_t)", self._bus_address),
            fakes.ffi.callback("void (const struct ferrule_fake_device *)", self.contract.called),
        )
        fakes.library.ferrule_fake_use_mmio(self._callbacks[0])
        fakes.library.ferrule_fake_use_bus(self._callbacks[1])
        fakes.library.ferrule_fake_use_devices(self._callbacks[2])

    def clear(self) -> None:
        """Remove all windows and shared memory."""
        self._windows.clear()
        self._shared.clear()
        self.contract.clear()
        self.memory = MemoryBus()

    def share(self, data: Bytes, address: int | None, *, access: Access, name: str) -> int:
        """Make an array of bytes accessible to devices, and return its bus address."""
        if access not in ACCESSES:
            raise unknown_name("access", access, ACCESSES)
        if address is None:
            address = max((each.end + _GAP_BYTES for each in self._shared), default=_FIRST_SHARED)
            address += (data.ctypes.data - address) % _PAGE_BYTES
        for other in self._shared:
            if address < other.end and other.address < address + data.size:
                raise FerruleError(f"the memory at {address:#010x} overlaps that at {other.address:#010x}")
        shared = Shared(data=data, address=address, access=access, name=name)
        self._shared.append(shared)
        self.memory.add(address, data)
        self.contract.share(shared)
        return address

    def add(self, window: Registers) -> None:
        """Add a window to the space."""
        last = window.base + window.model.size_bytes - 1
        for other in self._windows:
            if other.holds(window.base) or other.holds(last) or window.holds(other.base):
                raise FerruleError(f"the registers at {window.base:#010x} overlap those at {other.base:#010x}")
        self._windows.append(window)

    def _access(self, address: int, width: int, write: int, value: int) -> int:
        try:
            return self._window(address, write=bool(write)).access(address, width, write=bool(write), value=value)
        except BaseException as error:  # noqa: BLE001 C cannot pass it on
            self._fakes.keep_error(error)
            return 0xFFFF_FFFF  # a common value on a bus error; it also ends a wait for a bit to be set

    def _bus_address(self, pointer: int) -> int:
        if pointer == 0:
            return 0  # as on a board
        for each in self._shared:
            offset = pointer - each.data.ctypes.data
            if 0 <= offset < each.data.size:
                return each.address + offset
        self._fakes.keep_error(
            FerruleError(
                f"devices cannot access the memory at {pointer:#x}",
                hint="share(...) memory before a driver passes its address to a device",
            )
        )
        return 0

    def _window(self, address: int, *, write: bool) -> Registers:
        for window in self._windows:
            if window.holds(address):
                return window
        what = "written" if write else "read"
        raise BusError(f"register {address:#010x} is {what}, where no device is attached", address=address)
