# SPDX-License-Identifier: Apache-2.0
"""Buses: plain memory for unit tests, and a guard around any bus."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn, Protocol, TypeVar

import numpy as np

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.devices.model import Bus, BusError, Bytes, DeviceFaultError, MemoryView, PassingBus

_T = TypeVar("_T")


class MemoryBus(MemoryView):
    """A bus for unit tests whose memories are numpy arrays at arbitrary addresses."""

    def __init__(self) -> None:
        self._memories: list[tuple[int, Bytes]] = []

    def add(self, address: int, data: Bytes | int) -> Bytes:
        """Map an array of bytes, or a new one of `data` zeros, at an address and return it."""
        array = np.zeros(data, np.uint8) if isinstance(data, int) else data
        self._memories.append((address, array))
        return array

    @override
    def view(self, address: int, size_bytes: int, *, writable: bool = False) -> Bytes:
        for base, array in self._memories:
            offset = address - base
            if offset >= 0 and offset + size_bytes <= array.size and (not writable or array.flags.writeable):
                return array[offset : offset + size_bytes]
        what = "writes" if writable else "reads"
        raise BusError(
            f"the device {what} {size_bytes} B at {address:#010x}, where there is no memory", address=address
        )


@frozen
class Range:
    """An address range that a device may access."""

    name: str
    address: int
    size_bytes: int
    writable: bool = True

    def holds(self, address: int, size_bytes: int) -> bool:
        """Return whether `size_bytes` bytes at an address lie entirely within the range."""
        return self.address <= address and address + size_bytes <= self.address + self.size_bytes


@frozen
class Escape:
    """An access by a device outside the ranges that it may access."""

    register: str
    """The cause of the transfer, such as a write of a register; see `GuardedBus.cause`."""
    address: int
    size_bytes: int
    write: bool

    @override
    def __str__(self) -> str:
        what = "write" if self.write else "read"
        return f"{what} of {self.size_bytes} B at {self.address:#010x}, asked for by {self.register}"


class Judge(Protocol):
    """Decides on each transfer of a device, beside its ranges."""

    def __call__(self, address: int, size_bytes: int, *, write: bool) -> DeviceFaultError | None:
        """Return the error for a transfer that is not allowed now, or None."""


class GuardedBus(PassingBus):
    """A bus that restricts a device to its ranges and records every access outside them.

    If `ranges` is None, it may access all memory. A judge may refuse more; the bus raises its error.
    """

    def __init__(self, bus: Bus, ranges: Sequence[Range] | None, judge: Judge | None = None) -> None:
        super().__init__(bus)
        self._ranges = None if ranges is None else tuple(ranges)
        self._judge = judge
        self.cause: str | Callable[[], str] = "no register"
        """The current register access in words, for messages; the caller of the device sets it."""
        self.escapes: list[Escape] = []
        self.breach: DeviceFaultError | None = None
        """The first error of the judge; None if there is none."""
        self.read_bytes = 0
        """Bytes that the device has read."""
        self.written_bytes = 0

    @override
    def pass_on(self, transfer: Callable[[int, int], _T], address: int, size_bytes: int, *, write: bool) -> _T:
        self._check(address, size_bytes, write=write)
        result = transfer(address, size_bytes)
        if write:
            self.written_bytes += size_bytes
        else:
            self.read_bytes += size_bytes
        return result

    @property
    def cause_text(self) -> str:
        """The current register access in words."""
        return self.cause if isinstance(self.cause, str) else self.cause()

    def _check(self, address: int, size_bytes: int, *, write: bool) -> None:
        if self._ranges is not None:
            for each in self._ranges:
                if each.holds(address, size_bytes) and (each.writable or not write):
                    break
            else:
                self._refuse(self._ranges, address, size_bytes, write=write)
        error = None if self._judge is None else self._judge(address, size_bytes, write=write)
        if error is not None:
            self.breach = self.breach or error
            raise error

    def _refuse(self, ranges: Sequence[Range], address: int, size_bytes: int, *, write: bool) -> NoReturn:
        escape = Escape(register=self.cause_text, address=address, size_bytes=size_bytes, write=write)
        self.escapes.append(escape)
        given = ", ".join(
            f"{r.name} {r.address:#010x}+{r.size_bytes:#x}{'' if r.writable else ' (read only)'}" for r in ranges
        )
        raise BusError(
            f"DMA outside of the device's buffers: {escape}; it was given {given or 'none'}", address=address
        )
