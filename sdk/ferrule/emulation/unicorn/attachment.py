# SPDX-License-Identifier: Apache-2.0
"""Attaches a device model with time and interrupts to the guest's bus.

The elapsed time is reported to a model before each access and when its next event is due; in between, the model costs
nothing. Its interrupt line is `Processor.line(number)`, the memory for its DMA `Guest.memory_view(address, size)`.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

from ferrule.emulation.unicorn.processor import Processor

MOST_WORKS = 4096
"""The most pieces of work of which the times are kept."""


class TimedModel(Protocol):
    """The interface of device models for the engine; widths are in bytes, times in instructions."""

    def read(self, offset: int, width: int) -> int:
        """Return the value of the register at an offset."""

    def write(self, offset: int, width: int, value: int) -> None:
        """Write the register at an offset."""

    def advance(self, cycles: int) -> None:
        """Let time pass for the model."""

    def next_event(self) -> int | None:
        """Return the number of cycles until the model's next internal event, or None."""


class Attachment:
    """A device model attached at an address."""

    def __init__(self, processor: Processor, model: TimedModel, *, address: int, size_bytes: int) -> None:
        """Map the model's registers.

        Raises:
            EngineError: the address range is occupied, or there are too many timers.
        """
        self._processor = processor
        self._model = model
        self._seen = processor.now
        self._ends: int | None = None
        self.busy = 0
        """Instructions that have passed while the model announced an event, up to its end."""
        self.idle_since: int | None = self._seen
        """The time since when the model has announced no event; None while it announces one."""
        self._begun: int | None = None
        """When the piece of work that goes on began."""
        self._worked: deque[tuple[int, int]] = deque(maxlen=MOST_WORKS)
        self._timer = processor.timer(self._expire)
        self._due: int | None = None
        processor.guest.map_python(address, size_bytes, self._read, self._write)
        self._arm()

    def worked(self) -> list[tuple[int, int]]:
        """Return when each piece of work since the last call began and ended, at the event that the model announced.

        Of more than a few thousand, the first ones are dropped.
        """
        done = list(self._worked)
        self._worked.clear()
        return done

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
            ends = self._ends
            if ends is not None:
                over = now >= ends and self._model.next_event() is None
                self.busy += passed - (now - ends if over else 0)
                if self._begun is not None and now >= ends:
                    self._worked.append((self._begun, ends))
                    self._begun = None if over else ends

    def _arm(self) -> None:
        event = self._model.next_event()
        if event is not None:
            self.idle_since = None
            if self._begun is None:
                self._begun = self._seen
        elif self.idle_since is None:
            self.idle_since = self._seen
        self._ends = due = None if event is None else self._seen + max(event, 1)
        if due != self._due:  # a polling firmware accesses often, mostly without a change
            self._due = due
            self._timer.set(due)
