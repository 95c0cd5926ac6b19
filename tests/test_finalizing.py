# SPDX-License-Identifier: Apache-2.0
"""A handler of signals that is called within a finalizer puts the signal off; elsewhere it may raise."""

from __future__ import annotations

import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from types import FrameType

import pytest

from ferrule.finalizing import put_off

NUMBER = signal.SIGTERM


@pytest.fixture
def again() -> Iterator[threading.Event]:
    """Set when the signal comes."""
    came = threading.Event()
    before = signal.signal(NUMBER, lambda _number, _frame: came.set())
    yield came
    signal.signal(NUMBER, before)


class Dying:
    """Calls a function when it is deleted."""

    def __init__(self, function: Callable[[], None]) -> None:
        self._function = function

    def __del__(self) -> None:
        self._function()


def by_deletion(function: Callable[[], None]) -> None:
    Dying(function)


def by_finalize(function: Callable[[], None]) -> None:
    owner = Dying(lambda: None)
    weakref.finalize(owner, function)
    del owner


@pytest.mark.parametrize("finalizing", [by_deletion, by_finalize])
def test_a_signal_in_a_finalizer_comes_again(
    finalizing: Callable[[Callable[[], None]], None], again: threading.Event
) -> None:
    answers: list[bool] = []
    finalizing(lambda: answers.append(put_off(NUMBER, sys._getframe())))
    assert answers == [True]
    assert again.wait(60)


@pytest.mark.parametrize("frame", [None, sys._getframe()])
def test_a_signal_elsewhere_is_not_put_off(frame: FrameType | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "Timer", None)  # none is made
    assert not put_off(NUMBER, frame)


def test_a_handler_that_was_taken_away_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    timers: list[Callable[[int], None]] = []

    class Timer:
        daemon = False

        def __init__(self, _delay_s: float, function: Callable[[int], None], _arguments: tuple[int]) -> None:
            timers.append(function)

        def start(self) -> None:
            """Start nothing."""

    monkeypatch.setattr(threading, "Timer", Timer)
    by_deletion(lambda: None if put_off(NUMBER, sys._getframe()) else pytest.fail("it is put off"))
    before = signal.signal(NUMBER, signal.SIG_DFL)
    try:
        timers[0](NUMBER)  # would end the process
    finally:
        signal.signal(NUMBER, before)
