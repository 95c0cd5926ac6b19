# SPDX-License-Identifier: Apache-2.0
"""Faults of serial lines, wrapped round any model: bytes that are lost, damaged, repeated or late."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from ferrule._typing import override
from ferrule.devices.serial import SerialModel


class LineFaultKind(StrEnum):
    """What happens to a byte."""

    LOST = "lost"
    DAMAGED = "damaged"
    """Its bits in `mask` are flipped."""
    REPEATED = "repeated"
    """It comes `count` times more."""
    LATE = "late"
    """It, and all behind it, comes after the other end has asked `count` times more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFault:
    """One fault in one direction."""

    at: int
    """Which byte since the start, from 0."""
    kind: LineFaultKind
    to_device: bool
    """Whether it is on its way to the device; otherwise from it."""
    mask: int = 0x01
    """1 to 255."""
    count: int = 1


class _Direction:
    """The bytes of one direction, in their order."""

    def __init__(self, faults: Iterable[LineFault]) -> None:
        self._faults = {fault.at: fault for fault in faults}
        self._passed = 0
        self._held = b""
        self._asked = 0

    def carry(self, data: bytes) -> bytes:
        """Return what arrives of some bytes, and of those that were late."""
        self._asked -= 1
        arrived = bytearray()
        if self._asked <= 0:
            arrived += self._held
            self._held = b""
        for byte in data:
            fault = self._faults.get(self._passed)
            self._passed += 1
            if fault is not None and fault.kind is LineFaultKind.LATE:
                self._asked = max(self._asked, 0) + fault.count
            passed = _changed(byte, fault)
            if self._asked > 0:
                self._held += passed
            else:
                arrived += passed
        return bytes(arrived)


class FaultyLine(SerialModel):
    """A model behind a line with faults."""

    def __init__(self, model: SerialModel, faults: Iterable[LineFault]) -> None:
        super().__init__()
        faults = tuple(faults)
        self._model = model
        self._there = _Direction(fault for fault in faults if fault.to_device)
        self._back = _Direction(fault for fault in faults if not fault.to_device)

    @override
    def receive(self, data: bytes) -> bytes:
        return self._back.carry(self._model.receive(self._there.carry(data)))


def _changed(byte: int, fault: LineFault | None) -> bytes:
    match fault:
        case LineFault(kind=LineFaultKind.LOST):
            return b""
        case LineFault(kind=LineFaultKind.DAMAGED, mask=mask):
            return bytes([byte ^ mask])
        case LineFault(kind=LineFaultKind.REPEATED, count=count):
            return bytes([byte]) * (1 + count)
        case _:
            return bytes([byte])
