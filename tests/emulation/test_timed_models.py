# SPDX-License-Identifier: Apache-2.0
"""The times at which a device model is woken: an attachment between a processor and a model that only record."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from ferrule.emulation.unicorn.attachment import Attachment


class Model:
    """Reports the given next event, and records the time that passes."""

    def __init__(self, event: int | None) -> None:
        self.event = event
        self.passed: list[int] = []

    def read(self, offset: int, width: int) -> int:
        return offset + width

    def write(self, offset: int, width: int, value: int) -> None:
        self.event = value

    def advance(self, cycles: int) -> None:
        self.passed.append(cycles)

    def next_event(self) -> int | None:
        return self.event


class Processor:
    """A clock that the test sets, and a timer that records its settings."""

    def __init__(self, now: int) -> None:
        self.now = self.exact_now = now
        self.due: list[int | None] = []
        self.expire: Callable[[], None] = lambda: None
        self.guest = SimpleNamespace(map_python=self._map)

    def timer(self, expire: Callable[[], None]) -> SimpleNamespace:
        self.expire = expire
        return SimpleNamespace(set=self.due.append)

    def _map(
        self, address: int, size_bytes: int, read: Callable[[int, int], int], write: Callable[[int, int, int], None]
    ) -> None:
        self.read, self.write = read, write


def attached(event: int | None) -> tuple[Processor, Model]:
    processor, model = Processor(1000), Model(event)
    Attachment(processor, model, address=0x4F00_0000, size_bytes=16)  # type: ignore[arg-type]
    return processor, model


@pytest.mark.parametrize(("event", "due"), [(0, 1001), (1, 1001), (2, 1002), (700, 1700)])
def test_an_event_is_at_least_a_cycle_ahead(event: int, due: int) -> None:
    assert attached(event)[0].due == [due]


def test_a_model_without_events_is_not_woken() -> None:
    processor, model = attached(None)
    assert processor.due == []
    processor.exact_now = 1010
    assert processor.read(8, 4) == 12
    processor.write(0, 4, 5)
    assert (processor.due, model.passed) == ([1015], [10])


def test_what_is_due_is_set_once_until_it_fires() -> None:
    processor, model = attached(100)
    model.event = 40
    processor.exact_now = 1060
    processor.read(0, 4)
    assert (processor.due, model.passed) == ([1100], [60])
    processor.now, model.event = 1100, 100
    processor.expire()
    assert (processor.due, model.passed) == ([1100, 1200], [60, 40])
    processor.now, model.event = 1200, 0
    processor.expire()
    processor.now = 1201
    processor.expire()
    assert processor.due == [1100, 1200, 1201, 1202]


def busy(event: int | None, *steps: tuple[int, int | None]) -> int:
    """Return how long a model was at work that has these events, each from a time on."""
    processor, model = Processor(1000), Model(event)
    attachment = Attachment(processor, model, address=0x4F00_0000, size_bytes=16)  # type: ignore[arg-type]
    for now, following in steps:
        processor.exact_now, model.event = now, following
        processor.read(0, 4)
    return attachment.busy


def test_a_model_is_at_work_while_it_announces_an_event() -> None:
    assert busy(None, (1010, None), (1020, 5)) == 0
    assert busy(100, (1040, 60), (1090, 10)) == 90
    assert busy(100, (1100, None), (1200, None)) == 100


def test_time_after_the_end_of_the_work_does_not_count() -> None:
    assert busy(100, (1107, None)) == 100
    assert busy(100, (1107, 50)) == 107  # it has begun the next piece of work by itself
