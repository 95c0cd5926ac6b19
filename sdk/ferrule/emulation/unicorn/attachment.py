# SPDX-License-Identifier: Apache-2.0
"""Puts a device model that knows time and interrupts onto the guest's bus.

A model is told how much time has passed before each access and when its next event is due; in between it costs
nothing. Its interrupt line is `Processor.line(number)`, the memory for its DMA `Guest.memory_view(address, size)`.
"""

from __future__ import annotations

from typing import Protocol

from ferrule.emulation.unicorn.processor import Processor


class TimedModel(Protocol):
    """A device model as the engine sees it; offsets, widths (in bytes) and times (in instructions) are integers."""

    def read(self, offset: int, width: int) -> int:
        """Return a register."""

    def write(self, offset: int, width: int, value: int) -> None:
        """Set a register."""

    def advance(self, cycles: int) -> None:
        """Let time pass."""

    def next_event(self) -> int | None:
        """Return in how many cycles something happens by itself; None: never."""


class Attachment:
    """A device model at an address."""

    def __init__(self, processor: Processor, model: TimedModel, *, address: int, size_bytes: int) -> None:
        """Map the model's registers.

        Raises:
            EngineError: something else is there, or there are too many timers.
        """
        self._processor = processor
        self._model = model
        self._seen = processor.now
        self._timer = processor.timer(self._expire)
        self._due: int | None = None
        processor.guest.map_python(address, size_bytes, self._read, self._write)
        self._arm()

    def _read(self, offset: int, width: int) -> int:
        self._advance(self._processor.exact_now)
        value = self._model.read(offset, width)
        self._arm()
        return value

    def _write(self, offset: int, width: int, value: int) -> None:
        self._advance(self._processor.exact_now)
        self._model.write(offset, width, value)
        self._arm()

    def _expire(self) -> None:
        self._due = None  # a timer fires once
        self._advance(self._processor.now)
        self._arm()

    def _advance(self, now: int) -> None:
        passed, self._seen = now - self._seen, now
        if passed > 0:
            self._model.advance(passed)

    def _arm(self) -> None:
        event = self._model.next_event()
        due = None if event is None else self._seen + max(event, 1)
        if due != self._due:  # a firmware that polls asks often, and mostly for nothing new
            self._due = due
            self._timer.set(due)
