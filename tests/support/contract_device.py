# SPDX-License-Identifier: Apache-2.0
"""A device model that keeps or breaks each part of the contract between models and attachments, as a test chooses."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ferrule._typing import override
from ferrule.devices import Access, Register, RegisterModel, RegisterTable, SerialModel

PULSE, LEVEL, CLEAR, DMA, VALUE, RESET = range(0, 24, 4)
TABLE = RegisterTable(
    name="contract",
    registers=(
        Register("PULSE", PULSE, doc="the interrupt line rises and falls at once after so many cycles"),
        Register("LEVEL", LEVEL, doc="the interrupt line rises after so many cycles"),
        Register("CLEAR", CLEAR, doc="the interrupt line falls"),
        Register("DMA", DMA, doc="address of a byte to be incremented"),
        Register("VALUE", VALUE, doc="the value that the test chooses"),
        Register("RESET", RESET, access=Access.WRITE_ONLY, doc="ends the command in progress"),
    ),
    size_bytes=0x400,
)


class ContractDevice(RegisterModel):
    """Obeys its registers; a test replaces `on_value`, `on_time`, `on_event` or `on_clear` to break the contract."""

    table = TABLE

    def __init__(self) -> None:
        super().__init__()
        self.left = 0
        self.pulse = False
        self.on_value: Callable[[], object] = lambda: 7
        self.on_time: Callable[[], object] = lambda: None
        self.on_event: Callable[[], object] = lambda: self.left or None
        self.on_clear: Callable[[], object] = lambda: self.irq.set(False)
        self.on_reset: Callable[[], object] = lambda: None
        self.reset()

    @override
    def reset(self) -> None:
        super().reset()
        self.left = 0
        self.on_reset()

    @override
    def on_read(self, register: Register) -> int:
        return self.on_value() if register.offset == VALUE else super().on_read(register)  # type: ignore[return-value]

    @override
    def on_write(self, register: Register, old: int, new: int) -> None:
        if register.offset in {PULSE, LEVEL}:
            self.pulse, self.left = register.offset == PULSE, new
            if not new:
                self._rise()
        elif register.offset == CLEAR:
            self.on_clear()
        elif register.offset == DMA:
            self.bus.write(new, bytes([self.bus.read(new, 1)[0] + 1]))
        elif register.offset == RESET:
            self.reset()
        else:
            self.on_value()

    @override
    def advance(self, cycles: int) -> None:
        self.on_time()
        if 0 < self.left <= cycles:
            self._rise()
        self.left = max(self.left - cycles, 0)

    @override
    def next_event(self) -> int | None:
        return self.on_event()  # type: ignore[return-value]

    def _rise(self) -> None:
        self.irq.set(True)
        if self.pulse:
            self.irq.set(False)


class ContractLine(SerialModel):
    """Answers as the test chooses."""

    def __init__(self, answer: Callable[[], object]) -> None:
        super().__init__()
        self._answer = answer

    @override
    def receive(self, data: bytes) -> bytes:
        return self._answer()  # type: ignore[return-value]


def hang() -> None:
    """Never return, in Python code."""
    while True:
        time.sleep(0.001)


def stuck() -> None:
    """Wait for a long time inside of a C function."""
    threading.Event().wait(600)


def raises(error: BaseException) -> Callable[[], object]:
    """Return a function that raises an exception."""

    def function() -> object:
        raise error

    return function
