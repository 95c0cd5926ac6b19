# SPDX-License-Identifier: Apache-2.0
"""Faults of serial lines, wrapped around any model: bytes that are lost, damaged, repeated or delayed."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.devices.serial import SerialModel


class LineFaultKind(StrEnum):
    """The effect of a fault on a byte."""

    LOST = "lost"
    DAMAGED = "damaged"
    """The bits in `mask` are flipped."""
    REPEATED = "repeated"
    """The byte arrives `count` additional times."""
    LATE = "late"
    """The byte and all later ones are held back until the other end has polled `count` more times."""


@frozen
class LineFault:
    """One fault in one direction of the line."""

    at: int
    """Index of the byte, counted from 0 since the start."""
    kind: LineFaultKind
    to_device: bool
    """True for bytes sent to the device, False for bytes sent by it."""
    mask: int = 0x01
    """The bits that DAMAGED flips, 1 to 255."""
    count: int = 1


class _Direction:
    """Carries the bytes of one direction in order and applies the faults."""

    def __init__(self, faults: Iterable[LineFault]) -> None:
        self._faults = {fault.at: fault for fault in faults}
        self._passed = 0
        self._held = b""
        self._asked = 0

    def carry(self, data: bytes) -> bytes:
        """Return the bytes that arrive now, among them those held back earlier."""
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
    """A serial model behind a faulty line."""

    def __init__(self, model: SerialModel, faults: Iterable[LineFault]) -> None:
        super().__init__()
        faults = tuple(faults)
        self._model = model
        self.deadline_s = model.deadline_s
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
