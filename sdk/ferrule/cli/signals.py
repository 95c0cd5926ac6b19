# SPDX-License-Identifier: Apache-2.0
"""The signals that end a command: they become exceptions, so that temporary files are removed on the way out.

Python runs handlers between two of its instructions only, and a product of large matrices is a single one. A thread
therefore gets the signals too, and ends the process if the handler has not run soon.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from ferrule.finalizing import put_off
from ferrule.scratch import remove_own

_SIGNALS = ("SIGTERM", "SIGHUP", "SIGXCPU")
"""Windows has only the first of these."""
_GRACE_S = 0.2
"""How long a handler may wait for the code that runs; what is longer is one call of a kernel, which cannot be left."""
_STDERR = 2
_EXIT_SIGNAL = 128


class Terminated(BaseException):
    """A signal told the command to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = signal.Signals(number)


@contextmanager
def signals_raised() -> Iterator[None]:
    """Raise an exception in the main thread on a signal that would end the process; ignored signals stay ignored.

    It is KeyboardInterrupt for Ctrl-C and Terminated for others. If the main thread is in a kernel, the process ends
    without it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    replaced: dict[int, Any] = {
        number: signal.SIG_DFL for number in numbers if signal.getsignal(number) is signal.SIG_DFL
    }
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        replaced[signal.SIGINT] = signal.default_int_handler
    watch = _Watch(frozenset(replaced))
    for number in replaced:
        signal.signal(number, watch.handle)
    try:
        with watch.running():
            yield
    finally:
        for number, handler in replaced.items():
            signal.signal(number, handler)


def handled() -> None:
    """Tell that the handler of a signal has run: to be called by handlers that a command has put in their place."""
    for watch in _running:
        watch.handled()


class _Watch:
    """Ends the process if the handler of a signal has not run a while after it."""

    def __init__(self, numbers: frozenset[int]) -> None:
        self._numbers = numbers
        self._handled = threading.Event()
        self._left = False

    def handled(self) -> None:
        """Tell that the handler of a signal has run."""
        self._handled.set()

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Raise the exception of a signal, now or after the finalizer that it interrupts."""
        self.handled()
        if put_off(number, frame):
            return
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise Terminated(number)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Watch during the block, unless another part of the process has asked for its signals, as an event loop."""
        if sys.platform == "win32":
            yield
            return
        receiver, sender = os.pipe()
        os.set_blocking(sender, False)
        earlier = signal.set_wakeup_fd(sender, warn_on_full_buffer=False)
        if earlier != -1:
            signal.set_wakeup_fd(earlier)
        thread = threading.Thread(target=self._watch, args=(receiver,), name="signals", daemon=True)
        thread.start()
        _running.append(self)
        try:
            yield
        finally:
            _running.remove(self)
            self._left = True  # the main thread is here, and in no kernel, whatever came
            self.handled()
            if earlier == -1:
                signal.set_wakeup_fd(-1)
            os.close(sender)  # which ends the thread
            thread.join()
            os.close(receiver)

    def _watch(self, receiver: int) -> None:
        while found := os.read(receiver, 64):
            number = next((each for each in found if each in self._numbers), None)
            if number is None:
                continue
            # Whose handler it is now says little: this thread may be late, and a command has given back its own.
            if not self._handled.wait(_GRACE_S) and signal.getsignal(number) == self.handle:
                _end(number)
            if not self._left:
                self._handled.clear()


_running: list[_Watch] = []
"""The watches of the commands that run, one inside another where a command calls `main`."""


def _end(number: int) -> None:
    """End the process as `main` does after the signal, with nothing but temporary files removed."""
    said = "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"
    with suppress(OSError):
        os.write(_STDERR, f"{said}\n".encode())
    remove_own()
    os._exit(_EXIT_SIGNAL + number)
