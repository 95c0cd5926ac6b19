# SPDX-License-Identifier: Apache-2.0
"""Threads that wait for a device of tests/device, each of which goes on when the test tells it to."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from fake_device import Bench, CObject, Event, Fake

from ferrule.link.protocol import Status

DEFAULT = 2**32 - 1
"""FERRULE_WAIT_DEFAULT."""


@dataclass(slots=True)
class Waiter:
    """A thread that stops before each of its calls of the platform's lock, and goes on when it is told to."""

    number: int
    call: Callable[[], int]
    status: int | None = None
    _turn: threading.Semaphore = field(default_factory=partial(threading.Semaphore, 0))
    _stopped: threading.Semaphore = field(default_factory=partial(threading.Semaphore, 0))
    _thread: threading.Thread | None = None

    @property
    def is_current(self) -> bool:
        return threading.current_thread() is self._thread

    def start(self) -> None:
        """Run the call up to the first lock."""
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()
        assert self._stopped.acquire(timeout=20)

    def _work(self) -> None:
        self.status = self.call()
        self._stopped.release()

    def stop(self) -> None:
        """Let the others run, until `go`."""
        self._stopped.release()
        self._turn.acquire()  # a thread that a failed test leaves behind waits for ever

    def go(self) -> None:
        """Go on until the next lock, or the end."""
        assert self.status is None
        self._turn.release()
        assert self._stopped.acquire(timeout=20)


class Queue(Bench):
    """A device that thread 1 has open, and threads that wait for it."""

    def __init__(self, fake: Fake) -> None:
        super().__init__(fake)
        self.waiters: list[Waiter] = []
        self.bring("open")
        self.fake.watch(self._happens)
        self._when: dict[Event, Callable[[], None]] = {}

    def _happens(self, event: Event) -> None:
        for waiter in self.waiters:
            if waiter.is_current:
                if event is Event.LOCK:
                    waiter.stop()
                    self.fake.state.thread = waiter.number
                return
        if event in self._when:
            self._when.pop(event)()

    def when(self, event: Event, action: Callable[[], None]) -> None:
        """Run `action` once, before the event takes effect in a thread that is not a waiter."""
        self._when[event] = action

    def _as(self, thread: int, action: Callable[[], None]) -> None:
        with self.fake.thread(thread):
            action()

    def wait(self, number: int, *, priority: int = 0, call: Callable[[], int] | None = None) -> Waiter:
        """Let a thread begin to wait for the device."""
        waiter = Waiter(number, call or self.open)
        self.waiters.append(waiter)
        self.fake.state.priorities[number] = priority
        self._as(number, waiter.start)
        return waiter

    def go(self, waiter: Waiter) -> int | None:
        self._as(waiter.number, waiter.go)
        return waiter.status

    def open(self, timeout_us: int = DEFAULT, stop: CObject = None, kept: CObject = None) -> int:
        null = self.fake.null
        return int(self.lib.ferrule_device_open_in_turn(self.dev, timeout_us, stop or null, kept or null))

    def again(self) -> int:
        """Let thread 1 close the device and open it again at once."""
        assert self.call("close") == Status.OK
        self.fake.events()
        return self.open()

    @property
    def users(self) -> int:
        return int(self.lib.fake_users(self.dev))

    def leave_to(self, *order: Waiter) -> None:
        """Let thread 1 close the device, and each waiter have it in turn; all others give way."""
        assert self.call("close") == Status.OK
        for index, next_ in enumerate(order):
            for other in order[index + 1 :]:
                assert self.go(other) is None, f"thread {other.number} overtook thread {next_.number}"
            assert self.go(next_) == Status.OK
            with self.fake.thread(next_.number):
                assert self.call("close") == Status.OK
