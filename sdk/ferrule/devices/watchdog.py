# SPDX-License-Identifier: Apache-2.0
"""Ends calls of device models that do not return, without a cost for the calls that do.

A thread looks at the stacks of all threads a few times a second. A call that is still on a stack when its deadline has
passed is interrupted by an exception in its thread. Code inside a C function, such as a long `time.sleep`, receives the
exception when the function returns. In the main thread a SIGINT ends such a wait too, if its handler raises an
exception: Python's own, or one that `raising_handler` makes. A C function that holds Python's lock cannot be
interrupted.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Protocol

POLL_S = 0.2
"""Time between two looks at the stacks; a call is interrupted at most this much after its deadline."""


class OverdueError(BaseException):
    """Raised within a call that has passed its deadline; code that catches `Exception` does not catch it."""


class Watched(Protocol):
    """An object whose methods, those in `Watchdog.entries`, have a deadline."""

    deadline_s: float
    """Longest time in seconds of one call."""

    def overdue(self, frame: FrameType, elapsed_s: float, *, again: bool) -> None:
        """Note that a call is being interrupted, once more if `again`."""


class Watchdog:
    """The thread that looks at the stacks; it runs while any watched object exists."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        """Held during a look, so that no call is interrupted while another thread holds it."""
        self.entries: set[CodeType] = set()
        """The code of the methods that have a deadline; `self` is the watched object."""
        self._watched: weakref.WeakSet[Watched] = weakref.WeakSet()
        self._ticks: list[weakref.WeakMethod[Callable[[float], None]]] = []
        self._calls: dict[FrameType, tuple[float, int]] = {}
        """By call in progress: the time of the first look at it, and the number of its interruptions."""
        self._thread: threading.Thread | None = None
        self._handlers: weakref.WeakSet[Callable[[int, FrameType | None], None]] = weakref.WeakSet()
        self._forced = False

    def watch(self, watched: Watched) -> None:
        """Start to watch an object, for as long as it exists."""
        with self.lock:
            self._watched.add(watched)
            self._start()

    def every_look(self, method: Callable[[float], None]) -> None:
        """Call a bound method with the time at each look, for as long as its object exists."""
        with self.lock:
            self._ticks.append(weakref.WeakMethod(method))
            self._start()

    def _start(self) -> None:
        if self._thread is None or not self._thread.is_alive():  # a fork leaves the thread behind
            self._thread = threading.Thread(target=self._run, name="ferrule watchdog", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            time.sleep(POLL_S)
            with self.lock:
                self._ticks = [each for each in self._ticks if each() is not None]
                if not self._watched and not self._ticks:
                    self._calls.clear()
                    self._thread = None
                    return
                self._look(time.monotonic())

    def _look(self, now: float) -> None:
        for tick in self._ticks:
            method = tick()
            if method is not None:
                method(now)
        before, self._calls = self._calls, {}
        for thread, frame in _calls_in_progress(self.entries):
            since, times = before.get(frame, (now, 0))
            watched: Watched = frame.f_locals["self"]
            if now - since > watched.deadline_s:
                watched.overdue(frame, now - since, again=times > 0)
                if times % 2:
                    self._force(thread)
                else:
                    _raise_in(thread, OverdueError)
                times += 1
            self._calls[frame] = (since, times)

    def forked(self) -> None:
        """Start anew in the child of a fork, which has neither the thread nor the owner of the lock."""
        self.lock = threading.RLock()
        self._calls.clear()
        self._thread = None
        if self._watched or self._ticks:
            self._start()

    def raising_handler(
        self, function: Callable[[], None], *, handled: Callable[[], None] = lambda: None
    ) -> Callable[[int, FrameType | None], None]:
        """Return a handler of SIGINT that calls a function, or raises OverdueError if the signal is the watchdog's.

        In both cases it calls `handled` first.
        """

        def handle(number: int, frame: FrameType | None) -> None:
            del number, frame
            handled()
            if self._forced:
                self._forced = False
                raise OverdueError
            function()

        self._handlers.add(handle)
        return handle

    def _force(self, thread: int) -> None:
        handler = signal.getsignal(signal.SIGINT)
        if thread != threading.main_thread().ident:
            return
        if handler is signal.default_int_handler or handler in self._handlers:
            _raise_in(thread, None)
            self._forced = handler in self._handlers
            with contextlib.suppress(OSError, AttributeError):  # Windows has no pthread_kill
                signal.pthread_kill(thread, signal.SIGINT)

    def settle(self) -> None:
        """Take back an interruption of the calling thread that has not reached it."""
        with self.lock:
            _raise_in(threading.get_ident(), None)


def _calls_in_progress(entries: set[CodeType]) -> Iterator[tuple[int, FrameType]]:
    """Yield the thread and the frame of every call in progress of one of the methods."""
    for thread, top in sys._current_frames().items():  # noqa: SLF001 documented, for debuggers
        frame: FrameType | None = top
        while isinstance(frame, FrameType):  # CPython 3.11.7 once gave another object for a thread that went on
            if frame.f_code in entries:
                yield thread, frame
            frame = frame.f_back


def _raise_in(thread: int, kind: type[BaseException] | None) -> None:
    raised = None if kind is None else ctypes.py_object(kind)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)


WATCHDOG = Watchdog()
"""The watchdog of this process."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=WATCHDOG.forked)
